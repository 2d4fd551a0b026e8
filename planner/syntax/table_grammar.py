"""The grammar of FROM: tables, joins, PIVOT and samples."""

from __future__ import annotations

from abc import abstractmethod

from tqp.planner.syntax.expression_grammar import ExpressionGrammar
from tqp.planner.syntax.operand_grammar import NAMES_OR_TEXT, QUERY_GOES_ON, QUERY_STARTS
from tqp.planner.syntax.words import COLUMN_NAMES, FUNCTION_NAMES, LABELS, NUMBER, TEXT

_SIDES = frozenset(("LEFT", "RIGHT", "FULL"))
_JOIN_WORDS = frozenset("JOIN ASOF LEFT RIGHT FULL INNER SEMI ANTI CROSS NATURAL POSITIONAL".split())


class TableGrammar(ExpressionGrammar):
    """What stands behind FROM and JOIN."""

    @abstractmethod
    def targets(self) -> None:
        """Expressions with labels, as behind SELECT."""

    @abstractmethod
    def values(self) -> None:
        """VALUES and its rows."""

    def tables(self) -> None:
        """a, b JOIN c ON d"""
        self.items(self.table, self._starts_table)

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
            elif self.kind == "PIVOT":
                self._pivot()
            elif self.kind == "UNPIVOT":
                self._unpivot()
            else:
                return

    def _plain_table(self, before_nearest: bool = False) -> None:
        """A table with its alias and sample, without joins. `before_nearest`: it stands behind JOIN."""
        named = self.next_kind() == ":" and self.kind in NAMES_OR_TEXT
        if named:
            self.advance(2)
        kind = self.kind
        if kind == "VALUES" and self.next_kind() == "(":
            self.values()
        elif kind == "(":
            self._parenthesized_table()
        else:
            self._named_table()
        if before_nearest and self._nearest_follows():
            return
        if named and (self.kind == "AS" or self.kind in COLUMN_NAMES):
            self.complain("this table has a name already, before the colon")
        self._alias()
        if self.kind == "AT" and self.next_kind() == "(":
            self.advance(2)
            self.expect_any(("VERSION", "TIMESTAMP"), "VERSION or TIMESTAMP")
            self.expect("=>")
            self.expression()
            self.expect(")")
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
        self.advance()
        qualified = False
        while self.kind == ".":
            self.advance()
            self.expect_any(LABELS, "a name")
            qualified = True
        if self.kind == "(" and (qualified or kind in FUNCTION_NAMES):
            self.call(with_clauses=False)
            if self.skip("WITH"):
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
        self._alias()
        if self.skip("TABLESAMPLE"):
            self.sample()
        self._joins()
        self.expect(")")
        return False

    def _alias(self) -> None:
        """`AS a (b, c)`, if it is there."""
        if self.skip("AS"):
            self.expect_any(NAMES_OR_TEXT, "an alias")
        elif not self.skip_any(COLUMN_NAMES):
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
            self.advance(3)
            if not self.word_is("TYPE"):
                self.refuse("TYPE")
            self.advance()
            self.expect_any(LABELS, "a kind of join")
            self.expect(")")
            self.table()
            self._condition()
            return
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
        self._plain_table(before_nearest=True)
        if self._nearest_follows():
            self._nearest()
            return
        self._joins()
        if self._nearest_follows():
            self._nearest()
        else:
            self._condition()

    def _join_type(self) -> None:
        if self.skip_any(_SIDES):
            self.skip("OUTER")
        else:
            self.skip_any(("INNER", "SEMI", "ANTI"))

    def _condition(self) -> None:
        if self.skip("ON"):
            self.expression()
            return
        if self.kind != "USING" or self.next_kind() == "SAMPLE":
            self.refuse("ON or USING")
        self.advance()
        self.names_in_parentheses()

    def _nearest_follows(self) -> bool:
        """`NEAREST 3 BY`: NEAREST alone is an alias."""
        ahead = 1 if self.kind in ("APPROX", "EXACT") else 0
        if self.next_kind(ahead) != "NEAREST":
            return False
        ahead += 2 if self.next_kind(ahead + 1) == NUMBER else 1
        return self.next_kind(ahead) == "BY"

    def _nearest(self) -> None:
        self.skip_any(("APPROX", "EXACT"))
        self.expect("NEAREST")
        self.skip_any((NUMBER,))
        self.expect("BY")
        self.expect_any(("DISTANCE", "SIMILARITY"), "DISTANCE or SIMILARITY")
        self.expression()

    # PIVOT and UNPIVOT behind a table

    def _pivot(self) -> None:
        self.advance()
        self.expect("(")
        self.targets()
        self.expect("FOR")
        self._pivot_values()
        while self.kind not in (")", "GROUP"):
            self._pivot_values()
        self.group_by_names()
        self.expect(")")
        self._alias()

    def _pivot_values(self) -> None:
        self._operand()
        self.expect("IN")
        self._pivot_target()

    def _pivot_target(self) -> None:
        if self.skip("("):
            self.targets()
            self.close()
        else:
            self.expect_any(COLUMN_NAMES, '"(" or the name of a type')

    def group_by_names(self) -> None:
        """GROUP BY a, b: names only; if it is there."""
        if self.skip("GROUP"):
            self.expect("BY")
            self._names_with_or_without_parentheses()

    def _names_with_or_without_parentheses(self) -> None:
        if self.kind == "(":
            self.names_in_parentheses()
        else:
            self._names()

    def _unpivot(self) -> None:
        self.advance()
        if self.skip_any(("INCLUDE", "EXCLUDE")):
            self.expect("NULLS")
        self.expect("(")
        self._unpivot_header()
        self.expect("FOR")
        while True:
            self._unpivot_header()
            self.expect("IN", "(")
            self.targets()
            self.close()
            if self.kind == ")":
                break
        self.expect(")")
        self._alias()

    def _unpivot_header(self) -> None:
        if self.kind == "(":
            self.names_in_parentheses()
        else:
            self.expect_any(NAMES_OR_TEXT, "a name")

    def pivot_statement(self) -> None:
        """`PIVOT t ON a IN (1, 2) USING sum(b) GROUP BY c`"""
        self.advance()
        self.table()
        if self.skip("ON"):
            self.items(self._pivot_entry, self.starts_expression)
        if self.kind == "USING" and self.next_kind() != "SAMPLE":
            self.advance()
            self.targets()
        self.group_by_names()

    def _pivot_entry(self) -> None:
        start = self.index
        if self.kind != "(":
            self._operand()
            if self.kind == "IN":
                self.advance()
                if self.kind == "(" and self.next_kind() in QUERY_STARTS:
                    self.subquery()
                else:
                    self._pivot_target()
                return
            self.go_back(start)
        self.expression()

    def unpivot_statement(self) -> None:
        """`UNPIVOT t ON a, b INTO NAME c VALUE d`"""
        self.advance()
        self.table()
        self.expect("ON")
        self.targets()
        if self.skip("INTO"):
            self.expect("NAME")
            self.expect_any(NAMES_OR_TEXT, "a name")
            self.expect_any(("VALUE", "VALUES"), "VALUE")
            self._names_with_or_without_parentheses()

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
            self.expect_any(COLUMN_NAMES, "a method")
            if self.skip(","):
                self.expect_any((NUMBER,), "a number")
            self.expect(")")

    def _sample_size(self) -> None:
        if self.kind in ("?", "$"):
            self._parameter()
        else:
            self.expect_any((NUMBER,), "a number")
        self.skip_any(("%", "PERCENT", "ROWS"))
