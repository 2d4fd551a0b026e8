"""How much of an instant a call reads: `year(x)` only its day, `strftime(x, '%H:%M')` its minute.

A rule gives seconds that divide a day, or a number of days: the call has one value for all instants between two multiples
of them, counted from 1970. It gives None where the call reads all of an instant, or nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tqp.core.datatypes import TICKS_PER_SECOND
from tqp.core.keywords import lower_ascii
from tqp.core.patterns import parse_format
from tqp.core.time_limits import MICROSECONDS_PER_SECOND, SECONDS_PER_DAY
from tqp.core.units import PART_NAMES
from tqp.planner.algebra.expressions import Call, Literal
from tqp.planner.functions.constants import constant_text

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
