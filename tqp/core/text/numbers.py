"""Read numbers, booleans and bytes out of one string at a time, as DuckDB's casts do.

Each parser takes the text and returns the storage value, or raises ParseFailure with the message for the user.
"""

from __future__ import annotations

import ctypes
import re

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.unsigned_128 import stored_unsigned

#: DuckDB's white space in numbers and dates.
WHITE_SPACE = " \t\n\v\f\r"

_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_NUMBER = re.compile(
    rf"([+-]?)(?:({_DIGITS})(?:(\.)({_DIGITS})?)?|()(\.)({_DIGITS}))(?:[eE]([+-]?[0-9]+(?:_[0-9]+)*))?"
)
_RADIX = re.compile(r"0(?:[xX]([0-9a-fA-F]+(?:_[0-9a-fA-F]+)*)|[bB]([01]+(?:_[01]+)*))")
_SPECIAL_FLOAT = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE)

#: A power of ten beyond this moves every digit of a 128-bit number out of it, or the number out of range.
_FAR = 10_000

TRUE_TEXTS = frozenset({"true", "t", "yes", "y", "1"})
FALSE_TEXTS = frozenset({"false", "f", "no", "n", "0"})

_UNPRINTABLE = re.compile(rb"[^ -~]|[\\\"']")
_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})|(\\)|([\x80-\xff])")


class ParseFailure(Exception):
    """The text is not a value of the type; holds the message."""


def parse_number(text: str, target: DataType) -> int:
    """An integer or scaled decimal, extra digits rounded half away from zero. Raises ParseFailure."""
    stripped = text.strip(WHITE_SPACE)
    value = _scaled(stripped, target)
    if value is None and target.is_whole:
        radix = _RADIX.fullmatch(text.lstrip(WHITE_SPACE))  # with nothing behind it
        if radix is not None:
            value = int(radix[1].replace("_", ""), 16) if radix[1] else int(radix[2].replace("_", ""), 2)
    low, high = target.value_bounds
    unsigned_minus = low == 0 and stripped.startswith("-") and stripped.strip("-0") != ""
    if value is None or not low <= value <= high or unsigned_minus:
        raise ParseFailure(not_convertible(text, target))
    return stored_unsigned(value) if target.kind is TypeKind.UHUGEINT else value


def _scaled(text: str, target: DataType) -> int | None:
    """round(number * 10**scale), exactly; None if `text` is not a number, or writes more digits before the point than
    the decimal type has, whatever the exponent."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    whole = (match[2] or "").replace("_", "")
    fraction = (match[4] or match[7] or "").replace("_", "")
    if target.is_decimal and len(whole.lstrip("0")) > target.precision - target.scale:
        return None
    digits = int(whole + fraction)
    shift = max(-_FAR, min(_FAR, int(match[8] or 0))) + target.scale - len(fraction)
    if digits == 0:
        return 0
    value = digits * int(10**shift) if shift >= 0 else round_half_away(digits, int(10**-shift))
    return -value if match[1] == "-" else value


def round_half_away(value: int, unit: int) -> int:
    """value / unit as a whole number, halves away from zero."""
    whole = (abs(value) + unit // 2) // unit
    return whole if value >= 0 else -whole


def parse_float(text: str, target: DataType) -> float:
    """A float of the target's width; too large a number is infinite, and "+-1" is -1. Raises ParseFailure."""
    stripped = text.strip(WHITE_SPACE)
    if stripped.startswith("+-"):
        stripped = stripped[1:]
    if _NUMBER.fullmatch(stripped) is None and _SPECIAL_FLOAT.fullmatch(stripped) is None:
        raise ParseFailure(not_convertible(text, target))
    number = float(stripped.replace("_", ""))
    return ctypes.c_float(number).value if target.kind is TypeKind.FLOAT else number


def parse_boolean(text: str, target: DataType) -> bool:
    """Raises ParseFailure."""
    word = text.lower()
    if word in TRUE_TEXTS:
        return True
    if word in FALSE_TEXTS:
        return False
    raise ParseFailure(not_convertible(text, target))


def parse_bytes(value: bytes) -> bytes:
    r"""VARCHAR to BLOB: `\xAB` is one byte, other characters must be ASCII. Raises ParseFailure."""

    def replaced(match: re.Match[bytes]) -> bytes:
        if match[1]:
            return bytes.fromhex(match[1].decode())
        text = value.decode(errors="replace")
        if match[2]:
            raise ParseFailure(
                f'Invalid hex escape code encountered in string -> blob conversion of string "{text}": '
                r"a backslash must be followed by x and two hexadecimal digits"
            )
        raise ParseFailure(
            f'Invalid byte encountered in STRING -> BLOB conversion of string "{text}". '
            r"All non-ascii characters must be escaped with hex codes (e.g. \xAA)"
        )

    return _ESCAPE.sub(replaced, value)


def format_bytes(value: bytes) -> bytes:
    r"""BLOB to VARCHAR: printable ASCII as it is, all else, quotes and backslashes as `\xAB`."""
    return _UNPRINTABLE.sub(lambda match: b"\\x%02X" % match[0][0], value)


def not_convertible(text: str, target: DataType) -> str:
    """The message of a failed cast.

    >>> from tqp.core.datatypes import INTEGER
    >>> not_convertible("abc", INTEGER)
    "Could not convert string 'abc' to INTEGER; use TRY_CAST for NULL instead"
    """
    quoted = f'"{text}"' if target.is_decimal else f"'{text}'"
    name = str(target)
    return f"Could not convert string {quoted} to {name}; use TRY_CAST for NULL instead"
