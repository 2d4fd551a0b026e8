"""age: the years, months, days and time between two timestamps, as a calendar counts them."""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.time_limits import MICROSECONDS_PER_DAY, MONTHS_PER_YEAR
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.temporal import dates


def _age(later: Tensor, earlier: Tensor, data_type: DataType) -> Tensor:
    """int64 [n, 3]: months, days and microseconds, none of them of another sign than the others.

    A day is borrowed from the month of the earlier of the two.
    """
    later, earlier = torch.broadcast_tensors(later.to(torch.int64), earlier.to(torch.int64))  # type: ignore[no-untyped-call]
    is_negative = later < earlier
    later, earlier = torch.maximum(later, earlier), torch.minimum(later, earlier)
    (last_day, time), (first_day, first_time) = (
        dates.split_days(values, data_type) for values in (later, earlier)
    )
    assert time is not None and first_time is not None
    last, first = (dates.by_day(days, _month_day_length) for days in (last_day, first_day))
    lacks_time = (time < first_time).to(torch.int8)
    time = time.sub_(first_time).add_(lacks_time, alpha=MICROSECONDS_PER_DAY)
    days = _day(last).sub_(_day(first)).sub_(lacks_time)
    months, in_month = (last >> _MONTH).sub_(first >> _MONTH), first & _ONES
    for _ in range(2):  # of a short month, more than it has may be missing
        is_missing = (days < 0).to(torch.int8)
        days.add_(is_missing * in_month)
        months.sub_(is_missing)
    sign = 1 - 2 * is_negative.to(torch.int8)
    return torch.stack([(part * sign).to(torch.int64) for part in (months, days, time)], -1)


#: A day of a month and the days of that month take so many bits, and stand in front of the number of the month.
_BITS, _ONES = 5, 31
_MONTH = 2 * _BITS


def _month_day_length(days: Tensor) -> Tensor:
    """The month of each day, its day and how many days it has, as one integer of 32 bits or 64: [n]."""
    year, month, day = dates.civil_from_days(days)
    number = year * MONTHS_PER_YEAR + month
    return dates.narrowed((number << _MONTH) + (day << _BITS) + dates.days_in_month(year, month))


def _day(packed: Tensor) -> Tensor:
    return (packed >> _BITS).bitwise_and_(_ONES)


def _resolve_age(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    data_type = argument_types[0]
    if data_type.kind not in (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_TZ):
        return None

    def age(later: Tensor, earlier: Tensor) -> tuple[Tensor, Tensor | None]:
        finite = [dates.finite_validity(values, data_type) for values in (later, earlier)]
        known = [each for each in finite if each is not None]
        validity = known[0] & known[-1] if known else None
        if validity is not None:
            later, earlier = later * validity, earlier * validity
        return _age(later, earlier, data_type), validity

    return Kernel(age, returns_validity=True)


AGE_KERNELS: dict[str, Overload] = {"age": _resolve_age}
