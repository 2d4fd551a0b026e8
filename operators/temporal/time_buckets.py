"""time_bucket: where the span of a given width begins in which an instant lies."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from tqp.core.datatypes import TIMESTAMP, DataType, TypeKind
from tqp.core.time_limits import (
    FIRST_DAY,
    FIRST_MICROSECOND,
    INFINITE_TICK,
    MICROSECONDS_PER_DAY,
    MONTHS_PER_YEAR,
)
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.numbers import elementwise
from tqp.operators.numbers.wide import raise_where
from tqp.operators.temporal import dates
from tqp.operators.temporal.intervals import add_interval

#: A Monday, the third of January 2000, from which spans of days are counted, and the first of it, for months.
_FIRST_MONDAY = 10_959 * MICROSECONDS_PER_DAY
_FIRST_YEAR = 2_000
_FIRST_MONTH = _FIRST_YEAR * MONTHS_PER_YEAR


def _resolve_bucket(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    """Of a width and an instant, and of what the spans are counted from: an instant, or an interval behind the usual one."""
    data_type, *shift = argument_types[1:]
    is_time = data_type.kind is TypeKind.TIME  # of the first day of 1970
    if data_type.kind not in (TypeKind.DATE, TypeKind.TIME, TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_TZ):
        return None
    instants = TIMESTAMP if is_time else data_type
    if shift and shift[0].kind is TypeKind.INTERVAL:
        return Kernel(partial(_bucket_behind, data_type=data_type), checks=True)

    def bucket(width: Tensor, values: Tensor, *, validity: Tensor | None = None) -> Tensor:
        if is_time:  # months begin at midnight, however long ago
            width = torch.cat([width[..., :1].clamp(max=1), width[..., 1:]], -1)
        return bucket_of(width, values, None, validity)

    def bucket_from(
        width: Tensor, values: Tensor, origin: Tensor, *, validity: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """NULL where an instant is counted from infinity."""
        width, values, origin = _by_row(width, values, origin)
        counted = dates.finite_validity(origin, instants)
        if counted is None:
            return bucket_of(width, values, origin, validity), None
        rows = counted if validity is None else counted & validity
        known = torch.ones_like(counted) if is_time else counted
        return bucket_of(width, values, origin * counted, rows), known

    def bucket_of(width: Tensor, values: Tensor, origin: Tensor | None, validity: Tensor | None) -> Tensor:
        begin = _bucket(width, values, instants, origin, validity)
        return elementwise.floor_remainder(begin, MICROSECONDS_PER_DAY) if is_time else begin

    return Kernel(bucket_from, checks=True, returns_validity=True) if shift else Kernel(bucket, checks=True)


def _by_row(width: Tensor, values: Tensor, origin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Each for every row, where literals stand for all of them."""
    values, origin, _ = torch.broadcast_tensors(  # type: ignore[no-untyped-call]
        values.to(torch.int64), origin.to(torch.int64), width[..., 0]
    )
    return width.expand(*values.shape, 3), values, origin


def _bucket_behind(
    width: Tensor, values: Tensor, offset: Tensor, *, data_type: DataType, validity: Tensor | None = None
) -> Tensor:
    """The begin where spans are counted from so long behind the usual instant."""
    values = values.to(torch.int64)
    zoned = data_type if data_type.kind is TypeKind.TIMESTAMP_TZ else TIMESTAMP
    start = TIMESTAMP if data_type.kind is TypeKind.TIME else data_type
    finite = dates.finite_validity(values, start)
    counted, shift = values, offset
    if finite is not None:  # an infinity stays where it is; a day on which spans begin stands for it
        stand_in = _FIRST_MONDAY // MICROSECONDS_PER_DAY if start.kind is TypeKind.DATE else _FIRST_MONDAY
        counted, shift = torch.where(finite, values, stand_in), offset * finite.unsqueeze(-1)
    moved = add_interval(counted, -shift, start, validity=validity)
    begin = add_interval(_bucket(width, moved, zoned, None, validity), shift, zoned, validity=validity)
    if data_type.kind is TypeKind.TIME:
        return elementwise.floor_remainder(begin, MICROSECONDS_PER_DAY)
    if data_type.kind is TypeKind.DATE:
        begin = elementwise.floor_divide(begin, MICROSECONDS_PER_DAY)
    return begin if finite is None else torch.where(finite, begin, values)


