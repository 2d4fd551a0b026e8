"""Ranges of the results of functions of dates, times and intervals, and which calls may raise."""

from __future__ import annotations

import datetime

from tqp.core import time_limits
from tqp.core.datatypes import TypeKind
from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.expressions import Call, Literal
from tqp.planner.functions.constants import constant_text
from tqp.planner.functions.declaration import RaiseRule, RangeRule
from tqp.planner.functions.ranges import (
    EPOCH_ORDINAL,
    Range,
    Ranges,
    days,
    is_finite,
    is_in_calendar,
    operand,
    ticks_per_day,
)

_PART_RANGES: dict[str, Range] = {
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "doy": (1, 366),
    "dow": (0, 6),
    "isodow": (1, 7),
    "hour": (0, 24),
    "minute": (0, 59),
    "second": (0, 59),
    "millisecond": (0, 59_999),
    "microsecond": (0, 59_999_999),
}


def _constant_part(call: Call) -> str | None:
    """The part of a date that the first argument names, in lower case."""
    part = constant_text(call.arguments[0])
    return None if part is None else lower_ascii(part)


def part_range(call: Call, ranges: Ranges) -> Range | None:
    """Of date_part()."""
    part, source = _constant_part(call), call.arguments[1].data_type
    if part is None or not call.data_type.is_integer or not source.is_temporal:
        return None  # an interval's parts are not bounded by the calendar
    if part not in ("year", "isoyear"):
        return _PART_RANGES.get(part)
    known = days(ranges[1], source)
    if known is None or not is_in_calendar(known):
        return None
    first, last = (datetime.date.fromordinal(day + EPOCH_ORDINAL).year for day in known)
    return (first, last) if part == "year" else (first - 1, last + 1)


#: At most how many days date_trunc goes back.
_TRUNC_DAYS = {
    **dict.fromkeys(("day", "hour", "minute", "second", "millisecond", "microsecond"), 0),
    "week": 6,
    "month": 30,
    "quarter": 91,
    "year": 365,
    "isoyear": 371,
    "decade": 3_652,
    "century": 36_525,
}


def truncated_range(call: Call, ranges: Ranges) -> Range | None:
    """Of date_trunc()."""
    part, per_day = _constant_part(call), ticks_per_day(call.data_type)
    known = days(ranges[1], call.arguments[1].data_type)
    if part is None or per_day is None or known is None or not is_in_calendar(known):
        return None
    back = _TRUNC_DAYS.get(part, 365_250)
    return (known[0] - back) * per_day, (known[1] + 1) * per_day - 1


def range_of_shifted_days(combined: RangeRule) -> RangeRule:
    """Of a date moved by days: as `combined` says, and infinite dates stay where they are."""

    def rule(call: Call, ranges: Ranges) -> Range | None:
        start, moved = operand(ranges[0], call.arguments[0].data_type), combined(call, ranges)
        if start is None or moved is None or not set(start) & _INFINITE_DATES:
            return moved
        return min(start[0], moved[0]), max(start[1], moved[1])

    return rule


#: -infinity and infinity as days.
_INFINITE_DATES = frozenset((-time_limits.INFINITE_DAY, time_limits.INFINITE_DAY))


