"""The grammar of types: `DECIMAL(9, 2)`, `TIMESTAMP WITH TIME ZONE`, `STRUCT(a INTEGER[])[]`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from tqp.planner.syntax.reader import Reader
from tqp.planner.syntax.words import COLUMN_NAMES, LABELS, NUMBER, TEXT, TYPE_NAMES

_UNITS = "YEAR MONTH DAY HOUR MINUTE SECOND MILLISECOND MICROSECOND WEEK QUARTER DECADE".split()
UNITS = frozenset([*_UNITS, *(f"{unit}S" for unit in _UNITS)]) | frozenset(
    ("CENTURY", "CENTURIES", "MILLENNIUM", "MILLENNIA")
)
#: INTERVAL '1' DAY TO SECOND and the like: read, and refused afterwards by DuckDB too.
_UNIT_RANGES = {
    "YEAR": {"MONTH"},
    "DAY": {"HOUR", "MINUTE", "SECOND"},
    "HOUR": {"MINUTE", "SECOND"},
    "MINUTE": {"SECOND"},
}

#: Names of types that take nothing in parentheses.
_PLAIN = frozenset("INT INTEGER SMALLINT BIGINT REAL BOOLEAN".split())
_WITH_MODIFIERS = frozenset("DECIMAL DEC NUMERIC VARCHAR".split())
_CONSTANTS = frozenset((NUMBER, TEXT, "NULL", "TRUE", "FALSE"))
_CHARACTERS = frozenset("CHARACTER CHAR NCHAR".split())


class TypeGrammar(Reader):
    """Types, as they stand behind `::` and in CAST."""

    @abstractmethod
    def expression(self, operand_read: bool = False) -> None:
        """Any expression; with `operand_read`, what follows its first operand in parentheses."""

    @abstractmethod
    def expressions(self) -> int:
        """Expressions with commas between, and how many."""

    def type(self) -> None:
        """A type with its array bounds."""
        kind = self.kind
        if kind in _PLAIN:
            self.advance()
        elif kind in _WITH_MODIFIERS:
            self.advance()
            self.modifiers()
        elif kind == "TIME" or kind == "TIMESTAMP":
            self.advance()
            if kind == "TIMESTAMP":
                self.modifiers()
            if self.kind in ("WITH", "WITHOUT") and self.next_is("TIME", "ZONE"):
                self.advance(3)
        elif kind in _CHARACTERS or kind == "NATIONAL":
            self._characters()
        elif kind == "INTERVAL":
            self.advance()
            self.unit()
        elif kind == "FLOAT":
            self.advance()
            if self.skip("("):
                self.expect_any((NUMBER,), "a number")
                self.expect(")")
        elif kind == "BIT":
            self.advance()
            self.skip("VARYING")
            self.modifiers()
        elif kind == "SETOF":
            self.advance()
            self.type()
        elif kind in ("ROW", "STRUCT", "UNION"):
            self.advance()
            if self.kind == "(" or kind == "UNION":
                self._parenthesized(self._typed_name)
        elif kind == "MAP" or kind == "TUPLE":
            self.advance()
            if self.kind == "(" or kind == "TUPLE":
                self._parenthesized(self.type)
        elif kind == "DOUBLE" and self.next_is("PRECISION"):
            self.advance(2)
        elif kind in TYPE_NAMES or kind in COLUMN_NAMES and self.next_is("."):
            self.advance()
            while self.kind == "." and self.next_kind() in LABELS:
                self.advance(2)
            self.modifiers()
        else:
            self.refuse("a type")
        self.bounds()

    def bounds(self) -> bool:
        """`[]`, `[3]`, `ARRAY`, `ARRAY[3]`, any number of them; whether there was one."""
        start = self.index
        while self.kind in ("[", "ARRAY"):
            if self.kind == "ARRAY":
                self.tokens.array_words.add(self.index)
                self.advance()
            if self.skip("["):
                if self.kind != "]":
                    self._size()
                self.expect("]")
        return self.index > start

    def _size(self) -> None:
        """A whole number; parentheses around it are allowed."""
        if self.skip("("):
            self._size()
            self.expect(")")
        elif self.kind == NUMBER and self.tokens.source(self.index).replace("_", "").isdigit():
            self.advance()
        else:
            self.refuse("a whole number, the size of the array")

    def modifiers(self) -> None:
        """`(9, 2)`, if it is there."""
        if self.skip("("):
            if self.kind != ")":
                self.items(self._modifier, lambda: self.kind != ")")
            self.expect(")")

    def _modifier(self) -> None:
        """A constant; parentheses around it are allowed."""
        if self.skip("("):
            self._modifier()
            self.expect(")")
            return
        is_signed = self.skip("-")
        self.expect_any({NUMBER} if is_signed else _CONSTANTS, "a number" if is_signed else "a constant")

    def unit(self) -> bool:
        """DAY, HOURS, DAY TO SECOND; False, and nothing read, where there is none."""
        if self.kind not in UNITS:
            return False
        first = self.kind.removesuffix("S")
        self.advance()
        if self.kind == "TO" and first in _UNIT_RANGES:
            self.advance()
            last = _UNIT_RANGES[first]
            self.expect_any(last | {unit + "S" for unit in last}, " or ".join(sorted(last)))
        return True

    def _characters(self) -> None:
        self.skip("NATIONAL")
        self.expect_any(_CHARACTERS, "CHARACTER")
        self.skip("VARYING")
        self.modifiers()

    def _typed_name(self) -> None:
        self.expect_name(COLUMN_NAMES, "the name of a field")
        self.type()

    def _parenthesized(self, item: Callable[[], None]) -> None:
        self.expect("(")
        self.items(item, lambda: self.kind != ")")
        self.expect(")")
