"""The grammar of what looks like a call: functions, their FILTER and OVER, and those with words among the arguments."""

from __future__ import annotations

from abc import abstractmethod

from tqp.core.keywords import lower_ascii
from tqp.planner.syntax.type_grammar import UNITS, TypeGrammar
from tqp.planner.syntax.words import COLUMN_NAMES, FUNCTION_NAMES, NAME, TEXT

_DIRECTIONS = frozenset(("BOTH", "LEADING", "TRAILING"))
_FRAMES = frozenset(("ROWS", "RANGE", "GROUPS"))


class CallGrammar(TypeGrammar):
    """Calls, as parts of expressions."""

    #: While the definition of a window is read, subqueries in it included.
    _in_window = False

    @abstractmethod
    def arithmetic(self) -> None:
        """An expression without comparisons, IN, LIKE, BETWEEN, IS, NOT, AND, OR."""

    @abstractmethod
    def order_by(self) -> None:
        """What stands behind ORDER BY."""

    @abstractmethod
    def starts_expression(self) -> bool:
        """Whether the token at hand can begin an expression."""

    def call(self, with_clauses: bool = True) -> None:
        """`(DISTINCT a, b := 1 ORDER BY c)` and the clauses behind it, which none of a table function has; its name is read."""
        name = lower_ascii(self.tokens.source(self.index - 1).strip('"'))
        starts = self._starts_argument_of_model if name == _MODEL_FUNCTION else self.starts_expression
        count = 0
        self.expect("(")
        if self.skip_any(("DISTINCT", "ALL")) and not starts():
            self.refuse(f"an argument behind {self.kinds[self.index - 1]}")
        if starts():
            count = self.items(self._argument, starts)
        if name == "columns" and count and self.kinds[self.index - 1] == ",":
            self.complain("no comma stands behind the argument of COLUMNS(...)")
        if with_clauses and count != _COUNTS.get(name, count):
            self.complain(f"the number of arguments of {name}() must be {_COUNTS[name]}")
        if self.skip("ORDER", "BY"):
            self.order_by()
        if self.kind in ("IGNORE", "RESPECT"):
            self.advance()
            self.expect("NULLS")
        self.close("an argument")
        if with_clauses:
            self._clauses()

    def close(self, alternative: str = "") -> None:
        """The closing parenthesis of a list."""
        if self.kind != ")":
            before = self.kinds[self.index - 1]
            self.refuse(f'{alternative} or ")"' if alternative and before in ("(", ",") else '"," or ")"')
        self.advance()

    def _starts_argument_of_model(self) -> bool:
        return self.kind == "TABLE" or self.starts_expression()

    def _argument(self) -> None:
        if self.skip("TABLE"):
            self.expect_name(COLUMN_NAMES, "the name of a table")
            return
        if self.next_kind() in (":=", "=>") and self.kind in _PARAMETER_NAMES:
            self.name_ahead()
            self.advance()
        self.expression()

    def _clauses(self) -> None:
        if self.kind == "WITHIN" and self.next_is("GROUP"):
            self.advance(2)
            self.expect("(", "ORDER", "BY")
            self.order_by()
            self.expect(")")
        if self.kind == "FILTER":
            self.advance()
            self.expect("(")
            self.skip("WHERE")
            self.expression()
            self.expect(")")
        if self.kind == "EXPORT_STATE":
            self.lacks("EXPORT_STATE")
        if self.kind == "OVER":
            if self._in_window:
                self.complain(
                    "a window function cannot stand in the definition of a window, nor in a subquery of it"
                )
            self.advance()
            if self.kind == "(":
                self.window()
            else:
                self.expect_name(COLUMN_NAMES, 'the name of a window or "("')

    # windows

    def window(self) -> None:
        """`(base PARTITION BY a ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)`"""
        self.expect("(")
        around, self._in_window = self._in_window, True
        if self.kind in COLUMN_NAMES and self._names_a_window():
            if self.kind in _FRAMES or self.kind == "PARTITION":
                self.complain("no window of this name can be called; give it another one")
            self.name_ahead()
        if self.skip("PARTITION"):
            self.expect("BY")
            self.expressions()
        if self.skip("ORDER"):
            self.expect("BY")
            self.order_by()
        if self.skip_any(_FRAMES):
            self._frame()
        self._in_window = around
        self.expect(")")

    def _names_a_window(self) -> bool:
        following = self.next_kind()
        return following in (")", "PARTITION", "ORDER") or following in _FRAMES or self.kind == NAME

    def _frame(self) -> None:
        if self.skip("BETWEEN"):
            self._bound()
            self.expect("AND")
        self._bound()
        if self.skip("EXCLUDE") and not (self.skip("CURRENT", "ROW") or self.skip("NO", "OTHERS")):
            self.expect_any(("GROUP", "TIES"), "CURRENT ROW, GROUP, TIES or NO OTHERS")

    def _bound(self) -> None:
        if self.skip("CURRENT", "ROW"):
            return
        if not (self.kind == "UNBOUNDED" and self.next_kind() in ("PRECEDING", "FOLLOWING")):
            self.expression()
        else:
            self.advance()
        self.expect_any(("PRECEDING", "FOLLOWING"), "PRECEDING or FOLLOWING")

    # calls with a grammar of their own

    def cast(self) -> None:
        """`CAST(a AS type)`"""
        self.advance()
        self.expect("(")
        self.expression()
        self.expect("AS")
        self.type()
        self.expect(")")

    def try_cast(self) -> None:
        """`TRY_CAST(a AS type)`; a function of that name without AS."""
        self.advance()
        self.expect("(")
        if self.starts_expression():
            self._argument()
            if self.skip("AS"):
                self.type()
                self.expect(")")
                return
            while self.skip(",") and self.starts_expression():
                self._argument()
        self.close()
        self._clauses()

    def extract(self) -> None:
        """`extract(year FROM a)`"""
        self.advance(2)
        if self.kind not in UNITS:
            self.expect_any(COLUMN_NAMES | {TEXT}, "a part of a date, such as year")
        else:
            self.advance()
        self.expect("FROM")
        self.expression()
        self.expect(")")

    def substring(self) -> None:
        """`substring(a FROM 1 FOR 2)` or with commas."""
        self.advance(2)
        self.expression()
        if self.kind in ("FROM", "FOR"):
            if self.skip("FROM"):
                self.expression()
            if self.skip("FOR"):
                self.expression()
            self.expect(")")
            return
        self._rest_of_list()

    def trim(self) -> None:
        """`trim(BOTH a FROM b)` or with commas."""
        self.advance(2)
        self.skip_any(_DIRECTIONS)
        if self.skip("FROM"):
            self.expressions()
        else:
            self.expression()
            if self.skip("FROM"):
                self.expressions()
            else:
                self._rest_of_list()
                return
        self.expect(")")

    def overlay(self) -> None:
        """`overlay(a PLACING b FROM 1 FOR 2)` or with commas."""
        self.advance(2)
        self.expression()
        if not self.skip("PLACING"):
            self._rest_of_list()
            return
        self.expression()
        self.expect("FROM")
        self.expression()
        if self.skip("FOR"):
            self.expression()
        self.expect(")")

    def position(self) -> None:
        """`position(a IN b)`"""
        self.advance(2)
        self.arithmetic()
        self.expect("IN")
        self.expression()
        self.expect(")")

    def nullif(self) -> None:
        """`nullif(a, b)`"""
        self.advance(2)
        self.expression()
        self.expect(",")
        self.expression()
        self.expect(")")

    def list_of_some(self) -> None:
        """`coalesce(a, b)`: at least one."""
        self.advance(2)
        self.expressions()
        self.close("an expression")

    def list_of_any(self) -> None:
        """`row()`, `grouping(a, b)`: any number."""
        self.advance(2)
        if self.kind != ")":
            self.expressions()
        self.close("an expression")

    def _rest_of_list(self) -> None:
        while self.skip(",") and self.starts_expression():
            self.expression()
        self.close("an expression")


#: Our own function, which takes `TABLE t` as an argument.
_MODEL_FUNCTION = "ml_predict"
#: How many arguments there must be, where that is part of the grammar.
_COUNTS = {"ifnull": 2, "date": 1, "try": 1, "unpack": 1}
_PARAMETER_NAMES = FUNCTION_NAMES | COLUMN_NAMES

#: Words that begin a call with a grammar of its own where a parenthesis follows.
CALLS_WITH_GRAMMAR = {
    "TRY_CAST": CallGrammar.try_cast,
    "EXTRACT": CallGrammar.extract,
    "SUBSTRING": CallGrammar.substring,
    "TRIM": CallGrammar.trim,
    "OVERLAY": CallGrammar.overlay,
    "POSITION": CallGrammar.position,
    "NULLIF": CallGrammar.nullif,
    "COALESCE": CallGrammar.list_of_some,
    "ROW": CallGrammar.list_of_any,
    "GROUPING": CallGrammar.list_of_any,
    "GROUPING_ID": CallGrammar.list_of_any,
}
