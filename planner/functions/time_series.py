"""Timestamps from a start by a step, without or with the end: what range() and generate_series() of them hold."""

from __future__ import annotations

from tqp.core import time_limits
from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.functions.temporal import shifted_instant

#: Months, days and microseconds.
Interval = tuple[int, int, int]


def microseconds_of_step(step: Interval, name: str) -> int | None:
    """The step in microseconds, None if months are in it, which differ in length. Raises BindError for one that leads nowhere."""
    if not any(step):
        raise BindError(f"the step of {name}() must not be 0")
    if min(step) < 0 < max(step):
        raise BindError(f"the months, days and time of the step of {name}() must have one sign")
    months, days, micros = step
    return None if months else days * time_limits.MICROSECONDS_PER_DAY + micros


def count_of_steps(start: int, end: int, step: int, includes_end: bool) -> int:
    """How many numbers there are from the start by the step."""
    return max(0, (end - start) // step + 1 if includes_end else -((start - end) // step))


def check_finite(instant: int, name: str) -> None:
    """Raise BindError for infinity."""
    if abs(instant) >= time_limits.INFINITE_TICK:
        raise BindError(f"{name}() does not end at infinity")


def instants_by_months(
    start: int, end: int, step: Interval, includes_end: bool, name: str
) -> tuple[int, ...]:
    """Microseconds since 1970, each a step after the one before: from January 31 by a month to February 29 and March 29."""
    ascends = max(step) > 0
    found: list[int] = []
    instant = start
    while (instant < end if ascends else instant > end) or (includes_end and instant == end):
        found.append(instant)
        instant = shifted_instant(instant, step, 1)
        if instant is NotImplemented:
            raise UnsupportedError(f"{name}() by months beyond the years 1 to 9999 is not supported")
    return tuple(found)