def shifted_range(sign: int) -> RangeRule:
    """A month is 28 to 31 days; known for a constant interval only."""

    def rule(call: Call, ranges: Ranges) -> Range | None:
        source, interval = call.arguments[0].data_type, call.arguments[1]
        known, per_day = days(ranges[0], source), ticks_per_day(call.data_type)
        if known is None or per_day is None or not isinstance(interval, Literal):
            return None
        if not isinstance(interval.value, tuple) or not is_finite(ranges[0], source):
            return None
        months, whole_days, microseconds = (sign * int(component) for component in interval.value)
        shifts = (months * 28 + whole_days, months * 31 + whole_days)
        extra = -(-abs(microseconds) // time_limits.MICROSECONDS_PER_DAY)
        low, high = known[0] + min(shifts) - extra, known[1] + 1 + max(shifts) + extra
        return low * per_day, high * per_day

    return rule


#: Parts that are whole days: between two instants lie no more of them than days.
_PARTS_OF_DAYS = frozenset(
    ("day", "week", "month", "quarter", "year", "isoyear", "decade", "century", "millennium")
)


def range_of_counts(call: Call, ranges: Ranges) -> Range | None:
    """What date_diff and date_sub count; NULL where a date is infinite."""
    if _constant_part(call) not in _PARTS_OF_DAYS:
        return None
    first, last = (days(ranges[place], call.arguments[place].data_type) for place in (1, 2))
    if first is None or last is None:
        return None
    return min(0, last[0] - first[1]), max(0, last[1] - first[0])


def ticks_between_range(call: Call, ranges: Ranges) -> Range | None:
    """Of ticks_between(): the first instant's less the second's."""
    first, second = ranges
    return None if first is None or second is None else (first[0] - second[1], first[1] - second[0])


def range_of_ticks(call: Call, ranges: Ranges) -> Range | None:
    """Of an instant that is made of its ticks."""
    return ranges[0] if len(ranges) == 1 else None


def number_of_unit_range(call: Call, ranges: Ranges) -> Range | None:
    """Of number_of_unit(): the instant by the ticks."""
    ticks, known = ranges
    return None if ticks is None or known is None else (known[0] // ticks[0], known[1] // ticks[0])


def start_of_unit_range(call: Call, ranges: Ranges) -> Range | None:
    """Of start_of_unit(): the ticks times the number."""
    ticks, known = ranges
    return None if ticks is None or known is None else (known[0] * ticks[0], known[1] * ticks[0])


def bucket_range(call: Call, ranges: Ranges) -> Range | None:
    """Of time_bucket(): it goes back by less than its width, from where spans are usually counted."""
    source = call.arguments[1].data_type
    per_day, known, width = ticks_per_day(call.data_type), days(ranges[1], source), _bucket_days(call)
    if per_day is None or known is None or width is None or not is_in_calendar(known):
        return None
    return (known[0] - width) * per_day, (known[1] + 1) * per_day - 1


def _bucket_days(call: Call) -> int | None:
    """At most how many days the width has, where it is a constant that all instants have a span of, and nothing else is given."""
    width = call.arguments[0]
    if len(call.arguments) > 2 or not isinstance(width, Literal) or not isinstance(width.value, tuple):
        return None
    months, whole_days, microseconds = map(int, width.value)
    if min(months, whole_days, microseconds) < 0 or sum(map(bool, (months, whole_days, microseconds))) != 1:
        return None
    return months * 31 + whole_days + microseconds // time_limits.MICROSECONDS_PER_DAY + 1


# ---- what raises: dates and timestamps far beyond the calendar leave TIMESTAMP's range ----


def varies(call: Call, ranges: Ranges, result: Range | None) -> bool:
    """A part that is no constant may be none."""
    return not isinstance(call.arguments[0], Literal)


def leaves_calendar(call: Call, ranges: Ranges, result: Range | None) -> bool:
    """May an instant be beyond the calendar, or infinite?"""
    return not all(
        is_finite(known, each.data_type)
        for known, each in zip(ranges, call.arguments, strict=True)
        if each.data_type.is_temporal
    )


def moves_out_of_calendar(call: Call, ranges: Ranges, result: Range | None) -> bool:
    """May what an instant moves from or to be beyond the calendar?"""
    return leaves_calendar(call, ranges, result) or not is_finite(result, call.data_type)


def may_be_no_instant(call: Call, ranges: Ranges, result: Range | None) -> bool:
    """May make_timestamp() get ticks, or parts, of no instant?"""
    return not is_finite(result, call.data_type)


def may_have_no_bucket(call: Call, ranges: Ranges, result: Range | None) -> bool:
    """May time_bucket() have no width, or leave the calendar?"""
    instants = call.data_type
    return (
        instants.kind is TypeKind.TIME
        or leaves_calendar(call, ranges, result)
        or not is_finite(result, instants)
    )


def needs_more_ticks(kinds: frozenset[TypeKind]) -> RaiseRule:
    """The ticks of other types are fewer, of which there may be too many for 64 bits."""
    return lambda call, ranges, result: call.arguments[0].data_type.kind not in kinds


def nanosecond_range(call: Call, ranges: Ranges) -> Range | None:
    """Of nanosecond()."""
    is_interval = call.arguments[0].data_type.kind is TypeKind.INTERVAL
    return None if is_interval else (0, 59_999_999_999)


def truncation_leaves_calendar(call: Call, ranges: Ranges, result: Range | None) -> bool:
    """May date_trunc() find no such part, or an instant beyond the calendar?"""
    leaves = call.data_type.kind is not TypeKind.INTERVAL and leaves_calendar(call, ranges, result)
    return leaves or varies(call, ranges, result)
