"""strftime: dates and instants as text by a pattern.

Fields of one width are written as digits at fixed places, for all rows at once; what depends on the day alone once for each
day where the days lie close together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tqp.core.datatypes import TICKS_PER_SECOND, DataType, TypeKind
from tqp.core.patterns import Piece, parse_format
from tqp.data.strings import Strings
from tqp.operators.memory.arrays import host_form
from tqp.operators.numbers.elementwise import floor_divide
from tqp.operators.strings.build import join
from tqp.operators.strings.layout import broadcast, from_list, replace_rows, take
from tqp.operators.temporal import dates
from tqp.operators.temporal.date_parts import DAY_PARTS
from tqp.operators.text.number_format import format_integers
from tqp.operators.text.runs import (
    Run,
    digit_counts,
    digits,
    literal,
    look_up,
    number_strings,
    paste,
    strings_of,
    table_of,
)
from tqp.operators.text.time_format import (
    LONGEST_YEAR,
    by_day,
    by_value,
    clock_run,
    days_and_ticks,
    plain_days,
    with_infinity,
)

DAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

_FRACTION_DIGITS = {"f": 6, "g": 3, "n": 9}
_NUMBER_WIDTHS = {"Y": 4, "G": 4, "j": 3, "w": 1, "u": 1}  # of others two
#: Specifiers of what is a part of a date, too.
_DAY_PARTS = {
    "Y": "year", "m": "month", "d": "day", "j": "doy", "w": "dow", "u": "isodow", "G": "isoyear", "V": "week",
}  # fmt: skip
#: What a specifier reads: the day, the second of the day or the fraction of the second.
_OF_CLOCK = frozenset("HIMSpTX")
#: Specifiers that stand for several.
_COMPOSED = {"c": "Y-m-d T", "x": "Y-m-d"}


def strftime(values: Tensor, pattern: str, data_type: DataType) -> Strings:
    """The text of DATE or timestamp storage [n]; raises ExecutionError for a pattern that is none."""
    zone = "UTC" if data_type.kind is TypeKind.TIMESTAMP_TZ else ""
    days, ticks = days_and_ticks(values, data_type)
    plain, others = plain_days(days)
    per_second = TICKS_PER_SECOND[data_type.kind] if ticks is not None else 1
    text = _write(_segments(pattern, zone), plain, None if ticks is None else host_form(ticks), per_second)
    if others is None:
        return text
    far = days[others]
    clock = None if ticks is None else host_form(ticks[others])
    written = _write(_segments(pattern, zone, is_far=True), host_form(far), clock, per_second)
    return replace_rows(text, others, with_infinity(far, written))


def _expanded(pieces: Sequence[Piece], zone: str) -> list[Piece]:
    """Without the specifiers that stand for others or for the same text in all rows; `zone`: the name of the time zone."""
    expanded: list[Piece] = []
    for is_code, text in pieces:
        if is_code and text in _COMPOSED:
            expanded += [(letter.isalpha(), letter) for letter in _COMPOSED[text]]
        elif is_code and text in "zZ":
            expanded.append((False, "+00" if text == "z" else zone))
        else:
            expanded.append((is_code, text))
    return expanded


class _Segment(NamedTuple):
    """Neighbours in a pattern that read the same part of the value together: "day", "clock" or "fraction"."""

    kind: str
    #: The text of int64 [n] numbers: of the days, of the seconds of the day, of the nanoseconds of the second.
    write: Callable[[Any], Run | Strings]


@lru_cache
def _segments(pattern: str, zone: str, *, is_far: bool = False) -> tuple[_Segment, ...]:
    """What writes a pattern, part by part; `is_far`: of years that four digits do not write.

    Kept, as what `by_day` keeps is found by the part that wrote it.
    """
    segments: list[tuple[str, list[Piece]]] = []
    for is_code, text in _expanded(parse_format(pattern), zone):
        kind = segments[-1][0] if segments else "day"
        if is_code:
            letter = text[-1]
            kind = "clock" if letter in _OF_CLOCK else "fraction" if letter in _FRACTION_DIGITS else "day"
        piece = (is_code, "+" + text if is_far and is_code and text in "YG" else text)
        if segments and segments[-1][0] == kind:
            segments[-1][1].append(piece)
        else:
            segments.append((kind, [piece]))
    return tuple(_Segment(kind, partial(_write_segment, pieces, _FIELDS[kind])) for kind, pieces in segments)


def _write(segments: Sequence[_Segment], days: Any, ticks: Any, per_second: int) -> Strings:
    """The text of days and of ticks into the day (None: 0), int64 [n], tensors or arrays."""
    kinds = {segment.kind for segment in segments}
    seconds = fraction = days * 0 if ticks is None and kinds != {"day"} else None
    if ticks is not None and kinds != {"day"}:
        seconds = floor_divide(ticks, per_second)
        if "fraction" in kinds:
            fraction = (ticks - seconds * per_second) * (10**9 // per_second)
    parts: list[Run | Strings] = []
    for kind, write in segments:
        if kind == "fraction":
            part = write(fraction)
        else:
            part = by_day(days, write) if kind == "day" else by_value(seconds, write)
        if isinstance(part, Run) and parts and isinstance(parts[-1], Run):
            parts[-1] = paste([parts[-1], part])
        else:
            parts.append(part)
    texts = [strings_of(part, days) if isinstance(part, Run) else part for part in parts]
    return texts[0] if len(texts) == 1 else join(texts)


def _write_segment(pieces: Sequence[Piece], write: Callable[[str, Any], Run], values: Any) -> Run | Strings:
    """The pieces of integers [n], a run where all of them have a fixed width."""
    if all(map(_has_fixed_width, pieces)):
        return paste([write(text, values) if is_code else literal(text) for is_code, text in pieces])
    device = torch.as_tensor(values).device
    parts: list[Strings] = []
    for is_code, text in pieces:
        if not is_code:
            parts.append(from_list([text], device))
        elif text in ("A", "B"):
            names, letter = (DAY_NAMES, "w") if text == "A" else (("", *MONTH_NAMES), "m")
            parts.append(take(from_list(names, device), torch.as_tensor(_number(letter, values))))
        elif text[0] == "-":
            parts.append(format_integers(torch.as_tensor(_number(text[-1], values))))
        elif text[0] == "+":
            parts.append(_long_years(_number(text[-1], values)))
        else:
            parts.append(strings_of(write(text, values), values))
    return broadcast(join(parts) if len(parts) > 1 else parts[0], values.shape[0])


def _has_fixed_width(piece: Piece) -> bool:
    is_code, text = piece
    return text not in ("A", "B") and text[0] not in "-+" if is_code else text.isascii()


def _long_years(years: Any) -> Strings:
    """Any years, int64 [n], of at least four digits unless they are negative."""
    sizes = abs(years)
    counts = digit_counts(sizes, LONGEST_YEAR)
    counts = counts + (4 - counts) * ((years >= 0) & (counts < 4))
    return number_strings([digits(sizes, LONGEST_YEAR)], sizes, LONGEST_YEAR - counts, years < 0)


def _number(letter: str, values: Any) -> Any:
    """The number that a specifier writes, of days or of seconds of the day: int64 [n]."""
    if letter in "HIMS":
        hour = floor_divide(values, 3600)
        if letter == "H":
            return hour
        if letter == "I":
            return hour + 12 * (hour == 0) - 12 * (hour > 12)
        minute = floor_divide(values, 60)
        return minute - hour * 60 if letter == "M" else values - minute * 60
    days = torch.as_tensor(values)
    if letter in _DAY_PARTS:
        number = DAY_PARTS[_DAY_PARTS[letter]](days)
    elif letter == "y":
        number = dates.year_from_days(days).abs() % 100
    else:
        weekday = dates.day_of_week(days if letter == "U" else days - 1)
        number = floor_divide(days - dates.first_day_of_year(days) + 7 - weekday, 7)
    return number.numpy() if isinstance(values, np.ndarray) else number


def _day_field(code: str, days: Any) -> Run:
    if code in "abh":
        names = DAY_NAMES if code == "a" else MONTH_NAMES
        number = _number("w", days) if code == "a" else _number("m", days) - 1
        return Run([look_up(table_of([name[:3] for name in names]), number)], 3)
    return digits(_number(code, days), _NUMBER_WIDTHS.get(code, 2))


def _clock_field(code: str, seconds: Any) -> Run:
    if code in "TX":
        return clock_run(seconds)
    if code == "p":
        return Run([look_up(table_of(["AM", "PM"]), (seconds >= 43_200) * 1)], 2)
    return digits(_number(code, seconds), 2)


def _fraction_field(code: str, nanoseconds: Any) -> Run:
    width = _FRACTION_DIGITS[code]
    return digits(floor_divide(nanoseconds, 10 ** (9 - width)), width)


_FIELDS = {"day": _day_field, "clock": _clock_field, "fraction": _fraction_field}
