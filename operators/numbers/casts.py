"""CAST and TRY_CAST between types that are not strings; `tqp.operators.text.casts` has those.

Every cast is written once, as a function that returns values and the rows it could not convert; CAST raises for these,
TRY_CAST makes them NULL.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from tqp.core import time_limits
from tqp.core.datatypes import HUGEINT, TICKS_PER_SECOND, TIMESTAMP, DataType, TypeKind
from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.core.unsigned_128 import unsigned_of_stored
from tqp.core.zoned_times import stored_time
from tqp.data.strings import Strings
from tqp.operators.kernel import Kernel
from tqp.operators.numbers import arithmetic, elementwise, wide, wide_divide
from tqp.operators.numbers.logic import any_true
from tqp.operators.numbers.unsigned_wide import cast_from_unsigned, cast_to_unsigned
from tqp.operators.numbers.wide_forms import fix_form, narrow_if_possible
from tqp.operators.operation import Operation
from tqp.operators.temporal import dates
from tqp.operators.temporal.clocks import clock_of

#: Values [n] (or [n, 2]) and bool [n], the rows that failed; None if none did.
Attempt = tuple[Tensor, Tensor | None]
AttemptFunction = Callable[[Tensor], Attempt]

Rows = TypeVar("Rows", Tensor, Strings)


@functools.lru_cache(maxsize=256)
def resolve_cast(source: DataType, target: DataType, is_try: bool) -> Kernel:
    """The kernel of CAST(source AS target); raises UnsupportedError if there is no such cast.

    With `is_try` the kernel returns (values, validity) and never raises for a value.
    """
    if source == target:
        return Kernel(_same, accepts_wide=True)
    if source.is_string or target.is_string:
        from tqp.operators.text.casts import resolve_string_cast  # it casts numbers with this module

        return resolve_string_cast(source, target, is_try)
    attempt = _attempt(source, target)
    if attempt is None:
        raise UnsupportedError(f"Unimplemented type for cast ({source} -> {target})")
    return fix_form(_try_kernel(attempt) if is_try else _raising_kernel(attempt, source, target), target)


def refuse_rows(nulls: Rows, num_rows: int, message: str, *, validity: Tensor | None = None) -> Rows:
    """`nulls`, what a cast that does not exist makes of NULLs.

    Raises ExecutionError where there is a value to cast: a row that `validity`, bool [num_rows], does not rule out.
    """
    if num_rows > 0 if validity is None else any_true(validity):
        raise ExecutionError(message)
    return nulls


def _same(values: Tensor) -> Tensor:
    return values


def _try_kernel(attempt: AttemptFunction) -> Kernel:
    def try_cast(values: Tensor) -> tuple[Tensor, Tensor | None]:
        result, failed = attempt(values)
        return result, None if failed is None else ~failed

    return Kernel(try_cast, returns_validity=True, accepts_wide=True)


def _raising_kernel(attempt: AttemptFunction, source: DataType, target: DataType) -> Kernel:
    def cast(values: Tensor, *, validity: Tensor | None = None) -> Tensor:
        result, failed = attempt(values)
        if failed is not None:
            if validity is not None:
                failed = failed & validity
            if any_true(failed):
                raise ExecutionError(_message(values, failed, source, target))
        return result

    if source.is_float and target.is_float:
        return Kernel(Operation("cast", cast, gradient=_to_float32), checks=True)
    return Kernel(cast, checks=True, accepts_wide=True)


def _to_float32(values: Tensor, *, validity: Tensor | None = None) -> Tensor:
    return values.to(torch.float32)


def _message(values: Tensor, failed: Tensor, source: DataType, target: DataType) -> str:
    row = int(failed.reshape(-1).to(torch.uint8).argmax())
    if source.is_integer_like:
        wide_row = wide.widen(values)
        raw = wide.to_ints(wide_row[row : row + 1] if wide_row.shape[0] > 1 else wide_row)[0]
        raw = unsigned_of_stored(raw) if source.kind is TypeKind.UHUGEINT else raw
        shown = _decimal_text(raw, source.scale) if source.is_decimal else str(raw)
    else:
        flat = values.reshape(-1)
        shown = str(
            flat[row if flat.numel() > 1 else 0].cpu().numpy()
        )  # as short as the width of the float allows
    if target.is_decimal:
        return f"Could not cast value {shown} to {target}; it is out of range"
    if source.is_timestamp and target.is_time_of_day:
        return "Can't get TIME of infinite TIMESTAMP"
    source_name = str(source)
    target_name = str(target)
    return (
        f"Type {source_name} with value {shown} can't be cast because the value is out of range "
        f"for the destination type {target_name}; use TRY_CAST for NULL instead"
    )


def _decimal_text(value: int, scale: int) -> str:
    digits = str(abs(value)).rjust(scale + 1, "0")
    text = digits if scale == 0 else f"{digits[:-scale]}.{digits[-scale:]}"
    return f"-{text}" if value < 0 else text


def _attempt(source: DataType, target: DataType) -> AttemptFunction | None:
    if source.kind is TypeKind.NULL:
        return lambda values: (values.to(storage_dtype(target)), torch.ones_like(values, dtype=torch.bool))
    if source.kind is TypeKind.UHUGEINT:
        return cast_from_unsigned(target, _attempt(HUGEINT, target))
    if target.kind is TypeKind.UHUGEINT:
        return cast_to_unsigned(source, _attempt(source, HUGEINT))
    if target.kind is TypeKind.BOOLEAN:
        if source.is_numeric:
            return _to_boolean
        return None
    if source.kind is TypeKind.BOOLEAN:
        return _from_boolean(target) if target.is_numeric else None
    if source.is_numeric and target.is_numeric:
        return _numeric(source, target)
    if source.is_temporal and target.is_temporal:
        return _temporal(source, target)
    return None


def storage_dtype(data_type: DataType) -> torch.dtype:
    """The dtype a kernel returns for a type: int64 for everything integer-like."""
    by_kind = {TypeKind.BOOLEAN: torch.bool, TypeKind.FLOAT: torch.float32, TypeKind.DOUBLE: torch.float64}
    return by_kind.get(data_type.kind, torch.int64)


def _to_boolean(values: Tensor) -> Attempt:
    if wide.is_wide(values):
        return (values[:, 0] | values[:, 1]) != 0, None
    return values != 0, None


def _from_boolean(target: DataType) -> AttemptFunction:
    dtype = storage_dtype(target)
    if not target.is_decimal:
        return lambda values: (values.to(dtype), None)
    # With no whole digits TRUE does not fit; DuckDB makes it the smallest fraction.
    one = 1 if target.precision == target.scale else 10**target.scale
    if one > 2**63 - 1:
        return lambda values: (
            wide.multiply(wide.from_narrow(values), wide.from_ints([one], values.device)),
            None,
        )
    return lambda values: (values.to(torch.int64) * one, None)


def _numeric(source: DataType, target: DataType) -> AttemptFunction:
    if target.is_float:
        if source.is_float:
            return (
                _double_to_float
                if target.kind is TypeKind.FLOAT
                else lambda values: (values.to(torch.float64), None)
            )
        dtype = storage_dtype(target)
        return lambda values: (arithmetic.scaled_to_float(values, source.scale, dtype), None)
    if source.is_float:
        return lambda values: _float_to_integer(values, target)
    return lambda values: _rescale(values, source.scale, target)


def _double_to_float(values: Tensor) -> Attempt:
    result = values.to(torch.float32)
    lost = torch.isinf(result) & ~torch.isinf(values)
    return result, lost if any_true(lost) else None


def _float_to_integer(values: Tensor, target: DataType) -> Attempt:
    """Rounded half to even to integers, half away from zero to decimals: what DuckDB does."""
    low, high = target.bounds
    doubles = values.to(torch.float64)
    if target.is_decimal:
        scaled = doubles * float(10**target.scale)
        rounded = round_half_away(scaled)
        limit = float(10**target.precision)
        failed = ~((rounded > -limit) & (rounded < limit))
    else:
        rounded = torch.round(doubles)
        # As floats the bounds are 2**k - 1, which may round up, and -(2**k) or 0, which are exact.
        # DuckDB takes the least HUGEINT for out of range.
        above = rounded > float(low) if target.kind is TypeKind.HUGEINT else rounded >= float(low)
        failed = ~(above & (rounded < float(high + 1)))
    has_failed = any_true(failed)
    if has_failed:
        rounded = torch.where(failed, 0.0, rounded)
    if high < 2**63:
        return rounded.to(torch.int64), failed if has_failed else None
    return narrow_if_possible(wide.from_float64(rounded)), failed if has_failed else None


def round_half_away(values: Tensor) -> Tensor:
    """C's round(): half away from zero, exact for every float (adding 0.5 is not). Same dtype and shape."""
    whole = torch.trunc(values)
    rest = values - whole
    rounded = whole + (rest >= 0.5).to(values.dtype) - (rest <= -0.5).to(values.dtype)
    return torch.copysign(rounded, values)  # -0.0 stays


