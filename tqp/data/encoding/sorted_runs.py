"""The runs of equal values in a sorted column: each value once, and where its rows start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tqp.data.column import Column
from tqp.data.encoding.column_facts import BLOCK


@dataclass(frozen=True, slots=True)
class SortedRuns:
    """Run i holds `values[i]` (integers [r], ascending, the column's dtype) in rows starts[i] to starts[i + 1].

    `starts`: int32 [r + 1], int64 from 2^31 rows on; the last one is the number of rows.
    """

    values: Tensor
    starts: Tensor

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.starts.nbytes


def runs_of_column(column: Column) -> SortedRuns:
    """The runs of a column of integers whose facts say that it is sorted."""
    assert column.values is not None
    return sorted_runs(column.values)


def sorted_runs(values: Tensor) -> SortedRuns:
    """The runs of integers [n] in main memory that ascend."""
    array = values.numpy()
    size = array.shape[0]
    dtype = np.int32 if size < 2**31 else np.int64
    firsts = [np.zeros(min(1, size), dtype)]
    for start in range(0, size - 1, BLOCK):
        block = array[start : start + BLOCK + 1]
        firsts.append((np.flatnonzero(block[1:] != block[:-1]) + (start + 1)).astype(dtype))
    starts = np.concatenate([*firsts, np.array([size], dtype)])
    return SortedRuns(torch.from_numpy(array[starts[:-1]]), torch.from_numpy(starts))
