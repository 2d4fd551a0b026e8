"""CAST of one storage value in plain Python, with DuckDB's rules; what constant folding and parameters rest on.

Covers what literals need; `cast_value` answers NotImplemented for the rest, which is then left to the kernels.
"""

from __future__ import annotations

import ctypes
import datetime
import math
from typing import Any

from tqp.core import time_limits
from tqp.core.datatypes import (
    DOUBLE,
    FLOAT,
    HUGEINT,
    TICKS_PER_SECOND,
    TIMESTAMP,
    VARCHAR,
    DataType,
    TypeKind,
)
from tqp.core.errors import ExecutionError
from tqp.core.text.numbers import ParseFailure, round_half_away
from tqp.core.text.parsers import parser_of
from tqp.core.units import UNITS
from tqp.core.unsigned_128 import stored_unsigned, unsigned_of_stored
from tqp.core.uuids import uuid_of_stored
from tqp.core.zoned_times import clock_of_stored, stored_time
from tqp.planner.algebra.expressions import Value
from tqp.planner.functions.ranges import EPOCH_ORDINAL, is_in_calendar


def interval_of(unit: str, count: float) -> tuple[int, int, int] | None:
    """`count` units as (months, days, microseconds); None where that overflows."""
    months, days, micros = UNITS[unit]
    if not math.isfinite(micros * count):
        return None
    whole = int(count)
    return fitting_interval(months * whole, days * whole, round(micros * count) if micros else 0)


def fitting_interval(months: int, days: int, micros: int) -> tuple[int, int, int] | None:
    """The interval, or None where a field is out of range, which is for a kernel to tell."""
    fits = max(abs(months), abs(days)) < 2**31 and abs(micros) < 2**63
    return (months, days, micros) if fits else None


def cast_value(value: Value, source: DataType, target: DataType) -> Any:
    """`value` of type `source` as a storage value of `target`.

    Raises ExecutionError if the value cannot be converted; returns NotImplemented for casts it does not know.
    """
    if value is None or source == target:
        return value
    if TypeKind.UUID in (source.kind, target.kind) and TypeKind.UHUGEINT in (source.kind, target.kind):
        return value  # of both the first bit is turned
    if source.kind is TypeKind.UHUGEINT and isinstance(value, int):
        value = unsigned_of_stored(value)
    if source.is_json:
        return value if target == VARCHAR else NotImplemented
    if source.kind is TypeKind.VARCHAR and isinstance(value, str):
        return _parse(value, target)
    if target.is_whole or target.is_decimal:
        whole = _to_whole(value, source, target)
        is_stored = target.kind is not TypeKind.UHUGEINT or whole is NotImplemented
        return whole if is_stored else stored_unsigned(whole)
    if target.is_float:
        return _to_float(value, source, target)
    if target.kind is TypeKind.BOOLEAN and (source.is_whole or source.is_float):
        return bool(value)
    if target.is_temporal and source.is_temporal and isinstance(value, int):
        return _convert_temporal(value, source, target)
    if source.kind is target.kind is TypeKind.LIST and isinstance(value, tuple):
        return _cast_elements(value, source.element, target.element)
    if source.kind is TypeKind.LIST and target.is_vector and isinstance(value, tuple):
        is_vector = len(value) == target.size and None not in value
        return _cast_elements(value, source.element, FLOAT) if is_vector else NotImplemented
    if target == VARCHAR:
        return _to_text(value, source)
    return NotImplemented


def _cast_elements(values: tuple[Any, ...], source: DataType, target: DataType) -> Any:
    """What cannot be cast is left to the kernels: TRY_CAST keeps the other elements, and of a union NULL may be a member."""
    if target.is_composed:
        return NotImplemented
    try:
        cast = tuple(cast_value(each, source, target) for each in values)
    except ExecutionError:
        return NotImplemented
    return NotImplemented if NotImplemented in cast else cast


def bounds_error(value: object, source: DataType, target: DataType) -> ExecutionError:
    """The error for a constant that the target type cannot hold."""
    return ExecutionError(
        f"{value} ({source}) is out of range for {target}; cast to a wider type, or use TRY_CAST"
    )


def _to_whole(value: Value, source: DataType, target: DataType) -> Any:
    """To an integer or a decimal, rounding half away from zero (floats to integers: half to even)."""
    shift = target.scale - source.scale
    if isinstance(value, bool):
        # with no whole digits TRUE does not fit; DuckDB makes it the smallest fraction
        whole = int(value) * (1 if target.precision == target.scale else 10**target.scale)
    elif isinstance(value, int) and (source.is_whole or source.is_decimal):
        whole = value * 10**shift if shift >= 0 else round_half_away(value, 10**-shift)
    elif isinstance(value, float):
        whole = _round_float(value, source, target)
    else:
        return NotImplemented
    low, high = target.value_bounds
    if not low <= whole <= high:
        shown = value if not source.scale else f"{int(value) / 10**source.scale}"
        raise bounds_error(shown, source, target)
    return whole