def _bucket(
    width: Tensor, values: Tensor, data_type: DataType, origin: Tensor | None, validity: Tensor | None
) -> Tensor:
    """The begin, of the type of `values`; raises ExecutionError for widths that are none, and beyond the calendar."""
    months, days, microseconds = width[..., 0], width[..., 1], width[..., 2]
    most = (2**63 - 1) // MICROSECONDS_PER_DAY
    if data_type.kind is TypeKind.TIMESTAMP_TZ and origin is None:  # which may be of more days than there are
        raise_where((days > most) & (values < _FIRST_MONDAY) & (values != -INFINITE_TICK), _BEYOND, validity)
        days = days.clamp(max=most)
    small = days.abs() <= most
    size = torch.where(small, days, 0) * MICROSECONDS_PER_DAY
    total = size + microseconds
    small = small & (((size ^ total) & (microseconds ^ total)) >= 0)
    has_time = (days != 0) | (microseconds != 0)
    raise_where(
        (months != 0) & has_time, "time_bucket(): months cannot have days or time beside them", validity
    )
    if data_type.kind is TypeKind.TIMESTAMP_TZ:
        message = "time_bucket(): days of a time zone cannot have time beside them"
        raise_where((days != 0) & (microseconds != 0), message, validity)
    is_positive = (months > 0) | ((months == 0) & (total > 0) & small)
    raise_where(
        ~is_positive, "time_bucket(): the width must be positive, and no wider than time goes", validity
    )
    finite = dates.finite_validity(values, data_type)
    is_by_months, is_by_ticks = is_positive & (months > 0), is_positive & (months == 0)
    if finite is not None:
        is_by_months, is_by_ticks = is_by_months & finite, is_by_ticks & finite
    days = dates.days_of(values * is_by_months, data_type).to(torch.int64)
    ticks = dates.to_microseconds(values * is_by_ticks, data_type, validity)
    first_month, first_tick = (
        _usual_origin(days) if origin is None else _origin(origin, is_by_ticks, data_type, validity)
    )
    begin = torch.where(
        is_by_months,
        _months_begin(days, torch.where(is_by_months, months, 1), first_month, data_type, validity),
        _ticks_begin(ticks, torch.where(is_by_ticks, total, 1), first_tick, data_type, validity),
    )
    return begin if finite is None else torch.where(finite, begin, values.to(torch.int64))


def _usual_origin(days: Tensor) -> tuple[Tensor, Tensor]:
    return torch.zeros_like(days), torch.full_like(days, _FIRST_MONDAY)


def _origin(
    origin: Tensor, is_by_ticks: Tensor, data_type: DataType, validity: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The month, from January 2000, and the microsecond, from 1970, at which spans are counted from; not every DATE has the latter."""
    months = dates.month_index(dates.days_of(origin, data_type).to(torch.int64)) - _FIRST_MONTH
    return months, dates.to_microseconds(origin * is_by_ticks, data_type, validity)


_BEYOND = "time_bucket(): the span begins before time does"


def _ticks_begin(
    ticks: Tensor, size: Tensor, origin: Tensor, data_type: DataType, validity: Tensor | None
) -> Tensor:
    origin = torch.remainder(origin, size)
    since = ticks - origin
    begin = since - torch.remainder(since, size)
    raise_where((since > ticks) | (begin > since), _BEYOND, validity)
    begin = begin + origin
    return elementwise.floor_divide(begin, MICROSECONDS_PER_DAY) if data_type.kind is TypeKind.DATE else begin


def _months_begin(
    days: Tensor, size: Tensor, origin: Tensor, data_type: DataType, validity: Tensor | None
) -> Tensor:
    """The day, or midnight, at which so many months begin."""
    since = dates.month_index(days) - _FIRST_MONTH
    begin = since - torch.remainder(since - torch.remainder(origin, size), size)
    years = torch.div(begin, MONTHS_PER_YEAR, rounding_mode="floor")
    first = dates.days_from_civil(_FIRST_YEAR + years, begin - years * MONTHS_PER_YEAR + 1)
    is_date = data_type.kind is TypeKind.DATE
    low = FIRST_DAY if is_date else -(-FIRST_MICROSECOND // MICROSECONDS_PER_DAY)
    raise_where(first < low, _BEYOND, validity)
    return first if is_date else first.clamp(min=low) * MICROSECONDS_PER_DAY


BUCKET_KERNELS: dict[str, Overload] = {"time_bucket": _resolve_bucket}
