"""Dates and timestamps made of their pieces: year, month, day, hour, minute and second."""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.core import time_limits
from tqp.operators.numbers import wide
from tqp.operators.numbers.casts import round_half_away
from tqp.operators.temporal import dates


def make_date(year: Tensor, month: Tensor, day: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """Day numbers, int64 [n]; raises ExecutionError for a day that does not exist or is out of DATE's range."""
    year, month, day = torch.broadcast_tensors(*(part.to(torch.int64) for part in (year, month, day)))  # type: ignore[no-untyped-call]
    good = (month >= 1) & (month <= 12) & (year.abs() < 6_000_000)
    year, month = year * good, torch.where(good, month, 1)
    good = good & (day >= 1) & (day <= dates.days_in_month(year, month))
    result = dates.days_from_civil(year, month, torch.where(good, day, 1))
    good = good & (result >= time_limits.FIRST_DAY) & (result <= time_limits.LAST_DAY)
    wide.raise_where(~good, "Date out of range: the year, month and day name no date", validity)
    return result


def make_timestamp(
    year: Tensor,
    month: Tensor,
    day: Tensor,
    hour: Tensor,
    minute: Tensor,
    second: Tensor,
    *,
    validity: Tensor | None = None,
) -> Tensor:
    """Microseconds, int64 [n], of integers and float64 seconds; raises ExecutionError for what does not exist."""
    days = make_date(year, month, day, validity=validity)
    clock = make_time(hour, minute, second, validity=validity)
    first = -(-time_limits.FIRST_MICROSECOND // time_limits.MICROSECONDS_PER_DAY)
    last = time_limits.LAST_MICROSECOND // time_limits.MICROSECONDS_PER_DAY
    rest = time_limits.LAST_MICROSECOND % time_limits.MICROSECONDS_PER_DAY
    beyond = (days < first) | (days > last) | ((days == last) & (clock > rest))
    wide.raise_where(beyond, "Date and time not in timestamp range", validity)
    return days * time_limits.MICROSECONDS_PER_DAY + clock


def make_time(hour: Tensor, minute: Tensor, second: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """Microseconds since midnight, int64 [n]; raises ExecutionError for what is no time of a day. 24:00:00 is one."""
    hour, minute = hour.to(torch.int64), minute.to(torch.int64)
    micros = round_half_away(second.to(torch.float64) * 1_000_000)
    midnight = (hour == 24) & (minute == 0) & (micros == 0)  # the end of the day
    good = (hour >= 0) & (hour <= 23) & (minute >= 0) & (minute <= 59) & (micros >= 0) & (second < 61)
    wide.raise_where(
        ~(good | midnight), "Time out of range: the hour, minute and second name no time", validity
    )
    return (hour * 60 + minute) * 60_000_000 + torch.where(good, micros, 0.0).to(torch.int64)
