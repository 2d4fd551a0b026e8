"""Bucket join: any 64-bit keys. Build rows are sorted by hash; a table of the distinct keys tells where each one's rows are."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from tqp.operators import allocation, elementwise
from tqp.operators.hash_groups import MULTIPLIERS, high_bits
from tqp.operators.join_directory import count_offsets, sort_by_key
from tqp.operators.join_pairs import BuildNulls, build_nulls, expand_ranges
from tqp.operators.rows import row_indices, take

#: Bits of the hash by which build rows are sorted: so many that few keys share them.
_CODE_BITS = 31
_MAX_BUCKET_BITS = 30
#: From so many build rows on, workers share ranges of the buckets.
_SHARED_ROWS = 131_072
_MAX_RANGE_BITS = 6


class Workers(Protocol):
    """Threads that share work."""

    threads: int

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """function(item) of each item, in order."""


@dataclass(frozen=True, slots=True)
class BucketBuild:
    """The distinct keys of bucket b are numbers offsets[b] to offsets[b + 1] of `keys`, which one more key follows.

    Key number k has the build rows rows[run_starts[k]:run_starts[k + 1]], ascending; if no two build rows have one key,
    only rows[k].
    """

    offsets: Tensor  # int32 [2 ** bucket_bits + 1]
    keys: Tensor  # int64 [number of distinct keys + 1], by bucket
    rows: Tensor  # int32 [number of build rows with a key + 1]
    run_starts: Tensor | None  # int32 [number of distinct keys + 2]
    bucket_bits: int
    nulls: BuildNulls

    @property
    def unique(self) -> bool:
        """True if no two build rows have one key."""
        return self.run_starts is None

    def matches(self, keys: Tensor, validity: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """All pairs (probe_rows, build_rows) with equal keys, ordered by probe row, then build row."""
        numbers, found = self._find(keys.to(torch.int64), validity)
        probe_rows = None if _all_true(found) else row_indices(found)
        if probe_rows is not None:
            numbers = take(numbers, probe_rows)
        if self.run_starts is None:
            if probe_rows is None:
                probe_rows = torch.arange(keys.shape[0], device=keys.device)
            return probe_rows, take(self.rows, numbers)
        starts = take(self.run_starts, numbers)
        counts = take(self.run_starts[1:], numbers).sub_(starts)
        within, places = expand_ranges(starts, counts)
        return within if probe_rows is None else take(probe_rows, within), take(self.rows, places)

    def contains(self, keys: Tensor, validity: Tensor | None = None) -> Tensor:
        """bool [n]: has the probe row a match?"""
        return self._find(keys.to(torch.int64), validity)[1]

    def first_match(self, keys: Tensor, validity: Tensor | None = None) -> Tensor:
        """int32 [n]: the first build row that matches, or -1."""
        numbers, found = self._find(keys.to(torch.int64), validity)
        places = numbers if self.run_starts is None else take(self.run_starts, numbers)
        return (take(self.rows, places) + 1).mul_(found).sub_(1)

    def _find(self, keys: Tensor, validity: Tensor | None) -> tuple[Tensor, Tensor]:
        """(its number among the distinct keys, whether it is one of them) of each of the keys, int64 [n].

        int32 and bool [n]; where it is none the number is any. Candidates are compared one by one, each time for the
        rows that are left: most rows are done after the first, which needs no end of its bucket.
        """
        if self.keys.shape[0] == 1:  # all buckets are empty then
            return torch.zeros_like(keys, dtype=torch.int32), torch.zeros_like(keys, dtype=torch.bool)
        buckets = _bucket(keys, self.bucket_bits)
        numbers = take(self.offsets, buckets)
        # The start of an empty bucket is another bucket's key, or the one behind all: it cannot compare equal there.
        found = elementwise.equal(take(self.keys, numbers), keys)
        pending = row_indices(~found)
        at = take(numbers, pending)
        left = take(self.offsets[1:], take(buckets, pending)).sub_(at)
        waiting = take(keys, pending)
        while True:
            more = row_indices(elementwise.greater(left, 1))
            if not more.shape[0]:
                break
            pending, waiting = take(pending, more), take(waiting, more)
            at, left = take(at, more).add_(1), take(left, more).sub_(1)
            equal = elementwise.equal(take(self.keys, at), waiting)
            hits = row_indices(equal)
            places = take(pending, hits)
            numbers.scatter_(0, places, take(at, hits))
            found.scatter_(0, places, torch.ones(places.shape[0], dtype=torch.bool, device=keys.device))
            left.mul_(~equal)
        return numbers, found if validity is None else found.logical_and_(validity)


def build_buckets(
    keys: Tensor, validity: Tensor | None = None, workers: Workers | None = None
) -> BucketBuild:
    """Sorts the build rows by the hash of their key (integers [n]) and numbers the distinct keys; NULL rows are left out."""
    keys = keys.to(torch.int64)
    nulls = build_nulls(keys, validity)
    rows = None if validity is None else row_indices(validity)
    if rows is not None:
        keys = take(keys, rows)
    range_bits = 0  # workers share 2^this ranges of the buckets
    if workers is not None and keys.shape[0] >= _SHARED_ROWS and keys.is_cpu:
        range_bits = min(_MAX_RANGE_BITS, (workers.threads - 1).bit_length())
    share = workers.map if workers is not None and range_bits else _one_by_one
    codes = _bucket(keys, _CODE_BITS).to(torch.int32)
    ranges = share(lambda number: _sorted_range(keys, codes, number, range_bits), range(1 << range_bits))
    num_distinct = sum(part.keys.shape[0] for part in ranges)
    # two to four buckets a key: more would cost cache misses in the directory, fewer more candidates
    bucket_bits = max(range_bits, min(num_distinct.bit_length() + 1, _MAX_BUCKET_BITS))
    size = 1 << (bucket_bits - range_bits)

    def offsets_of(part: _Range) -> Tensor:
        return count_offsets((part.codes >> (_CODE_BITS - bucket_bits)).bitwise_and_(size - 1), size)[0]

    offsets = _from_start(share(offsets_of, ranges), [part.keys.shape[0] for part in ranges])
    order = allocation.concatenate([part.order for part in ranges])
    ordered_rows = order if rows is None else take(rows, order).to(torch.int32)
    run_starts = None
    if num_distinct < keys.shape[0]:
        run_starts = _from_start(
            [part.run_starts for part in ranges], [part.order.shape[0] for part in ranges]
        )
        run_starts = torch.cat([run_starts, run_starts[-1:]])  # the key behind all has no rows
    return BucketBuild(
        offsets,
        torch.cat([*(part.keys for part in ranges), keys.new_zeros(1)]),
        torch.cat([ordered_rows, ordered_rows.new_zeros(1)]),
        run_starts,
        bucket_bits,
        nulls,
    )


class _Range(NamedTuple):
    """The build rows of consecutive buckets."""

    order: Tensor  # int32 [m]: the rows by code, then key
    codes: Tensor  # int32 [k]: the code of each distinct key, ascending
    keys: Tensor  # int64 [k]: the distinct keys
    run_starts: Tensor  # int32 [k + 1]: where in `order` the rows of each one begin


def _sorted_range(keys: Tensor, codes: Tensor, number: int, range_bits: int) -> _Range:
    """The rows of range `number` of 2^range_bits, those of one key together."""
    rows = None
    if range_bits:
        rows = row_indices(elementwise.equal(codes >> (_CODE_BITS - range_bits), number))
        codes = take(codes, rows)
    codes, order = sort_by_key(codes, 1 << _CODE_BITS)
    order = (order if rows is None else take(rows, order)).to(torch.int32)
    keys = take(keys, order)
    differs = elementwise.not_equal(keys[1:], keys[:-1])
    shared = row_indices(elementwise.equal(codes[1:], codes[:-1]).logical_and_(differs))
    if shared.shape[0]:  # the rows of several keys may alternate there
        _sort_within(torch.unique(take(codes, shared)), codes, keys, order)
        differs = elementwise.not_equal(keys[1:], keys[:-1])
    later = row_indices(differs) + 1
    ends = later.new_tensor([0, keys.shape[0]] if keys.shape[0] else [0])
    run_starts = torch.cat([ends[:1], later, ends[1:]]).to(torch.int32)
    if run_starts.shape[0] <= keys.shape[0]:  # a key comes twice
        codes, keys = take(codes, run_starts[:-1]), take(keys, run_starts[:-1])
    return _Range(order, codes, keys, run_starts)


def _sort_within(shared: Tensor, codes: Tensor, keys: Tensor, order: Tensor) -> None:
    """Sorts, in place, the rows of each of the `shared` codes by key, those of one key as they are."""
    starts = torch.searchsorted(codes, shared)
    counts = torch.searchsorted(codes, shared, right=True).sub_(starts)
    before = counts.cumsum(0).sub_(counts)
    places = torch.repeat_interleave(starts - before, counts)
    places.add_(torch.arange(places.shape[0], device=places.device))
    by_key = torch.sort(take(keys, places), stable=True)[1]
    by_code = torch.sort(take(codes, take(places, by_key)), stable=True)[1]
    sources = take(places, take(by_key, by_code))
    keys.scatter_(0, places, take(keys, sources))
    order.scatter_(0, places, take(order, sources))


def _from_start(parts: Sequence[Tensor], lengths: Sequence[int]) -> Tensor:
    """Offsets of consecutive ranges, each from its own start and with its own end, as offsets from the first one's."""
    starts = itertools.accumulate(lengths, initial=0)
    offsets = [part.add_(start) for part, start in zip(parts, starts, strict=False)]
    return allocation.concatenate([*(part[:-1] for part in offsets[:-1]), offsets[-1]])


def _one_by_one(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    return [function(item) for item in items]


def _all_true(mask: Tensor) -> bool:
    return int(np.count_nonzero(mask.numpy())) == mask.shape[0] if mask.is_cpu else bool(mask.all())


def _bucket(keys: Tensor, bits: int) -> Tensor:
    """int64 [n] in [0, 2^bits): of 0, the first one."""
    return high_bits(keys, bits, MULTIPLIERS[0])
