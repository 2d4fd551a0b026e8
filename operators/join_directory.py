"""Directory join: duplicate keys over a dense range, as build rows sorted by key and an offset per key."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tqp.operators import allocation
from tqp.operators.join_pairs import BuildNulls, build_nulls, expand_ranges
from tqp.operators.keys import narrow, sort_codes
from tqp.operators.rows import row_indices, take, take_padded


@dataclass(frozen=True, slots=True)
class DirectoryBuild:
    """Build rows of key k are rows[offsets[k]:offsets[k + 1]], ascending. Probe keys must be in [0, size)."""

    offsets: Tensor  # int32 [size + 1]
    rows: Tensor  # int32 [number of build rows with a key]
    unique: bool
    nulls: BuildNulls

    def matches(self, keys: Tensor, validity: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """All pairs (probe_rows, build_rows) with equal keys, ordered by probe row, then build row."""
        starts, counts = self._ranges(keys, validity)
        if self.unique:
            probe_rows = row_indices(counts > 0)
            return probe_rows, take(self.rows, take(starts, probe_rows))
        found = row_indices(counts > 0)
        if found.shape[0] * 2 > counts.shape[0]:
            probe_rows, positions = expand_ranges(starts, counts)
        else:  # expanding costs several times what leaving out the others does
            probe_rows, positions = expand_ranges(take(starts, found), take(counts, found))
            probe_rows = take(found, probe_rows)
        return probe_rows, take(self.rows, positions)

    def contains(self, keys: Tensor, validity: Tensor | None = None) -> Tensor:
        """bool [n]: has the probe row a match?"""
        return self._ranges(keys, validity)[1] > 0

    def first_match(self, keys: Tensor, validity: Tensor | None = None) -> Tensor:
        """int32 [n]: the first build row that matches, or -1."""
        starts, counts = self._ranges(keys, validity)
        found = (counts > 0).to(torch.int32)
        first = take_padded(self.rows, (starts + 1) * found - 1)  # position -1 where nothing is found
        return (first + 1).mul_(found).sub_(1)

    def _ranges(self, keys: Tensor, validity: Tensor | None) -> tuple[Tensor, Tensor]:
        keys = as_index(keys)
        starts = take(self.offsets, keys)
        counts = take(self.offsets[1:], keys).sub_(starts)
        return starts, counts if validity is None else counts.mul_(validity)


def build_directory(keys: Tensor, size: int, validity: Tensor | None = None) -> DirectoryBuild:
    """A counting sort of the build rows by key. `keys`: integers [n] in [0, size); NULL rows are left out."""
    nulls = build_nulls(keys, validity)
    rows = None if validity is None else row_indices(validity)
    if rows is not None:
        keys = take(keys, rows)
    offsets, order, largest = counting_sort(keys, size)
    rows = (order if rows is None else take(rows, order)).to(torch.int32)
    return DirectoryBuild(offsets, rows, largest <= 1, nulls)


def counting_sort(keys: Tensor, size: int) -> tuple[Tensor, Tensor, int]:
    """(offsets int32 [size + 1], order int32 or int64 [n], largest count) of integer keys [n] in [0, size).

    order[offsets[k]:offsets[k + 1]] are the rows with key k, ascending.
    """
    # clustered inputs are common, and the look is a tenth of the sort
    if bool((keys[1:] >= keys[:-1]).all()):
        ordered, order = keys, torch.arange(keys.shape[0], dtype=torch.int32, device=keys.device)
    else:
        ordered, order = sort_codes(narrow(keys, size))
    offsets = allocation.empty((size + 1,), torch.int32, keys.device)
    offsets[:1] = 0
    counts = allocation.zeros(size, torch.int32, keys.device)
    ones = torch.ones(ordered.shape[0], dtype=torch.int32, device=keys.device)
    counts.scatter_add_(0, ordered.to(torch.int64), ones)  # of sorted keys: a tenth of the cache misses
    torch.cumsum(counts, 0, dtype=torch.int32, out=offsets[1:])
    return offsets, order, int(counts.max()) if size > 0 else 0


def as_index(keys: Tensor) -> Tensor:
    """The keys in a dtype that `index_select` takes."""
    return keys if keys.dtype in (torch.int32, torch.int64) else keys.to(torch.int32)
