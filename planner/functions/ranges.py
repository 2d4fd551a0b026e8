"""Ranges of storage values: what fits a type, sums and differences, and which dates are finite."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from tqp.core.datatypes import TICKS_PER_SECOND, DataType, TypeKind
from tqp.core.time_limits import INFINITE_TICK, SECONDS_PER_DAY
from tqp.planner.algebra.expressions import Call

#: The smallest and the largest value.
Range = tuple[int, int]
Ranges = Sequence[Range | None]

EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
#: Days that Python's calendar knows (years 1 to 9999), counted from 1970; all of them are finite DuckDB dates.
CALENDAR_DAYS = (date.min.toordinal() - EPOCH_ORDINAL, date.max.toordinal() - EPOCH_ORDINAL)


def within(known: Range | None, data_type: DataType) -> bool:
    """True if all values certainly fit the type."""
    low, high = data_type.bounds
    return known is not None and low <= known[0] and known[1] <= high


def clamped(known: Range, data_type: DataType) -> Range | None:
    """The part of the range that fits the type, if there is one."""
    low, high = data_type.bounds
    low, high = max(low, known[0]), min(high, known[1])
    return (low, high) if low <= high else None


def operand(known: Range | None, data_type: DataType) -> Range | None:
    """The range of values that passed their overflow check; the type's bounds where unknown, None if not integer-like."""
    if not data_type.is_integer_like:
        return None
    bounds = data_type.bounds
    if known is None:
        return bounds
    if bounds[0] <= known[0] and known[1] <= bounds[1]:
        return known
    # A value that always overflows has nothing that fits; any range is sound for it.
    return clamped(known, data_type) or bounds


def operands_of(call: Call, ranges: Ranges) -> tuple[Range, Range] | None:
    """Of two operands of one scale, which is the result's."""
    if any(argument.data_type.scale != call.data_type.scale for argument in call.arguments):
        return None
    left, right = (operand(known, each.data_type) for known, each in zip(ranges, call.arguments, strict=True))
    return None if left is None or right is None else (left, right)


def added(call: Call, ranges: Ranges) -> Range | None:
    """Of the sum of such operands; days are numbers as others are."""
    if (operands := operands_of(call, ranges)) is None:
        return None
    (a, b), (c, d) = operands
    return a + c, b + d


def subtracted(call: Call, ranges: Ranges) -> Range | None:
    """Of the difference of such operands."""
    if (operands := operands_of(call, ranges)) is None:
        return None
    (a, b), (c, d) = operands
    return a - d, b - c


def any_length(call: Call, ranges: Ranges) -> Range:
    """Of how long a text or a list is, whatever is known of it."""
    return 0, 2**40


def ticks_per_day(data_type: DataType) -> int | None:
    """Storage units in a day, for DATE and the timestamps."""
    if data_type.kind is TypeKind.DATE:
        return 1
    ticks = TICKS_PER_SECOND.get(data_type.kind)
    return None if ticks is None else ticks * SECONDS_PER_DAY


def days(known: Range | None, data_type: DataType) -> Range | None:
    """The range in whole days since 1970, one more on either side under a time zone."""
    per_day = ticks_per_day(data_type)
    if per_day is None or known is None:
        return None
    slack = 1 if data_type.kind is TypeKind.TIMESTAMP_TZ else 0
    return known[0] // per_day - slack, known[1] // per_day + slack


def is_finite(known: Range | None, data_type: DataType) -> bool:
    """True if a date or timestamp provably is not +-infinity (on which most date functions return NULL)."""
    if data_type.is_time_of_day:
        return True
    if known is None or max(map(abs, known)) >= INFINITE_TICK:  # of nanoseconds, it is a day of the calendar
        return False
    return is_in_calendar(days(known, data_type))


def is_in_calendar(known: Range | None) -> bool:
    """True if all days are some that Python knows."""
    return known is not None and CALENDAR_DAYS[0] <= known[0] and known[1] <= CALENDAR_DAYS[1]
