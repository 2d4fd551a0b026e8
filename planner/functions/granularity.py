"""How much of an instant a call reads: `year(x)` only its day, `strftime(x, '%H:%M')` its minute; and for which instants it has a value.

A rule gives seconds that divide a day, or a number of days: the call has one value for all instants between two multiples
of them, counted from 1970. It gives None where the call reads all of an instant, or nothing is known.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass

from tqp.core.datatypes import TICKS_PER_SECOND
from tqp.core.keywords import lower_ascii
from tqp.core.patterns import parse_format
from tqp.core.time_limits import MICROSECONDS_PER_SECOND, SECONDS_PER_DAY
from tqp.core.units import PART_NAMES
from tqp.planner.algebra.expressions import Call, Literal
from tqp.planner.functions.constants import constant_text
from tqp.planner.functions.ranges import EPOCH_ORDINAL

GranularityRule = Callable[[Call], int | None]

_SECONDS = {
    **dict.fromkeys(
        "day week month quarter year isoyear decade century millennium dow isodow doy yearweek era".split(),
        SECONDS_PER_DAY,
    ),
    "hour": 3_600,
    "minute": 60,
    "second": 1,
}

#: Parts that are of one length: the instants at which they begin are multiples of it.
_OF_ONE_LENGTH = frozenset(("day", "hour", "minute", "second"))

#: Of the specifiers of strftime that read the time of day; all but these and `_FRACTIONS` read the day alone.
_SECONDS_OF_SPECIFIERS = {"H": 3_600, "I": 3_600, "p": 3_600, "M": 60, "S": 1, "T": 1, "X": 1, "c": 1}
_FRACTIONS = frozenset("fgn")

#: The days from 1970 to the Monday from which time_bucket counts; months are counted from the first of a year.
_FIRST_MONDAY = 10_959
_FIRST_MONTH = 2_000 * 12

#: The days from 1970 to a Monday, with which weeks of date_trunc begin.
_ANY_MONDAY = -3

_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def _part(call: Call) -> str | None:
    """The name of the part that the first argument is, if it is a constant."""
    text = constant_text(call.arguments[0])
    return None if text is None else PART_NAMES.get(lower_ascii(text), lower_ascii(text))


def whole_day(call: Call) -> int | None:
    """Of functions of the day."""
    return SECONDS_PER_DAY


def of_part(call: Call) -> int | None:
    """Of date_part() and date_trunc()."""
    return _SECONDS.get(_part(call) or "")


def ticks_of_counted_part(call: Call) -> int | None:
    """How long the units are that date_diff() counts of two timestamps, in their ticks, where they have one length."""
    part, instant = _part(call), call.arguments[1].data_type
    if part not in _OF_ONE_LENGTH or not instant.is_timestamp:
        return None
    return _SECONDS[part] * TICKS_PER_SECOND[instant.kind]


def begins_own_unit(call: Call) -> bool:
    """Is it date_trunc() or time_bucket(), and gives where the unit begins that it reads?"""
    if call.function == "date_trunc":
        return _part(call) in _OF_ONE_LENGTH
    if call.function != "time_bucket":
        return False
    width = _seconds_of_bucket(call)
    return width is not None and width == of_bucket(call)


def of_format(call: Call) -> int | None:
    """Of strftime()."""
    pattern = constant_text(call.arguments[1])
    if pattern is None:
        return None
    letters = {code[-1] for is_code, code in parse_format(pattern) if is_code}
    if letters & _FRACTIONS:
        return None
    return min((_SECONDS_OF_SPECIFIERS.get(letter, SECONDS_PER_DAY) for letter in letters), default=None)


def of_bucket(call: Call) -> int | None:
    """Of time_bucket() by a constant width, counted from where it usually is."""
    if (interval := _width(call)) is not None and interval[0]:
        return SECONDS_PER_DAY
    seconds = _seconds_of_bucket(call)
    return None if seconds is None else math.gcd(seconds, _FIRST_MONDAY * SECONDS_PER_DAY)


def _seconds_of_bucket(call: Call) -> int | None:
    """How wide the spans are, where that is some seconds."""
    if (interval := _width(call)) is None:
        return None
    months, days, microseconds = interval
    seconds, rest = divmod(microseconds, MICROSECONDS_PER_SECOND)
    seconds += days * SECONDS_PER_DAY
    return None if months or rest or seconds <= 0 else seconds


def _width(call: Call) -> tuple[int, int, int] | None:
    """Months, days and microseconds of a constant width, where nothing says what spans are counted from."""
    width = call.arguments[0]
    if len(call.arguments) > 2 or not isinstance(width, Literal) or not isinstance(width.value, tuple):
        return None
    months, days, microseconds = map(int, width.value)
    return months, days, microseconds


@dataclass(frozen=True, slots=True)
class TimeUnit:
    """The instants from `begin` on, before `end`, in seconds since 1970."""

    begin: int
    end: int


def unit_of_value(call: Call, value: int) -> TimeUnit | None:
    """The unit that holds what date_trunc() or time_bucket() is to be, or for whose instants year() is it.

    `value`: in seconds, or a year. None of other calls, of units whose begin is not known, and beyond the years 1 to 9999.
    """
    part = None if call.function == "time_bucket" else _part(call)
    match call.function:
        case "date_part":
            return _of_months(value * 12, 12, 0) if part == "year" else None
        case "date_trunc" if part in _OF_ONE_LENGTH:
            return _of_seconds(value, _SECONDS[part], 0)
        case "date_trunc" if part == "week":
            return _of_seconds(value, 7 * SECONDS_PER_DAY, _ANY_MONDAY * SECONDS_PER_DAY)
        case "date_trunc" if part in _MONTHS:
            return _of_months(_month(value), _MONTHS[part], 0)
        case "time_bucket" if (width := _seconds_of_bucket(call)) is not None:
            return _of_seconds(value, width, _FIRST_MONDAY * SECONDS_PER_DAY)
        case "time_bucket" if (interval := _width(call)) is not None and interval[0] > 0 == any(interval[1:]):
            return _of_months(_month(value), interval[0], _FIRST_MONTH)
    return None


def _of_seconds(second: int, width: int, origin: int) -> TimeUnit:
    begin = second - (second - origin) % width
    return TimeUnit(begin, begin + width)


def _of_months(month: int | None, width: int, origin: int) -> TimeUnit | None:
    """`month`: counted from the year 0, as `origin`."""
    if month is None:
        return None
    begin = month - (month - origin) % width
    first, last = _begin_of_month(begin), _begin_of_month(begin + width)
    return None if first is None or last is None else TimeUnit(first, last)


def _month(second: int) -> int | None:
    """The month that holds the second, counted from the year 0."""
    try:
        day = datetime.date.fromordinal(second // SECONDS_PER_DAY + EPOCH_ORDINAL)
    except (ValueError, OverflowError):
        return None
    return day.year * 12 + day.month - 1


def _begin_of_month(month: int) -> int | None:
    """In seconds."""
    year, others = divmod(month, 12)
    try:
        return (datetime.date(year, others + 1, 1).toordinal() - EPOCH_ORDINAL) * SECONDS_PER_DAY
    except (ValueError, OverflowError):
        return None
