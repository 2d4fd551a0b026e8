"""The grammar of PIVOT and UNPIVOT: behind a table in FROM, and in the place of a SELECT."""

from __future__ import annotations

from abc import abstractmethod

from tqp.core.errors import ParseError
from tqp.planner.syntax.operand_grammar import NAMES_OR_TEXT, QUERY_STARTS
from tqp.planner.syntax.table_grammar import TableGrammar
from tqp.planner.syntax.words import COLUMN_NAMES

PIVOT_WORDS = frozenset(("PIVOT", "PIVOT_WIDER"))
UNPIVOT_WORDS = frozenset(("UNPIVOT", "PIVOT_LONGER"))


class PivotGrammar(TableGrammar):
    """Rows to columns, and columns to rows."""

    @abstractmethod
    def targets(self) -> None:
        """a, b AS c"""

    # behind a table

    def pivot_of_table(self) -> None:
        """`PIVOT (sum(x) FOR a IN (1, 2) GROUP BY b) AS p`, `UNPIVOT (v FOR n IN (a, b)) AS p`"""
        unpivot = self.kind == "UNPIVOT"
        self.advance()
        if unpivot and self.skip_any(("INCLUDE", "EXCLUDE")):
            self.expect("NULLS")
        self.expect("(")
        if unpivot:
            self._names_of_values()
            self.expect("FOR")
            self.expect_name(COLUMN_NAMES, "a name")
            self.expect("IN", "(")
            self.targets()
            self.close()
        else:
            self._pivoted()
        self.expect(")")
        self.alias()

    def _pivoted(self) -> None:
        if self.kind == "FOR":
            self.refuse("an aggregate")
        self.targets()
        self.expect("FOR")
        while True:
            self._header()
            if self.kind != "IN":
                self.refuse("IN")
            self._written_values()
            if self.kind in (")", "GROUP"):
                break
        if self.kind == "GROUP":
            self._groups()

    def _header(self) -> None:
        """What is compared with the values behind IN."""
        self.primary()
        self.indirections()

    def _written_values(self) -> None:
        self.expect("IN")
        if self.skip_name(COLUMN_NAMES):
            return
        self.expect("(")
        self.targets()
        self.close()

    def _groups(self) -> None:
        """GROUP BY with names of columns."""
        self.expect("GROUP", "BY")
        if self.kind == "(":
            self.names_in_parentheses()
        else:
            self.items(self._group_name, lambda: self.kind in COLUMN_NAMES)

    def _group_name(self) -> None:
        self.expect_name(COLUMN_NAMES, "the name of a column")

    def _names_of_values(self) -> None:
        if self.kind == "(":
            self.names_in_parentheses()
        else:
            self.expect_name(COLUMN_NAMES, "a name")

    # in the place of a SELECT

    def pivot_query(self) -> None:
        """`PIVOT t ON a USING sum(x) GROUP BY b`, `UNPIVOT t ON a, b INTO NAME n VALUE v`"""
        unpivot = self.kind in UNPIVOT_WORDS
        self.advance()
        self.table()
        if unpivot:
            self._unpivoted()
            return
        if self.kind not in ("ON", "USING", "GROUP"):
            self.refuse("ON, USING or GROUP BY")
        if self.skip("ON"):
            self.items(self._pivot_column, lambda: self.starts_expression())
        if self.skip("USING"):
            self.targets()
        if self.kind == "GROUP":
            self._groups()

    def _unpivoted(self) -> None:
        self.expect("ON")
        self.targets()
        if self.skip("INTO"):
            self.expect("NAME")
            self.expect_name(NAMES_OR_TEXT, "a name")
            if not self.skip_any(("VALUE", "VALUES")):
                self.refuse("VALUE")
            if self.kind == "(":
                self.names_in_parentheses()
            else:
                self.items(self._group_name, lambda: self.kind in COLUMN_NAMES)

    def _pivot_column(self) -> None:
        """`a`, `a + 1`, `a IN (1, 2 AS two)`, `a IN (SELECT ...)`"""
        start = self.index
        try:
            self._header()
            has_values = self.kind == "IN" and not self.next_is("(", ")")
        except ParseError:
            has_values = False
        if not has_values:
            self.go_back(start)
            self.expression()
        elif self.next_kind() == "(" and self.next_kind(2) in QUERY_STARTS:
            self.advance()
            self.subquery()
        else:
            self._written_values()