def _rescale(values: Tensor, from_scale: int, target: DataType) -> Attempt:
    """Integers and decimals (narrow or wide) to the scale and bounds of an integer or decimal type."""
    low, high = target.bounds
    drop = target.scale <= from_scale
    factor = 10 ** abs(target.scale - from_scale)
    if not wide.is_wide(values):
        if drop:
            result = arithmetic.rescale(values, from_scale, target.scale)
            return result, arithmetic.outside_bounds(result, (low, high))
        # Checked before the product; the largest operand whose product fits, truncated toward zero.
        inside = (-(-low // factor), high // factor)
        failed = arithmetic.outside_bounds(values, inside)
        if failed is not None:
            values = values * ~failed
        if arithmetic.outside_bounds(values, (-((2**63 - 1) // factor), (2**63 - 1) // factor)) is None:
            return values.to(torch.int64) * (factor if factor < 2**63 else 0), failed
        return wide.multiply(values, wide.from_ints([factor], values.device)), failed
    if drop:
        result = wide_divide.divide_by_int(values, factor, round_half_away=True)
        failed = arithmetic.outside_bounds(result, (low, high))
        if failed is not None:
            result = result * ~failed.unsqueeze(1)
    else:
        failed = arithmetic.outside_bounds(values, (-(-low // factor), high // factor))
        if failed is not None:
            values = values * ~failed.unsqueeze(1)
        result = wide.multiply(values, wide.from_ints([factor], values.device))
    return narrow_if_possible(result), failed


def _temporal(source: DataType, target: DataType) -> AttemptFunction | None:
    if source.kind is TypeKind.DATE:
        return (lambda values: _date_to_timestamp(values, target)) if target.is_timestamp else None
    if target.kind is TypeKind.TIME_TZ:
        return lambda values: _in_universal_time(values, source)
    if source.kind is TypeKind.TIME_TZ:
        return (lambda values: (clock_of(values, source), None)) if target.kind is TypeKind.TIME else None
    if not source.is_timestamp:
        return None
    if target.is_timestamp:
        return lambda values: _timestamp_to_timestamp(values, source, target)
    to_day_or_time = _timestamp_to_date if target.kind is TypeKind.DATE else _timestamp_to_time
    if source.kind is TypeKind.TIMESTAMP_NS:  # DuckDB rounds to microseconds first
        return lambda values: to_day_or_time(_timestamp_to_timestamp(values, source, TIMESTAMP)[0], TIMESTAMP)
    return lambda values: to_day_or_time(values, source)


def _date_to_timestamp(values: Tensor, target: DataType) -> Attempt:
    """Infinity stays; a day beyond the range of TIMESTAMP fails, whatever the unit, and beyond 64 bits too."""
    per_day = dates.ticks_per_day(target)
    finite = dates.finite_validity(values, DataType(TypeKind.DATE))
    days = values.to(torch.int64)
    first = max(time_limits.FIRST_MICROSECOND // time_limits.MICROSECONDS_PER_DAY, -(2**63) // per_day + 1)
    last = min(time_limits.LAST_MICROSECOND // time_limits.MICROSECONDS_PER_DAY, (2**63 - 1) // per_day)
    failed = arithmetic.outside_bounds(days, (first, last))
    if failed is None:
        return days * per_day, None
    result = (days * ~failed) * per_day
    if finite is None:
        return result, failed
    infinite = torch.where(days > 0, time_limits.INFINITE_TICK, -time_limits.INFINITE_TICK)
    return torch.where(finite, result, infinite), failed & finite


def _timestamp_to_date(values: Tensor, source: DataType) -> Attempt:
    finite = dates.finite_validity(values, source)
    days = dates.days_of(values, source)
    if finite is None:
        return days, None
    infinite = torch.where(values > 0, time_limits.INFINITE_DAY, -time_limits.INFINITE_DAY)
    return torch.where(finite, days, infinite), None


def _timestamp_to_time(values: Tensor, source: DataType) -> Attempt:
    finite = dates.finite_validity(values, source)
    ticks = elementwise.floor_remainder(values.to(torch.int64), dates.ticks_per_day(source))
    ticks = ticks * (time_limits.MICROSECONDS_PER_SECOND // TICKS_PER_SECOND[source.kind])
    return ticks, None if finite is None else ~finite


def _in_universal_time(values: Tensor, source: DataType) -> Attempt:
    """The time of day of a TIME or an instant, with the offset of UTC."""
    clock, failed = (values, None) if source.kind is TypeKind.TIME else _timestamp_to_time(values, source)
    return stored_time(clock.to(torch.int64), 0), failed


def _timestamp_to_timestamp(values: Tensor, source: DataType, target: DataType) -> Attempt:
    """A finer unit is checked for 64 bits; a coarser one rounds half away from zero; infinity stays."""
    from_ticks, to_ticks = TICKS_PER_SECOND[source.kind], TICKS_PER_SECOND[target.kind]
    values = values.to(torch.int64)
    if from_ticks == to_ticks:
        return values, None
    finite = dates.finite_validity(values, source)
    if to_ticks > from_ticks:
        factor = to_ticks // from_ticks
        failed = arithmetic.outside_bounds(values, (-((2**63 - 1) // factor), (2**63 - 1) // factor))
        if failed is None:
            return values * factor, None
        result = (values * ~failed) * factor
        return (result, failed) if finite is None else (torch.where(finite, result, values), failed & finite)
    factor = from_ticks // to_ticks
    result = arithmetic.divide_half_away(values, factor)
    unit = max(time_limits.MICROSECONDS_PER_SECOND // to_ticks, 1)
    limits = (-(-time_limits.FIRST_MICROSECOND // unit), time_limits.LAST_MICROSECOND // unit)
    failed = arithmetic.outside_bounds(result, limits)  # by rounding up
    if finite is None:
        return result, failed
    return torch.where(finite, result, values), None if failed is None else failed & finite
