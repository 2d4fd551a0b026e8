"""Sort join: any 64-bit keys, as sorted build rows and binary search. The general choice on CUDA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from tqp.operators.joins.pairs import BuildNulls, any_by_row, build_nulls, expand_ranges, first_by_row
from tqp.operators.rows.keys import sort_codes
from tqp.operators.rows.selection import row_indices, take


@dataclass(frozen=True, slots=True)
class SortedBuild:
    """`keys` ascending; the run of equal keys that position p belongs to ends before run_stops[p]."""

    keys: Tensor  # int64 [m]
    rows: Tensor  # int32 [m], ascending within a run
    run_stops: Tensor  # int32 [m]
    nulls: BuildNulls
    unique: ClassVar[bool] = False

    def matches(self, keys: Tensor, validity: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """All pairs (probe_rows, build_rows) with equal keys, ordered by probe row, then build row."""
        num_build = self.keys.shape[0]
        if num_build == 0:
            nothing = torch.zeros(0, dtype=torch.int32, device=keys.device)
            return nothing, nothing
        keys = keys.to(torch.int64).contiguous()
        starts = torch.searchsorted(self.keys, keys, out_int32=True).clamp_(max=num_build - 1)
        counts = take(self.run_stops, starts).sub_(starts).mul_(take(self.keys, starts) == keys)
        if validity is not None:
            counts.mul_(validity)
        probe_rows, positions = expand_ranges(starts, counts)
        return probe_rows, take(self.rows, positions)

    def contains(self, keys: Tensor, validity: Tensor | None = None) -> Tensor:
        """bool [n]: has the probe row a match?"""
        return any_by_row(self.matches(keys, validity)[0], keys.shape[0])

    def first_match(self, keys: Tensor, validity: Tensor | None = None) -> Tensor:
        """int32 [n]: the first build row that matches, or -1."""
        return first_by_row(*self.matches(keys, validity), keys.shape[0])


def build_sorted(keys: Tensor, validity: Tensor | None = None) -> SortedBuild:
    """Sorts the build rows by key (integers [n]); NULL rows are left out."""
    keys = keys.to(torch.int64)
    nulls = build_nulls(keys, validity)
    rows = None if validity is None else row_indices(validity)
    if rows is not None:
        keys = take(keys, rows)
    ordered, order = sort_codes(keys)
    run_stops = torch.searchsorted(ordered, ordered, right=True, out_int32=True)
    rows = (order if rows is None else take(rows, order)).to(torch.int32)
    return SortedBuild(ordered, rows, run_stops, nulls)
