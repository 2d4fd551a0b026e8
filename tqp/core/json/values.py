"""JSON as DuckDB reads and writes it: objects keep the order and the duplicates of their keys, numbers all their digits.

A value is None, a bool, an int of 64 bits, a float, a str, a list, an object, or a `LongNumber`. Objects are tuples of pairs.
Python's parser reads what is plain; the one here reads the rest, which is more than JSON (commas before a closing bracket,
NaN and infinity in any case), and says what is wrong with malformed text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tqp.core.errors import UnsupportedError
from tqp.core.text.numbers import ParseFailure

#: How deep arrays and objects may stand in each other.
MOST_LEVELS = 100


@dataclass(frozen=True, slots=True)
class LongNumber:
    """A number that neither 64 bits nor a DOUBLE hold, infinities and NaN among them: as it was written."""

    text: str


class _MinusZero(int):
    """`-0`, which is written 0 and is a signed number nevertheless."""


_LEAST, _GREATEST = -(2**63), 2**64 - 1
#: A DECIMAL of more digits than a DOUBLE tells apart is written with all of them.
DIGITS_OF_DOUBLE = 15


def _integer(text: str) -> int | LongNumber:
    if len(text) > len(str(_LEAST)):
        return LongNumber(text)
    if text == "-0":
        return _MinusZero()
    value = int(text)
    return value if _LEAST <= value <= _GREATEST else LongNumber(text)


def _fraction(text: str) -> float | LongNumber:
    value = float(text)
    return value if math.isfinite(value) else LongNumber(text)


def _decoder(whole: Callable[[str], Any], fraction: Callable[[str], Any]) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=tuple, parse_int=whole, parse_float=fraction, parse_constant=LongNumber
    )


_PLAIN, _WRITTEN = _decoder(_integer, _fraction), _decoder(LongNumber, LongNumber)
#: Pairs of escapes that make one character: Python takes halves, too.
_SURROGATE = re.compile(r"\\u[dD]")


def parse_json(text: str, keeps_digits: bool = False) -> Any:
    """The value that a JSON text says. Raises ParseFailure. With `keeps_digits` all numbers are as they were written."""
    if text.count("[") + text.count("{") <= MOST_LEVELS and not _SURROGATE.search(text):
        try:
            return (_WRITTEN if keeps_digits else _PLAIN).decode(text)
        except json.JSONDecodeError:
            pass
    return _Reader(text, keeps_digits).document()


_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORD = re.compile(r"-?(?:nan|infinity|inf)", re.IGNORECASE | re.ASCII)
_WORDS = {"true": True, "false": False, "null": None}
_STRING = re.compile(r'"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)"')


class _Reader:
    """Reads one text from left to right."""

    def __init__(self, text: str, keeps_digits: bool) -> None:
        self.text = text
        self.keeps_digits = keeps_digits
        self.place = 0

    def document(self) -> Any:
        self._space()
        value = self._value(0)
        self._space()
        if self.place < len(self.text):
            raise self._failure("something stands behind the value")
        return value

    def _failure(self, reason: str) -> ParseFailure:
        byte = len(self.text[: self.place].encode())
        shown = self.text if len(self.text) <= 80 else self.text[:80] + "..."
        if self.place >= len(self.text):
            reason = "it ends too early"
        return ParseFailure(f"Malformed JSON at byte {byte} of input: {reason}. Input: {shown!r}")

    def _space(self) -> None:
        found = _SPACE.match(self.text, self.place)
        assert found is not None
        self.place = found.end()

    def _skip(self, character: str) -> bool:
        """Whether it stands here, behind white space; then it is read, and the white space behind it."""
        self._space()
        if not self.text.startswith(character, self.place):
            return False
        self.place += 1
        self._space()
        return True

    def _value(self, level: int) -> Any:
        if level > MOST_LEVELS:
            raise UnsupportedError(f"JSON of more than {MOST_LEVELS} levels is not supported")
        first = self.text[self.place : self.place + 1]
        if first == "[":
            return self._array(level)
        if first == "{":
            return self._object(level)
        if first == '"':
            return self._string()
        for word, value in _WORDS.items():
            if self.text.startswith(word, self.place):
                self.place += len(word)
                return value
        return self._number()

    def _array(self, level: int) -> list[Any]:
        values: list[Any] = []
        self._skip("[")
        while not self._skip("]"):
            values.append(self._value(level + 1))
            if not self._skip(",") and not self.text.startswith("]", self.place):
                raise self._failure("an array goes on with , or ]")
        return values

    def _object(self, level: int) -> tuple[tuple[str, Any], ...]:
        pairs: list[tuple[str, Any]] = []
        self._skip("{")
        while not self._skip("}"):
            key = self._string()
            if not self._skip(":"):
                raise self._failure("a colon stands behind a key")
            pairs.append((key, self._value(level + 1)))
            if not self._skip(",") and not self.text.startswith("}", self.place):
                raise self._failure("an object goes on with , or }")
        return tuple(pairs)

    def _string(self) -> str:
        found = _STRING.match(self.text, self.place)
        if found is None:
            raise self._failure(
                "no value or key begins here, or its text has a character that is to be escaped"
            )
        value: str = json.loads(found[0])
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise self._failure("the text has half of a character, by \\u")
        self.place = found.end()
        return value

    def _number(self) -> Any:
        found = _NUMBER.match(self.text, self.place)
        if found is None:
            word = _WORD.match(self.text, self.place)
            if word is None:
                raise self._failure("no value begins here")
            self.place = word.end()
            return LongNumber(word[0])
        self.place = found.end()
        if self.keeps_digits:
            return LongNumber(found[0])
        return _integer(found[0]) if found[1] is found[2] is None else _fraction(found[0])


_ESCAPES = {
    **{code: f"\\u{code:04X}" for code in range(32)},
    **{ord(character): f"\\{letter}" for character, letter in zip('"\\\b\f\n\r\t', '"\\bfnrt', strict=True)},
}


def write_string(text: str) -> str:
    """A text in quotes."""
    return f'"{text.translate(_ESCAPES)}"'


def write_float(value: float) -> str:
    """The shortest digits that tell it, with a fraction; an exponent only where there would be many zeros."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent and abs(value) >= 1e-3 or value == 0:
        return mantissa
    sign, mantissa = ("-", mantissa[1:]) if value < 0 else ("", mantissa)
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) if exponent else len(digits) - len(fraction)
    digits = digits.rstrip("0") or "0"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if 0 < point <= 21:
        return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{point - 1}"


def write_json(value: Any) -> str:
    """A value as text, without white space."""
    if isinstance(value, str):
        return write_string(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return write_float(value)
    if isinstance(value, list):
        return f"[{','.join(map(write_json, value))}]"
    if isinstance(value, tuple):
        pairs = (f"{write_string(key)}:{write_json(each)}" for key, each in value)
        return f"{{{','.join(pairs)}}}"
    assert isinstance(value, LongNumber)
    return value.text


def write_scalar(value: Any) -> str | None:
    """What is neither null nor holds other values, as text."""
    return None if value is None or isinstance(value, list | tuple) else write_json(value)


def type_name(value: Any) -> str:
    """What json_type() calls it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return "BIGINT" if value < 0 or isinstance(value, _MinusZero) else "UBIGINT"
    return _TYPE_NAMES[type(value)]


_TYPE_NAMES: dict[type, str] = {
    type(None): "NULL",
    bool: "BOOLEAN",
    float: "DOUBLE",
    LongNumber: "DOUBLE",
    str: "VARCHAR",
    list: "ARRAY",
    tuple: "OBJECT",
}
