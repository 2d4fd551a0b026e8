"""format() and printf(): a pattern is cut into texts and places, and each place printed for the values that stand in it.

Python prints numbers as the library does that DuckDB uses. What one of the two might print otherwise is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.data.strings import Strings
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.nested.layout import device_of
from tqp.operators.rows.batches import common_rows
from tqp.operators.strings.build import join
from tqp.operators.strings.layout import broadcast, from_list
from tqp.operators.text.distinct_values import same_value, size_of, texts_of_each

#: What prints one value, or one and its width and number of digits.
Printer = Callable[..., str]
#: A text, or a place with the numbers of its arguments and how to print them.
Piece: TypeAlias = "str | tuple[tuple[int, ...], Printer]"
Pieces = Sequence[Piece]


class _Style(NamedTuple):
    """How a place is written, whichever of the two patterns it stands in."""

    fill: str = ""
    align: str = ""
    sign: str = ""
    alternative: str = ""
    zero: str = ""
    width: str = ""
    separator: str = ""
    precision: str = ""
    letter: str = ""


_FORMAT = re.compile(
    r"(?:(?P<fill>[^{}])?(?P<align>[<>^=]))?(?:(?P<sign>[-+ ])|(?P<separator>[,_']|t.))?(?P<alternative>#?)"
    r"(?P<zero>0?)(?P<width>(?:[1-9]\d*)?)(?P<precision>(?:\.\d+)?)(?P<letter>[A-Za-z%]?)"
)
_PRINTF = re.compile(
    r"%(?:(?P<number>\d+)\$)?(?P<flags>[-+ #0,_']*)(?P<width>(?:\*|[1-9]\d*)?)(?P<precision>(?:\.(?:\*|\d*))?)"
    r"(?:hh|h|ll|l|L|z|j|t)?(?P<letter>[A-Za-z])"
)
#: Letters of whole numbers and of others; n and L ask for what the locale has, which is nothing.
_INTEGERS, _FLOATS = "dxXobBnL", "eEfFgGnL"


#: Integers of which format() shows no sign in front of one that is not negative.
_WITHOUT_SIGN = (
    *(TypeKind.UTINYINT, TypeKind.USMALLINT, TypeKind.UINTEGER, TypeKind.UBIGINT),
    *(TypeKind.HUGEINT, TypeKind.UHUGEINT),
)


def _kind(data_type: DataType) -> str:
    if data_type.kind is TypeKind.BOOLEAN:
        return "bool"
    if data_type.kind in _WITHOUT_SIGN:
        return "unsigned"
    return "int" if data_type.is_integer else "float" if data_type.is_float else "str"


# ---- patterns --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _pieces(function: str, pattern: str, kinds: tuple[str, ...]) -> Pieces:
    """Raises ExecutionError for a pattern that is wrong, or asks for another argument or type than there are."""
    return tuple((_of_format if function == "format" else _of_printf)(pattern, kinds))


class _Numbers:
    """Which argument a place means: one that it names, or the next one, in all places of a pattern alike."""

    def __init__(self, count: int) -> None:
        self._count, self._next, self._are_named = count, 0, False

    def of(self, named: str | None) -> int:
        if named is not None and self._next or named is None and self._are_named:
            raise ExecutionError("a format has either numbers of arguments in all of its places, or in none")
        self._are_named = named is not None
        number = self._next if named is None else int(named)
        self._next += named is None
        if not 0 <= number < self._count:
            raise ExecutionError(f"a format asks for argument {number}, and has {self._count} of them")
        return number


def _of_format(pattern: str, kinds: Sequence[str]) -> Iterator[Piece]:
    numbers, place = _Numbers(len(kinds)), 0
    while place < len(pattern):
        letter = pattern[place]
        if letter not in "{}":
            end = min(
                (at for at in (pattern.find(each, place) for each in "{}") if at >= 0), default=len(pattern)
            )
            yield pattern[place:end]
            place = end
        elif pattern[place : place + 2] == letter * 2:
            yield letter
            place += 2
        elif letter == "}":
            raise ExecutionError("a } of a format without its {")
        else:
            given = _PLACE.match(pattern, place)
            if given is None:
                raise ExecutionError("a { of a format without its }")
            named, written = given["named"], given["written"] or ""
            place = given.end()
            if named and not (named.isascii() and named.isdigit()):
                raise ExecutionError(f'a format has no argument of the name "{named}"')
            number = numbers.of(named or None)
            others = tuple(numbers.of(each or None) for each in _ARGUMENT.findall(written))
            if others:
                if any(kinds[each] not in ("int", "unsigned") for each in others):
                    raise ExecutionError("a width of a format is an integer")
                yield (number, *others), partial(_printed_within, written, kinds[number])
            else:
                yield (number,), _printer_of(written, kinds[number])


#: `{0:>{1}}`; `{}` within it is a width, or behind a point a number of digits.
_PLACE = re.compile(r"\{(?P<named>[^{}:]*)(?::(?P<written>(?:[^{}]|\{\d*\})*))?\}")
_ARGUMENT = re.compile(r"\{(\d*)\}")


@lru_cache(maxsize=4096)
def _printer_of(written: str, kind: str) -> Printer:
    """What prints values of a kind as is written behind the colon."""
    found = _FORMAT.fullmatch(written)
    if found is None:
        raise UnsupportedError(f'the format "{{:{written}}}" is not supported')
    style = _Style(**{key: value or "" for key, value in found.groupdict().items()})
    style = style._replace(separator=style.separator[-1:])  # that of "t|" is |
    if style.sign and kind == "unsigned":
        raise ExecutionError("a format has a sign for an integer of a type without one")
    return _printer(style, kind)


def _printed_within(written: str, kind: str, value: Any, *numbers: int) -> str:
    """A value in a style some numbers of which are arguments. No width is 0."""
    if min(numbers) < 0:
        raise ExecutionError(f"a width of a format is negative: {min(numbers)}")
    for number in numbers:
        place = _ARGUMENT.search(written)
        assert place is not None
        is_width = not written[: place.start()].endswith(".")
        written = (
            written[: place.start()]
            + ("" if is_width and not number else str(number))
            + written[place.end() :]
        )
    return _printer_of(written, kind)(value)


def _of_printf(pattern: str, kinds: Sequence[str]) -> Iterator[Piece]:
    numbers, place = _Numbers(len(kinds)), 0
    while place < len(pattern):
        end = pattern.find("%", place)
        if end < 0:
            yield pattern[place:]
            return
        yield pattern[place:end]
        if pattern[end : end + 2] == "%%":
            yield "%"
            place = end + 2
            continue
        found = _PRINTF.match(pattern, end)
        if found is None:
            raise UnsupportedError(f'the format "{pattern[end : end + 8]}" of printf() is not supported')
        place, named = found.end(), found["number"]
        others = [numbers.of(None) for part in (found["width"], found["precision"]) if "*" in part]
        number = numbers.of(None if named is None else str(int(named) - 1))
        if any(kinds[each] not in ("int", "unsigned") for each in others):
            raise ExecutionError("a width of a format is an integer")
        asked = _Asked(found["flags"], found["width"], found["precision"], found["letter"])
        if others:
            yield (number, *others), partial(_printed_with, asked, kinds[number])
        else:
            yield (number,), _printer_of_printf(asked, kinds[number])


class _Asked(NamedTuple):
    """What stands behind the % of a place of printf()."""

    flags: str
    width: str
    precision: str
    letter: str


def _printed_with(asked: _Asked, kind: str, value: Any, *numbers: int) -> str:
    """A value whose width, number of digits or both are arguments. A width below 0 aligns to the left, so many digits are none."""
    given = iter(numbers)
    if asked.width == "*":
        width = next(given)
        asked = asked._replace(width=str(abs(width)) if width else "", flags=asked.flags + "-" * (width < 0))
    if asked.precision == ".*":
        asked = asked._replace(precision=f".{max(next(given), 0)}")
    return _printer_of_printf(asked, kind)(value)


@lru_cache(maxsize=4096)
def _printer_of_printf(asked: _Asked, kind: str) -> Printer:
    flags, letter, precision = asked.flags, asked.letter, asked.precision
    if letter == "c" and kind == "int":
        return _character
    if letter not in "iuds" + _FLOATS + "xXo":
        if letter in "caA":
            raise UnsupportedError(f"%{letter} of printf() is not supported")
        raise ExecutionError(f"%{letter} of printf() is no format")
    is_text, is_whole = letter == "s", kind in ("int", "unsigned", "bool") and letter in "iudxXo"
    separator = next((each for each in flags if each in ",_'"), "")
    if precision in (".", ".0") and letter in "gG":  # which is another number of digits there
        raise UnsupportedError(f"%.{letter} of printf() is not supported; %.1{letter} has one digit")
    if precision == ".":  # no digits, but for numbers with a separator of thousands
        separator, precision = (separator or ".", "") if is_whole and letter in "iud" else (separator, ".0")
    style = _Style(
        align="<" if "-" in flags else ">" if is_text or kind == "float" else "",
        sign="" if is_text else "+" if "+" in flags else " " if " " in flags else "",
        alternative="#" if "#" in flags else "",
        zero="" if is_text or "0" not in flags else "0",
        width=asked.width,
        separator="" if is_text else separator,
        precision=precision,
        letter="d" if letter in "iu" else letter,
    )
    if kind == "bool" and is_text:
        style = style._replace(letter="")
    if not is_whole:
        return _printer(style, kind)
    if letter in "xXou":
        return partial(_bits, style, _BITS[kind])
    return lambda value: _whole_number(style, int(value))


#: So many bits have integers that are printed without a sign; those of HUGEINT are among the second kind.
_BITS = {"int": 64, "unsigned": 128, "bool": 64}


def _bits(style: _Style, bits: int, value: int) -> str:
    """An integer as the bits that it has, of which a number below 0 has all; 0 has nothing before it that tells its base."""
    if not value:
        style = style._replace(alternative="")
    return _whole_number(style, int(value) if value >= 0 else int(value) + (1 << bits))


def _character(value: int) -> str:
    if not 0 < value < 128:
        raise UnsupportedError(f"%c of printf() of {value}, which is no ASCII, is not supported; see chr()")
    return chr(value)


# ---- values ----------------------------------------------------------------------------------------------------------


def _printer(style: _Style, kind: str) -> Printer:
    """What prints values of a kind so. Raises ExecutionError where that cannot be, UnsupportedError where it is not known how."""
    letter = style.letter
    if kind == "unsigned":
        return _printer(style, "int")
    if kind == "bool" and letter in ("", *_INTEGERS):
        if letter:
            return _printer(style, "int")
        style = style._replace(separator="")
        if style != _Style(fill=style.fill, align=style.align, width=style.width):
            raise UnsupportedError("this format of a BOOLEAN is not supported")
        return lambda value: format("true" if value else "false", _written(style._replace(letter="s")))
    allowed = {"str": ("", "s"), "int": ("", *_INTEGERS), "float": ("", *_FLOATS), "bool": ()}[kind]
    if letter not in allowed and not (style.separator and kind == "int" and letter == "s"):
        if letter in ("a", "A"):
            raise UnsupportedError(f'the letter "{letter}" of a format is not supported')
        raise ExecutionError(f'a format has the letter "{letter}" for a value of another type')
    if kind == "str":
        if style.sign or style.alternative or style.zero or style.align == "=":
            raise ExecutionError("a format has what only numbers take for a text")
        style = style._replace(separator="")
        return lambda value: format(value, _written(style))
    if kind == "int":
        if style.precision:
            raise ExecutionError("a format has digits behind the point for an integer")
        return lambda value: _whole_number(style, int(value))
    return _float_printer(style._replace(letter="g" if letter in ("n", "L") else letter))


#: What stands before the digits of integers where a format asks for it; before octal ones a zero that is not there yet.
_PREFIXES = {"x": "0x", "X": "0X", "b": "0b", "B": "0B", "o": "0"}


def _whole_number(style: _Style, value: int) -> str:
    """An integer: thousands apart are digits of ten, whatever the letter, without a number of them."""
    letter, prefix = style.letter, ""
    if style.separator:
        digits = _apart(str(abs(value)), style.separator)
    else:
        digits = format(abs(value), {"B": "b", "n": "d", "L": "d"}.get(letter, letter))
        digits = digits.zfill(int(style.precision[1:] or 0))
        if style.alternative:
            prefix = _PREFIXES.get(letter, "")
            prefix = "" if letter == "o" and digits.startswith("0") else prefix
    sign = "-" if value < 0 else style.sign.replace("-", "")
    return _padded(style, sign + prefix, digits, ">")


def _apart(digits: str, separator: str) -> str:
    """Digits with a separator between each three of those before the point."""
    whole = len(digits) - len(digits.lstrip("0123456789"))
    return f"{int(digits[:whole]):,}".replace(",", separator) + digits[whole:] if whole else digits


def _padded(style: _Style, sign: str, digits: str, align: str) -> str:
    """A number at its width, which zeros fill behind the sign, wherever the rest is aligned."""
    width = int(style.width or 0)
    if style.zero:
        return sign + digits.zfill(width - len(sign))
    if style.align == "=":
        return sign + digits.rjust(width - len(sign), style.fill or " ")
    return format(sign + digits, f"{style.fill}{style.align or align}{style.width}")


def _float_printer(style: _Style) -> Printer:
    """What prints numbers with a point; what is no finite number is a word, without digits."""
    letter = style.letter
    if style.alternative:
        raise UnsupportedError("this format of a number with a point is not supported")
    fill, align = ("0", "") if style.zero else (style.fill, style.align.replace("=", ""))
    word = f"{fill}{align or '<'}{style.width}"
    plain = style._replace(separator="", sign="", align="", zero="", width="") if style.separator else style
    finite = partial(_with_digits, plain) if plain.precision and not letter else _finite_printer(plain)
    if style.separator:
        finite = partial(_thousands_apart, style, finite)
    return lambda value: (
        finite(value) if math.isfinite(value) else format(format(value, style.sign + letter), word)
    )


def _thousands_apart(style: _Style, printer: Printer, value: float) -> str:
    """What the printer makes of a number, with a separator of thousands, at its width."""
    sign = "-" if math.copysign(1.0, value) < 0 else style.sign.replace("-", "")
    return _padded(style, sign, _apart(printer(abs(value)), style.separator), ">")


def _finite_printer(style: _Style) -> Printer:
    written = _written(style)
    return lambda value: format(value, written)


def _with_digits(style: _Style, value: float) -> str:
    """So many digits in all, zeros at the end too but of fractions, and one behind the point at least, if there is no exponent."""
    if style.precision == ".0" or style.align == "=":
        raise UnsupportedError("this format of a number with a point is not supported")
    text = format(value, f"{style.sign}#{style.precision}g")
    text = text.replace(".e", "e") + ("0" if text.endswith(".") else "")
    if 0 < abs(value) < 1 and "e" not in text:
        text = text.rstrip("0") if "." in text and abs(float(text)) < 1 else text
    if style.zero and style.width:
        return text.zfill(int(style.width))
    return format(text, f"{style.fill}{style.align or '>'}{style.width}")


def _written(style: _Style) -> str:
    """As Python writes it; zeros stand behind the sign, wherever the rest is aligned."""
    if style.zero and style.width:
        style = style._replace(fill="0", align="=", zero="")
    return "".join(style)


def _unsigned(stored: int) -> int:
    """A UHUGEINT, which is stored with its first bit turned."""
    return stored + 2**127


# ---- rows ------------------------------------------------------------------------------------------------------------


def _printing(function: str, argument_types: tuple[DataType, ...]) -> Kernel:
    kinds = tuple(map(_kind, argument_types[1:]))
    readers = [_unsigned if each.kind is TypeKind.UHUGEINT else same_value for each in argument_types[1:]]

    def call(pattern: str, *values: Strings | Tensor, validity: Tensor | None = None) -> Strings:
        """The pattern with the values of each row in its places. Raises ExecutionError where a row counts and it is wrong."""
        num_rows, device = common_rows(map(size_of, values)), device_of(values[0])
        nothing = broadcast(from_list([""], device), num_rows)
        if num_rows == 0 or (validity is not None and not bool(validity.any())):
            return nothing
        parts = [
            from_list([piece], device)
            if isinstance(piece, str)
            else texts_of_each(
                [values[number] for number in piece[0]], piece[1], [readers[number] for number in piece[0]]
            )
            for piece in _pieces(function, pattern, kinds)
        ]
        return join([nothing, *parts])

    pattern_place = frozenset({0})
    return Kernel(
        call,
        constant_arguments=pattern_place,
        varying_arguments=pattern_place,
        checks=True,
        accepts_wide=True,
    )


PRINTED_KERNELS: dict[str, Overload] = {
    name: lambda argument_types, result_type, name=name: _printing(name, argument_types)  # type: ignore[misc]
    for name in ("format", "printf")
}
