"""The grammar of queries and of texts with several statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from tqp.core.errors import UnsupportedError, nearest
from tqp.planner.syntax.clauses import Clauses
from tqp.planner.syntax.operand_grammar import NAMES_OR_TEXT, QUERY_STARTS
from tqp.planner.syntax.pivot_grammar import PIVOT_WORDS, UNPIVOT_WORDS, PivotGrammar
from tqp.planner.syntax.words import (
    BARE_LABELS,
    COLUMN_NAMES,
    END,
    LABELS,
    NAME,
    NUMBER,
    TEXT,
)

Explain = OneOf["plan", "analyze"] | None

_LABELS_OR_TEXT = LABELS | {TEXT}
#: Statements that WITH may precede.
CHANGES = frozenset(("INSERT", "UPDATE", "DELETE", "MERGE"))
#: Statements that are no queries, by their first words.
_OTHER_STATEMENTS = CHANGES | frozenset(
    """
    ABORT ALTER ANALYSE ANALYZE ATTACH BEGIN CALL CHECKPOINT COMMENT COMMIT CONNECT COPY CREATE DEALLOCATE DESTROY DETACH
    DISCONNECT DROP END EXECUTE EXPORT FORCE IMPORT INSTALL LOAD PRAGMA PREPARE REGISTER RESET ROLLBACK SET START TRUNCATE
    USE VACUUM
    """.split()
)
_DESCRIPTIONS = ("DESCRIBE", "DESC", "SHOW", "SUMMARIZE")
_FIRST_WORDS = tuple(
    "SELECT FROM WITH VALUES EXPLAIN CREATE INSERT UPDATE DELETE DROP DESCRIBE SHOW COPY".split()
)
_CLAUSES = (
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "JOIN",
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a text: its first token, the one behind its last, and the word with which it begins.

    `clauses`: what it says if it is no query, and of a kind that is read.
    """

    start: int
    stop: int
    word: str
    is_query: bool
    explain: Explain = None
    clauses: Clauses | None = None


#: First words of statements before which no EXPLAIN may stand.
_NOT_EXPLAINED = ("TRUNCATE", "COMMENT", "USE", "EXPORT", "IMPORT")


