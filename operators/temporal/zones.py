"""Time zones: what a clock shows at an instant, and the instant at which it does.

A zone is a table of offsets and of the instants at which they change, found once by asking Python's `zoneinfo`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.zone_names import zone_of
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.temporal import dates

_SECOND = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The years whose changes are listed. Later ones are as those of the same place in the calendar's cycle of 400 years.
_FIRST_YEAR, _LAST_YEAR = 1800, 2440
_CYCLE = 146_097 * 86_400 * _SECOND
#: No zone changes its offset and takes that back within so many seconds.
_STEP = 7 * 86_400


def _second(year: int) -> int:
    return int((datetime(year, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds())


@lru_cache(maxsize=64)
def _changes(name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The microseconds since 1970 at which the offset changes, and the offsets before, between and behind them.

    Raises UnsupportedError for a zone that is not known.
    """
    zone = zone_of(name)

    def offset(second: int) -> int:
        passed = (_EPOCH + timedelta(seconds=second)).astimezone(zone).utcoffset()
        assert passed is not None
        return passed // timedelta(microseconds=1)

    changes: list[int] = []
    offsets = [offset(_second(_FIRST_YEAR))]
    for step in range(_second(_FIRST_YEAR), _second(_LAST_YEAR), _STEP):
        while offset(step + _STEP) != offsets[-1]:
            low, high = max([step, *changes[-1:]]), step + _STEP
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == offsets[-1] else (low, middle)
            changes.append(high)
            offsets.append(offset(high))
    return tuple(change * _SECOND for change in changes), tuple(offsets)


def _offset_of(values: Tensor, name: str, *, is_local: bool) -> Tensor:
    """The offset from UTC, int64 [n] microseconds, at instants, or where `is_local` when a clock of the zone shows the values.

    A time that a clock shows twice is the later one. One that it leaves out counts as if the clock had not been put forward.
    """
    changes, offsets = _changes(name)
    known = torch.tensor(offsets, dtype=torch.int64, device=values.device)
    if not changes:
        return known.expand(values.shape)
    bounds = torch.tensor(changes, dtype=torch.int64, device=values.device)
    if is_local:
        bounds = bounds + known[1:]
    last = _second(_LAST_YEAR - 1) * _SECOND
    cycles = torch.div(values - last, _CYCLE, rounding_mode="floor") + 1
    within = torch.where(values > last, values - cycles * _CYCLE, values)
    return torch.index_select(known, 0, torch.searchsorted(bounds, within.contiguous(), right=True))


def _resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    is_local = argument_types[1].kind is TypeKind.TIMESTAMP

    def timezone(name: str, values: Tensor, *, validity: Tensor | None = None) -> Tensor:
        """What a clock shows as an instant, or the reverse; raises ExecutionError where it is beyond the calendar."""
        values = values.to(torch.int64)
        offset = _offset_of(values, name, is_local=is_local)
        return dates.moved(
            values,
            -offset if is_local else offset,
            "A clock of the time zone shows what is no TIMESTAMP",
            validity,
        )

    place = frozenset({0})
    return Kernel(timezone, constant_arguments=place, varying_arguments=place, checks=True)


ZONE_KERNELS: dict[str, Overload] = {"timezone": _resolve}
