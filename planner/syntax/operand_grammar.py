"""The grammar of operands: names, literals, parentheses, lists, CASE and the like."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from tqp.core.errors import ParseError
from tqp.core.keywords import FUNCTION_WORDS
from tqp.planner.syntax.call_grammar import CALLS_WITH_GRAMMAR, CallGrammar
from tqp.planner.syntax.words import (
    BUILT_IN_TYPES,
    COLUMN_NAMES,
    FUNCTION_NAMES,
    LABELS,
    NAME,
    NUMBER,
    TEXT,
    TYPE_NAMES,
)

NAMES_OR_TEXT = COLUMN_NAMES | {TEXT}
QUERY_STARTS = frozenset(
    "SELECT FROM WITH VALUES TABLE DESCRIBE DESC SHOW SUMMARIZE PIVOT PIVOT_WIDER UNPIVOT PIVOT_LONGER".split()
)

#: What joins one query to another, or orders and cuts its rows.
QUERY_GOES_ON = frozenset("UNION EXCEPT INTERSECT ORDER LIMIT OFFSET FETCH".split())

#: Reserved words, and marks, that begin an operand. All names do too, and words that name functions before a parenthesis.
CONSTANTS = frozenset(("NULL", "TRUE", "FALSE", "DEFAULT"))

_TYPED_WORDS = BUILT_IN_TYPES | {
    "TIME",
    "TIMESTAMP",
    "DOUBLE",
    "STRUCT",
    "MAP",
    "UNION",
    "NATIONAL",
    "SETOF",
    "TUPLE",
}


class OperandGrammar(CallGrammar):
    """What stands between operators."""

    @abstractmethod
    def query(self, first_read: bool = False) -> None:
        """A query; with `first_read`, what follows the parentheses with which it begins."""

    def primary(self) -> None:
        """An operand without signs and without what may follow it directly, such as `.field` or `::type`."""
        kind = self.kind
        if kind == NAME:
            self._name()
        elif kind in (NUMBER, TEXT) or kind in CONSTANTS:
            self.advance()
        elif kind == "(":
            self.parentheses()
        elif kind in CALLS_WITH_GRAMMAR and self.next_kind() == "(":
            if not (kind == "ROW" and self._typed_text()):
                CALLS_WITH_GRAMMAR[kind](self)
        elif kind in _OTHER_OPERANDS:
            _OTHER_OPERANDS[kind](self)
        elif kind in _TYPED_WORDS and self._typed_text():
            pass
        elif kind in LABELS:
            self._name()
        else:
            self.refuse("an expression")

    def _name(self) -> None:
        """A column, a call, `t.*`, or a type before a text."""
        kind, following = self.kind, self.next_kind()
        if following == "(":
            if kind not in FUNCTION_NAMES:
                if kind not in COLUMN_NAMES:
                    self.refuse("an expression")
                self.advance()
                self.refuse("an operator or the end of the expression")
            start = self.index
            self.advance()
            self.call()
            if self.kind == TEXT and kind in TYPE_NAMES:  # a type with modifiers
                self.advance()
            else:
                self.tokens.names.add(start)
            return
        if following == TEXT and kind in TYPE_NAMES:
            if kind in FUNCTION_WORDS:  # no type of ours
                self.tokens.names.add(self.index)
            self.advance(2)
            return
        if kind not in COLUMN_NAMES:
            self.refuse("an expression")
        start = self.index
        self.name_ahead()
        while self.kind == ".":
            following = self.next_kind()
            if following == "*":
                if self.index > start + 1:
                    self.advance()
                    self.complain("one name, not several, may stand before .*")
                self.advance(2)
                self._star_options()
                return
            if following not in LABELS:
                self.advance()
                if following == TEXT and self.next_kind() == ".":
                    self.lacks("a text between dots")  # the name, quotes included, of a table
                self.refuse("a name")
            self.advance()
            self.name_ahead()
            if self.kind == "(":
                self.call()
                return
        if kind in TYPE_NAMES:
            self._array_type()
            if self.kind == TEXT:
                self.tokens.names.discard(start)
                self.advance()

    def _array_type(self) -> None:
        """`name[] 'text'`: brackets that are those of a type, as a text follows. Nothing is read otherwise."""
        if self.kind != "[" and self.kind != "ARRAY":
            return
        start = self.index
        closed = True
        while closed and self.kind in ("[", "ARRAY"):
            self.skip("ARRAY")
            if self.skip("["):
                self.skip_any((NUMBER,))
                closed = self.skip("]")
        if not closed or self.kind != TEXT:
            self.go_back(start)

    def go_back(self, index: int) -> None:
        """Move back to a token seen before."""
        self.index = index
        self.kind = self.kinds[index]
        self.tokens.names.difference_update([name for name in self.tokens.names if name >= index])

    def _typed_text(self) -> bool:
        """A type of several words or marks before a text; False, and nothing read, where something else stands."""
        start = self.index
        try:
            self.type()
        except ParseError:
            self.go_back(start)
            return False
        if self.kind != TEXT:
            self.go_back(start)
            return False
        self.advance()
        return True

    def indirections(self) -> None:
        """`.field`, `.method(...)`, `[1:2]`, `::type` and `!`, any number of them."""
        while True:
            kind = self.kind
            if kind == "::":
                self.advance()
                self.type()
            elif kind == ".":
                self.advance()
                self.expect_name(LABELS, "a name")
                if self.kind == "(":
                    self.call(with_clauses=False)
            elif kind == "[":
                self._subscript()
            elif kind == "!":
                self.advance()
            else:
                return

    def _subscript(self) -> None:
        self.expect("[")
        if self.kind == "]":
            self.refuse("a subscript")
        if self.kind != ":":
            self.expression()
        if self.skip(":"):
            if self.kind == "-" and self.next_kind() in (":", "]"):
                self.advance()
            elif self.kind not in (":", "]"):
                self.expression()
            if self.skip(":") and self.kind != "]":
                self.expression()
        self.expect("]")

    # parentheses and brackets

    def parentheses(self) -> bool:
        """An expression, a list of them or a query in parentheses; whether it is a query."""
        self.expect("(")
        kind = self.kind
        if kind == ")":
            self.advance()
            return False
        if kind in QUERY_STARTS and (kind != "VALUES" or self.next_kind() == "("):
            self.query()
            self.expect(")")
            return True
        if kind == "(":
            if self.parentheses():
                if self.kind in QUERY_GOES_ON:
                    self.query(first_read=True)
                    self.expect(")")
                    return True
                if self.skip(")"):
                    return True
            self.expression(operand_read=True)
        else:
            self.expression()
        while self.skip(",") and self.kind != ")":
            self.expression()
        self.close()
        return False

    def subquery(self) -> None:
        """A query in parentheses."""
        start = self.index
        if self.kind == "(" and not self.parentheses():
            self.go_back(start + 1)
            self.refuse("a query")

    def _list(self) -> None:
        """`[a, b]`, `ARRAY[a, b]`, `ARRAY(SELECT a)` or `[a FOR a IN b IF c]`"""
        if self.skip("ARRAY"):
            if self.kind == "(":
                self.subquery()
                return
            if self.kind != "[":
                self.refuse('"[" or a query in parentheses')
        self.expect("[")
        if self.kind != "]":
            self.expression()
            if self.skip("FOR"):
                self._names()
                self.expect("IN")
                self.expression()
                if self.skip("IF"):
                    self.expression()
            else:
                while self.skip(",") and self.kind != "]":
                    self.expression()
        if self.kind != "]":
            self.refuse('"," or "]"')
        self.advance()

    def _names(self) -> None:
        self.items(lambda: self.expect_name(NAMES_OR_TEXT, "a name"), lambda: self.kind in NAMES_OR_TEXT)

    def _struct(self) -> None:
        """`{'a': 1, b: 2}`"""
        self.advance()
        while self.kind != "}":
            self.expect_name(NAMES_OR_TEXT, "the name of a field")
            self.expect(":")
            self.expression()
            if not self.skip(","):
                break
        self.expect("}")

    def _map(self) -> None:
        """`MAP {a: 1}`; without braces a type before a text, a function or a column."""
        if self.next_kind() != "{":
            if not self._typed_text():
                self._name()
            return
        self.advance(2)
        while self.kind != "}":
            self.expression()
            self.expect(":")
            self.expression()
            if not self.skip(","):
                break
        self.expect("}")

    def _case(self) -> None:
        self.advance()
        if self.kind != "WHEN":
            self.expression()
        while True:
            self.expect("WHEN")
            self.expression()
            self.expect("THEN")
            self.expression()
            if self.kind != "WHEN":
                break
        if self.skip("ELSE"):
            self.expression()
            self.expect("END")
        elif not self.skip("END"):
            self.refuse("WHEN, ELSE or END")

    def _star(self) -> None:
        self.advance()
        if self.kind == "COLUMNS" and self.next_kind() == "(":
            self.advance(2)
            self.expression()
            self.expect(")")
        else:
            self._star_options()

    def _star_options(self) -> None:
        """EXCLUDE, REPLACE and RENAME, in that order."""
        if (
            self.kind in ("EXCLUDE", "EXCEPT")
            and (self.next_kind() in NAMES_OR_TEXT or self.next_kind() == "(")
            and not (self.kind == "EXCEPT" and self._set_operation_follows())
        ):
            self.advance()
            self._one_or_more(self._excluded_name)
        if self.kind == "REPLACE":
            self.advance()
            self._replacements()
        if self.kind == "RENAME":
            self.advance()
            self._one_or_more(self._renamed)

    def _set_operation_follows(self) -> bool:
        """`SELECT * EXCEPT (SELECT ...)` is a set operation."""
        index = self.index + 1
        while self.kinds[index] == "(":
            index += 1
        return self.kinds[index] in QUERY_STARTS

    def _one_or_more(self, item: Callable[[], None]) -> None:
        if self.skip("("):
            self.items(item, lambda: self.kind != ")")
            self.close()
        else:
            item()

    def _excluded_name(self) -> None:
        self.expect_name(NAMES_OR_TEXT, "the name of a column")
        self.dotted()

    def _renamed(self) -> None:
        self._excluded_name()
        self.expect("AS")
        self.expect_name(COLUMN_NAMES, "a name")

    def _replacements(self) -> None:
        if self.kind != "(":
            self._replacement()
            return
        self.advance()
        self.expression()
        if self.kind != "AS":  # the parentheses are those of an expression
            while self.skip(",") and self.kind != ")":
                self.expression()
            self.expect(")")
            self.expression(operand_read=True)
            self._replaced()
            return
        self._replaced()
        while self.skip(",") and self.kind != ")":
            self._replacement()
        self.close()

    def _replacement(self) -> None:
        self.expression()
        self._replaced()

    def _replaced(self) -> None:
        self.expect("AS")
        self.expect_name(COLUMN_NAMES, "the name of a column")
        self.dotted()

    # other operands

    def _interval(self) -> None:
        """`INTERVAL '1' DAY`; a type before a text, or a column, where nothing of the kind follows."""
        following = self.next_kind()
        if following in (TEXT, NUMBER):
            self.advance(2)
        elif following == "(":
            self.advance(2)
            self.expression()
            self.expect(")")
        else:
            if not self._typed_text():
                self._name()
            return
        self.unit()

    def _parameter(self) -> None:
        """`?`, `?1`, `$1`, `$name`"""
        if self.kind == "?":
            self.advance()
            self.skip_any((NUMBER,))
        else:
            self.advance()
            self.expect_any(LABELS | {NUMBER}, "the name or number of a parameter")

    def _position(self) -> None:
        """`#1`"""
        self.advance()
        place = self.tokens.source(self.index).replace("_", "")
        if not place.isdigit() or not 1 <= int(place) < 2**63:
            self.refuse("the number of a column, from 1")
        self.advance()

    def _lambda(self) -> None:
        """`LAMBDA x, y: x + y`"""
        self.advance()
        self._names()
        self.expect(":")
        self.expression()

    def _exists(self) -> None:
        if self.next_kind() != "(":
            self._name()
            return
        self.advance()
        self.subquery()

    def _not(self) -> None:
        """NOT as an operand of arithmetic: only before a query."""
        self.advance()
        if self.kind == "EXISTS" and self.next_kind() == "(":
            self._exists()
        elif self.kind == "(":
            self.subquery()
        else:
            self.advance()
            self.refuse("a query in parentheses")


#: Operands that begin with a word or mark of their own.
_OTHER_OPERANDS = {
    "CASE": OperandGrammar._case,
    "CAST": OperandGrammar.cast,
    "*": OperandGrammar._star,
    "[": OperandGrammar._list,
    "ARRAY": OperandGrammar._list,
    "{": OperandGrammar._struct,
    "MAP": OperandGrammar._map,
    "INTERVAL": OperandGrammar._interval,
    "?": OperandGrammar._parameter,
    "$": OperandGrammar._parameter,
    "#": OperandGrammar._position,
    "LAMBDA": OperandGrammar._lambda,
    "EXISTS": OperandGrammar._exists,
    "NOT": OperandGrammar._not,
}
