"""Intervals, and dates and timestamps with intervals, days or times added.

An interval is int64 [n, 3]: months, days (both within 32 bits) and microseconds, which do not convert into each other.
A literal is [1, 3] or [3]. Infinite dates and timestamps stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tqp.core import time_limits
from tqp.core.datatypes import DataType, TypeKind
from tqp.core.errors import ExecutionError, nearest
from tqp.core.time_limits import MICROSECONDS_PER_DAY
from tqp.core.units import UNITS
from tqp.core.zoned_times import offset_of_stored
from tqp.data.division import divide_by
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.memory import allocation
from tqp.operators.numbers import arithmetic, elementwise, wide
from tqp.operators.numbers.float_pairs import multiply_add
from tqp.operators.numbers.logic import any_true, combine_validity
from tqp.operators.temporal import dates
from tqp.operators.temporal.clocks import clock_of, with_clock
from tqp.operators.temporal.date_parts import normalize_part

_FIELDS = 3  # of an interval
_LONGEST_MONTH = 31
_INT32_BOUNDS = (-(2**31), 2**31 - 1)
_INT64_BOUNDS = (-(2**63), 2**63 - 1)
_TIMESTAMP_RANGE = "Date and time not in timestamp range (290309 BC to 294247 AD)"


# ---- dates with days, times and dates ------------------------------------------------------------------------------


def add_days(days: Tensor, count: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """DATE + integer: int64 [n] day numbers; raises ExecutionError beyond DATE's range."""
    return _shift_days(days, count.to(torch.int64), validity)


