"""How much of an instant a call reads: `year(x)` only its day, `strftime(x, '%H:%M')` its minute.

A rule gives seconds that divide a day, or a number of days: the call has one value for all instants between two multiples
of them, counted from 1970. It gives None where the call reads all of an instant, or nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable

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

#: Of the specifiers of strftime that read the time of day; all but these and `_FRACTIONS` read the day alone.
_SECONDS_OF_SPECIFIERS = {"H": 3_600, "I": 3_600, "p": 3_600, "M": 60, "S": 1, "T": 1, "X": 1, "c": 1}
_FRACTIONS = frozenset("fgn")

#: The days from 1970 to the Monday from which time_bucket counts; months are counted from the first of a year.
_FIRST_MONDAY = 10_959


def whole_day(call: Call) -> int | None:
    """Of functions of the day."""
    return SECONDS_PER_DAY


def of_part(call: Call) -> int | None:
    """Of date_part() and date_trunc()."""
    part = constant_text(call.arguments[0])
    return None if part is None else _SECONDS.get(PART_NAMES.get(part.lower(), part.lower()))


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
    width = call.arguments[0]
    if len(call.arguments) > 2 or not isinstance(width, Literal) or not isinstance(width.value, tuple):
        return None
    months, days, microseconds = map(int, width.value)
    if months:
        return SECONDS_PER_DAY
    seconds, rest = divmod(microseconds, MICROSECONDS_PER_SECOND)
    seconds += days * SECONDS_PER_DAY
    return None if rest or seconds <= 0 else math.gcd(seconds, _FIRST_MONDAY * SECONDS_PER_DAY)