def _round_float(value: float, source: DataType, target: DataType) -> int:
    scaled = value * 10.0**target.scale
    # DuckDB takes the least HUGEINT for out of range
    if not math.isfinite(scaled) or scaled <= HUGEINT.bounds[0]:
        raise bounds_error(value, source, target)
    if target.is_whole:
        return round(scaled)
    whole = math.trunc(scaled)
    rest = scaled - whole
    rounded = whole + (rest >= 0.5) - (rest <= -0.5)
    # as floats: the one nearest to the limit is the limit itself, of many digits less
    if abs(float(rounded)) >= 10.0**target.precision:
        raise bounds_error(value, source, target)
    return rounded


def _to_float(value: Value, source: DataType, target: DataType) -> Any:
    if isinstance(value, (bool, int)) and (source.is_numeric or source.kind is TypeKind.BOOLEAN):
        number = int(value) / 10**source.scale if source.scale else float(value)
    elif isinstance(value, float):
        number = value
    else:
        return NotImplemented
    return NotImplemented if target.kind is TypeKind.FLOAT and not _is_float32(number) else number


def _is_float32(number: float) -> bool:
    """Exactly representable in 32 bits; others are left for the kernels to round."""
    try:
        return rounded_to_float32(number) == number or math.isnan(number)
    except ExecutionError:
        return False


def rounded_to_float32(number: float) -> float:
    """The nearest number that has 32 bits. Raises ExecutionError if all are smaller."""
    rounded: float = ctypes.c_float(number).value
    if math.isinf(rounded) and not math.isinf(number):
        raise bounds_error(number, DOUBLE, FLOAT)
    return rounded


def _convert_temporal(value: int, source: DataType, target: DataType) -> Any:
    """Infinity stays; a finer unit must fit 64 bits, a coarser one rounds half away from zero."""
    if source.kind is TypeKind.DATE and target.is_timestamp:
        if abs(value) == time_limits.INFINITE_DAY:
            return time_limits.INFINITE_TICK if value > 0 else -time_limits.INFINITE_TICK
        return _tick(value * time_limits.SECONDS_PER_DAY, TypeKind.TIMESTAMP_S, source, target)
    if source.kind is TypeKind.TIME_TZ:
        return clock_of_stored(value)
    if source.kind is TypeKind.TIME:
        return stored_time(value, 0)
    if not source.is_timestamp:
        return NotImplemented
    infinite = abs(value) == time_limits.INFINITE_TICK
    if target.is_timestamp:
        return value if infinite else _tick(value, source.kind, source, target)
    if infinite:
        if target.is_time_of_day:
            raise ExecutionError("Can't get TIME of infinite TIMESTAMP")
        return time_limits.INFINITE_DAY if value > 0 else -time_limits.INFINITE_DAY
    micros = _tick(value, source.kind, source, TIMESTAMP)
    days, clock = divmod(micros, time_limits.MICROSECONDS_PER_DAY)
    if target.kind is TypeKind.TIME_TZ:
        return stored_time(clock, 0)
    return days if target.kind is TypeKind.DATE else clock


def _tick(value: int, unit: TypeKind, source: DataType, target: DataType) -> int:
    """An instant, so many units since 1970, in the target's unit."""
    up, down = TICKS_PER_SECOND[target.kind], TICKS_PER_SECOND[unit]
    tick = value * (up // down) if up >= down else round_half_away(value, down // up)
    if up > time_limits.MICROSECONDS_PER_SECOND:
        inside = abs(tick) < time_limits.INFINITE_TICK
    else:
        micros = tick * (time_limits.MICROSECONDS_PER_SECOND // up)
        inside = time_limits.FIRST_MICROSECOND <= micros <= time_limits.LAST_MICROSECOND
    if not inside:
        raise bounds_error(f"a {source}", source, target)
    return tick


def _to_text(value: Value, source: DataType) -> Any:
    if source.kind is TypeKind.BIT:
        return value
    if isinstance(value, int) and source.is_enum:
        return source.categories[value]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and source.is_whole:
        return str(value)
    if isinstance(value, int) and source.is_decimal:
        whole_digits = source.precision > source.scale  # no zero before the point if there is none
        digits = str(abs(value)).rjust(source.scale + whole_digits, "0")
        sign = "-" if value < 0 else ""
        return sign + (f"{digits[: -source.scale]}.{digits[-source.scale :]}" if source.scale else digits)
    if isinstance(value, int) and source.kind is TypeKind.UUID:
        return str(uuid_of_stored(value))
    if isinstance(value, int) and source.kind is TypeKind.DATE and is_in_calendar((value, value)):
        return datetime.date.fromordinal(value + EPOCH_ORDINAL).isoformat()
    return NotImplemented


def _parse(text: str, target: DataType) -> Any:
    parser = parser_of(target)
    if parser is None:
        return NotImplemented
    try:
        return parser(text, target)
    except ParseFailure as failure:
        raise ExecutionError(str(failure)) from None
