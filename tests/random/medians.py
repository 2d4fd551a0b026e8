"""Medians as DuckDB rounds them, those of mad() too: of DECIMALs, instants and INTERVALs through DOUBLEs, of FLOATs through their difference.

tqp's are exact (docs/semantics.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from tqp.core.datatypes import TIMESTAMP, DataType, TypeKind
from tqp.operators.groups import quantiles
from tqp.operators.groups.ordered import RowsInOrder, middle_rows
from tqp.operators.numbers import wide
from tqp.operators.numbers.casts import resolve_cast
from tqp.operators.rows.selection import take_padded

#: What infinities wrap around to: no instant, so that functions of it raise in DuckDB, or not, as it happens.
_WRAPPED = torch.iinfo(torch.int64).min


@dataclass
class Medians:
    """Those taken so far."""

    have_wrapped: bool = False


@contextmanager
def medians_through_doubles() -> Iterator[Medians]:
    """The engine rounds medians as DuckDB does."""
    taken = Medians()

    def between_instants(lower: Tensor, upper: Tensor) -> Tensor:
        middle = _between_instants(lower, upper)
        taken.have_wrapped |= bool((middle == _WRAPPED).any())
        return middle

    kinds = {
        "median_to_zero": partial(_median, _between_decimals),
        "median_down": partial(_median, _between_wide_decimals),
        "median_away": partial(_median, between_instants),
        "median_days": partial(_median, between_instants, of_days=True),
        "median": _median_of_floats,
        "median_interval": _median_of_intervals,
    }

    def of_integers(values: Tensor, ordered: RowsInOrder, halves: str) -> Tensor:
        between = {"to_zero": _between_decimals, "down": _between_wide_decimals, "away": between_instants}
        return _median(between[halves], values, ordered)

    with (
        patch.dict(quantiles.MEDIANS, kinds),
        patch.object(quantiles, "median_integers_by_group", of_integers),
    ):
        yield taken


def _median(
    between: Callable[[Tensor, Tensor], Tensor], values: Tensor, ordered: RowsInOrder, of_days: bool = False
) -> Tensor:
    """The middle value of each group as it stands, or what is between the two; halves are rounded by `between`."""
    rows = middle_rows(ordered)
    lower, upper = (take_padded(values, each).to(torch.int64) for each in rows)
    if of_days:
        days_to_instants = resolve_cast(DataType(TypeKind.DATE), TIMESTAMP, False).function
        lower, upper = days_to_instants(lower), days_to_instants(upper)
    is_one = _have_one(ordered).reshape(-1, *[1] * (lower.dim() - 1))
    return torch.where(is_one, lower, between(lower, upper))


def _median_of_floats(values: Tensor, ordered: RowsInOrder) -> Tensor:
    rows = middle_rows(ordered)
    lower, upper = (take_padded(values, each).to(torch.float64) for each in rows)
    return torch.where(_have_one(ordered), lower, lower + (upper - lower) * 0.5)


def _have_one(ordered: RowsInOrder) -> Tensor:
    """bool [num_groups]: the groups with one middle value, not two, equal or not."""
    return (ordered.counts & 1) == 1


def _between_decimals(lower: Tensor, upper: Tensor) -> Tensor:
    least = lower.to(torch.float64)
    return (least + (upper.to(torch.float64) - least) * 0.5).to(torch.int64)


def _between_wide_decimals(lower: Tensor, upper: Tensor) -> Tensor:
    if not wide.is_wide(lower):
        return wide.low_halves(_between_wide_decimals(wide.widen(lower), wide.widen(upper)))

    def as_double(value: int) -> float:
        return float(value >> 64) * 2.0**64 + float(value & (2**64 - 1))

    def between(low: int, high: int) -> int:
        if high - low < 2**127:
            return low + int(as_double(high - low) * 0.5)
        return int(as_double(low) * 0.5 + as_double(high) * 0.5)

    return wide.from_ints([*map(between, wide.to_ints(lower), wide.to_ints(upper))])


def _between_instants(lower: Tensor, upper: Tensor) -> Tensor:
    """Half of a microsecond is rounded away from zero; infinity wraps around."""
    middle = lower.to(torch.float64) * 0.5 + upper.to(torch.float64) * 0.5
    rounded = torch.where(middle.abs() < 2**52, (middle.abs() + 0.5).floor().copysign(middle), middle)
    return rounded.to(torch.int64)


def _halves_of_differences(lower: Tensor, upper: Tensor, _: str) -> Tensor:
    """Of lengths of INTERVALs: the lower one and half of what is between them, which wraps around."""
    half = ((upper - lower).to(torch.float64) * 0.5 + 0.5).floor()
    return lower + half.to(torch.int64)


def _median_of_intervals(*values_and_groups: Any) -> Tensor:
    with patch.object(quantiles, "_half_way", _halves_of_differences):
        return quantiles.median_intervals_by_group(*values_and_groups)
