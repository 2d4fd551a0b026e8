"""What joins look up in columns: the runs of equal values, the rows that hold each value there could be, which values there are.

Runs and rows are those of sorted columns; which values there are is asked of any column.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from tqp.data.arrow_buffers import AnyArray
from tqp.data.column import Column
from tqp.data.encoding.column_facts import BLOCK
from tqp.data.sharing import share

#: Rows of an index that one thread writes at a time.
_PIECE = 2 * BLOCK


@dataclass(frozen=True, slots=True)
class SortedRuns:
    """Run i holds `values[i]` (integers [r], ascending, the column's dtype) in rows starts[i] to starts[i + 1].

    `starts`: int32 [r + 1], int64 from 2^31 rows on; the last one is the number of rows.
    """

    KEPT: ClassVar[str] = "runs"

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


class _ByValue(ABC):
    """A table over the values of a column of integers in main memory; made when first asked for. Safe to share among threads."""

    #: Entries more than there are values.
    more = 0

    def __init__(self, column: Column) -> None:
        self.column = column
        self._first, self._table = 0, torch.zeros(0, dtype=torch.bool)
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        return self._table.nbytes

    def over(self, minimum: int, size: int) -> Tensor:
        """The table over [minimum, minimum + size), in which all values lie; a part of a larger one if there is one."""
        more = self.more
        with self._lock:
            first, end = self._first, self._first + self._table.shape[0] - more
            if end <= first:
                first, end = minimum, minimum
            if minimum < first or minimum + size > end:
                first, end = min(first, minimum), max(end, minimum + size)
                self._first, self._table = first, self.make(first, end - first)
            return self._table[minimum - first : minimum - first + size + more]

    @abstractmethod
    def make(self, minimum: int, size: int) -> Tensor:
        """The table over [minimum, minimum + size), as a tensor [size + more]."""


class KeyIndex(_ByValue):
    """The index on a sorted column, a `key_index` of its values."""

    KEPT: ClassVar[str] = "index"

    def __init__(self, column: Column) -> None:
        super().__init__(column)
        self.more = int(not column.facts.is_unique)

    def make(self, minimum: int, size: int) -> Tensor:
        assert self.column.values is not None
        return key_index(self.column.values, minimum, size, self.column.facts.is_unique)


class KeySet(_ByValue):
    """Which values a column has, as bools; the column may be in any order and have NULLs."""

    KEPT: ClassVar[str] = "set"

    def make(self, minimum: int, size: int) -> Tensor:
        assert self.column.values is not None
        values, validity = self.column.values.numpy(), self.column.validity
        table = np.zeros(size, np.bool_)

        def mark(start: int) -> None:
            block = values[start : start + _PIECE]
            if validity is not None:
                block = block[validity.numpy()[start : start + _PIECE]]
            table[block.astype(np.int64) - minimum] = True

        share(mark, range(0, len(values), _PIECE))
        return torch.from_numpy(table)


def key_index(values: Tensor, minimum: int, size: int, is_unique: bool) -> Tensor:
    """An index on integers [n] in main memory that ascend, all in [minimum, minimum + size).

    Of a unique column int32 [size], the row that holds minimum + i or -1; else offsets [size + 1]: the rows from
    offsets[i] to offsets[i + 1] do. n is below 2^31.
    """
    array = values.numpy()
    if is_unique:
        rows = np.full(size, -1, np.int32)

        def number(start: int) -> None:
            block = array[start : start + _PIECE]
            rows[block.astype(np.int64) - minimum] = np.arange(start, start + len(block), dtype=np.int32)

        share(number, range(0, len(array), _PIECE))
        return torch.from_numpy(rows)
    return torch.from_numpy(_offsets(array, minimum, size))


def _offsets(array: AnyArray, minimum: int, size: int) -> AnyArray:
    """The first row of each run, as often as there are values up to its own from that of the run before on."""
    offsets = np.empty(size + 1, np.int32)
    if len(array) == 0:
        offsets[:] = 0
        return offsets
    # Values may be further apart than their own type can say.
    wide = array.dtype if size <= np.iinfo(array.dtype).max else np.dtype(np.int64)

    def put(start: int) -> None:
        block = array[start - 1 : start + _PIECE]
        steps = np.subtract(block[1:], block[:-1], dtype=wide)
        firsts = np.flatnonzero(steps != 0)
        times = steps.take(firsts)
        firsts += start
        part = np.repeat(firsts.astype(np.int32), times)
        behind = int(block[0]) - minimum + 1
        offsets[behind : behind + len(part)] = part

    offsets[: int(array[0]) - minimum + 1] = 0
    share(put, range(1, len(array), _PIECE))
    offsets[int(array[-1]) - minimum + 1 :] = len(array)
    return offsets