def subtract_days(days: Tensor, count: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """DATE - integer: int64 [n] day numbers; raises ExecutionError beyond DATE's range."""
    return _shift_days(days, -count.to(torch.int64), validity)


def _shift_days(days: Tensor, count: Tensor, validity: Tensor | None) -> Tensor:
    """Infinite dates stay."""
    finite = dates.finite_validity(days, DataType(TypeKind.DATE))
    result = days.to(torch.int64) + count
    if finite is not None:
        result = torch.where(finite, result, days.to(torch.int64))
        validity = combine_validity(finite, validity)
    bad = arithmetic.outside_bounds(result, (time_limits.FIRST_DAY, time_limits.LAST_DAY))
    if bad is not None and any_true(bad if validity is None else bad & validity):
        raise ExecutionError("Date out of range")
    return result


def subtract_dates(a: Tensor, b: Tensor) -> Tensor:
    """Days from b to a: int64 [n]."""
    return a.to(torch.int64) - b.to(torch.int64)


def add_time(days: Tensor, time: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """DATE + TIME: TIMESTAMP ticks, int64 [n]; raises ExecutionError beyond TIMESTAMP's range."""
    base = dates.to_microseconds(days, DataType(TypeKind.DATE), validity)
    time = time.to(torch.int64)
    result = base + time
    finite = dates.finite_validity(days, DataType(TypeKind.DATE))
    last = time_limits.LAST_MICROSECOND
    on_last_day = base > last - MICROSECONDS_PER_DAY
    if any_true(on_last_day):
        bad = on_last_day & (time > last - base)
        wide.raise_where(bad, _TIMESTAMP_RANGE, combine_validity(finite, validity))
    return result if finite is None else torch.where(finite, result, base)


# ---- timestamps with intervals -------------------------------------------------------------------------------------


def add_interval(
    values: Tensor, interval: Tensor, data_type: DataType, *, validity: Tensor | None = None
) -> Tensor:
    """DATE or timestamp + INTERVAL: TIMESTAMP ticks, int64 [n]: months first, then days, then microseconds.

    For TIMESTAMP WITH TIME ZONE the microseconds of an interval with a negative field come first, as in DuckDB.

    Adding months keeps the day of the month, or takes the last day of a shorter one. Raises ExecutionError beyond
    TIMESTAMP's range.
    """
    finite = dates.finite_validity(values, data_type)
    if finite is not None:
        signs, values = values, elementwise.keep_where(values, finite)
        validity = combine_validity(finite, validity)
    result = None
    if interval.numel() == _FIELDS and values.dim() == 1:
        result = _add_literal(values, interval, data_type)
    if result is None:
        result = _add_by_row(values, interval, data_type, validity)
    if finite is None:
        return result
    return torch.where(
        finite, result, torch.where(signs > 0, time_limits.INFINITE_TICK, -time_limits.INFINITE_TICK)
    )


def _add_literal(values: Tensor, interval: Tensor, data_type: DataType) -> Tensor | None:
    """`add_interval` of finite values [n] and one interval, by day; None where a row may leave TIMESTAMP's range."""
    months, days, microseconds = interval.reshape(_FIELDS).tolist()
    is_date = data_type.kind is TypeKind.DATE
    per_day = 1 if is_date else dates.ticks_per_day(data_type)
    low, high = (value * MICROSECONDS_PER_DAY // per_day for value in arithmetic.value_range(values))
    farthest = (abs(months) * _LONGEST_MONTH + abs(days) + 1) * MICROSECONDS_PER_DAY + abs(microseconds)
    if low < time_limits.FIRST_MICROSECOND + farthest or high > time_limits.LAST_MICROSECOND - farthest:
        return None
    shift = days * MICROSECONDS_PER_DAY + microseconds

    def months_later(table: Tensor) -> Tensor:
        return dates.add_months(table, months) if months else table

    if is_date:
        return dates.by_day(values, lambda table: months_later(table) * MICROSECONDS_PER_DAY + shift)
    ticks = dates.to_microseconds(values, data_type)
    if months == 0:
        return elementwise.add(ticks, shift)
    # the clock comes first there
    if data_type.kind is TypeKind.TIMESTAMP_TZ and min(months, days, microseconds) < 0:
        ticks = elementwise.add(ticks, microseconds)
        shift -= microseconds
    change = dates.by_day(
        elementwise.floor_divide(ticks, MICROSECONDS_PER_DAY),
        lambda table: (months_later(table) - table) * MICROSECONDS_PER_DAY + shift,
    )
    return elementwise.add(ticks, change)


def _add_by_row(values: Tensor, interval: Tensor, data_type: DataType, validity: Tensor | None) -> Tensor:
    """`add_interval` of finite values [n] and intervals [n, 3] or one, with a look at each row of the result."""
    months, day_count, microseconds = interval[..., 0], interval[..., 1], interval[..., 2]
    # Raises where the start itself is no TIMESTAMP, however far the interval leads back.
    ticks = dates.to_microseconds(values, data_type, validity)
    if data_type.kind is TypeKind.DATE:
        days, clock = values.to(torch.int64), None
    else:
        days = elementwise.floor_divide(ticks, MICROSECONDS_PER_DAY)
        clock = ticks - days * MICROSECONDS_PER_DAY
    # Whole days of the microseconds move over, so that the sum of what is left cannot wrap.
    more_days = elementwise.floor_divide(microseconds, MICROSECONDS_PER_DAY)
    clock_change = microseconds - more_days * MICROSECONDS_PER_DAY
    clock = clock_change if clock is None else clock + clock_change
    if data_type.kind is TypeKind.TIMESTAMP_TZ:
        # Where a field is negative the microseconds, with the day they may carry, go before the months.
        is_negative = (months < 0) | (day_count < 0) | (microseconds < 0)
        carried = elementwise.floor_divide(clock, MICROSECONDS_PER_DAY)
        clock = clock - carried * MICROSECONDS_PER_DAY
        early_days = (more_days + carried) * is_negative
        days = days + early_days
        more_days = more_days + carried - early_days
    days = dates.add_months(days, months) + day_count + more_days
    result = days * MICROSECONDS_PER_DAY + clock
    # As floats: far from the limits they decide, near them the wrapped sum has the wrong sign or does not.
    estimate = days.to(torch.float64) * MICROSECONDS_PER_DAY + clock
    bad = (estimate.abs() > 9.3e18) | ((estimate > 9e18) & (result < 0)) | ((estimate < -9e18) & (result > 0))
    bad = bad | (result < time_limits.FIRST_MICROSECOND) | (result > time_limits.LAST_MICROSECOND)
    wide.raise_where(bad, _TIMESTAMP_RANGE, validity)
    return result


def add_interval_to_time(time: Tensor, interval: Tensor) -> Tensor:
    """TIME + INTERVAL: the microseconds move around the clock, months and days do nothing: int64 [n]."""
    shift = torch.remainder(interval[..., 2], MICROSECONDS_PER_DAY)
    return torch.remainder(time.to(torch.int64) + shift, MICROSECONDS_PER_DAY)


def subtract_timestamps(
    a: Tensor, b: Tensor, data_type: DataType, *, validity: Tensor | None = None
) -> Tensor:
    """a - b as int64 [n, 3]: whole days and the microseconds left, of the sign of the difference.

    As in DuckDB, instants with a time zone may lie farther apart than 64 bits of microseconds; others then raise ExecutionError.
    """
    for values in (a, b):
        finite = dates.finite_validity(values, data_type)
        if finite is not None:
            wide.raise_where(~finite, "Cannot subtract infinite timestamps", validity)
    a, b = dates.to_microseconds(a, data_type, validity), dates.to_microseconds(b, data_type, validity)
    difference = a - b
    (a_low, a_high), (b_low, b_high) = arithmetic.value_range(a), arithmetic.value_range(b)
    if _INT64_BOUNDS[0] <= a_low - b_high and a_high - b_low <= _INT64_BOUNDS[1]:
        return interval_of_ticks(difference)
    if data_type.kind is not TypeKind.TIMESTAMP_TZ:
        wide.raise_where(((a ^ b) & (a ^ difference)) < 0, "Timestamp difference is out of bounds", validity)
    floors = [torch.div(each, MICROSECONDS_PER_DAY, rounding_mode="floor") for each in (a, b)]
    days = floors[0] - floors[1]
    rest = difference - days * MICROSECONDS_PER_DAY  # less than a day, though the difference may wrap around
    carry = ((days < 0) & (rest > 0)).to(torch.int64) - ((days > 0) & (rest < 0)).to(torch.int64)
    return _without_months(days + carry, rest - carry * MICROSECONDS_PER_DAY)


def interval_of_ticks(ticks: Tensor) -> Tensor:
    """int64 [n, 3] of microseconds: whole days and what is left, of the same sign."""
    ticks = ticks.to(torch.int64)
    days = elementwise.truncate_divide(ticks, MICROSECONDS_PER_DAY)
    return _without_months(days, ticks - days * MICROSECONDS_PER_DAY)


def _without_months(days: Tensor, microseconds: Tensor) -> Tensor:
    """int64 [n, 3] of int64 [n]."""
    result = allocation.empty((*days.shape, _FIELDS), torch.int64, days.device)
    result[..., 0] = 0
    result[..., 1] = days
    result[..., 2] = microseconds
    return result


# ---- intervals alone -----------------------------------------------------------------------------------------------


def add_intervals(a: Tensor, b: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """int64 [n, 3], field by field; raises ExecutionError where a field overflows."""
    return _by_field(arithmetic.add_checked, a, b, validity)


def subtract_intervals(a: Tensor, b: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """int64 [n, 3], field by field; raises ExecutionError where a field overflows."""
    return _by_field(arithmetic.subtract_checked, a, b, validity)


def negate_interval(a: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """int64 [n, 3]; raises ExecutionError where a field overflows."""
    return _by_field(arithmetic.subtract_checked, torch.zeros_like(a), a, validity)


def multiply_interval(interval: Tensor, count: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """int64 [n, 3], every field times a number [n]; raises ExecutionError where a field or an integer leaves its bounds."""
    if count.dtype.is_floating_point:
        return _scale_interval(interval, count.to(torch.float64), validity)
    message = "An INTERVAL times an integer beyond 32 bits is out of range; multiply by a DOUBLE"
    count = arithmetic.check_bounds(count.to(torch.int64), _INT32_BOUNDS, message, validity)
    return _by_field(
        arithmetic.multiply_checked, interval, count.unsqueeze(-1).expand(*count.shape, 3), validity
    )


def divide_interval(interval: Tensor, divisor: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """int64 [n, 3] divided by float64 [n]; raises ExecutionError where a field overflows, as for a zero."""
    return _scale_interval(interval, 1.0 / divisor.to(torch.float64), validity)


def _scale_interval(interval: Tensor, factor: Tensor, validity: Tensor | None) -> Tensor:
    """Fractions of a month become days of 30 to it, fractions of a day microseconds, as PostgreSQL and DuckDB do.

    A fraction is exact before it is rounded: where days are millions, a product of floats has few digits left for it.
    """
    months, days, clock = interval.to(torch.float64).unbind(-1)
    scaled_months, scaled_days = months * factor, days * factor
    whole_months, whole_days = torch.trunc(scaled_months), torch.trunc(scaled_days)
    month_days = _to_millionths(multiply_add(months, factor, -whole_months) * 30)
    whole_month_days = torch.trunc(month_days)
    day_fraction = multiply_add(days, factor, -whole_days)
    seconds = _to_millionths((day_fraction + month_days - whole_month_days) * time_limits.SECONDS_PER_DAY)
    carried_days = torch.trunc(divide_by(seconds, time_limits.SECONDS_PER_DAY))
    seconds = seconds - carried_days * time_limits.SECONDS_PER_DAY
    fields = (
        whole_months,
        whole_days + carried_days + whole_month_days,
        torch.round(multiply_add(clock, factor, seconds * time_limits.MICROSECONDS_PER_SECOND)),
    )
    least, most = _INT32_BOUNDS
    is_good = (fields[1] >= least) & (fields[1] <= most) & (fields[2] >= -(2.0**63)) & (fields[2] < 2.0**63)
    for scaled in (scaled_months, scaled_days):
        is_good = is_good & (scaled >= least) & (scaled <= most)
    wide.raise_where(~is_good, "An INTERVAL times or divided by this number is out of range", validity)
    return torch.stack([torch.where(is_good, field, 0.0).to(torch.int64) for field in fields], dim=-1)


def _to_millionths(values: Tensor) -> Tensor:
    return divide_by(torch.round(values * 1e6), 1e6)


def _by_field(function: Callable[..., Tensor], a: Tensor, b: Tensor, validity: Tensor | None) -> Tensor:
    names = (("INT32", _INT32_BOUNDS), ("INT32", _INT32_BOUNDS), ("INT64", _INT64_BOUNDS))
    fields = [
        function(a[..., index], b[..., index], bounds, f"{name} (a field of INTERVAL)", validity)
        for index, (name, bounds) in enumerate(names)
    ]
    return torch.stack(torch.broadcast_tensors(*fields), dim=-1)  # type: ignore[no-untyped-call]


def to_interval(unit: str, count: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """count units as int64 [n, 3] ([3] of a 0-d count); floats round half to even in their microseconds."""
    name = normalize_part(unit)
    if name not in UNITS:
        raise ExecutionError(f'An INTERVAL has no unit "{name}"' + nearest(name, UNITS))
    field, factor = next((place, size) for place, size in enumerate(UNITS[name]) if size)
    message = f"Interval value in {name}s is out of range"
    if count.dtype.is_floating_point:
        scaled = torch.round(count.to(torch.float64) * factor)
        bad = ~(scaled.abs() < (2.0**63 if field == 2 else 2.0**31))
        wide.raise_where(bad, message, validity)
        value = torch.where(bad, 0.0, scaled).to(torch.int64)
    else:
        bounds = _INT64_BOUNDS if field == 2 else _INT32_BOUNDS
        inside = (-(-bounds[0] // factor), bounds[1] // factor)
        value = arithmetic.check_bounds(count.to(torch.int64), inside, message, validity) * factor
    zero = torch.zeros_like(value)
    return torch.stack([value if index == field else zero for index in range(3)], dim=-1)


# ---- overloads -----------------------------------------------------------------------------------------------------


def _checked(function: Callable[..., Tensor]) -> Overload:
    return lambda argument_types, result_type: Kernel(function, checks=True)


def _resolve_add_interval(is_subtraction: bool) -> Overload:
    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
        data_type = argument_types[0]
        if argument_types[1].kind is not TypeKind.INTERVAL:
            return None
        if data_type.is_time_of_day:
            sign = -1 if is_subtraction else 1

            def move(times: Tensor, interval: Tensor) -> Tensor:
                clock = add_interval_to_time(clock_of(times, data_type), interval * sign)
                return clock if data_type.kind is TypeKind.TIME else with_clock(times, clock)

            return Kernel(move)
        if not (data_type.is_timestamp or data_type.kind is TypeKind.DATE):
            return None

        def function(values: Tensor, interval: Tensor, *, validity: Tensor | None = None) -> Tensor:
            if is_subtraction:
                interval = negate_interval(interval, validity=validity)
            return add_interval(values, interval, data_type, validity=validity)

        return Kernel(function, checks=True)

    return resolve


def _resolve_add_time(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    if argument_types[1].kind is TypeKind.TIME:
        return Kernel(add_time, checks=True)

    def function(days: Tensor, times: Tensor, *, validity: Tensor | None = None) -> Tensor:
        times = times.to(torch.int64)
        local = add_time(days, clock_of(times, argument_types[1]), validity=validity)
        offset = offset_of_stored(times) * time_limits.MICROSECONDS_PER_SECOND
        return dates.moved(local, -offset, _TIMESTAMP_RANGE, validity)

    return Kernel(function, checks=True)


def _resolve_subtract_timestamps(
    argument_types: tuple[DataType, ...], result_type: DataType
) -> Kernel | None:
    data_type = argument_types[0]
    if not data_type.is_timestamp:
        return None

    def function(a: Tensor, b: Tensor, *, validity: Tensor | None = None) -> Tensor:
        return subtract_timestamps(a, b, data_type, validity=validity)

    return Kernel(function, checks=True)


def _resolve_to_interval(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    return Kernel(to_interval, constant_arguments=frozenset({0}), checks=True)


def timestamp_of_milliseconds(values: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """epoch_ms of integers [n]: microseconds since 1970, int64 [n]; raises ExecutionError beyond TIMESTAMP's range."""
    values, most = values.to(torch.int64), _INT64_BOUNDS[1] // 1000
    wide.raise_where((values > most) | (values < -most), _TIMESTAMP_RANGE, validity)
    return values * 1000


INTERVAL_KERNELS: dict[str, Overload] = {
    "add_days": _checked(add_days),
    "subtract_days": _checked(subtract_days),
    "subtract_dates": lambda argument_types, result_type: Kernel(subtract_dates),
    "add_time": _resolve_add_time,
    "add_interval": _resolve_add_interval(is_subtraction=False),
    "subtract_interval": _resolve_add_interval(is_subtraction=True),
    "subtract_timestamps": _resolve_subtract_timestamps,
    "add_intervals": _checked(add_intervals),
    "subtract_intervals": _checked(subtract_intervals),
    "negate_interval": _checked(negate_interval),
    "multiply_interval": _checked(multiply_interval),
    "divide_interval": _checked(divide_interval),
    "to_interval": _resolve_to_interval,
    "epoch_ms": _checked(timestamp_of_milliseconds),
}
