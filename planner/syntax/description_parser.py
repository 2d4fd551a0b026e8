"""sqlglot's parser with DESCRIBE, SHOW and SUMMARIZE as DuckDB has them: queries, which may stand wherever a SELECT may.

Each is `SELECT * FROM` an `exp.Describe` around the query that it is about, or around nothing; its `kind` is one of the `Kind`s.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from tqp.planner.syntax.pivot_parser import PivotParser


class Kind(Enum):
    """What is asked for."""

    COLUMNS = "DESCRIBE"
    SUMMARY = "SUMMARIZE"
    TABLES = "SHOW TABLES"
    ALL_TABLES = "SHOW ALL TABLES"
    DATABASES = "SHOW DATABASES"
    SCHEMAS = "SHOW SCHEMAS"
    VARIABLES = "SHOW VARIABLES"


_WORDS = (TokenType.DESCRIBE, TokenType.DESC, TokenType.SHOW, TokenType.SUMMARIZE)
_QUERY_STARTS = (
    *(TokenType.SELECT, TokenType.FROM, TokenType.WITH, TokenType.VALUES, TokenType.TABLE, TokenType.L_PAREN),
    *(TokenType.PIVOT, TokenType.UNPIVOT, *_WORDS),
)
_LISTED = {"DATABASES": Kind.DATABASES, "SCHEMAS": Kind.SCHEMAS, "VARIABLES": Kind.VARIABLES}
_ENDS = (TokenType.R_PAREN, TokenType.SEMICOLON)


class DescriptionParser(PivotParser):
    """Of queries that say what tables, columns and their values are like."""

    QUERIES: ClassVar[dict[TokenType, Any]] = {
        **PivotParser.QUERIES,
        **dict.fromkeys(_WORDS, lambda self: self._description()),
    }
    STATEMENT_PARSERS: ClassVar[dict[TokenType, Any]] = {
        **PivotParser.STATEMENT_PARSERS,
        **dict.fromkeys(_WORDS, lambda self: self._whole(self._description())),
    }

    def _description(self) -> exp.Expr:
        word = self._prev
        kind = Kind.SUMMARY if word.token_type is TokenType.SUMMARIZE else self._kind()
        query = self._described() if kind in (Kind.COLUMNS, Kind.SUMMARY) else None
        node = exp.Describe(kind=kind, this=query)
        if kind is Kind.TABLES and self._match(TokenType.FROM):  # of one schema
            schema = self._parse_table_parts()
            assert isinstance(schema, exp.Table)
            node.set("expressions", schema.parts)
        return self._all_of(node.update_positions(word))

    def _kind(self) -> Kind:
        is_show = self._prev.token_type is TokenType.SHOW
        if not self._curr or self._curr.token_type in _ENDS or is_show and self._match_text_seq("ALL"):
            self._match_text_seq("TABLES")
            return Kind.ALL_TABLES
        if self._match_text_seq("TABLES"):
            return Kind.TABLES
        listed = next((each for each in _LISTED if is_show and self._match_text_seq(each)), None)
        return Kind.COLUMNS if listed is None else _LISTED[listed]

    def _described(self) -> exp.Expr | None:
        """The query, which of a table is all of it."""
        if self._match(TokenType.TABLE):
            return self._all_of(self._parse_table())
        if self._curr.token_type in _QUERY_STARTS:
            query: exp.Expr | None = self._parse_statement()
            return query
        return self._all_of(self._parse_table())

    def _all_of(self, source: exp.Expr | None) -> exp.Expr:
        return self.expression(exp.Select(expressions=[exp.Star()], from_=exp.From(this=source)))
