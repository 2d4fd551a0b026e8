"""The rows of each frame in the order of their values: what medians and quantiles of frames are made of."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tqp.operators.memory.allocation import Map, one_by_one
from tqp.operators.rows.selection import row_indices, take, take_padded
from tqp.operators.sorting.sort import SortColumn, sort_rows, take_rows
from tqp.operators.windows.frames import Range, count_rows
from tqp.operators.windows.partitions import Partitions
from tqp.operators.windows.values import ValidRows
from tqp.operators.windows.wavelet_matrix import WaveletMatrix


class OrderedPartitions:
    """The rows that count (bool [n] or None: all) of each partition in the order of some columns, and the place of each row in it."""

    def __init__(
        self, columns: Sequence[SortColumn], validity: Tensor | None, partitions: Partitions
    ) -> None:
        self.counted = ValidRows(validity)
        if validity is not None:
            columns = [take_rows(column, self.counted.rows) for column in columns]
        numbers = self.counted.only(partitions.partitions.numbers)
        order = sort_rows([SortColumn(numbers), *columns])
        #: int64 [n]: how many rows that count come before the partition of each row.
        self.before = self.counted.before(partitions.begins)
        begins = self.counted.only(self.before)
        places = torch.empty_like(order)
        # rows and their order are those of the same partition at each place
        places.index_copy_(0, order, torch.arange(order.shape[0], device=order.device) - begins)
        self.rows = order if validity is None else take(self.counted.rows, order)
        self.places = WaveletMatrix(places, max(0, partitions.partitions.longest - 1).bit_length())


class OrderedFrames:
    """As `OrderedGroups`, with the frame of each row as a group."""

    def __init__(self, ordered: OrderedPartitions, ranges: Sequence[Range], share: Map = one_by_one) -> None:
        self._ordered, self._share = ordered, share
        self._ranges = [ordered.counted.among(part) for part in ranges]
        self.counts = count_rows(self._ranges)  # int64 [n]
        self._last: tuple[Tensor, Tensor] | None = None

    def at(self, positions: Tensor) -> Tensor:
        """The rows at these positions (int64 [n]) of their frames; -1 in an empty one."""
        if self._last is None:
            self._last = positions, self._rows_at(self._ranges, positions)
            return self._last[1]
        # of two middle rows, or those around a fraction, many are the same
        others = row_indices(positions != self._last[0])
        ranges = [Range(take(part.begins, others), take(part.ends, others)) for part in self._ranges]
        return self._last[1].index_copy(0, others, self._rows_at(ranges, take(positions, others), others))

    def _rows_at(self, ranges: Sequence[Range], positions: Tensor, frames: Tensor | None = None) -> Tensor:
        """The rows at positions of some of the frames; None: of all."""
        before = self._ordered.before if frames is None else take(self._ordered.before, frames)
        places = before + self._ordered.places.nth(ranges, positions, self._share)
        empty = count_rows(ranges) == 0
        return take_padded(self._ordered.rows, places.masked_fill_(empty, -1)).masked_fill_(empty, -1)
