"""The grammar of FROM: tables, joins and samples."""

from __future__ import annotations

from abc import abstractmethod

from tqp.planner.syntax.expression_grammar import ExpressionGrammar
from tqp.planner.syntax.operand_grammar import NAMES_OR_TEXT, QUERY_GOES_ON, QUERY_STARTS
from tqp.planner.syntax.words import COLUMN_NAMES, FUNCTION_NAMES, NUMBER, TEXT

_SIDES = frozenset(("LEFT", "RIGHT", "FULL"))
_JOIN_WORDS = frozenset("JOIN ASOF LEFT RIGHT FULL INNER SEMI ANTI CROSS NATURAL POSITIONAL".split())


class TableGrammar(ExpressionGrammar):
    """What stands behind FROM and JOIN."""

    @abstractmethod
    def values(self) -> None:
        """VALUES and its rows."""

    @abstractmethod
    def pivot_of_table(self) -> None:
        """PIVOT (...) or UNPIVOT (...)"""

    def tables(self) -> None:
        """a, b JOIN c ON d"""
        self.clause(self.table, self._starts_table)

    def _starts_table(self) -> bool:
        kind = self.kind
        if kind in COLUMN_NAMES or kind in (TEXT, "(", "LATERAL"):
            return True
        return kind in FUNCTION_NAMES and self.next_kind() in ("(", ".")

    def table(self) -> None:
        """A table with the joins behind it."""
        self._plain_table()
        self._joins()

    def _joins(self) -> None:
        while True:
            if self.kind in _JOIN_WORDS:
                self._join()
            elif self.kind in ("PIVOT", "UNPIVOT"):
                self.pivot_of_table()
            else:
                return

    def _plain_table(self) -> None:
        """A table with its alias and sample, without joins."""
        named = self.next_kind() == ":" and self.kind in NAMES_OR_TEXT
        if named:
            self.name_ahead()
            self.advance()
        kind = self.kind
        if kind == "VALUES" and self.next_kind() == "(":
            self.values()
        elif kind == "(":
            self._parenthesized_table()
        else:
            self._named_table()
        self._refuse_nearest()
        if named and (self.kind == "AS" or self.kind in COLUMN_NAMES):
            self.complain("this table has a name already, before the colon")
        self.alias()
        if self.kind == "AT" and self.next_kind() == "(":
            self.lacks("a table version")
        if self.skip("TABLESAMPLE"):
            self.sample()

    def _named_table(self) -> None:
        lateral = self.skip("LATERAL")
        if lateral and self.kind == "(":
            self.subquery()
            return
        if self.kind == TEXT and not lateral:
            self.advance()
            return
        kind = self.kind
        if kind not in COLUMN_NAMES and not (kind in FUNCTION_NAMES and self.next_kind() == "("):
            self.refuse("a table")
        if self.next_kind() == "(":
            self.advance()
        else:
            self.name_ahead()
        qualified = self.dotted()
        if qualified and self.kind == "(" and self.tokens.kinds[self.index - 1] not in FUNCTION_NAMES:
            self.refuse("the name of a function before it")
        if self.kind == "(" and (qualified or kind in FUNCTION_NAMES):
            self.call(with_clauses=False)
            if self.kind == "WITH" and self.next_kind() not in ("NO", "DATA"):  # of CREATE TABLE AS
                self.advance()
                self.expect("ORDINALITY")
        elif lateral:
            self.refuse('"("')

    def _parenthesized_table(self) -> bool:
        """A query, or a table with joins, in parentheses; whether it is a query."""
        self.expect("(")
        kind = self.kind
        if kind == "VALUES" and self.next_kind() == "(":
            self.values()
            if self.kind in QUERY_GOES_ON or self.kind == ")":
                self.query(first_read=True)
                self.expect(")")
                return True
        elif kind in QUERY_STARTS and kind != "VALUES":
            self.query()
            self.expect(")")
            return True
        elif kind == "(":
            if self._parenthesized_table():
                if self.kind in QUERY_GOES_ON:
                    self.query(first_read=True)
                    self.expect(")")
                    return True
                if self.skip(")"):
                    return True
        else:
            self.table()
            self.expect(")")
            return False
        self.alias()
        if self.skip("TABLESAMPLE"):
            self.sample()
        self._joins()
        self.expect(")")
        return False

    def alias(self) -> None:
        """`AS a (b, c)`, if it is there."""
        if self.skip("AS"):
            self.expect_name(NAMES_OR_TEXT, "an alias")
        elif not self.skip_name(COLUMN_NAMES):
            return
        if self.kind == "(":
            self.names_in_parentheses()

    def names_in_parentheses(self) -> None:
        """`(a, b)`"""
        self.expect("(")
        self._names()
        self.close("a name")

    # joins

    def _join(self) -> None:
        if self.kind == "JOIN" and self.next_is("BY", "("):
            self.lacks("JOIN BY")
        if self.kind in ("CROSS", "POSITIONAL", "NATURAL"):
            if self.skip("NATURAL"):
                self._join_type()
            else:
                self.advance()
            self.expect("JOIN")
            self._plain_table()
            return
        self.skip("ASOF")
        self._join_type()
        self.expect("JOIN")
        self._plain_table()
        self._joins()
        self._refuse_nearest()
        self.join_condition()

    def _join_type(self) -> None:
        if self.skip_any(_SIDES):
            self.skip("OUTER")
        else:
            self.skip_any(("INNER", "SEMI", "ANTI"))

    def join_condition(self) -> None:
        """ON condition, or USING (columns)."""
        if self.skip("ON"):
            self.expression()
            return
        if self.kind != "USING" or self.next_kind() == "SAMPLE":
            self.refuse("ON or USING")
        self.advance()
        self.names_in_parentheses()

    def _refuse_nearest(self) -> None:
        """`NEAREST 3 BY`: NEAREST alone is an alias."""
        ahead = 1 if self.kind in ("APPROX", "EXACT") else 0
        by = ahead + (2 if self.next_kind(ahead + 1) == NUMBER else 1)
        if self.next_kind(ahead) == "NEAREST" and self.next_kind(by) == "BY":
            self.lacks("JOIN ... NEAREST")

    # samples

    def sample(self) -> None:
        """What stands behind TABLESAMPLE and USING SAMPLE."""
        if self.kind in COLUMN_NAMES or self.kind == "(":
            self.skip_any(COLUMN_NAMES)
            self.expect("(")
            self._sample_size()
            self.expect(")")
            if self.skip("REPEATABLE"):
                self.expect("(")
                self.expect_any((NUMBER,), "a number")
                self.expect(")")
            return
        self._sample_size()
        if self.skip("("):
            self.expect_name(COLUMN_NAMES, "a method")
            if self.skip(","):
                self.expect_any((NUMBER,), "a number")
            self.expect(")")

    def _sample_size(self) -> None:
        if self.kind in ("?", "$"):
            self._parameter()
        else:
            self.expect_any((NUMBER,), "a number")
        self.skip_any(("%", "PERCENT", "ROWS"))
