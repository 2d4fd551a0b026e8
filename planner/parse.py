"""SQL text to a sqlglot tree.

sqlglot rewrites function calls into its own vocabulary (argument orders included); the parser here is told to know
almost no function, so that a call arrives as it was written and `planner/functions.py` is the only table of functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar
from typing import Literal as OneOf

from sqlglot import errors, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokenizer_core import TokenType

from tqp.core.errors import ParseError, UnsupportedError
from tqp.planner.sqlglot_parser import DuckDBParser

Span = tuple[int, int]
ExplainMode = OneOf["plan", "analyze"] | None

#: Functions whose arguments have a grammar of their own.
_FUNCTIONS_WITH_GRAMMAR = ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "POSITION", "TRIM")


_UNITS = [
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
    "week",
    "quarter",
    "decade",
    "century",
    "millennium",
]
_INTERVAL_KEYWORDS = frozenset((*_UNITS, *(unit + "s" for unit in _UNITS), "centuries", "millennia"))


def _parse_placeholder(parser: DuckDBParser) -> exp.Expr:
    """`?` with its position: the only thing that tells one from the next."""
    return exp.Placeholder().update_positions(parser._prev)


def _parse_named_placeholder(parser: DuckDBParser) -> exp.Expr | None:
    """`$1` and `$name`, with the position."""
    dollar = parser._prev
    parse_rest: Callable[[DuckDBParser], exp.Expr | None] = DuckDBParser.PLACEHOLDER_PARSERS[
        TokenType.PARAMETER
    ]
    node = parse_rest(parser)
    if isinstance(node, exp.Placeholder):
        node.update_positions(line=dollar.line, col=dollar.col, start=dollar.start, end=parser._prev.end)
    return node


_TEXT_TOKENS = (TokenType.STRING, TokenType.BYTE_STRING)


class _Parser(DuckDBParser):
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: DuckDBParser.FUNCTION_PARSERS[name] for name in _FUNCTIONS_WITH_GRAMMAR
    }
    PLACEHOLDER_PARSERS: ClassVar[dict[Any, Any]] = {
        **DuckDBParser.PLACEHOLDER_PARSERS,
        TokenType.PLACEHOLDER: _parse_placeholder,
        TokenType.PARAMETER: _parse_named_placeholder,
    }

    def _parse_type(
        self, parse_interval: bool = True, fallback_to_identifier: bool = False
    ) -> exp.Expr | None:
        """`DATE '2024-01-01'::VARCHAR` casts the date to text; sqlglot alone would apply `::` to the text before it."""
        if not fallback_to_identifier:
            literal = self._typed_literal()
            if literal is not None:
                return self._parse_column_ops(literal)
        return super()._parse_type(parse_interval, fallback_to_identifier)

    def _typed_literal(self) -> exp.Expr | None:
        """A type name with a text after it; None, and nothing consumed, where something else stands."""
        if self._curr.token_type not in self.TYPE_TOKENS or self._curr.token_type is TokenType.INTERVAL:
            return None
        start = self._index
        data_type = self._parse_types(check_func=True, allow_identifiers=False)
        if isinstance(data_type, exp.DataType) and self._curr.token_type in _TEXT_TOKENS:
            text = self._parse_primary()
            if (
                isinstance(text, (exp.Literal, exp.ByteString))
                and data_type.this not in self.TYPE_LITERAL_PARSERS
            ):
                return self.expression(exp.Cast(this=text, to=data_type))
        self._retreat(start)
        return None

    def _parse_interval_span(self, this: exp.Expr, parse_function_unit: bool = True) -> exp.Interval:
        """INTERVAL amount [unit]; a text with a unit inside is kept whole (sqlglot would drop what it cannot read)."""
        complete = this.is_string and any(character.isalpha() for character in this.name)
        unit = None
        if not complete and self._curr is not None and self._curr.text.lower() in _INTERVAL_KEYWORDS:
            unit = self._parse_var(any_token=True, upper=True)
        if self._match_text_seq("TO"):
            unit = exp.IntervalSpan(this=unit, expression=self._parse_var(any_token=True, upper=True))
        return self.expression(exp.Interval(this=this, unit=unit))


class _Tokenizer(DuckDB.Tokenizer):
    """DuckDB's, with x'00ff' and without $tag$ texts: `$1+$2` is two parameters."""

    HEREDOC_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
    HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("x'", "'"), ("X'", "'")]


_DIALECT = DuckDB()

_EXPLAIN = re.compile(r"(?is)\A(?:\s|--[^\n]*\n|/\*.*?\*/)*(explain)\b(?:\s+(analyze)\b)?")


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """A query's tree; positions in it are offsets into the text as the user wrote it."""

    tree: exp.Expr
    explain: ExplainMode


