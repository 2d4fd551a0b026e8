"""Rows of a partition with equal values: which come once, which was the last before each, which value is most frequent."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tqp.operators.memory.allocation import Map, one_by_one
from tqp.operators.rows.selection import take
from tqp.operators.sorting.sort import SortColumn, sort_rows
from tqp.operators.windows.frames import Range
from tqp.operators.windows.partitions import Partitions, segments
from tqp.operators.windows.reductions import extreme_codes
from tqp.operators.windows.wavelet_matrix import WaveletMatrix


class Occurrences:
    """The rows of each partition with the same value, one after the other in row order.

    `words`: integers [n] or [n, k] that are equal where the values are. `validity` (bool [n] or None): rows that count.
    """

    def __init__(self, words: Sequence[Tensor], validity: Tensor | None, rows: Partitions) -> None:
        self.rows, self.validity = rows, validity
        numbers = rows.partitions.numbers
        flags = [] if validity is None else [~validity]
        columns = (numbers, *flags, *words)
        self.order = sort_rows([SortColumn(column) for column in columns])
        self.same = segments([take(column, self.order) for column in columns], rows.num_rows, rows.device)

    def once(self, from_start: bool) -> Tensor:
        """bool [n]: the first of the rows that have their value, or the last; of those that count."""
        places = self.same.bounds[:-1] if from_start else self.same.bounds[1:] - 1
        chosen = torch.zeros(self.rows.num_rows, dtype=torch.bool, device=self.rows.device)
        chosen[take(self.order, places)] = True
        return chosen if self.validity is None else chosen & self.validity

    def count_values(self, frames: Range, share: Map = one_by_one) -> Tensor:
        """int64 [n]: how many values there are in each frame: rows that are the first ones in it with theirs.

        That is, before which the last row with their value comes before the frame.
        """
        places = self.rows.rows - self.rows.begins
        longest = self.rows.partitions.longest
        bits = (longest + 1).bit_length()
        last = take(places, self.order[:-1]) + 1  # of the row before; 0 of none
        last = torch.where(self.same.starts, 0, torch.cat([last.new_zeros(min(1, self.rows.num_rows)), last]))
        numbers = torch.empty_like(places).index_copy_(0, self.order, last)
        if self.validity is not None:
            numbers = torch.where(self.validity, numbers, (1 << bits) - 1)
        limits = frames.begins - self.rows.begins + 1
        return WaveletMatrix(numbers, bits).count_below([frames], limits, share)

    def modes(self, ranges: Sequence[Range], from_start: bool) -> Tensor:
        """int64 [n]: the first row with the most frequent value of frames that start with their partition, or end with it; -1 of none.

        Of several values the one that comes first in the frame. A row that is the k-th one with its value, counted from the end
        that the frames share, says that a frame that it is in has the value k times at least.
        """
        places = self.rows.rows - self.rows.begins
        ahead = self.rows.rows - self.same.begins if from_start else self.same.ends - 1 - self.rows.rows
        firsts = take(self.order, self.same.begins) if from_start else self.order
        width = self.rows.partitions.longest.bit_length()
        least = (1 << width) - 1
        codes = torch.empty_like(places)
        codes.index_copy_(0, self.order, (ahead << width) | (least - take(places, firsts)))
        if self.validity is not None:
            codes = torch.where(self.validity, codes, -1)
        found = extreme_codes(codes, self.rows, ranges, "amax")
        return torch.where(found >= 0, self.rows.begins + (least - (found & least)), -1)
