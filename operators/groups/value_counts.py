"""Counts of each value by group: what sums, least and greatest values of a column of few values are made of.

One increment a row in a table of groups times values does the work of a scatter for each of them, while the table is in
the caches: 1 ns on the CPU where count, sum, min and max take 3.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

#: Groups times values at most: half a megabyte of counts.
MAX_CELLS = 1 << 16


class ValueCounts(NamedTuple):
    """How often each group has each value from `low` on: int64 [groups, values]; `dtype`: of the column."""

    counts: Tensor
    low: int
    dtype: torch.dtype


def count_values(
    before: ValueCounts | None, values: Tensor, group_ids: Tensor, num_groups: int, low: int, high: int
) -> ValueCounts:
    """`before`, changed in place, with a batch: integers [n] from `low` to `high`, integers [n] from 0 on as group ids."""
    span = high - low + 1
    cells = group_ids.to(torch.int32).mul_(span) if group_ids.dtype is not torch.int32 else group_ids * span
    dtype = torch.int8 if values.dtype is torch.bool else values.dtype
    if abs(low) < 1 << 30:
        cells.add_(values).sub_(low)
    else:
        cells.add_(values - low)
    counts = torch.bincount(cells, minlength=num_groups * span).view(num_groups, span)
    return ValueCounts(counts if before is None else before.counts.add_(counts), low, dtype)


def reduce_counts(counted: ValueCounts, kind: str) -> Tensor:
    """[groups]: "count_star" and "sum" int64, "min" and "max" in the column's dtype; of an empty group anything."""
    counts, low, dtype = counted
    if kind == "count_star":
        return counts.sum(1)
    if kind == "sum":
        return (counts * torch.arange(low, low + counts.shape[1])).sum(1)
    there = (counts > 0).to(torch.int8)
    if kind == "min":
        return (there.argmax(1) + low).to(dtype)
    return (low + counts.shape[1] - 1 - there.flip(1).argmax(1)).to(dtype)
