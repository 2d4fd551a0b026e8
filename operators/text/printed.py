"""format() and printf(): a constant pattern is cut into texts and places, and each place printed for the values that stand in it.

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
    r"(?:(?P<fill>[^{}])?(?P<align>[<>^=]))?(?P<sign>[-+ ]?)(?P<alternative>#?)(?P<zero>0?)(?P<width>(?:[1-9]\d*)?)"
    r"(?P<separator>[,_]?)(?P<precision>(?:\.\d+)?)(?P<letter>[A-Za-z%]?)"
)
_PRINTF = re.compile(
    r"%(?:(?P<number>\d+)\$)?(?P<flags>[-+ #0,]*)(?P<width>(?:[1-9]\d*)?)(?P<precision>(?:\.\d*)?)"
    r"(?:hh|h|ll|l|L|z|j|t)?(?P<letter>[A-Za-z])"
)
_INTEGERS, _FLOATS = "dxXob", "eEfFgG"


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
    if style.separator and written[0] != style.separator:
        raise UnsupportedError(f'the format "{{:{written}}}" is not supported')
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
        named, flags, letter = found["number"], found["flags"], found["letter"]
        number = numbers.of(None if named is None else str(int(named) - 1))
        kind = kinds[number]
        if letter in "iu":
            letter = "d"
        is_text = letter == "s"
        is_right = is_text or kind == "float"
        sign = "" if is_text else "+" if "+" in flags else " " if " " in flags else ""
        zero = "" if is_text or "0" not in flags else "0"
        style = _Style(
            align="<" if "-" in flags else ">" if is_right else "",
            sign=sign,
            alternative="#" if "#" in flags else "",
            zero=zero,
            width=found["width"],
            separator="," if "," in flags else "",
            precision=found["precision"],
            letter=letter,
        )
        if letter == "c" and kind == "int":
            yield (number,), _character
            place = found.end()
            continue
        is_of_bits = found["letter"] in "xXou" and kind in ("int", "unsigned", "bool")
        if (
            (letter not in "ds" + _FLOATS and not is_of_bits)
            or style.precision == "."
            or (is_text and "," in flags)
        ):
            known = letter in "caA" or letter in "ds" + _FLOATS
            text = f"%{letter} of printf()"
            raise (
                UnsupportedError(f"{text} is not supported")
                if known
                else ExecutionError(f"{text} is no format")
            )
        if kind == "bool" and is_text:
            style = style._replace(letter="")
        printer = _printer(style, "int" if is_of_bits else kind)
        yield (number,), _of_bits(printer, _BITS[kind]) if is_of_bits else printer
        place = found.end()


#: So many bits have integers that are printed without a sign; those of HUGEINT are among the second kind.
_BITS = {"int": 64, "unsigned": 128, "bool": 64}


def _of_bits(printer: Printer, bits: int) -> Printer:
    """What prints integers as the bits that they have, of which a number below 0 has all."""
    return lambda value: printer(int(value) if value >= 0 else int(value) + (1 << bits))


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
    if kind == "bool" and letter in ("", "d"):
        if letter == "d":
            return _printer(style, "int")
        if style != _Style(fill=style.fill, align=style.align, width=style.width):
            raise UnsupportedError("this format of a BOOLEAN is not supported")
        return lambda value: format("true" if value else "false", _written(style._replace(letter="s")))
    allowed = {"str": ("", "s"), "int": ("", *_INTEGERS), "float": ("", *_FLOATS), "bool": ()}[kind]
    if letter not in allowed:
        if letter in ("n", "B", "a", "A") or kind == "bool":
            raise UnsupportedError(f'the letter "{letter}" of a format is not supported')
        raise ExecutionError(f'a format has the letter "{letter}" for a value of another type')
    if kind == "str":
        if style.sign or style.alternative or style.zero or style.align == "=":
            raise ExecutionError("a format has what only numbers take for a text")
        if style.separator:
            raise UnsupportedError("a separator of thousands in a text is not supported")
        return lambda value: format(value, _written(style))
    if kind == "int":
        if style.precision:
            if letter == "" or style.fill:
                raise ExecutionError("a format has digits behind the point for an integer")
            raise UnsupportedError("a format with a number of digits of an integer is not supported")
        if style.separator and letter not in ("", "d") or style.alternative and letter not in ("x", "X", "b"):
            raise UnsupportedError("this format of an integer is not supported")
        return lambda value: format(int(value), _written(style))
    return _float_printer(style)


def _float_printer(style: _Style) -> Printer:
    """What prints numbers with a point; what is no finite number is a word, without digits."""
    letter = style.letter
    if style.alternative or (style.separator and letter not in ("f", "F")):
        raise UnsupportedError("this format of a number with a point is not supported")
    fill, align = ("0", "") if style.zero else (style.fill, style.align.replace("=", ""))
    word = f"{fill}{align or '<'}{style.width}"
    finite = partial(_with_digits, style) if style.precision and not letter else _finite_printer(style)
    return lambda value: (
        finite(value) if math.isfinite(value) else format(format(value, style.sign + letter), word)
    )


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

    return Kernel(call, constant_arguments=frozenset({0}), checks=True, accepts_wide=True)


PRINTED_KERNELS: dict[str, Overload] = {
    name: lambda argument_types, result_type, name=name: _printing(name, argument_types)  # type: ignore[misc]
    for name in ("format", "printf")
}
