"""Medians of DECIMALs and instants as DuckDB rounds them: through DOUBLEs. tqp's are exact (docs/semantics.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from unittest.mock import patch

import torch
from torch import Tensor

from tqp.operators.groups import moments
from tqp.operators.numbers import wide
from tqp.operators.rows.selection import take_padded


@contextmanager
def medians_through_doubles() -> Iterator[None]:
    """The engine rounds medians as DuckDB does."""
    kinds = {
        "median_to_zero": partial(_median, _between_decimals),
        "median_down": partial(_median, _between_wide_decimals),
        "median_away": partial(_median, _between_instants),
    }
    with patch.dict(moments.COLLECTED, kinds):
        yield


def _median(
    between: Callable[[Tensor, Tensor], Tensor],
    values: Tensor,
    group_ids: Tensor,
    num_groups: int,
    validity: Tensor | None,
) -> Tensor:
    """The middle value of each group as it stands, or what is between the two of them."""
    rows = moments.median_rows(values, group_ids, num_groups, validity)
    lower, upper = (take_padded(values, each).to(torch.int64) for each in rows)
    is_one = (rows[0] == rows[1]).reshape(-1, *[1] * (lower.dim() - 1))
    return torch.where(is_one, lower, between(lower, upper))


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
