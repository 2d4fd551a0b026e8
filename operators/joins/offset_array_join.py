"""Offset-array join: duplicate keys over a dense range, as build rows sorted by key and an offset per key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from tqp.operators.joins.pairs import NO_NULLS, BuildNulls, build_nulls, expand_ranges, mark_rows
from tqp.operators.memory import allocation
from tqp.operators.memory.allocation import Map
from tqp.operators.memory.arrays import Values, converted, in_form_of
from tqp.operators.numbers import elementwise
from tqp.operators.rows.keys import is_ascending, sort_bounded
from tqp.operators.rows.runs import Runs
from tqp.operators.rows.selection import row_indices, scattered, take, take_padded

# Below this share of keys that build rows have, probe rows are first asked whether they have a partner at all ...
SPARSE = 0.5
# ... and below this share of rows in the key range, only keys that there are get an offset.
_VERY_SPARSE = 0.25
# Candidates are compared in a rectangle that is at most this many times as large as there are pairs.
_MOST_PADDING = 2
# ... and that is so wide at most.
_MOST_CANDIDATES = 32


@dataclass(frozen=True, slots=True)
class OffsetArrayBuild:
    """Build rows of key k are rows[offsets[s]:offsets[s + 1]], ascending, in slot s = k, or the number of k if keys have some.

    Probe keys must be in [0, size). `present`, if not None, tells which keys have rows; only those have a number. Without
    `rows` the build rows lie in order of their keys: each is its own place.
    """

    offsets: Tensor  # int32 [number of slots + 1], int64 from 2^31 rows on
    rows: Tensor | None  # int32 [number of build rows with a key]
    unique: bool
    nulls: BuildNulls = NO_NULLS
    present: Tensor | None = None  # bool [size]
    numbers: Tensor | None = None  # int32 [size]: the number of each key, and anything in other places
    takes_arrays: ClassVar[bool] = True

    def matches(self, keys: Values, validity: Values | None = None) -> tuple[Values, Values]:
        """All pairs (probe_rows, build_rows) with equal keys, ordered by probe row, then build row."""
        found, starts, counts = self._ranges(as_index(keys), validity)
        if found is None:
            places = row_indices(elementwise.greater(counts, 0))
            if not self.unique and places.shape[0] * 2 > counts.shape[0]:
                probe_rows, positions = expand_ranges(starts, counts)
                return probe_rows, self._rows_at(positions)
            # expanding costs several times what leaving out the others does
            found, starts, counts = places, take(starts, places), take(counts, places)
        if self.unique:
            return found, self._rows_at(starts)
        probe_rows, positions = expand_ranges(starts, counts)
        return take(found, probe_rows), self._rows_at(positions)

    def matches_equal(
        self, keys: Values, validity: Values | None, probe_values: Values, build_values: Values
    ) -> tuple[Values, Values]:
        """The pairs of `matches` in which a second value is equal, too: integers [n] and [build rows] without NULLs."""
        found, starts, counts = self._ranges(as_index(keys), validity)
        if found is None:
            found = row_indices(elementwise.greater(counts, 0))
            starts, counts = take(starts, found), take(counts, found)
        if found.shape[0] == 0:
            return found, found
        wanted = take(probe_values, found)
        width = int(counts.max())
        if width > _MOST_CANDIDATES or width * counts.shape[0] > _MOST_PADDING * int(counts.sum()):
            rows, places = expand_ranges(starts, counts)
            build_rows = self._rows_at(places)
            kept = row_indices(elementwise.equal(take(wanted, rows), take(build_values, build_rows)))
            return take(found, take(rows, kept)), take(build_rows, kept)
        # As many places for each probe row, its candidates first: no pairs have to be formed before they are compared.
        by_place = build_values if self.rows is None else take(build_values, in_form_of(keys, self.rows))
        kept = row_indices(_equal_candidates(starts, counts, wanted, by_place, width))
        rows = elementwise.floor_divide(kept, width)
        places = kept - rows * width
        places += take(starts, rows)
        return take(found, rows), self._rows_at(places)

    def contains(self, keys: Values, validity: Values | None = None) -> Values:
        """bool [n]: has the probe row a match?"""
        if self.present is None:
            return elementwise.greater(self._ranges(as_index(keys), validity)[2], 0)
        found = take(in_form_of(keys, self.present), as_index(keys))
        if validity is not None:
            found &= validity
        return found

    def first_match(self, keys: Values, validity: Values | None = None) -> Values:
        """int32 [n]: the first build row that matches, or -1."""
        found, starts, counts = self._ranges(as_index(keys), validity)
        if found is not None:
            return scattered(self._rows_at(starts), found, keys.shape[0], -1)
        first = starts + 1  # position -1 where nothing is found
        first *= elementwise.greater(counts, 0)
        first -= 1
        if self.rows is None:
            return first
        rows = take_padded(in_form_of(keys, self.rows), first) + 1
        rows *= elementwise.greater(counts, 0)
        rows -= 1
        return rows

    def _rows_at(self, places: Values) -> Values:
        return places if self.rows is None else take(in_form_of(places, self.rows), places)

    def _ranges(self, keys: Values, validity: Values | None) -> tuple[Values | None, Values, Values]:
        """(probe rows with a match, or None for all rows, with one or not; the first position of each; how many)."""
        found = None
        offsets = in_form_of(keys, self.offsets)
        if self.present is not None:
            found = row_indices(take(in_form_of(keys, self.present), keys), validity)
            keys = take(keys, found)
            if self.numbers is not None:
                keys = take(in_form_of(keys, self.numbers), keys)
        starts = take(offsets, keys)
        counts = take(offsets[1:], keys)
        counts -= starts
        if validity is not None and found is None:
            counts *= validity
        return found, starts, counts


def _equal_candidates(starts: Values, counts: Values, wanted: Values, by_place: Values, width: int) -> Values:
    """bool [n * width], row by row: is what stands in place starts[i] + 0, 1, ..., of counts[i] places, the wanted value?"""
    last = by_place.shape[0] - 1
    if isinstance(
        starts, np.ndarray
    ):  # one candidate of all rows after the other: numpy's inner loops have to be long
        equal = np.empty((starts.shape[0], width), np.bool_)
        fewest = int(counts.min())
        for number in range(width):
            matching = take(by_place, np.minimum(starts + number, last)) == wanted
            equal[:, number] = matching if number < fewest else matching & (counts > number)
        return equal.reshape(-1)
    numbers = torch.arange(width, dtype=starts.dtype, device=starts.device)
    places = (starts.unsqueeze(1) + numbers).clamp_(max=last)
    candidates = take(by_place, places.view(-1)).view(places.shape)
    return ((candidates == wanted.unsqueeze(1)) & (counts.unsqueeze(1) > numbers)).view(-1)


def build_offset_array(
    keys: Tensor, size: int, validity: Tensor | None = None, workers: Map | None = None
) -> OffsetArrayBuild:
    """A counting sort of the build rows by key. `keys`: integers [n] in [0, size); NULL rows are left out."""
    nulls = build_nulls(keys, validity)
    rows = None if validity is None else row_indices(validity)
    if rows is not None:
        keys = take(keys, rows)
    if keys.shape[0] < size * _VERY_SPARSE:
        return _with_numbers(keys, size, rows, nulls, workers)
    offsets, order, largest = _counting_sort(keys, size)
    present = offsets[1:] > offsets[:-1]
    few = int(present.sum()) < size * SPARSE
    rows = (order if rows is None else take(rows, order)).to(torch.int32)
    return OffsetArrayBuild(offsets, rows, largest <= 1, nulls, present if few else None)


def _with_numbers(
    keys: Tensor, size: int, rows: Tensor | None, nulls: BuildNulls, workers: Map | None
) -> OffsetArrayBuild:
    """An offset array whose build touches the tables of the key range only where there are keys."""
    ordered, order = (keys, None) if is_ascending(keys) else sort_bounded(keys, size)
    runs = Runs(ordered)
    distinct = take(ordered, runs.first_rows)
    present = mark_rows(allocation.zeros(size, torch.bool, keys.device, workers), distinct)
    numbers = allocation.empty((size,), torch.int32, keys.device)
    numbers.scatter_(
        0, distinct.to(torch.int64), torch.arange(runs.count, dtype=torch.int32, device=keys.device)
    )
    if order is not None:
        rows = order if rows is None else take(rows, order)
    return OffsetArrayBuild(
        runs.bounds.to(torch.int32),
        None if rows is None else rows.to(torch.int32),
        runs.count == ordered.shape[0],
        nulls,
        present,
        numbers,
    )


def sort_by_key(keys: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """(keys, order): a stable sort of integer keys [n] in [0, size); order is int32 or int64."""
    if is_ascending(keys):
        return keys, torch.arange(keys.shape[0], dtype=torch.int32, device=keys.device)
    return sort_bounded(keys, size)


def _counting_sort(keys: Tensor, size: int) -> tuple[Tensor, Tensor, int]:
    """(offsets int32 [size + 1], order int32 or int64 [n], largest count) of integer keys [n] in [0, size).

    order[offsets[k]:offsets[k + 1]] are the rows with key k, ascending.
    """
    ordered, order = sort_by_key(keys, size)
    offsets = allocation.empty((size + 1,), torch.int32, ordered.device)
    offsets[:1] = 0
    counts = allocation.zeros(size, torch.int32, ordered.device)
    ones = torch.ones(ordered.shape[0], dtype=torch.int32, device=ordered.device)
    counts.scatter_add_(0, ordered.to(torch.int64), ones)  # of sorted keys: a tenth of the cache misses
    torch.cumsum(counts, 0, dtype=torch.int32, out=offsets[1:])
    return offsets, order, int(counts.max()) if size > 0 else 0


def as_index(keys: Values) -> Values:
    """The keys in a dtype by which `take` takes and that has room for one more value."""
    return keys if keys.dtype.itemsize >= 4 else converted(keys, torch.int32)
