"""The rows of a sorted table column that find a join partner: its runs of equal keys are looked up, not its rows."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tqp.data.encoding.sorted_columns import SortedRuns
from tqp.operators.joins.hash_join import HashBuild
from tqp.operators.joins.offset_array_join import OffsetArrayBuild
from tqp.operators.joins.pairs import ask_with_arrays, positions_in_ranges
from tqp.operators.joins.perfect_hash_join import MembershipBuild, PerfectHashBuild
from tqp.operators.memory.arrays import Array, running_sums
from tqp.operators.rows.keys import Part, pack
from tqp.operators.rows.selection import row_indices, take

JoinBuild = MembershipBuild | PerfectHashBuild | OffsetArrayBuild | HashBuild


def rows_in_build(runs: SortedRuns, part: Part, build: JoinBuild, first_row: int, num_rows: int) -> Tensor:
    """Ascending indices within a batch (int32 or int64 [m]) of the rows whose keys the build side has.

    The batch is rows `first_row` to `first_row + num_rows` of the column in main memory; `part` packs its values.
    """
    return torch.from_numpy(rows_in_build_array(runs, part, build, first_row, num_rows))


def rows_in_build_array(
    runs: SortedRuns, part: Part, build: JoinBuild, first_row: int, num_rows: int
) -> Array:
    """As `rows_in_build`, as an array."""
    starts = runs.starts.numpy()
    # A Python number would have numpy convert the whole array first.
    first, end = starts.dtype.type(first_row), starts.dtype.type(first_row + num_rows)
    low, high = int(starts.searchsorted(first, "right")) - 1, int(starts.searchsorted(end, "left"))
    keys = pack([(runs.values.numpy()[low:high], None)], [part])
    found = row_indices(ask_with_arrays(build, "contains", keys))
    bounds = starts[low : high + 1]
    firsts, ends = take(bounds, found), take(bounds[1:], found)
    if found.shape[0]:  # runs may begin before the batch, and end after it
        firsts[0], ends[-1] = max(firsts[0], first), min(ends[-1], end)
    counts = ends - firsts
    firsts -= first
    return positions_in_ranges(firsts, counts, running_sums(counts, np.int64))
