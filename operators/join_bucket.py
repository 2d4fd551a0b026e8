"""Bucket join: any 64-bit keys. Build rows are sorted by hash bucket; candidates are compared on the whole key."""

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
from tqp.operators.join_directory import counting_sort
from tqp.operators.join_pairs import BuildNulls, any_by_row, build_nulls, expand_ranges, first_by_row
from tqp.operators.rows import row_indices, take

_MAX_BUCKET_BITS = 30
#: From so many build rows on, workers share ranges of the buckets.
_SHARED_ROWS = 131_072
_MAX_RANGE_BITS = 6
# Duplicates are looked for at each distance within a bucket, one cheap pass each.
_MAX_UNIQUE_BUCKET = 32


class Workers(Protocol):
    """Threads that share work."""

    threads: int

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """function(item) of each item, in order."""


@dataclass(frozen=True, slots=True)
class BucketBuild:
    """Positions offsets[b] to offsets[b + 1] of `keys` and `rows` are the build rows of bucket b."""

    offsets: Tensor  # int32 [2 ** bucket_bits + 1]
    keys: Tensor  # int64 [m], by bucket, then row
    rows: Tensor  # int32 [m]
    bucket_bits: int
    unique: bool
    nulls: BuildNulls

    def matches(self, keys: Tensor, validity: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """All pairs (probe_rows, build_rows) with equal keys, ordered by probe row, then build row."""
        keys = keys.to(torch.int64)
        if self.unique:
            positions, found = self._find_unique(keys, validity)
            if _all_true(found):
                return torch.arange(keys.shape[0], device=keys.device), take(self.rows, positions)
            probe_rows = row_indices(found)
            return probe_rows, take(self.rows, take(positions, probe_rows))
        starts, counts = self._candidates(keys)
        if validity is not None:
            counts.mul_(validity)
        probe_rows, positions = expand_ranges(starts, counts)
        equal = row_indices(elementwise.equal(take(self.keys, positions), take(keys, probe_rows)))
        return take(probe_rows, equal), take(self.rows, take(positions, equal))

    def contains(self, keys: Tensor, validity: Tensor | None = None) -> Tensor:
        """bool [n]: has the probe row a match?"""
        if self.unique:
            return self._find_unique(keys.to(torch.int64), validity)[1]
        return any_by_row(self.matches(keys, validity)[0], keys.shape[0])

    def first_match(self, keys: Tensor, validity: Tensor | None = None) -> Tensor:
        """int32 [n]: the first build row that matches, or -1."""
        if self.unique:
            positions, found = self._find_unique(keys.to(torch.int64), validity)
            return (take(self.rows, positions) + 1).mul_(found).sub_(1)
        return first_by_row(*self.matches(keys, validity), keys.shape[0])

    def _candidates(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """(first position, number) of the candidates of each probe row: int32 [n] each."""
        buckets = _bucket(keys, self.bucket_bits)
        starts = take(self.offsets, buckets)
        return starts, take(self.offsets[1:], buckets).sub_(starts)

    def _find_unique(self, keys: Tensor, validity: Tensor | None) -> tuple[Tensor, Tensor]:
        """(position with the probe key, whether there is one) of each of the keys, int64 [n], for unique build keys.

        int32 and bool [n]; where there is none the position is any. Candidates are compared one by one, each time for the
        rows that are left: most rows are done after the first, which needs no end of its bucket.
        """
        if self.keys.shape[0] == 1:  # all buckets are empty then
            return torch.zeros_like(keys, dtype=torch.int32), torch.zeros_like(keys, dtype=torch.bool)
        buckets = _bucket(keys, self.bucket_bits)
        positions = take(self.offsets, buckets)
        # The start of an empty bucket is another bucket's key, or the one behind all: it cannot compare equal there.
        found = elementwise.equal(take(self.keys, positions), keys)
        pending = row_indices(~found)
        at = take(positions, pending)
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
            positions.scatter_(0, places, take(at, hits))
            found.scatter_(0, places, torch.ones(places.shape[0], dtype=torch.bool, device=keys.device))
            left.mul_(~equal)
        return positions, found if validity is None else found.logical_and_(validity)


def build_buckets(
    keys: Tensor, validity: Tensor | None = None, workers: Workers | None = None
) -> BucketBuild:
    """Sorts the build rows by the bucket of their key (integers [n]); NULL rows are left out."""
    keys = keys.to(torch.int64)
    nulls = build_nulls(keys, validity)
    rows = None if validity is None else row_indices(validity)
    if rows is not None:
        keys = take(keys, rows)
    # two to four buckets a row: more would cost cache misses in the directory, fewer more candidates
    bucket_bits = min(keys.shape[0].bit_length() + 1, _MAX_BUCKET_BITS)
    range_bits = 0  # workers share 2^this ranges of the buckets
    if workers is not None and keys.shape[0] >= _SHARED_ROWS and keys.is_cpu:
        range_bits = min(_MAX_RANGE_BITS, (workers.threads - 1).bit_length())
    buckets = _bucket(keys, bucket_bits)

    def sort(number: int) -> _Range:
        return _sorted_range(keys, buckets, number, bucket_bits - range_bits, range_bits > 0)

    ranges = workers.map(sort, range(1 << range_bits)) if workers is not None and range_bits else [sort(0)]
    order = allocation.concatenate([part.order for part in ranges])
    starts = itertools.accumulate((part.order.shape[0] for part in ranges), initial=0)
    offsets = [part.offsets.add_(start) for part, start in zip(ranges, starts, strict=False)]
    ends = [part[:-1] for part in offsets[:-1]]
    rows = order if rows is None else take(rows, order)
    unique = all(part.unique for part in ranges)
    columns = [part.keys for part in ranges]
    if unique:  # one more, for empty buckets behind all rows: a key that belongs to the first bucket
        columns.append(keys.new_zeros(1))
        rows = torch.cat([rows, rows.new_zeros(1)])
    return BucketBuild(
        allocation.concatenate([*ends, offsets[-1]]),
        allocation.concatenate(columns),
        rows.to(torch.int32),
        bucket_bits,
        unique,
        nulls,
    )


class _Range(NamedTuple):
    """The build rows of consecutive buckets."""

    offsets: Tensor  # int32 [buckets + 1]
    order: Tensor  # int64 or int32 [m]: the rows, by bucket
    keys: Tensor  # int64 [m], so too
    unique: bool


def _sorted_range(keys: Tensor, buckets: Tensor, number: int, bits: int, chosen: bool) -> _Range:
    """The rows of range `number` of 2^bits buckets; all rows unless `chosen`."""
    rows = None
    if chosen:
        rows = row_indices(elementwise.equal(buckets >> bits, number))
        buckets = take(buckets, rows).bitwise_and_((1 << bits) - 1)
    offsets, order, largest = counting_sort(buckets.to(torch.int32), 1 << bits)
    order = order if rows is None else take(rows, order)
    keys = take(keys, order)
    return _Range(offsets, order, keys, _is_unique(keys, largest))


def _all_true(mask: Tensor) -> bool:
    return int(np.count_nonzero(mask.numpy())) == mask.shape[0] if mask.is_cpu else bool(mask.all())


def _is_unique(keys: Tensor, largest_bucket: int) -> bool:
    """True if no two keys, sorted by bucket, are equal: equal ones would be in one bucket."""
    if largest_bucket > _MAX_UNIQUE_BUCKET:
        return False
    return not any(bool(elementwise.equal(keys[k:], keys[:-k]).any()) for k in range(1, largest_bucket))


def _bucket(keys: Tensor, bits: int) -> Tensor:
    """int64 [n] in [0, 2^bits): of 0, the first one."""
    return high_bits(keys, bits, MULTIPLIERS[0])
