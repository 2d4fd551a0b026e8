"""Compare how far two instants lie apart with a constant interval by their ticks, without making an interval of every row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tqp.core.datatypes import BIGINT, TypeKind
from tqp.core.time_limits import DAYS_PER_MONTH, MICROSECONDS_PER_DAY
from tqp.planner.algebra.expressions import Call, Expression, Literal
from tqp.planner.functions.ranges import Range, is_finite, within


def by_ticks(call: Call, range_of: Callable[[Expression], Range | None]) -> Call:
    """`a - b > INTERVAL '1 hour'` as a number of microseconds compared with another, of finite instants; else the same object."""
    difference, literal = call.arguments
    if not (
        isinstance(difference, Call)
        and difference.function == "subtract_timestamps"
        and isinstance(literal, Literal)
        and literal.data_type.kind is TypeKind.INTERVAL
        and isinstance(literal.value, tuple)
    ):
        return call
    months, days, microseconds = map(int, literal.value)
    if min(months, days, microseconds) < 0 < max(months, days, microseconds):
        return call  # whose order is not that of its length
    total = (months * DAYS_PER_MONTH + days) * MICROSECONDS_PER_DAY + microseconds
    instants = difference.arguments
    if not within((total, total), BIGINT) or not all(
        is_finite(range_of(instant), instant.data_type) for instant in instants
    ):
        return call
    ticks = Call("ticks_between", instants, BIGINT, difference.span)
    return replace(call, arguments=(ticks, Literal(total, BIGINT)))
