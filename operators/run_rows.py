"""The rows of a sorted table column that find a join partner: its runs of equal keys are looked up, not its rows."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tqp.data.sorted_runs import SortedRuns
from tqp.operators.join_bucket import BucketBuild
from tqp.operators.join_directory import DirectoryBuild
from tqp.operators.join_lookup import LookupBuild, MembershipBuild
from tqp.operators.keys import Part, pack
from tqp.operators.rows import row_indices, take

JoinBuild = MembershipBuild | LookupBuild | DirectoryBuild | BucketBuild


def rows_in_build(runs: SortedRuns, part: Part, build: JoinBuild, first_row: int, num_rows: int) -> Tensor:
    """Ascending indices within a batch (int32 or int64 [m]) of the rows whose keys the build side has.

    The batch is rows `first_row` to `first_row + num_rows` of the column in main memory; `part` packs its values.
    """
    starts = runs.starts.numpy()
    # A Python number would have numpy convert the whole array first.
    first, end = starts.dtype.type(first_row), starts.dtype.type(first_row + num_rows)
    low, high = int(starts.searchsorted(first, "right")) - 1, int(starts.searchsorted(end, "left"))
    found = row_indices(build.contains(pack([(runs.values[low:high], None)], [part])))
    bounds = runs.starts[low : high + 1]
    firsts = take(bounds, found).clamp_(min=first_row).sub_(first_row)
    ends = take(bounds[1:], found).clamp_(max=first_row + num_rows).sub_(first_row)
    return _row_numbers(firsts, ends)


def _row_numbers(firsts: Tensor, ends: Tensor) -> Tensor:
    """The numbers in [firsts[0], ends[0]), [firsts[1], ends[1]), ...: ranges that ascend and are not empty."""
    if firsts.shape[0] == 0:
        return firsts
    starts, stops = firsts.numpy(), ends.numpy()
    after = np.cumsum(stops - starts, dtype=starts.dtype)
    steps = np.ones(int(after[-1]), starts.dtype)
    steps[0] = starts[0]
    steps[after[:-1]] = starts[1:] - stops[:-1] + 1
    return torch.from_numpy(np.cumsum(steps, dtype=starts.dtype, out=steps))
