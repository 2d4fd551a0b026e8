"""date_part / EXTRACT: fields of dates, timestamps, times and intervals."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tqp.core.datatypes import DOUBLE, TICKS_PER_SECOND, DataType, TypeKind
from tqp.core.errors import UnsupportedError, nearest
from tqp.core.time_limits import MICROSECONDS_PER_SECOND, SECONDS_PER_DAY
from tqp.core.units import MICROSECONDS_OF_UNITS, MONTHS_OF_UNITS, PART_NAMES
from tqp.data.division import divide_by
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.numbers import arithmetic, elementwise
from tqp.operators.temporal import dates
from tqp.operators.temporal.clocks import clock_of, offset_of


def normalize_part(part: str) -> str:
    """DuckDB's name of a date part, whatever its case and alias: 'YRS' is 'year'."""
    part = part.lower()
    return PART_NAMES.get(part, part)


def resolve_date_part(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    """date_part(part, x): integers [n], or float64 [n] for epoch, julian and parts that no constant names; NULL for infinite dates."""
    if len(argument_types) != 2:
        return None
    data_type = argument_types[1]
    constant = frozenset({0})

    def of_type(field: Tensor) -> Tensor:
        return field.to(torch.float64) if result_type == DOUBLE else field

    def named(part: str) -> str:
        """The part; those that only functions of their name have are none that a row can name."""
        known = normalize_part(part)
        if known in _EPOCH_UNITS and result_type == DOUBLE:
            raise UnsupportedError(f'date_part: {data_type} has no part "{known}"')
        return known

    if data_type.is_time_of_day:

        def part_of_time(part: str, values: Tensor) -> Tensor:
            known = _known(named(part), _CLOCK_PARTS, data_type)
            if known in _ZONE_PARTS:
                return of_type(_zone_part(known, offset_of(values, data_type)))
            return of_type(_clock_part(known, clock_of(values, data_type)))

        return Kernel(part_of_time, constant_arguments=constant, varying_arguments=constant)
    if data_type.kind is TypeKind.INTERVAL:
        return Kernel(
            lambda part, values: of_type(_interval_part(named(part), values)),
            constant_arguments=constant,
            varying_arguments=constant,
        )
    if data_type.kind is TypeKind.DATE or data_type.is_timestamp:

        def date_part(part: str, values: Tensor) -> tuple[Tensor, Tensor | None]:
            field = _narrow_clock_field(normalize_part(part), values, data_type)
            if field is not None:
                return of_type(field), None
            finite = dates.finite_validity(values, data_type)
            try:
                return of_type(_date_part(named(part), values, data_type)), finite
            except UnsupportedError:  # nobody asks which part of an infinite date
                if result_type != DOUBLE or finite is None or bool(finite.any()):
                    raise
                return torch.zeros(values.shape, dtype=torch.float64, device=values.device), finite

        return Kernel(
            date_part,
            constant_arguments=constant,
            varying_arguments=constant,
            returns_validity=True,
            any_width=True,
        )
    return None


def _date_part(part: str, values: Tensor, data_type: DataType) -> Tensor:
    day_function = DAY_PARTS.get(part)
    if day_function is not None:
        return dates.by_day(dates.days_of(values, data_type), lambda days: dates.narrowed(day_function(days)))
    if part in _ZONE_PARTS and data_type.is_timestamp:
        return torch.zeros(values.shape, dtype=torch.int64, device=values.device)
    per_second = TICKS_PER_SECOND.get(data_type.kind, 1)
    if part == "epoch":
        return _epoch(values, data_type)
    if part in _EPOCH_UNITS:
        target = _EPOCH_UNITS[part]
        if data_type.kind is TypeKind.DATE:
            return values.to(torch.int64) * (SECONDS_PER_DAY * target)
        return _change_unit(values.to(torch.int64), per_second, target)
    if part in _CLOCK_FIELDS and data_type.is_timestamp and per_second <= MICROSECONDS_PER_SECOND:
        seconds, number = _CLOCK_FIELDS[part]  # a day has a whole number of each
        units = dates.narrowed(elementwise.floor_divide(values.to(torch.int64), seconds * per_second))
        return elementwise.floor_remainder(units, number)
    days, ticks = dates.split_days(values, data_type)
    if part == "julian":
        julian = days.to(torch.float64) + 2_440_588
        return julian if ticks is None else julian + _floats_divided(ticks, per_second * SECONDS_PER_DAY)
    _known(part, (*DAY_PARTS, *_CLOCK_PARTS[:5], "epoch", "julian"), data_type)
    if ticks is None:
        return torch.zeros(values.shape, dtype=torch.int64, device=values.device)
    return _clock_part(part, _change_unit(ticks, per_second, MICROSECONDS_PER_SECOND))


def _narrow_clock_field(part: str, values: Tensor, data_type: DataType) -> Tensor | None:
    """A field of _CLOCK_FIELDS as int8 [n], where all timestamps are from 1970 on and not too late for it, nor infinite."""
    per_second = TICKS_PER_SECOND.get(data_type.kind, MICROSECONDS_PER_SECOND + 1)
    if part not in _CLOCK_FIELDS or per_second > MICROSECONDS_PER_SECOND or values.dim() != 1:
        return None
    seconds, number = _CLOCK_FIELDS[part]
    return elementwise.narrow_digits(values.to(torch.int64), seconds * per_second, number)


#: Seconds of a field of the time of day, and how many of them the next larger one has.
_CLOCK_FIELDS = {"hour": (3_600, 24), "minute": (60, 60), "second": (1, 60)}


def _epoch(values: Tensor, data_type: DataType) -> Tensor:
    if data_type.kind is TypeKind.DATE:
        return values.to(torch.float64) * SECONDS_PER_DAY
    per_second = TICKS_PER_SECOND[data_type.kind]
    if per_second > MICROSECONDS_PER_SECOND:
        values = _change_unit(values, per_second, MICROSECONDS_PER_SECOND)
        per_second = MICROSECONDS_PER_SECOND
    if data_type.kind is TypeKind.TIMESTAMP_TZ:  # DuckDB's calendar library counts in milliseconds
        milliseconds = elementwise.floor_divide(values, 1_000)
        rest = values - milliseconds * 1_000
        return _floats_divided(milliseconds, 1_000) + _floats_divided(rest, MICROSECONDS_PER_SECOND)
    return _floats_divided(values, per_second)


def _floats_divided(values: Tensor, divisor: int) -> Tensor:
    return divide_by(values.to(torch.float64), divisor)


def _clock_part(part: str, microseconds: Tensor) -> Tensor:
    """A field of the time of day, given in microseconds (any integer width), [n]."""
    values = microseconds.to(torch.int64)
    if part in _CLOCK_FIELDS:
        seconds, number = _CLOCK_FIELDS[part]
        units = elementwise.floor_divide(values, seconds * MICROSECONDS_PER_SECOND)
        return units if part == "hour" else elementwise.floor_remainder(units, number)  # there is 24:00:00
    if part in ("millisecond", "microsecond"):  # with the seconds
        within = elementwise.floor_remainder(values, 60 * MICROSECONDS_PER_SECOND)
        return elementwise.floor_divide(within, 1_000) if part == "millisecond" else within
    if part == "epoch":
        return _floats_divided(values, MICROSECONDS_PER_SECOND)
    return _microseconds_in_unit(values, part)


def _zone_part(part: str, offset: Tensor) -> Tensor:
    """Of seconds east of UTC, int64 [n]: all of them, or the hours or the rest of them in minutes, of the same sign."""
    if part == "timezone":
        return offset
    minutes = _divide(offset, 60)
    return _divide(minutes, 60) if part == "timezone_hour" else elementwise.truncate_remainder(minutes, 60)


#: Units per second of the parts that count from an epoch in whole units.
_EPOCH_UNITS = {"epoch_ms": 10**3, "epoch_us": 10**6, "epoch_ns": 10**9}


def _microseconds_in_unit(microseconds: Tensor, part: str) -> Tensor:
    """Of a duration, in a part of _EPOCH_UNITS, truncated: int64 [n]."""
    if part == "epoch_ms":
        return _divide(microseconds, 1_000)
    return microseconds * (_EPOCH_UNITS[part] // 10**6)


def _interval_part(part: str, interval: Tensor) -> Tensor:
    """A field of int64 [n, 3] (months, days, microseconds); every division truncates toward zero."""
    months, days, microseconds = interval[..., 0], interval[..., 1], interval[..., 2]
    if part == "month":
        return elementwise.truncate_remainder(months, 12)
    if part == "quarter":
        return _divide(elementwise.truncate_remainder(months, 12), 3) + 1
    if part in MONTHS_OF_UNITS:
        return _divide(months, MONTHS_OF_UNITS[part])
    if part == "day":
        return days
    if part == "epoch":
        # A year counts 365.25 days, a month beyond whole years 30.
        years = _divide(months, 12)
        whole_days = days + elementwise.truncate_remainder(months, 12) * 30
        seconds = years * 31_557_600 + whole_days * SECONDS_PER_DAY
        return seconds.to(torch.float64) + _floats_divided(microseconds, MICROSECONDS_PER_SECOND)
    if part in _EPOCH_UNITS:  # here every month counts 30 days
        whole_days = (months * 30 + days) * (SECONDS_PER_DAY * _EPOCH_UNITS[part])
        return whole_days + _microseconds_in_unit(microseconds, part)
    if part in MICROSECONDS_OF_UNITS:
        unit = MICROSECONDS_OF_UNITS[part]
        if part != "hour":
            larger = MICROSECONDS_OF_UNITS["hour" if part == "minute" else "minute"]
            microseconds = elementwise.truncate_remainder(microseconds, larger)
        return _divide(microseconds, unit)
    raise UnsupportedError(f'date_part: an INTERVAL has no part "{part}"')


_ZONE_PARTS = ("timezone", "timezone_hour", "timezone_minute")
_CLOCK_PARTS = (
    "hour", "minute", "second", "millisecond", "microsecond", "epoch", "epoch_ms", "epoch_us", "epoch_ns", *_ZONE_PARTS,
)  # fmt: skip


def _counted_from_one(year: Tensor, length: int) -> Tensor:
    """The first century is the years 1 to 100; the one before it, century -1, ends with year 0."""
    return torch.where(year > 0, _divide(year - 1, length) + 1, _divide(year, length) - 1)


def _year_and_week(days: Tensor) -> Tensor:
    year, week = dates.iso_year_and_week(days)
    return year * 100 + torch.where(year > 0, week, -week)


#: Parts that depend on the day alone: function of int64 [n] day numbers to int64 [n].
DAY_PARTS: dict[str, Callable[[Tensor], Tensor]] = {
    "year": dates.year_from_days,
    "month": lambda days: dates.civil_from_days(days)[1],
    "day": lambda days: dates.civil_from_days(days)[2],
    "decade": lambda days: _divide(dates.year_from_days(days), 10),
    "century": lambda days: _counted_from_one(dates.year_from_days(days), 100),
    "millennium": lambda days: _counted_from_one(dates.year_from_days(days), 1_000),
    "quarter": lambda days: _divide(dates.civil_from_days(days)[1] - 1, 3) + 1,
    "dow": dates.day_of_week,
    "isodow": lambda days: elementwise.floor_remainder(days + 3, 7) + 1,
    "week": lambda days: dates.iso_year_and_week(days)[1],
    "isoyear": lambda days: dates.iso_year_and_week(days)[0],
    "yearweek": _year_and_week,
    "doy": lambda days: days - dates.first_day_of_year(days) + 1,
    "era": lambda days: (dates.year_from_days(days) > 0).to(torch.int64),
}


def _known(part: str, parts: tuple[str, ...], data_type: DataType) -> str:
    if part not in parts:
        raise UnsupportedError(f'date_part: {data_type} has no part "{part}"' + nearest(part, parts))
    return part


def _divide(values: Tensor, divisor: int) -> Tensor:
    return elementwise.truncate_divide(values, divisor)


def _change_unit(values: Tensor, per_second: int, target_per_second: int) -> Tensor:
    """Ticks of one length as ticks of another, half away from zero as DuckDB rounds: int64 [n]."""
    if per_second > target_per_second:
        return arithmetic.divide_half_away(values, per_second // target_per_second)
    return values * (target_per_second // per_second)


def _resolve_finite(wanted: bool) -> Overload:
    """isfinite and isinf of DATE and timestamps."""

    def resolve(argument_types: tuple[DataType, ...], _: DataType) -> Kernel | None:
        (data_type,) = argument_types

        def function(values: Tensor) -> Tensor:
            finite = dates.finite_validity(values, data_type)
            if finite is None:
                return torch.full(values.shape, wanted, device=values.device)
            return finite if wanted else ~finite

        return Kernel(function, any_width=True)

    return resolve


DATE_PART_KERNELS: dict[str, Overload] = {
    "date_part": resolve_date_part,
    "is_finite_date": _resolve_finite(True),
    "is_inf_date": _resolve_finite(False),
}
