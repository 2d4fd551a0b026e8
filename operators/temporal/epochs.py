"""Instants as numbers since 1970, and back: epoch_us, epoch_ns, to_timestamp, make_timestamp of a number; nanosecond."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tqp.core.datatypes import TICKS_PER_SECOND, DataType, TypeKind
from tqp.core.time_limits import (
    DAYS_PER_MONTH,
    INFINITE_TICK,
    MICROSECONDS_PER_DAY,
    MICROSECONDS_PER_SECOND,
    SECONDS_PER_DAY,
)
from tqp.data.division import divide_by
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.numbers import elementwise
from tqp.operators.numbers.wide import raise_where
from tqp.operators.temporal import dates
from tqp.operators.temporal.clocks import clock_of
from tqp.operators.temporal.intervals import interval_of_ticks

_INT64_MAX = 2**63 - 1
_MICROSECONDS_PER_MINUTE = 60 * MICROSECONDS_PER_SECOND


def _epoch(per_second: int) -> Overload:
    """Of a DATE, a timestamp, a time of day or an INTERVAL, in ticks of so many a second; NULL for infinite dates.

    The kernel raises ExecutionError beyond 64 bits, but for values whose ticks are as long.
    """

    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
        (source,) = argument_types
        if source.kind is TypeKind.INTERVAL:
            factor = per_second // MICROSECONDS_PER_SECOND

            def of_interval(interval: Tensor, *, validity: Tensor | None = None) -> Tensor:
                return _scaled(_microseconds(interval, validity), factor, source, validity)

            return Kernel(of_interval, checks=True)
        if source.kind is TypeKind.DATE:
            factor = per_second * SECONDS_PER_DAY
        else:
            factor = per_second // TICKS_PER_SECOND.get(source.kind, MICROSECONDS_PER_SECOND)

        def of_instant(values: Tensor, *, validity: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
            finite = None if source.is_time_of_day else dates.finite_validity(values, source)
            if source.is_time_of_day:
                values = clock_of(values, source)
            elif finite is not None:
                values = values * finite
            return _scaled(values, factor, source, validity), finite

        return Kernel(of_instant, checks=factor > 1, returns_validity=True)

    return resolve


def _scaled(values: Tensor, factor: int, source: DataType, validity: Tensor | None) -> Tensor:
    """values * factor, int64 [n]; raises ExecutionError where that has more than 64 bits."""
    values, most = values.to(torch.int64), _INT64_MAX // factor
    if factor > 1:
        raise_where(
            (values > most) | (values < -most), f"A {source} has too many ticks for 64 bits", validity
        )
    return values * factor


def _microseconds(interval: Tensor, validity: Tensor | None) -> Tensor:
    """Of int64 [n, 3], a month as 30 days: int64 [n]; raises ExecutionError beyond 64 bits."""
    months, days, microseconds = interval[..., 0], interval[..., 1], interval[..., 2]
    most = _INT64_MAX // MICROSECONDS_PER_DAY
    parts = [months * DAYS_PER_MONTH, days]
    beyond = torch.zeros_like(days, dtype=torch.bool)
    total = torch.zeros_like(days)
    for added in (*parts, None):
        if added is not None:
            beyond = beyond | (added.abs() > most)
            added = added * MICROSECONDS_PER_DAY
        else:
            added = microseconds
        summed = total + added
        beyond = beyond | (((total ^ summed) & (added ^ summed)) < 0)
        total = summed
    raise_where(beyond, "An INTERVAL has more microseconds than 64 bits hold", validity)
    return total


def _nanosecond(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    """Nanoseconds of the minute, seconds included: int64 [n]; NULL for infinite dates."""
    (source,) = argument_types
    if source.kind is TypeKind.INTERVAL:
        return Kernel(
            lambda interval: (
                elementwise.truncate_remainder(interval[..., 2], _MICROSECONDS_PER_MINUTE) * 1_000
            )
        )
    per_second = TICKS_PER_SECOND.get(source.kind, MICROSECONDS_PER_SECOND)

    def of_instant(values: Tensor) -> tuple[Tensor, Tensor | None]:
        if source.kind is TypeKind.DATE:
            zeros = torch.zeros(values.shape, dtype=torch.int64, device=values.device)
            return zeros, dates.finite_validity(values, source)
        if source.is_time_of_day:
            values, finite = clock_of(values, source), None
        else:
            finite = dates.finite_validity(values, source)
        ticks = elementwise.floor_remainder(values.to(torch.int64), 60 * per_second)
        return ticks * (10**9 // per_second), finite

    return Kernel(of_instant, returns_validity=True)


def _to_timestamp(seconds: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """Microseconds, int64 [n], of float64 seconds, to the nearest; raises ExecutionError for what is out of range."""
    microseconds = torch.round(seconds.to(torch.float64) * MICROSECONDS_PER_SECOND)
    inside = (microseconds >= -(2.0**63)) & (microseconds < 2.0**63)
    raise_where(~inside, "to_timestamp(): the seconds are out of the range of TIMESTAMPTZ", validity)
    return torch.where(inside, microseconds, 0.0).to(torch.int64)


def timestamp_of_ticks(values: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """A timestamp of its ticks since 1970, int64 [n]; raises ExecutionError for those that stand for infinity."""
    values = values.to(torch.int64)
    is_infinite = (values == INFINITE_TICK) | (values == -INFINITE_TICK)
    raise_where(is_infinite, "The number is out of the range of a timestamp", validity)
    return values


def _checked_ticks(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    return Kernel(timestamp_of_ticks, checks=True)


def _ticks_between(first: Tensor, second: Tensor) -> Tensor:
    return elementwise.subtract(first.to(torch.int64), second.to(torch.int64))


def _epoch_of_ticks(ticks: Tensor) -> Tensor:
    """Seconds, float64 [n], of microseconds: as of an interval of whole days and the rest, which are added."""
    ticks = ticks.to(torch.int64)
    days = elementwise.truncate_divide(ticks, MICROSECONDS_PER_DAY)
    rest = (ticks - days * MICROSECONDS_PER_DAY).to(torch.float64)
    return (days * SECONDS_PER_DAY).to(torch.float64) + divide_by(rest, MICROSECONDS_PER_SECOND)


def _number_of_unit(ticks: int, values: Tensor) -> Tensor:
    return elementwise.floor_divide(values.to(torch.int64), ticks)


def _start_of_unit(ticks: int, numbers: Tensor) -> Tensor:
    return numbers.to(torch.int64) * ticks


def _by_unit(function: Callable[[int, Tensor], Tensor]) -> Overload:
    constant = frozenset({0})
    return lambda argument_types, result_type: Kernel(function, constant_arguments=constant, any_width=True)


EPOCH_KERNELS: dict[str, Overload] = {
    "ticks_between": lambda argument_types, result_type: Kernel(_ticks_between, any_width=True),
    "epoch_of_ticks": lambda argument_types, result_type: Kernel(_epoch_of_ticks),
    "interval_of_ticks": lambda argument_types, result_type: Kernel(interval_of_ticks),
    "number_of_unit": _by_unit(_number_of_unit),
    "start_of_unit": _by_unit(_start_of_unit),
    "epoch_us": _epoch(10**6),
    "epoch_ns": _epoch(10**9),
    "nanosecond": _nanosecond,
    "to_timestamp": lambda argument_types, result_type: Kernel(_to_timestamp, checks=True),
    "make_timestamp_ns": _checked_ticks,
}
