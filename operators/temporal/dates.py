"""The proleptic Gregorian calendar on day numbers (days since 1970-01-01), as integer tensor arithmetic.

Conversions between day numbers and year, month, day follow Howard Hinnant's "chrono-Compatible Low-Level Date
Algorithms" (public domain, https://howardhinnant.github.io/date_algorithms.html). Year 0 is 1 BC. Everything here takes
any integer width and returns int64; `by_day` makes a function of a day cost one gather where days repeat.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from tqp.core.datatypes import TICKS_PER_SECOND, DataType, TypeKind
from tqp.core.errors import ExecutionError
from tqp.core.time_limits import (
    FIRST_MICROSECOND,
    INFINITE_DAY,
    INFINITE_TICK,
    LAST_MICROSECOND,
    MICROSECONDS_PER_DAY,
    MICROSECONDS_PER_SECOND,
    MONTHS_PER_YEAR,
    SECONDS_PER_DAY,
)
from tqp.data.backend import is_host
from tqp.operators.memory import allocation
from tqp.operators.memory.arrays import Array, Values, as_tensor
from tqp.operators.numbers import arithmetic
from tqp.operators.numbers.elementwise import floor_divide, floor_remainder
from tqp.operators.numbers.logic import any_true

DayFunction = TypeVar("DayFunction", bound=Callable[..., Any])

_DAYS_PER_ERA = 146_097  # 400 years
_DAYS_TO_EPOCH = 719_468  # from 0000-03-01 to 1970-01-01
#: Below this many rows a table of days costs more than it saves.
_MINIMUM_ROWS_FOR_TABLE = 2_048


def by_day(days: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """function(days), elementwise, computed once per day of the range where that range is short: one gather a row.

    `function` maps int64 [m] to [m] or [m, k]. Dates of a real table span a few thousand days, so a batch of rows
    pays about 1 ns a row instead of 20 divisions.
    """
    rows = days.numel()
    if rows < _MINIMUM_ROWS_FOR_TABLE or not is_host(days):
        return function(days.to(torch.int64))
    array = days.numpy()
    first, last = int(array.min()), int(array.max())
    if last - first >= rows // 2:
        return function(days.to(torch.int64))
    table = function(torch.arange(first, last + 1, dtype=torch.int64))
    if first < -(2**31) or last >= 2**31:
        return torch.index_select(table, 0, days - first)
    # int32 positions: half the memory traffic of int64.
    positions = torch.from_numpy(np.subtract(array, first, dtype=np.int32, casting="same_kind"))
    result = allocation.empty((rows, *table.shape[1:]), table.dtype, table.device)
    return torch.index_select(table, 0, positions, out=result)


def _in_arrays(function: DayFunction) -> DayFunction:
    """A function of day numbers, computed on arrays where they are on the CPU: its many small steps need no tensors.

    It takes arrays too, and then returns such.
    """

    @functools.wraps(function)
    def compute(days: Values) -> Any:
        if isinstance(days, np.ndarray):
            return function(days)
        return as_tensor(function(days.numpy())) if is_host(days) and days.dim() else function(days)

    return cast(DayFunction, compute)


@_in_arrays
def civil_from_days(days: Values) -> tuple[Values, Values, Values]:
    """Year, month 1-12 and day 1-31 of int64 [n] day numbers: int64 [n] each."""
    year, day_of_year = _march_based(days)
    month_index = floor_divide(5 * day_of_year + 2, 153)  # from March
    day = day_of_year - floor_divide(153 * month_index + 2, 5) + 1
    month = month_index + 3 - 12 * (month_index >= 10)
    return year + (month <= 2), month, day


@_in_arrays
def year_from_days(days: Values) -> Values:
    """The year alone: int64 [n]."""
    year, day_of_year = _march_based(days)
    return year + (day_of_year >= 306)


def _march_based(days: Values) -> tuple[Values, Values]:
    """The year that begins in March, and the day of that year from 0: int64 [n] each."""
    shifted = days + _DAYS_TO_EPOCH
    era = floor_divide(shifted, _DAYS_PER_ERA)
    day_of_era = shifted - era * _DAYS_PER_ERA
    leap_days = floor_divide(day_of_era, 1_460) - floor_divide(day_of_era, 36_524)
    year_of_era = floor_divide(day_of_era - leap_days - floor_divide(day_of_era, 146_096), 365)
    first_day = 365 * year_of_era + floor_divide(year_of_era, 4) - floor_divide(year_of_era, 100)
    return year_of_era + era * 400, day_of_era - first_day


def month_index(days: Tensor) -> Tensor:
    """The number of each day's month, counted from January of the year 0: int64 [n]."""
    year, month, _ = civil_from_days(days)
    return year * MONTHS_PER_YEAR + month - 1


