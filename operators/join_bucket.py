"""Bucket join: any 64-bit keys. Build rows are sorted by hash bucket; candidates are compared on the whole key."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tqp.operators.join_directory import count_keys, sorted_rows
from tqp.operators.join_pairs import any_by_row, expand_ranges, first_by_row
from tqp.operators.keys import mix
from tqp.operators.rows import row_indices, take

_MAX_BUCKET_BITS = 30


@dataclass(frozen=True, slots=True)
class BucketBuild:
    """Positions offsets[b] to offsets[b + 1] of `keys` and `rows` are the build rows of bucket b."""

    offsets: Tensor  # int32 [2 ** bucket_bits + 1]
    keys: Tensor  # int64 [m], by bucket, then row
    rows: Tensor  # int32 [m]
    bucket_bits: int
    largest_bucket: int

    @property
    def unique(self) -> bool:
        return False

    def matches(self, keys: Tensor, validity: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """All pairs (probe_rows, build_rows) with equal keys, ordered by probe row, then build row."""
        keys = keys.to(torch.int64)
        buckets = _bucket(keys, self.bucket_bits)
        starts = take(self.offsets, buckets)
        counts = take(self.offsets[1:], buckets).sub_(starts)
        if validity is not None:
            counts.mul_(validity)
        if self.largest_bucket <= 1:
            probe_rows = row_indices(counts > 0)
            positions = take(starts, probe_rows)
        else:
            probe_rows, positions = expand_ranges(starts, counts)
        equal = row_indices(take(self.keys, positions) == take(keys, probe_rows))
        return take(probe_rows, equal), take(self.rows, take(positions, equal))

    def contains(self, keys: Tensor, validity: Tensor | None = None) -> Tensor:
        """bool [n]: has the probe row a match?"""
        return any_by_row(self.matches(keys, validity)[0], keys.shape[0])

    def first_match(self, keys: Tensor, validity: Tensor | None = None) -> Tensor:
        """int32 [n]: the first build row that matches, or -1."""
        return first_by_row(*self.matches(keys, validity), keys.shape[0])


def build_buckets(keys: Tensor, validity: Tensor | None = None) -> BucketBuild:
    """Sorts the build rows by the bucket of their key (integers [n]); NULL rows are left out."""
    keys = keys.to(torch.int64)
    rows = None if validity is None else row_indices(validity)
    if rows is not None:
        keys = take(keys, rows)
    # one to two buckets a row: more would cost cache misses in the directory, fewer more candidates
    bucket_bits = min(max(keys.shape[0], 1).bit_length(), _MAX_BUCKET_BITS)
    buckets = _bucket(keys, bucket_bits)
    counts = count_keys(buckets, 1 << bucket_bits)
    offsets = torch.zeros((1 << bucket_bits) + 1, dtype=torch.int32, device=keys.device)
    torch.cumsum(counts, 0, dtype=torch.int32, out=offsets[1:])
    order = sorted_rows(buckets, 1 << bucket_bits)
    rows = (order if rows is None else take(rows, order)).to(torch.int32)
    return BucketBuild(offsets, take(keys, order), rows, bucket_bits, int(counts.max()))


def _bucket(keys: Tensor, bits: int) -> Tensor:
    return mix(keys).bitwise_and_((1 << bits) - 1).to(torch.int32)
