"""The rows of each frame in an order of their own: what medians and quantiles of frames are made of, and ranks in it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from tqp.operators.memory.allocation import Map, one_by_one
from tqp.operators.rows.selection import row_indices, take, take_padded
from tqp.operators.sorting.sort import SortColumn, sort_rows, take_rows
from tqp.operators.windows.frames import Range, count_rows, longest
from tqp.operators.windows.partitions import Partitions, Segments, segments
from tqp.operators.windows.values import ValidRows
from tqp.operators.windows.wavelet_matrix import WaveletMatrix


def half_of_pieces(ranges: Sequence[Range], partitions: Partitions) -> int | None:
    """What `OrderedPieces` are best for frames: None for partitions."""
    half = max(0, longest([Range(ranges[0].begins, ranges[-1].ends)]) - 1).bit_length()
    # rows stand in two pieces: the steps for their bits are two as well
    return half if 2 * (half + 2) <= partitions.partitions.longest.bit_length() else None


class OrderedPieces:
    """The rows that count (bool [n] or None: all) of each piece of the rows in the order of some columns, and the place of each in it.

    `half`: None where the pieces are the partitions; else, for frames of at most 2^half rows, they have twice as many, and begin at every
    multiple of 2^half. A row is then part of two, and each frame part of one: a step for each bit of a piece is less than for each
    of a long partition.
    """

    def __init__(
        self,
        columns: Sequence[SortColumn],
        validity: Tensor | None,
        partitions: Partitions,
        half: int | None = None,
    ) -> None:
        self.counted, self._half = ValidRows(validity), half
        #: int64 [n]: how many rows that count come before the partition of each row.
        self._before = self.counted.before(partitions.begins)
        if half is None:
            rows = None if validity is None else self.counted.rows
            numbers, begins = (
                self.counted.only(partitions.partitions.numbers),
                self.counted.only(self._before),
            )
            bits = max(0, partitions.partitions.longest - 1).bit_length()
        else:
            num_rows = partitions.num_rows if validity is None else self.counted.rows.shape[0]
            self._last = max(
                0, (num_rows - 1 >> half) - 1
            )  # the last piece, which has all rows from its first on
            places = torch.arange(num_rows + (self._last << half), device=partitions.device)
            numbers = (places >> half + 1).clamp(max=self._last)
            begins, bits = numbers << half + 1, half + 1
            rows = places - (numbers << half)
            rows = rows if validity is None else take(self.counted.rows, rows)
        if rows is not None:
            columns = [take_rows(column, rows) for column in columns]
        order = sort_rows([SortColumn(numbers), *columns])
        places = torch.empty_like(order)
        # rows and their order are those of the same piece at each place
        places.index_copy_(0, order, torch.arange(order.shape[0], device=order.device) - begins)
        self.rows = order if rows is None else take(rows, order)
        self.places = WaveletMatrix(places, bits)

    def with_frames(self, ranges: Sequence[Range]) -> tuple[list[Range], Tensor]:
        """Frames as ranges of the rows of pieces, and where the piece of each begins (int64 [n])."""
        among = [self.counted.among(part) for part in ranges]
        if self._half is None:
            return among, self._before
        before = (among[0].begins >> self._half).clamp(max=self._last) << self._half
        return [Range(part.begins + before, part.ends + before) for part in among], before * 2


class OrderedFrames:
    """As `OrderedGroups`, with the frame of each row as a group."""

    def __init__(self, ordered: OrderedPieces, ranges: Sequence[Range], share: Map = one_by_one) -> None:
        self._ordered, self._share = ordered, share
        self._ranges, self._before = ordered.with_frames(ranges)
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
        before = self._before if frames is None else take(self._before, frames)
        places = before + self._ordered.places.nth(ranges, positions, self._share)
        empty = count_rows(ranges) == 0
        return take_padded(self._ordered.rows, places.masked_fill_(empty, -1)).masked_fill_(empty, -1)


class PlacesInFrames:
    """Where each row stands among the rows of its frame in some order, be it one of them or not.

    `ordered`: of whole partitions. `words`: integers [n] or [n, k] that are equal where the columns of the order are.
    """

    def __init__(
        self,
        ordered: OrderedPieces,
        words: Sequence[Tensor],
        partitions: Partitions,
        frames: Range,
        share: Map = one_by_one,
    ) -> None:
        self._ordered, self._words, self._partitions = ordered, words, partitions
        self._frames, self._share = frames, share
        #: int64 [n]: the place of each row among those in order.
        self._sorted = torch.empty_like(ordered.rows).index_copy_(0, ordered.rows, partitions.rows)

    @property
    def sizes(self) -> Tensor:
        """int64 [n]: how many rows the frame has."""
        return self._frames.lengths

    @cached_property
    def before(self) -> Tensor:
        """int64 [n]: how many of them come before the row."""
        return self._count_below(self._sorted)

    @property
    def before_peers(self) -> Tensor:
        """int64 [n]: how many come before its first peer."""
        return self._count_below(take(self._peers.begins, self._sorted))

    @property
    def through_peers(self) -> Tensor:
        """int64 [n]: how many there are up to its last peer."""
        return self._count_below(take(self._peers.ends, self._sorted))

    def rows_from(self, away: Tensor | int) -> Tensor:
        """int64 [n]: the row of the frame so many (negative: before) away; -1 if there is none. The row itself is 0 away."""
        rows, frames = self._partitions.rows, self._frames
        away = torch.as_tensor(away, device=rows.device)
        is_inside = (frames.begins <= rows) & (rows < frames.ends)
        places = self.before + away - ((away > 0) & ~is_inside).to(torch.int64)
        last = self.sizes - 1
        ordered = OrderedFrames(self._ordered, [frames], self._share)
        found = ordered.at(torch.minimum(places, last).clamp(min=0))
        found = found.masked_fill((places < 0) | (places > last), -1)
        return torch.where(away == 0, rows, found)

    @cached_property
    def _peers(self) -> Segments:
        """The rows in order, cut where the columns of the order differ."""
        words = [take(word, self._ordered.rows) for word in self._words]
        partitions = self._partitions
        return segments(words, partitions.num_rows, partitions.device, partitions.partitions)

    def _count_below(self, places: Tensor) -> Tensor:
        """int64 [n]: how many rows of the frame come before a place among the rows in order."""
        limits = places - self._partitions.begins
        has_all = limits >= self._partitions.sizes  # such a limit may have more bits than any place
        counts = self._ordered.places.count_below([self._frames], limits.masked_fill(has_all, 0), self._share)
        return torch.where(has_all, self.sizes, counts)