def days_from_civil(year: Tensor, month: Tensor, day: Tensor | int = 1) -> Tensor:
    """Day numbers of int64 [n] years, months 1-12 and days (any): int64 [n]."""
    march_year = year - (month <= 2).to(torch.int64)
    era = floor_divide(march_year, 400)
    year_of_era = march_year - era * 400
    month_index = month - 3 + 12 * (month <= 2)
    day_of_year = floor_divide(153 * month_index + 2, 5) + day - 1
    leap_days = floor_divide(year_of_era, 4) - floor_divide(year_of_era, 100)
    return era * _DAYS_PER_ERA + year_of_era * 365 + leap_days + day_of_year - _DAYS_TO_EPOCH


def days_in_month(year: Tensor, month: Tensor) -> Tensor:
    """28 to 31: int64 [n]."""
    leap = ((year & 3) == 0) & ((floor_remainder(year, 100) != 0) | (floor_remainder(year, 400) == 0))
    lengths = torch.tensor([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], device=month.device)
    return torch.index_select(lengths, 0, month.reshape(-1)).reshape(month.shape) + (leap & (month == 2))


def days_of_fields(year: Any, month: Any, day: Any, fits: Any) -> tuple[Any, Any]:
    """Day numbers, int64 [n], and which of the rows that `fits` has, bool [n], are days of the calendar: bool [n].

    Years from 0 to 9999 there; other rows get any number. Arrays or tensors. One look-up a row in a table of months, where
    `days_from_civil` takes thirty steps.
    """
    exists = fits & (month >= 1) & (month <= 12)
    number: Any = (year * 12 + month) * exists
    first, size = (
        table.take(number)
        if isinstance(number, np.ndarray)
        else torch.from_numpy(table).to(number.device)[number]
        for table in _months()
    )
    return first + (day - 1), exists & (day >= 1) & (day <= size)


@functools.lru_cache
def _months() -> tuple[Array, Array]:
    """The day on which each month of the years 0 to 9999 begins, at 12 * year + month, and its days: int64 [120013]."""
    number = torch.arange(10_001 * 12 + 1) - 1
    year, month = number // 12, number % 12 + 1
    return days_from_civil(year, month).numpy(), days_in_month(year, month).numpy()


def add_months(days: Tensor, months: Tensor | int) -> Tensor:
    """The same day of another month, or that month's last day if it is shorter: int64 [n]."""
    year, month, day = civil_from_days(days)
    total = year * MONTHS_PER_YEAR + (month - 1) + months
    year = floor_divide(total, MONTHS_PER_YEAR)
    month = total - year * MONTHS_PER_YEAR + 1
    return days_from_civil(year, month, torch.minimum(day, days_in_month(year, month)))


def last_day_of_month(days: Tensor) -> Tensor:
    """int64 [n] day numbers."""
    year, month, _ = civil_from_days(days)
    return days_from_civil(year, month, days_in_month(year, month))


def first_day_of_year(days: Tensor) -> Tensor:
    """January 1 of each day's year: int64 [n]."""
    year = year_from_days(days)
    return days_from_civil(year, torch.ones_like(year))


def day_of_week(days: Tensor) -> Tensor:
    """0 (Sunday) to 6: int64 [n]."""
    return torch.remainder(days + 4, 7)


def monday_of_week(days: Tensor) -> Tensor:
    """The Monday on or before each day: int64 [n]."""
    return days - torch.remainder(days + 3, 7)


def iso_year_and_week(days: Tensor) -> tuple[Tensor, Tensor]:
    """ISO 8601 week-numbering year and week 1-53: a week belongs to the year of its Thursday. int64 [n] each."""
    thursday = monday_of_week(days) + 3
    return year_from_days(thursday), floor_divide(thursday - first_day_of_year(thursday), 7) + 1


def first_day_of_iso_year(days: Tensor) -> Tensor:
    """The Monday of ISO week 1: int64 [n]."""
    year, _ = iso_year_and_week(days)
    return monday_of_week(days_from_civil(year, torch.ones_like(year), 4))  # January 4 lies in week 1