class QueryGrammar(PivotGrammar):
    """Whole texts."""

    def statements(self) -> list[Statement]:
        """All statements of the text. Raises ParseError where DuckDB's grammar does not allow a query."""
        found: list[Statement] = []
        while True:
            while self.kind == ";":
                self.advance()
            if self.kind == END:
                return found
            found.append(self.statement())
            if self.kind not in (";", END):
                hint = self._misspelt(self.index - 1, _CLAUSES)
                self.refuse("an operator, a comma, a clause or the end of the statement" + hint)

    def statement(self) -> Statement:
        """One statement."""
        explain: Explain = None
        if self.kind == "EXPLAIN":
            explain = self._explain()
        start, word = self.index, self.kind
        clauses: Clauses | None = None
        if word in _OTHER_STATEMENTS:
            clauses = self.other_statement()
        elif word == "WITH":
            clauses = self.statement_with_tables()
        elif word in QUERY_STARTS or word == "(":
            self.query()
        else:
            hint = self._misspelt(start, _FIRST_WORDS)
            self.refuse("a query, which begins with SELECT, FROM, WITH or VALUES" + hint)
        is_query = word not in _OTHER_STATEMENTS and clauses is None
        return Statement(start, self.index, word, is_query, explain, clauses)

    def other_statement(self) -> Clauses | None:
        """A statement that is no query, which is not read here."""
        while self.kind not in (";", END):
            self.advance()
        return None

    def statement_with_tables(self) -> Clauses | None:
        """A statement that begins with WITH; None of a query."""
        self.query()
        return None

    def _misspelt(self, index: int, words: tuple[str, ...]) -> str:
        """A hint at the word that the token, a name until now, may stand for."""
        if self.kinds[index] != NAME:
            return ""
        return nearest(self.tokens.source(index), words, limit=1)

    def _explain(self) -> Explain:
        """EXPLAIN, perhaps with ANALYZE."""
        self.advance()
        mode: Explain = "plan"
        if self.skip_any(("ANALYZE", "ANALYSE")):
            mode = "analyze"
        if self.kind == "(" and self.next_kind() not in QUERY_STARTS and self.next_kind() != "(":
            self.lacks("EXPLAIN with options")
        if self.kind in _NOT_EXPLAINED:
            self.refuse("a statement that EXPLAIN tells the plan of")
        return mode

    # queries

    def query(self, first_read: bool = False) -> None:
        """WITH, selects joined by UNION, EXCEPT and INTERSECT, ORDER BY, LIMIT."""
        if not first_read:
            if self.kind == "WITH":
                self._with()
            is_description = self.kind in _DESCRIPTIONS
            self._select()
            if is_description and self.kind in ("ORDER", "LIMIT", "OFFSET", "FETCH"):
                self.complain(f"{self.kind} stands around a description: FROM (DESCRIBE ...) {self.kind} ...")
        while self.kind in ("UNION", "EXCEPT", "INTERSECT"):
            intersect = self.kind == "INTERSECT"
            self.advance()
            self.skip_any(("DISTINCT", "ALL"))
            if not intersect and self.skip("BY"):
                self.expect("NAME")
            self._select()
        if self.skip("ORDER"):
            self.expect("BY")
            self.order_by()
        self._limit()

    def _with(self) -> None:
        self.advance()
        self.skip("RECURSIVE")
        self.items(self._common_table, lambda: self.kind in NAMES_OR_TEXT)
        if self.kind in CHANGES:
            raise not_a_query(self.kind, self._span())

    def _common_table(self) -> None:
        self.head_of_common_table()
        if self.kind in CHANGES:
            self.complain("a WITH that holds changes begins the statement")
        self.query_of_common_table()
        self.expect(")")

    def query_of_common_table(self) -> None:
        """The query that defines a table of WITH."""
        if self.kind == "COPY":
            self.lacks("COPY inside WITH")
        if self.kind in _OTHER_STATEMENTS:
            self.refuse("a query")
        self.query()

    def head_of_common_table(self) -> tuple[int, int]:
        """What stands before the query of a common table: the token that is its name, and the one behind that of its columns."""
        name = self.index
        self.expect_name(NAMES_OR_TEXT, "the name of a common table expression")
        if self.kind == "(":
            self.names_in_parentheses()
        stop = self.index
        if self.skip("USING"):
            self.expect("KEY", "(")
            self.clause(self._target, self.starts_expression)
            self.close()
        self.expect("AS")
        if self.kind == "NOT":
            self.advance()
            self.expect("MATERIALIZED")
        else:
            self.skip("MATERIALIZED")
        self.expect("(")
        return name, stop

    def _select(self) -> None:
        kind = self.kind
        if kind == "SELECT" or kind == "FROM":
            self._simple_select()
        elif kind == "(":
            self.advance()
            self.query()
            self.expect(")")
        elif kind == "VALUES":
            self.values()
        elif kind == "TABLE":
            self.advance()
            self.expect_name(NAMES_OR_TEXT, "a table")
            self.dotted()
        elif kind in PIVOT_WORDS or kind in UNPIVOT_WORDS:
            self.pivot_query()
        elif kind in _DESCRIPTIONS:
            self._description()
        else:
            self.refuse("a query, which begins with SELECT, FROM, WITH or VALUES")

    def _description(self) -> None:
        """DESCRIBE, SHOW or SUMMARIZE of a table or a query, or SHOW of all tables."""
        summarize, show = self.kind == "SUMMARIZE", self.kind == "SHOW"
        self.advance()
        if not summarize and self.kind in (";", ")", END):
            return
        if show and (self.skip("ALL") or self.kind == "TABLES"):
            self.skip("TABLES")
            if (
                self.kinds[self.index - 1] == "TABLES"
                and self.kinds[self.index - 2] != "ALL"
                and self.skip("FROM")
            ):
                self.expect_any(COLUMN_NAMES, "the name of a schema")
                self.dotted()
            return
        is_table = self.skip("TABLE")
        if not is_table and (self.kind in QUERY_STARTS or self.kind == "("):
            self.query()
            return
        self.expect_any(COLUMN_NAMES | {TEXT}, "a table or a query")
        self.dotted()

    def _simple_select(self) -> None:
        if self.skip("FROM"):
            self.tables()
            if self.kind == "SELECT":
                self._select_list()
        else:
            self._select_list()
            if self.skip("FROM"):
                self.tables()
        if self.skip("WHERE"):
            self.expression()
        if self.skip("GROUP"):
            self.expect("BY")
            if not self.skip("ALL"):
                self.clause(self._group, self.starts_expression)
        if self.skip("HAVING"):
            self.expression()
        if self.skip("WINDOW"):
            self.items(self._window_definition, lambda: self.kind in COLUMN_NAMES)
        if self.skip("QUALIFY"):
            self.expression()
        if self.kind == "USING" and self.next_kind() == "SAMPLE":
            self.advance(2)
            self.sample()

    def _select_list(self) -> None:
        self.expect("SELECT")
        if self.skip("DISTINCT"):
            if self.skip("ON"):
                self.expect("(")
                self.expressions()
                self.close()
        else:
            self.skip("ALL")
        self.targets()

    def targets(self) -> None:
        """a, b AS c, d e, f: g"""
        self.clause(self._target, self.starts_expression)

    def _target(self) -> None:
        if self.kinds[self.index + 1] == ":" and self.kind in COLUMN_NAMES:
            self.name_ahead()
            self.advance()
            self.expression()
            return
        self.expression()
        if self.kind == "AS":
            self.advance()
            self.expect_name(_LABELS_OR_TEXT, "a label")
        else:
            self.skip_name(BARE_LABELS)

    def _group(self) -> None:
        if self.kind == "(" and self.next_kind() == ")":
            self.advance(2)
        elif self.kind in ("CUBE", "ROLLUP") and self.next_kind() == "(":
            self.advance(2)
            self.expressions()
            self.close()
        elif self.kind == "GROUPING" and self.next_is("SETS"):
            self.advance(2)
            self.expect("(")
            self.items(self._group, self.starts_expression)
            self.close()
        else:
            self.expression()

    def _window_definition(self) -> None:
        self.expect_name(COLUMN_NAMES, "the name of a window")
        self.expect("AS")
        self.window()

    def order_by(self) -> None:
        """a DESC NULLS LAST, b; or ALL"""
        if self.skip("ALL"):
            self._direction()
        else:
            self.clause(self._ordered, self.starts_expression)

    def _ordered(self) -> None:
        self.expression()
        self._direction()

    def _direction(self) -> None:
        if self.kind in ("ASC", "DESC") or self.word_is("ASCENDING") or self.word_is("DESCENDING"):
            self.advance()
        if self.skip("NULLS"):
            self.expect_any(("FIRST", "LAST"), "FIRST or LAST")

    def _limit(self) -> None:
        """LIMIT or FETCH, and OFFSET, in either order."""
        values = {"LIMIT": self._limit_value, "FETCH": self._fetch_value, "OFFSET": self._offset_value}
        first = self.kind
        if self.skip_any(values):
            values[first]()
            second = self.kind
            if (first == "OFFSET") != (second == "OFFSET") and self.skip_any(values):
                values[second]()

    def _limit_value(self) -> None:
        if self.skip("ALL"):
            return
        if self.kind == NUMBER and self.next_kind() == "PERCENT":
            self.advance(2)
            return
        self.expression()
        self.skip("%")

    def _offset_value(self) -> None:
        self.expression()
        self.skip_any(("ROW", "ROWS"))

    def _fetch_value(self) -> None:
        self.expect_any(("FIRST", "NEXT"), "FIRST or NEXT")
        if not (self.kind in ("ROW", "ROWS") and self.next_kind() == "ONLY"):
            self.expression()
        self.expect_any(("ROW", "ROWS"), "ROWS")
        self.expect("ONLY")

    def values(self) -> None:
        """VALUES (a, b), (c, d)"""
        self.expect("VALUES")
        width = 0

        def row() -> None:
            nonlocal width
            self.expect("(")
            count = self.expressions()
            if width and count != width:
                self.complain(f"this row of VALUES has {count} values, the first has {width}")
            width = count
            self.close()

        self.clause(row, lambda: self.kind == "(")


def not_a_query(word: str, span: tuple[int, int] | None = None) -> UnsupportedError:
    """The error for a statement of another kind where a query should stand, which begins with this word."""
    return UnsupportedError(f"{word} in the place of a query is not supported", span)
