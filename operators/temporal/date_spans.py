"""date_trunc, date_diff and date_sub: where a day or instant lies among years, months, weeks, hours and so on."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tqp.core import time_limits
from tqp.core.datatypes import DataType, TypeKind
from tqp.core.errors import UnsupportedError, nearest
from tqp.core.time_limits import MICROSECONDS_PER_DAY
from tqp.core.units import MICROSECONDS_OF_UNITS, MONTHS_OF_UNITS
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.numbers import arithmetic, elementwise, wide
from tqp.operators.numbers.logic import any_true, combine_validity
from tqp.operators.temporal import dates
from tqp.operators.temporal.date_parts import normalize_part

DayFunction = Callable[[Tensor], Tensor]

#: Microseconds of the units below a day; `epoch` counts seconds.
_CLOCK_UNITS = {**MICROSECONDS_OF_UNITS, "epoch": 1_000_000}
_MONTHS = {**MONTHS_OF_UNITS, "isoyear": 12}
_YEARS = {unit: months // 12 for unit, months in MONTHS_OF_UNITS.items() if months >= 12}
#: Parts that mean a single day here.
_DAY_NAMES = ("day", "dow", "isodow", "doy", "julian")
_PARTS = (*_YEARS, "quarter", "month", "week", "yearweek", "isoyear", *_DAY_NAMES, *_CLOCK_UNITS)
_TOO_EARLY = "date_trunc('{}', ...) gives a time before the first TIMESTAMP (290309 BC)"


# ---- date_trunc ----------------------------------------------------------------------------------------------------


def _first_day(part: str) -> DayFunction | None:
    """int64 [n] day numbers -> the first day of the part they lie in; None for parts below a day."""
    if part in _YEARS:
        return lambda days: _first_of_years(days, _YEARS[part])
    return {"quarter": _first_of_quarter, "month": _first_of_month, "week": dates.monday_of_week,
            "yearweek": dates.monday_of_week, "isoyear": dates.first_day_of_iso_year,
            **dict.fromkeys(_DAY_NAMES, _same)}.get(part)  # fmt: skip


def _same(days: Tensor) -> Tensor:
    return days


def _first_of_years(days: Tensor, count: int) -> Tensor:
    year = _toward_zero(dates.year_from_days(days), count) * count
    return dates.days_from_civil(year, torch.ones_like(year))


def _first_of_quarter(days: Tensor) -> Tensor:
    year, month, _ = dates.civil_from_days(days)
    return dates.days_from_civil(year, _toward_zero(month - 1, 3) * 3 + 1)


def _first_of_month(days: Tensor) -> Tensor:
    year, month, _ = dates.civil_from_days(days)
    return dates.days_from_civil(year, month)


#: The first day of TIMESTAMP's range.
_FIRST_DAY = time_limits.FIRST_MICROSECOND // MICROSECONDS_PER_DAY
#: Days, and microseconds, of which the first ones of all parts, a millennium at most, are TIMESTAMPs too.
_SAFE_DAYS = (
    _FIRST_DAY + 366_000,
    time_limits.LAST_MICROSECOND // MICROSECONDS_PER_DAY,
)
_SAFE_TICKS = (_SAFE_DAYS[0] * MICROSECONDS_PER_DAY, time_limits.INFINITE_TICK)


def _resolve_truncate(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    data_type = argument_types[1]
    constant = frozenset({0})
    if data_type.kind is TypeKind.INTERVAL:
        return Kernel(_truncate_interval, constant_arguments=constant, varying_arguments=constant)
    if not (data_type.is_timestamp or data_type.kind is TypeKind.DATE):
        return None

    def truncate(part: str, values: Tensor, *, validity: Tensor | None = None) -> Tensor:
        return _truncate(_known(part, "date_trunc"), values, data_type, result_type, validity)

    return Kernel(truncate, constant_arguments=constant, varying_arguments=constant, checks=True)


def _truncate(
    part: str, values: Tensor, data_type: DataType, result_type: DataType, validity: Tensor | None
) -> Tensor:
    finite = dates.finite_validity(values, data_type)
    counted = combine_validity(finite, validity)
    per_day = 1 if result_type.kind is TypeKind.DATE else MICROSECONDS_PER_DAY
    if data_type.kind is TypeKind.DATE:
        days = values if finite is None else elementwise.keep_where(values, finite)
        result = _truncate_days(part, days, per_day, counted)
    else:
        ticks = dates.to_microseconds(values, data_type, validity)
        result = _truncate_ticks(part, ticks, counted)
        if (
            data_type.kind is TypeKind.TIMESTAMP_TZ
            and arithmetic.outside_bounds(ticks, _SAFE_TICKS) is not None
        ):
            wide.raise_where(result > ticks, _TOO_EARLY.format(part), counted)  # DuckDB lets a TIMESTAMP wrap
        if per_day == 1:
            result = elementwise.floor_divide(result, MICROSECONDS_PER_DAY)
    if finite is None:
        return result
    limit = time_limits.INFINITE_DAY if per_day == 1 else time_limits.INFINITE_TICK
    return torch.where(finite, result, torch.where(values > 0, limit, -limit))


def _truncate_days(part: str, days: Tensor, per_day: int, validity: Tensor | None) -> Tensor:
    """The first days of finite dates, or where `per_day` says so their microseconds, which alone must be a TIMESTAMP."""
    function = _first_day(part) or _same
    if per_day > 1 and arithmetic.outside_bounds(days, _SAFE_DAYS) is not None:
        return dates.to_microseconds(dates.by_day(days, function), DataType(TypeKind.DATE), validity)
    return dates.by_day(days, lambda each: function(each) * per_day)


def _truncate_ticks(part: str, ticks: Tensor, validity: Tensor | None) -> Tensor:
    first_day = _first_day(part)
    if first_day is None:
        unit = _CLOCK_UNITS[part]
        return elementwise.floor_divide(ticks, unit) * unit
    days = elementwise.floor_divide(ticks, MICROSECONDS_PER_DAY)
    if first_day is not _same:
        days = dates.by_day(days, first_day)
    if arithmetic.outside_bounds(ticks, _SAFE_TICKS) is not None:
        wide.raise_where(days < _FIRST_DAY, _TOO_EARLY.format(part), validity)
    return elementwise.multiply(days, MICROSECONDS_PER_DAY)


def _truncate_interval(part: str, interval: Tensor) -> Tensor:
    """int64 [n, 3] with everything below the part zero; divisions truncate toward zero."""
    part = _known(part, "date_trunc")
    months, days, microseconds = interval[..., 0], interval[..., 1], interval[..., 2]
    zero = torch.zeros_like(months)
    if part in _MONTHS:
        count = _MONTHS[part]
        return torch.stack((_toward_zero(months, count) * count, zero, zero), dim=-1)
    if part in ("week", "yearweek"):
        return torch.stack((months, _toward_zero(days, 7) * 7, zero), dim=-1)
    if part in _DAY_NAMES:
        return torch.stack((months, days, zero), dim=-1)
    unit = _CLOCK_UNITS[part]
    return torch.stack((months, days, _toward_zero(microseconds, unit) * unit), dim=-1)


# ---- date_diff -----------------------------------------------------------------------------------------------------


def _day_index(part: str) -> DayFunction | None:
    """int64 [n] day numbers -> the running number of the part they lie in, whose difference date_diff takes."""
    if part in _YEARS:
        return lambda days: _toward_zero(dates.year_from_days(days), _YEARS[part])
    return {"quarter": _quarter_index, "month": dates.month_index,
            "isoyear": lambda days: dates.iso_year_and_week(days)[0],
            **dict.fromkeys((*_DAY_NAMES, "week", "yearweek"), _same)}.get(part)  # fmt: skip


def _quarter_index(days: Tensor) -> Tensor:
    return _toward_zero(dates.month_index(days), 3)


def _count_boundaries(
    part: str, start: Tensor, end: Tensor, data_type: DataType, validity: Tensor | None
) -> Tensor:
    """How many boundaries of the part lie between start and end, integers [n]; weeks count whole weeks of days."""
    index = _day_index(part)
    if index is not None:
        a, b = (dates.days_of(each, data_type) for each in (start, end))
        if index is not _same:
            a, b = (
                dates.by_day(each, lambda days: dates.narrowed(index(days), _NARROW_BITS)) for each in (a, b)
            )
        return _toward_zero(_difference(a, b), 7) if part in ("week", "yearweek") else _difference(a, b)
    unit = _CLOCK_UNITS[part]
    if data_type.kind is TypeKind.DATE and unit >= _CLOCK_UNITS["second"]:  # for any DATE, be it no TIMESTAMP
        return (end.to(torch.int64) - start.to(torch.int64)) * (MICROSECONDS_PER_DAY // unit)
    a, b = (_microseconds(each, data_type, validity) for each in (start, end))
    return _checked_difference(elementwise.floor_divide(a, unit), elementwise.floor_divide(b, unit), validity)


def _checked_difference(start: Tensor, end: Tensor, validity: Tensor | None) -> Tensor:
    """end - start of int64 [n]; raises ExecutionError where that is beyond 64 bits."""
    difference = end - start
    wrapped = (end < start) != (difference < 0)
    wide.raise_where(wrapped, "The difference of two timestamps is beyond 64 bits", validity)
    return difference


#: Bits of numbers of days, or of their parts, whose differences are 32-bit integers, too.
_NARROW_BITS = 30


def _difference(start: Tensor, end: Tensor) -> Tensor:
    return elementwise.subtract(dates.narrowed(end, _NARROW_BITS), dates.narrowed(start, _NARROW_BITS))


# ---- date_sub ------------------------------------------------------------------------------------------------------


def _count_whole(
    part: str, start: Tensor, end: Tensor, data_type: DataType, validity: Tensor | None
) -> Tensor:
    """How many whole parts fit between start and end, int64 [n], negative where end is earlier."""
    a, b = (_microseconds(each, data_type, validity) for each in (start, end))
    if part in _MONTHS:
        earlier, later = torch.minimum(a, b), torch.maximum(a, b)
        whole = _toward_zero(_whole_months(earlier, later), _MONTHS[part])
        return torch.where(a <= b, whole, -whole)
    days = {"week": 7, "yearweek": 7, **dict.fromkeys(_DAY_NAMES, 1)}.get(part)
    unit = _CLOCK_UNITS[part] if days is None else days * MICROSECONDS_PER_DAY
    return _whole_units(a, b, unit, validity)


def _whole_units(start: Tensor, end: Tensor, unit: int, validity: Tensor | None) -> Tensor:
    """(end - start) / unit toward zero, int64 [n]; exact even where end - start is beyond 64 bits."""
    if unit == 1:
        return _checked_difference(start, end, validity)
    difference = end - start
    if not any_true((end < start) != (difference < 0)):
        return _toward_zero(difference, unit)
    units = elementwise.floor_divide(end, unit) - elementwise.floor_divide(start, unit)
    rest = torch.remainder(end, unit) - torch.remainder(start, unit)
    return units + ((units < 0) & (rest > 0)).to(torch.int64) - ((units > 0) & (rest < 0)).to(torch.int64)


def _whole_months(start: Tensor, end: Tensor) -> Tensor:
    """Whole months from start to a later end; the last day of a shorter month completes a month."""
    start_days = elementwise.floor_divide(start, MICROSECONDS_PER_DAY)
    end_days = elementwise.floor_divide(end, MICROSECONDS_PER_DAY)
    start_year, start_month, start_day = dates.civil_from_days(start_days)
    end_year, end_month, end_day = dates.civil_from_days(end_days)
    is_last_day = end_day == dates.days_in_month(end_year, end_month)
    start_day = torch.where(is_last_day, torch.minimum(start_day, end_day), start_day)
    start_rest = start_day * MICROSECONDS_PER_DAY + (start - start_days * MICROSECONDS_PER_DAY)
    end_rest = end_day * MICROSECONDS_PER_DAY + (end - end_days * MICROSECONDS_PER_DAY)
    months = (end_year - start_year) * 12 + end_month - start_month
    return months - (start_rest > end_rest).to(torch.int64)


# ---- overloads -----------------------------------------------------------------------------------------------------


def _resolve_difference(name: str, count: Callable[..., Tensor]) -> Overload:
    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
        data_type = argument_types[1]
        if not data_type.is_temporal:
            return None

        def difference(
            part: str, start: Tensor, end: Tensor, *, validity: Tensor | None = None
        ) -> tuple[Tensor, Tensor | None]:
            known = _known(part, name)
            if data_type.kind is TypeKind.TIME:
                if known not in _CLOCK_UNITS:
                    raise UnsupportedError(f'{name}: TIME has no part "{known}"')
                return count(known, start, end, data_type, validity), None
            finite = combine_validity(*(dates.finite_validity(each, data_type) for each in (start, end)))
            counted = combine_validity(finite, validity)
            return count(known, start, end, data_type, counted), finite

        return Kernel(
            difference,
            constant_arguments=frozenset({0}),
            varying_arguments=frozenset({0}),
            returns_validity=True,
            checks=True,
            any_width=True,
        )

    return resolve


def _microseconds(values: Tensor, data_type: DataType, validity: Tensor | None) -> Tensor:
    if data_type.kind is TypeKind.TIME:
        return values.to(torch.int64)
    return dates.to_microseconds(values, data_type, validity)


def _known(part: str, function: str) -> str:
    name = normalize_part(part)
    if name not in _PARTS:
        raise UnsupportedError(f'{function}: there is no part "{name}"' + nearest(name, _PARTS))
    return name


def _toward_zero(values: Tensor, divisor: int) -> Tensor:
    return values if divisor == 1 else elementwise.truncate_divide(values, divisor)


def _resolve_last_day(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    (data_type,) = argument_types
    if not (data_type.is_timestamp or data_type.kind is TypeKind.DATE):
        return None

    def last_day(values: Tensor, *, validity: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        days, finite = dates.days_of(values, data_type), dates.finite_validity(values, data_type)
        result = dates.by_day(days, dates.last_day_of_month)
        if arithmetic.outside_bounds(days, (time_limits.FIRST_DAY, time_limits.LAST_DAY - 31)) is not None:
            message = "The last day of the month is out of the range of DATE"
            wide.raise_where(result > time_limits.LAST_DAY, message, combine_validity(finite, validity))
        return result, finite

    return Kernel(last_day, returns_validity=True, checks=True)


SPAN_KERNELS: dict[str, Overload] = {
    "date_trunc": _resolve_truncate,
    "date_diff": _resolve_difference("date_diff", _count_boundaries),
    "date_sub": _resolve_difference("date_sub", _count_whole),
    "last_day": _resolve_last_day,
}
