"""time_bucket: where the span of a given width begins in which an instant lies."""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.core.datatypes import TIMESTAMP, DataType, TypeKind
from tqp.core.time_limits import (
    FIRST_DAY,
    FIRST_MICROSECOND,
    MICROSECONDS_PER_DAY,
    MONTHS_PER_YEAR,
)
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.numbers import elementwise
from tqp.operators.numbers.wide import raise_where
from tqp.operators.temporal import dates

#: A Monday, the third of January 2000, from which spans of days are counted, and the first of it, for months.
_FIRST_MONDAY = 10_959 * MICROSECONDS_PER_DAY
_FIRST_YEAR = 2_000


def _resolve_bucket(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    is_time = argument_types[1].kind is TypeKind.TIME  # of the first day of 1970
    data_type = TIMESTAMP if is_time else argument_types[1]

    def bucket(width: Tensor, values: Tensor, *, validity: Tensor | None = None) -> Tensor:
        """The begin, of the type of `values`; raises ExecutionError for widths that are none, and beyond the calendar."""
        months, days, microseconds = width[..., 0], width[..., 1], width[..., 2]
        most = (2**63 - 1) // MICROSECONDS_PER_DAY
        small = days.abs() <= most
        size = torch.where(small, days, 0) * MICROSECONDS_PER_DAY
        total = size + microseconds
        small = small & (((size ^ total) & (microseconds ^ total)) >= 0)
        has_time = (days != 0) | (microseconds != 0)
        raise_where(
            (months != 0) & has_time, "time_bucket(): months cannot have days or time beside them", validity
        )
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
        begin = torch.where(
            is_by_months,
            _months_begin(days, torch.where(is_by_months, months, 1), data_type, validity),
            _ticks_begin(ticks, torch.where(is_by_ticks, total, 1), data_type, validity),
        )
        if is_time:
            return elementwise.floor_remainder(begin, MICROSECONDS_PER_DAY)
        return begin if finite is None else torch.where(finite, begin, values.to(torch.int64))

    is_known = data_type.kind in (TypeKind.DATE, TypeKind.TIMESTAMP)
    return Kernel(bucket, checks=True) if is_known else None


_BEYOND = "time_bucket(): the span begins before time does"


def _ticks_begin(ticks: Tensor, size: Tensor, data_type: DataType, validity: Tensor | None) -> Tensor:
    origin = torch.remainder(torch.full_like(size, _FIRST_MONDAY), size)
    since = ticks - origin
    begin = since - torch.remainder(since, size)
    raise_where((since > ticks) | (begin > since), _BEYOND, validity)
    begin = begin + origin
    return elementwise.floor_divide(begin, MICROSECONDS_PER_DAY) if data_type.kind is TypeKind.DATE else begin


def _months_begin(days: Tensor, size: Tensor, data_type: DataType, validity: Tensor | None) -> Tensor:
    """The day, or midnight, at which so many months begin."""
    year, month, _ = dates.civil_from_days(days)
    since = (year - _FIRST_YEAR) * MONTHS_PER_YEAR + month - 1
    begin = since - torch.remainder(since, size)
    years = torch.div(begin, MONTHS_PER_YEAR, rounding_mode="floor")
    first = dates.days_from_civil(
        _FIRST_YEAR + years, begin - years * MONTHS_PER_YEAR + 1, torch.ones_like(begin)
    )
    is_date = data_type.kind is TypeKind.DATE
    low = FIRST_DAY if is_date else -(-FIRST_MICROSECOND // MICROSECONDS_PER_DAY)
    raise_where(first < low, _BEYOND, validity)
    return first if is_date else first.clamp(min=low) * MICROSECONDS_PER_DAY


BUCKET_KERNELS: dict[str, Overload] = {"time_bucket": _resolve_bucket}
