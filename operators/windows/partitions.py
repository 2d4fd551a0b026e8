"""Where partitions and groups of peers begin and end among rows that are sorted by both."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from tqp.data.repeats import repeated
from tqp.operators.numbers import elementwise
from tqp.operators.rows.selection import row_indices, take


class Segments:
    """Consecutive rows. `starts`: bool [n], true for the first row of each."""

    def __init__(self, starts: Tensor) -> None:
        self.starts = starts

    @property
    def num_rows(self) -> int:
        return self.starts.shape[0]

    @cached_property
    def bounds(self) -> Tensor:
        """int64 [g + 1]: the first row of each, and n."""
        ends = torch.full((1,), self.num_rows, dtype=torch.int64, device=self.starts.device)
        return torch.cat([row_indices(self.starts), ends])

    @property
    def count(self) -> int:
        return self.bounds.shape[0] - 1

    @cached_property
    def lengths(self) -> Tensor:
        """int64 [g]: the rows of each."""
        return self.bounds[1:] - self.bounds[:-1]

    @cached_property
    def longest(self) -> int:
        """The rows of the longest one; 0 of none."""
        return int(self.lengths.max()) if self.count else 0

    def spread(self, values: Tensor) -> Tensor:
        """[n, ...]: for each row the value of its segment, of values [g, ...]."""
        if self.count == 1:
            return values.expand(self.num_rows, *values.shape[1:])
        if self.count == self.num_rows:
            return values
        return repeated(values, self.lengths, self.num_rows)

    @cached_property
    def numbers(self) -> Tensor:
        """int64 [n]: the number of each row's segment, from 0 on."""
        return self.spread(torch.arange(self.count, device=self.starts.device))

    @cached_property
    def begins(self) -> Tensor:
        """int64 [n]: the first row of each row's segment."""
        return self.spread(self.bounds[:-1])

    @cached_property
    def ends(self) -> Tensor:
        """int64 [n]: the row behind the last one of each row's segment."""
        return self.spread(self.bounds[1:])


def segments(
    words: Sequence[Tensor], num_rows: int, device: torch.device, within: Segments | None = None
) -> Segments:
    """The segments of equal neighbours: of integers [n] or [n, k], all of which have to agree; at least one if there are rows.

    `within`: segments that a segment is part of one of.
    """
    starts = (
        torch.zeros(num_rows, dtype=torch.bool, device=device) if within is None else within.starts.clone()
    )
    starts[:1] = True
    for word in words:
        differs = (
            elementwise.not_equal(word[1:], word[:-1]) if word.dim() == 1 else word[1:].ne(word[:-1]).any(1)
        )
        starts[1:] |= differs
    return Segments(starts)


class Partitions:
    """Sorted rows: their partitions, and the peers in each, which agree in ORDER BY."""

    def __init__(self, partitions: Segments, peers: Segments) -> None:
        self.partitions = partitions
        self.peers = peers

    @property
    def num_rows(self) -> int:
        return self.partitions.num_rows

    @property
    def device(self) -> torch.device:
        return self.partitions.starts.device

    @cached_property
    def rows(self) -> Tensor:
        """int64 [n]: 0, 1, 2, ..."""
        return torch.arange(self.num_rows, device=self.device)

    @property
    def begins(self) -> Tensor:
        """int64 [n]: the first row of the partition."""
        return self.partitions.begins

    @property
    def ends(self) -> Tensor:
        """int64 [n]: the row behind the partition."""
        return self.partitions.ends

    @property
    def before(self) -> Tensor:
        """int64 [n]: how many rows of the partition come before the row."""
        return self.rows - self.begins

    @property
    def before_peers(self) -> Tensor:
        """int64 [n]: how many come before its first peer."""
        peers = self.peers
        if peers.count == self.num_rows:
            return self.before
        first_rows = peers.bounds[:-1]
        return peers.spread(first_rows - torch.index_select(self.begins, 0, first_rows))

    @property
    def through_peers(self) -> Tensor:
        """int64 [n]: how many there are up to its last peer."""
        return self.peers.ends - self.begins

    @property
    def sizes(self) -> Tensor:
        """int64 [n]: how many there are."""
        return self.ends - self.begins

    @cached_property
    def first_peers(self) -> Tensor:
        """int64 [g]: of each partition, the number of its first group of peers."""
        return take(self.peers.numbers, self.partitions.bounds[:-1])
