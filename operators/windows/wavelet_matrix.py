"""A wavelet matrix: the k-th least number of any range of rows, and how many are below a limit, in a step for each bit.

For each bit, from the highest on, the rows are cut in two: those with a 0 come first, those with a 1 behind them, each in the order in
which they came. What is left of a range then stands together on either side, and how many zeros there are before its ends says where.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tqp.operators.memory.allocation import Map, one_by_one
from tqp.operators.rows.runs import sums_before
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.windows.frames import Range, by_blocks


class _Level(NamedTuple):
    zeros_before: Tensor  # [n + 1]
    num_zeros: int

    def cut(self, part: Range) -> tuple[Range, Range]:
        """Where the rows of ranges with a 0 are on the next level, and those with a 1."""
        begins, ends = (take(self.zeros_before, each) for each in part)
        ones = Range(part.begins - begins + self.num_zeros, part.ends - ends + self.num_zeros)
        return Range(begins, ends), ones


class WaveletMatrix:
    """Integers [n] in [0, 2^bits), for questions about ranges of them."""

    def __init__(self, numbers: Tensor, bits: int) -> None:
        self.bits = bits
        self._dtype = torch.int32 if numbers.shape[0] < 2**31 else torch.int64
        self._levels: list[_Level] = []
        for bit in reversed(range(bits)):
            is_one = ((numbers >> bit) & 1).to(torch.bool)
            is_zero = ~is_one
            zeros, ones = row_indices(is_zero), row_indices(is_one)
            self._levels.append(_Level(sums_before(is_zero, self._dtype), zeros.shape[0]))
            numbers = torch.cat([take(numbers, zeros), take(numbers, ones)])

    def nth(self, ranges: Sequence[Range], positions: Tensor, share: Map = one_by_one) -> Tensor:
        """int64 [q]: the number at a position (int64 [q], from 0) of those of the rows of a few ranges together, in ascending order.

        Anything for a position that is not among them.
        """
        return by_blocks(lambda block, rows: (self._nth(block, positions[rows]),), ranges, share)[0]

    def count_below(self, ranges: Sequence[Range], limits: Tensor, share: Map = one_by_one) -> Tensor:
        """int64 [q]: how many numbers of the rows of a few ranges are less than a limit (int64 [q], in [0, 2^bits))."""
        return by_blocks(lambda block, rows: (self._count_below(block, limits[rows]),), ranges, share)[0]

    def _nth(self, ranges: Sequence[Range], positions: Tensor) -> Tensor:
        ranges, left = self._narrow(ranges), positions.to(self._dtype)
        found = torch.zeros_like(left)
        for level in self._levels:
            cut = [level.cut(part) for part in ranges]
            zeros = sum((of_zeros.lengths for of_zeros, _ in cut), torch.zeros_like(left))
            is_one = left >= zeros
            left = torch.where(is_one, left - zeros, left)
            ranges = [_either(is_one, of_ones, of_zeros) for of_zeros, of_ones in cut]
            found = found * 2 + is_one
        return found.to(torch.int64)

    def _count_below(self, ranges: Sequence[Range], limits: Tensor) -> Tensor:
        ranges, found = self._narrow(ranges), torch.zeros_like(limits, dtype=self._dtype)
        for number, level in enumerate(self._levels):
            is_one = ((limits >> (self.bits - 1 - number)) & 1).to(torch.bool)
            cut = [level.cut(part) for part in ranges]
            for of_zeros, _ in cut:
                found = found + of_zeros.lengths * is_one
            ranges = [_either(is_one, of_ones, of_zeros) for of_zeros, of_ones in cut]
        return found.to(torch.int64)

    def _narrow(self, ranges: Sequence[Range]) -> list[Range]:
        return [Range(*(each.to(self._dtype) for each in part)) for part in ranges]


def _either(condition: Tensor, a: Range, b: Range) -> Range:
    return Range(torch.where(condition, a.begins, b.begins), torch.where(condition, a.ends, b.ends))