def narrowed(numbers: Tensor, bits: int = 31) -> Tensor:
    """int32 [n] where all numbers fit so many bits and a sign, else int64: gathers and divisions of those cost half.

    Reads nothing back from a device.
    """
    if not is_host(numbers):
        return numbers.to(torch.int64)
    low, high = arithmetic.value_range(numbers)
    return numbers.to(torch.int32 if low >= -(1 << bits) and high < 1 << bits else torch.int64)


def ticks_per_day(data_type: DataType) -> int:
    """Storage ticks of one day of a timestamp type."""
    return TICKS_PER_SECOND[data_type.kind] * SECONDS_PER_DAY


def split_days(values: Tensor, data_type: DataType) -> tuple[Tensor, Tensor | None]:
    """Day numbers (any integer width) of DATE or timestamp storage, and the ticks into the day (None for DATE)."""
    if data_type.kind is TypeKind.DATE:
        return values, None
    per_day = ticks_per_day(data_type)
    values = values.to(torch.int64)
    days = floor_divide(values, per_day)
    return days, values - days * per_day


def days_of(values: Tensor, data_type: DataType) -> Tensor:
    """Day numbers of DATE or timestamp storage, in any integer width."""
    if data_type.kind is TypeKind.DATE:
        return values
    return floor_divide(values.to(torch.int64), ticks_per_day(data_type))


def finite_validity(values: Tensor, data_type: DataType) -> Tensor | None:
    """bool [n], false for 'infinity' and '-infinity'; None if all are finite."""
    limit = INFINITE_DAY if data_type.kind is TypeKind.DATE else INFINITE_TICK
    widths = {torch.int32: 2**31 - 1, torch.int64: INFINITE_TICK}
    if widths.get(values.dtype, 0) < limit or values.numel() == 0:
        return None
    if is_host(values):
        array = values.numpy()  # numpy looks twice in less time than torch.aminmax looks once
        if array.min() > -limit and array.max() < limit:
            return None
    return (values != limit) & (values != -limit)


def to_microseconds(values: Tensor, data_type: DataType, validity: Tensor | None = None) -> Tensor:
    """DATE or any timestamp storage as TIMESTAMP ticks, int64 [n]; infinities stay, nanoseconds are floored.

    Raises ExecutionError where a valid row lies outside TIMESTAMP's range.
    """
    finite = finite_validity(values, data_type)
    values = values.to(torch.int64)
    if data_type.kind is TypeKind.DATE:
        factor = MICROSECONDS_PER_DAY
    else:
        ticks = TICKS_PER_SECOND[data_type.kind]
        if ticks == MICROSECONDS_PER_SECOND:
            return values
        if ticks > MICROSECONDS_PER_SECOND:
            scaled = floor_divide(values, ticks // MICROSECONDS_PER_SECOND)
            return scaled if finite is None else torch.where(finite, scaled, values)
        factor = MICROSECONDS_PER_SECOND // ticks
    bad = (values < -(-FIRST_MICROSECOND // factor)) | (values > LAST_MICROSECOND // factor)
    if finite is not None:
        bad = bad & finite
    if any_true(bad if validity is None else bad & validity):
        raise ExecutionError(f"A {data_type} lies outside the range of TIMESTAMP (290309 BC to 294247 AD)")
    scaled = values * factor
    if finite is None:
        return scaled
    return torch.where(finite, scaled, torch.where(values > 0, INFINITE_TICK, -INFINITE_TICK))


def moved(ticks: Tensor, shift: Tensor, message: str, validity: Tensor | None = None) -> Tensor:
    """Microseconds since 1970 moved by less than a day, int64 [n]; infinite ones stay.

    Raises ExecutionError(message) where a valid row would leave TIMESTAMP's range.
    """
    result = ticks + shift
    # the sum of two numbers of one sign leaves 64 bits with the other sign
    wraps = (shift != 0) & ((result < ticks) != (shift < 0))
    finite = ticks.abs() != INFINITE_TICK
    bad = ((result < FIRST_MICROSECOND) | (result > LAST_MICROSECOND) | wraps) & finite
    if any_true(bad if validity is None else bad & validity):
        raise ExecutionError(message)
    return torch.where(finite, result, ticks)