def parse(query: str) -> ParsedStatement:
    """Parse one SELECT-like statement, perhaps under EXPLAIN. Raises ParseError with a span, UnsupportedError.

    >>> type(parse("EXPLAIN SELECT 1").tree).__name__, parse("EXPLAIN SELECT 1").explain
    ('Select', 'plan')
    """
    explain: ExplainMode = None
    text = query
    match = _EXPLAIN.match(query)
    if match:
        explain = "analyze" if match.group(2) else "plan"
        text = " " * match.end() + query[match.end() :]  # keeps every position
    try:
        trees = [
            tree
            for tree in _Parser(dialect=_DIALECT).parse(_Tokenizer(dialect=_DIALECT).tokenize(text), text)
            if tree is not None and not isinstance(tree, exp.Semicolon)
        ]
    except errors.ParseError as error:
        raise _parse_error(text, error) from None
    except errors.TokenError as error:
        raise _token_error(text, error) from None
    if not trees:
        raise ParseError("there is no statement in the SQL text")
    if len(trees) > 1:
        raise UnsupportedError(f"the text holds {len(trees)} statements; pass them one at a time")
    tree = trees[0]
    if not isinstance(tree, exp.Query | exp.Values):
        keyword = tree.this if isinstance(tree, exp.Command) else tree.key
        raise UnsupportedError(
            f"{str(keyword).upper()} statements are not supported: tqp answers queries (SELECT, VALUES, WITH, FROM)"
        )
    return ParsedStatement(tree, explain)


def span_of(node: object) -> Span | None:
    """The characters that a node covers: from the first to the last position known in it. Remembered in the node."""
    if not isinstance(node, exp.Expr):
        return None
    pending = [node]
    while pending:  # a node, once its parts are done
        part = pending[-1]
        if _COVERED in part.meta:
            pending.pop()
            continue
        parts = [
            each
            for value in part.args.values()
            for each in (value if isinstance(value, list) else (value,))
            if isinstance(each, exp.Expr)
        ]
        unknown = [each for each in parts if _COVERED not in each.meta]
        if unknown:
            pending += unknown
            continue
        pending.pop()
        _remember_span(part, parts)
    covered: Span | None = node.meta[_COVERED]
    return covered


def _remember_span(node: exp.Expr, parts: list[exp.Expr]) -> None:
    meta = node.meta
    start, stop = (meta["start"], meta["end"] + 1) if "start" in meta else (None, 0)
    for part in parts:
        inner = part.meta[_COVERED]
        if inner is not None:
            start = inner[0] if start is None else min(start, inner[0])
            stop = max(stop, inner[1])
    meta[_COVERED] = None if start is None else (start, stop)


_COVERED = "covered"  # key in a node's meta


def head_span(node: object) -> Span | None:
    """The node's own position (for a call: its name), or that of its first descendant with one."""
    if not isinstance(node, exp.Expr):
        return None
    for part in node.walk(bfs=False):
        meta = part._meta
        if meta and "start" in meta:
            return meta["start"], meta["end"] + 1
    return None


def _token_error(text: str, error: errors.TokenError) -> ParseError:
    where = re.search(r"Missing (.+) from (\d+):(\d+)", str(error.__context__))  # compiled, it names no cause
    if where is None:
        return ParseError("the SQL ends inside a comment or a quoted text")
    start = 0
    for _ in range(int(where[2]) - 1):
        start = text.find("\n", start) + 1
    start += int(where[3])
    return ParseError(f"the text that starts here is never closed: {where[1]} is missing", (start, start + 1))


def _parse_error(text: str, error: errors.ParseError) -> ParseError:
    detail = error.errors[0] if error.errors else {}
    highlight = str(detail.get("highlight") or "")
    description = str(detail.get("description") or "the SQL cannot be parsed").rstrip(".")
    line, column = detail.get("line"), detail.get("col")
    span: Span | None = None
    if isinstance(line, int) and isinstance(column, int):
        line_start = 0
        for _ in range(line - 1):
            line_start = text.find("\n", line_start) + 1
        stop = min(
            line_start + column, len(text)
        )  # sqlglot's column is that of the token's last character, from 1
        start = max(line_start, stop - max(len(highlight), 1))
        if highlight and text[start : start + len(highlight)] != highlight:
            found = text.rfind(highlight, 0, stop + len(highlight))
            start = found if found >= 0 else start
        span = (start, start + max(len(highlight), 1))
    where = f' at or near "{highlight}"' if highlight else ""
    if description.startswith("Invalid expression"):
        description = "this is not where the grammar allows it"
    return ParseError(f"syntax error{where}: {description}", span)
