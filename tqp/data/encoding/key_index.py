"""Indexes on sorted columns: for every value there could be, the rows that hold it. Joins look up few keys in them."""

from __future__ import annotations

import threading

import numpy as np
import torch
from torch import Tensor

from tqp.data.column import Column
from tqp.data.encoding.sorted_runs import sorted_runs


class KeyIndex:
    """The index on a sorted column of integers in main memory; made when first asked for. Safe to share among threads."""

    def __init__(self, column: Column) -> None:
        assert column.values is not None
        self._values, self._is_unique = column.values, column.facts.is_unique
        self._first, self._index = 0, torch.zeros(0, dtype=torch.int32)
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        return self._index.nbytes

    def over(self, minimum: int, size: int) -> Tensor:
        """`key_index` over [minimum, minimum + size), in which all values lie; a part of a larger one if there is one."""
        more = not self._is_unique
        with self._lock:
            first, end = self._first, self._first + self._index.shape[0] - more
            if end <= first:
                first, end = minimum, minimum
            if minimum < first or minimum + size > end:
                first, end = min(first, minimum), max(end, minimum + size)
                self._first, self._index = first, key_index(self._values, first, end - first, self._is_unique)
            return self._index[minimum - first : minimum - first + size + more]


def key_index(values: Tensor, minimum: int, size: int, is_unique: bool) -> Tensor:
    """An index on integers [n] in main memory that ascend, all in [minimum, minimum + size).

    Of a unique column int32 [size], the row that holds minimum + i or -1; else offsets [size + 1]: the rows from
    offsets[i] to offsets[i + 1] do. n is below 2^31.
    """
    if is_unique:
        rows = np.full(size, -1, np.int32)
        rows[values.numpy().astype(np.int64) - minimum] = np.arange(values.shape[0], dtype=np.int32)
        return torch.from_numpy(rows)
    runs = sorted_runs(values)
    offsets = np.zeros(size + 1, np.int32)
    offsets[1:][runs.values.numpy().astype(np.int64) - minimum] = np.diff(runs.starts.numpy())
    return torch.from_numpy(np.cumsum(offsets, dtype=np.int32, out=offsets))
