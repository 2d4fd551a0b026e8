"""Bucket join: any 64-bit keys. Build rows are sorted by hash bucket; candidates are compared on the whole key."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tqp.operators.join_directory import counting_sort
from tqp.operators.join_pairs import BuildNulls, any_by_row, build_nulls, expand_ranges, first_by_row
from tqp.operators.keys import mix
from tqp.operators.rows import row_indices, take

_MAX_BUCKET_BITS = 30
# Duplicates are looked for at each distance within a bucket, one cheap pass each.
_MAX_UNIQUE_BUCKET = 32


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
            positions = self._find_unique(keys, validity)
            probe_rows = row_indices(positions >= 0)
            return probe_rows, take(self.rows, take(positions, probe_rows))
        starts, counts = self._candidates(keys)
        if validity is not None:
            counts.mul_(validity)
        probe_rows, positions = expand_ranges(starts, counts)
        equal = row_indices(take(self.keys, positions) == take(keys, probe_rows))
        return take(probe_rows, equal), take(self.rows, take(positions, equal))

    def contains(self, keys: Tensor, validity: Tensor | None = None) -> Tensor:
        """bool [n]: has the probe row a match?"""
        if self.unique:
            return self._find_unique(keys.to(torch.int64), validity) >= 0
        return any_by_row(self.matches(keys, validity)[0], keys.shape[0])

    def first_match(self, keys: Tensor, validity: Tensor | None = None) -> Tensor:
        """int32 [n]: the first build row that matches, or -1."""
        return first_by_row(*self.matches(keys, validity), keys.shape[0])

    def _candidates(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """(first position, number) of the candidates of each probe row: int32 [n] each."""
        buckets = _bucket(keys, self.bucket_bits)
        starts = take(self.offsets, buckets)
        return starts, take(self.offsets[1:], buckets).sub_(starts)

    def _find_unique(self, keys: Tensor, validity: Tensor | None) -> Tensor:
        """int32 [n]: the position with the probe key (int64 [n]), or -1, for a build without duplicates.

        Candidates are compared one by one, each time for the rows that are left: most rows are done after the first.
        """
        num_build = self.keys.shape[0]
        if num_build == 0:
            return torch.full(keys.shape, -1, dtype=torch.int32, device=keys.device)
        starts, counts = self._candidates(keys)
        # The start of an empty bucket is another bucket's key, or none: it cannot compare equal.
        starts.clamp_(max=num_build - 1)
        found = take(self.keys, starts) == keys
        pending = row_indices((counts > 1).logical_and_(found.logical_not()))
        positions = (starts + 1).mul_(found).sub_(1)
        distance = 1
        while pending.shape[0] > 0:
            candidates = take(starts, pending).add_(distance)
            found = take(self.keys, candidates) == take(keys, pending)
            hits = row_indices(found)
            positions.scatter_(0, take(pending, hits), take(candidates, hits))
            distance += 1
            pending = take(
                pending, row_indices((take(counts, pending) > distance).logical_and_(found.logical_not_()))
            )
        if validity is not None:
            positions.bitwise_or_(validity.to(torch.int32).sub_(1))  # x | -1 = -1
        return positions


def build_buckets(keys: Tensor, validity: Tensor | None = None) -> BucketBuild:
    """Sorts the build rows by the bucket of their key (integers [n]); NULL rows are left out."""
    keys = keys.to(torch.int64)
    nulls = build_nulls(keys, validity)
    rows = None if validity is None else row_indices(validity)
    if rows is not None:
        keys = take(keys, rows)
    # one to two buckets a row: more would cost cache misses in the directory, fewer more candidates
    bucket_bits = min(max(keys.shape[0], 1).bit_length(), _MAX_BUCKET_BITS)
    offsets, order, largest = counting_sort(_bucket(keys, bucket_bits), 1 << bucket_bits)
    keys = take(keys, order)
    rows = (order if rows is None else take(rows, order)).to(torch.int32)
    return BucketBuild(offsets, keys, rows, bucket_bits, _is_unique(keys, largest), nulls)


def _is_unique(keys: Tensor, largest_bucket: int) -> bool:
    """True if no two keys, sorted by bucket, are equal: equal ones would be in one bucket."""
    if largest_bucket > _MAX_UNIQUE_BUCKET:
        return False
    return not any(bool((keys[k:] == keys[:-k]).any()) for k in range(1, largest_bucket))


def _bucket(keys: Tensor, bits: int) -> Tensor:
    return mix(keys).bitwise_and_((1 << bits) - 1).to(torch.int32)
