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
    sign = torch.where(later < earlier, -1, 1)
    later, earlier = torch.maximum(later, earlier), torch.minimum(later, earlier)
    (last_day, last_time), (first_day, first_time) = (
        dates.split_days(values, data_type) for values in (later, earlier)
    )
    assert last_time is not None and first_time is not None
    (last_year, last_month, last), (year, month, first) = map(dates.civil_from_days, (last_day, first_day))
    months = (last_year - year) * MONTHS_PER_YEAR + last_month - month
    days, time = last - first, last_time - first_time
    days, time = days - (time < 0).to(torch.int64), time + (time < 0) * MICROSECONDS_PER_DAY
    in_month = dates.days_in_month(year, month)
    for _ in range(2):  # of a short month, more than it has may be missing
        is_missing = days < 0
        days, months = days + is_missing * in_month, months - is_missing.to(torch.int64)
    return torch.stack([months * sign, days * sign, time * sign], -1)


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
