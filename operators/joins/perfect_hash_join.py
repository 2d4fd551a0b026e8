"""Perfect-hash join: unique keys over a dense range, as a table of positions; and the bare set of keys.

Keys to be looked up are tensors, or arrays (see `arrays`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.joins.offset_array_join import SPARSE, OffsetArrayBuild, as_index, build_offset_array
from tqp.operators.joins.pairs import NO_NULLS, BuildNulls, build_nulls, mark_rows
from tqp.operators.memory import allocation
from tqp.operators.memory.allocation import Map
from tqp.operators.memory.arrays import Values, converted, in_form_of
from tqp.operators.numbers import elementwise
from tqp.operators.rows.selection import row_indices, take

#: Keys of a table that one core's caches hold, and of a block of a larger one; one in 2^_FEW_BITS blocks may have a key, if
#: these are to be looked at first.
_CACHED, _BLOCK_BITS, _FEW_BITS = 1 << 22, 8, 5

#: Of so many rows, and of one in 2^_FIRST_BITS, the keys are compared with one another before a position table is tried.
_FIRST_ROWS, _FIRST_BITS = 4096, 6


@dataclass(frozen=True, slots=True)
class PerfectHashBuild:
    """table[key] is the build row with that key, or -1. Probe keys must be in [0, size)."""

    table: Tensor  # int32 [size]
    nulls: BuildNulls = NO_NULLS
    takes_arrays: ClassVar[bool] = True
    unique: ClassVar[bool] = True

    def matches(self, keys: Values, validity: Values | None = None) -> tuple[Values, Values]:
        """All pairs (probe_rows, build_rows) with equal keys, ordered by probe row."""
        build_rows = take(in_form_of(keys, self.table), as_index(keys))
        probe_rows = row_indices(elementwise.greater_equal(build_rows, 0), validity)
        return probe_rows, take(build_rows, probe_rows)

    def matches_equal(
        self, keys: Values, validity: Values | None, probe_values: Values, build_values: Values
    ) -> tuple[Values, Values]:
        """The pairs of `matches` in which a second value is equal, too: integers [n] and [build rows] without NULLs."""
        probe_rows, build_rows = self.matches(keys, validity)
        same = elementwise.equal(take(probe_values, probe_rows), take(build_values, build_rows))
        kept = row_indices(same)
        return take(probe_rows, kept), take(build_rows, kept)

    def contains(self, keys: Values, validity: Values | None = None) -> Values:
        """bool [n]: has the probe row a match?"""
        found = elementwise.greater_equal(take(in_form_of(keys, self.table), as_index(keys)), 0)
        if validity is not None:
            found &= validity
        return found

    def first_match(self, keys: Values, validity: Values | None = None) -> Values:
        """int32 [n]: the build row that matches, or -1."""
        build_rows = take(in_form_of(keys, self.table), as_index(keys))
        if validity is not None:
            # x | 0 = x for valid rows, x | -1 = -1 for the others: a tenth of the cost of torch.where
            build_rows |= converted(validity, torch.int32) - 1
        return build_rows


@dataclass(frozen=True, slots=True)
class MembershipBuild:
    """table[key] tells whether a build row has that key. Probe keys must be in [0, size).

    Alone for semi and anti joins; columns of unique build rows may stand in tables of their own, under the same keys.
    `blocks`: where the table is larger than the caches and keys are few, which blocks of 2^_BLOCK_BITS keys have one.
    """

    table: Tensor  # bool [size]
    nulls: BuildNulls = NO_NULLS
    blocks: Tensor | None = None  # bool
    num_rows: int | None = None  # with a key, where columns stand under them
    takes_arrays: ClassVar[bool] = True

    def contains(self, keys: Values, validity: Values | None = None) -> Values:
        """bool [n]: has the probe row a match?"""
        places, table = as_index(keys), in_form_of(keys, self.table)
        if self.blocks is None:
            found = take(table, places)
        else:
            found = take(in_form_of(keys, self.blocks), places >> _BLOCK_BITS)
            rows = row_indices(found)
            found[rows] = take(table, take(places, rows))
        if validity is not None:
            found &= validity
        return found

    def matches(self, keys: Values, validity: Values | None = None) -> tuple[Values, Values]:
        """The probe rows that have a match, and their keys as the places of the build rows' values."""
        probe_rows = row_indices(self.contains(keys, validity))
        return probe_rows, take(as_index(keys), probe_rows)

    def first_match(self, keys: Values, validity: Values | None = None) -> Values:
        """int32 or int64 [n]: the key where a build row has it, as the place of that row's values, else -1."""
        found = as_index(keys) + 1
        found *= self.contains(keys, validity)
        found -= 1
        return found


def build_perfect_hash(
    keys: Tensor, size: int, validity: Tensor | None = None, workers: Map | None = None
) -> PerfectHashBuild | OffsetArrayBuild:
    """A position table over keys (integers [n]) in [0, size); an offset array if two rows turn out to have one key.

    NULL rows are left out.
    """
    if validity is None:
        entered, rows = keys, torch.arange(keys.shape[0], dtype=torch.int32, device=keys.device)
    else:
        valid = row_indices(validity)
        entered, rows = take(keys, valid), valid.to(torch.int32)
    table = allocation.full(size, -1, torch.int32, keys.device)
    table.scatter_(0, entered.to(torch.int64), rows)
    if torch.equal(take(table, as_index(entered)), rows):  # no row was displaced by another with its key
        return PerfectHashBuild(table, build_nulls(keys, validity))
    return build_offset_array(keys, size, validity, workers)


def build_dense(
    keys: Tensor, size: int, validity: Tensor | None = None, workers: Map | None = None
) -> PerfectHashBuild | OffsetArrayBuild:
    """A position table over keys (integers [n]) in [0, size) where no two rows have one key, else an offset array.

    NULL rows are left out. One look-up a probe row instead of three, and nothing to sort; not where few of the keys have
    rows, of which an offset array first asks a smaller table.
    """
    if _are_dense(keys.shape[0], size) and _seem_distinct(keys, validity):
        return build_perfect_hash(keys, size, validity, workers)
    return build_offset_array(keys, size, validity, workers)


def _are_dense(num_rows: int, size: int) -> bool:
    return SPARSE * size <= num_rows <= size


def _seem_distinct(keys: Tensor, validity: Tensor | None) -> bool:
    """Whether no two of the first rows have one key: where a key has two rows on average, almost never."""
    some = slice(0, max(_FIRST_ROWS, keys.shape[0] >> _FIRST_BITS))
    first = keys[some] if validity is None else take(keys[some], row_indices(validity[some]))
    ordered = first.sort().values
    return not bool((ordered[1:] == ordered[:-1]).any())


def build_of_index(index: Tensor, size: int) -> PerfectHashBuild | OffsetArrayBuild:
    """The build side that a table with an index on its key is (see `tqp.data.encoding.sorted_columns`), for keys in [0, size)."""
    return PerfectHashBuild(index) if index.shape[0] == size else OffsetArrayBuild(index, None, unique=False)


def empty_membership(size: int, device: torch.device, workers: Map | None = None) -> Tensor:
    """A membership table (bool [size]) without keys."""
    return allocation.zeros(size, torch.bool, device, workers)


def build_membership(
    keys: Tensor, size: int, validity: Tensor | None = None, workers: Map | None = None
) -> MembershipBuild:
    """The set of the keys (integers [n] in [0, size)) of rows that are not NULL."""
    entered = keys if validity is None else take(keys, row_indices(validity))
    table = mark_rows(empty_membership(size, keys.device, workers), entered)
    return MembershipBuild(table, build_nulls(keys, validity), blocks_of([entered], size))


def are_few(num_keys: int, size: int) -> bool:
    """Are so many keys below `size` so few that blocks of keys are to be looked at first?"""
    return size > _CACHED and num_keys << _FEW_BITS <= size >> _BLOCK_BITS


def blocks_of(batches: Sequence[Tensor | None], size: int) -> Tensor | None:
    """bool: which blocks of 2^_BLOCK_BITS keys have one of these, integers in [0, size).

    None where they are not few, as a batch that is None says, or on a device.
    """
    keys = [some for some in batches if some is not None and is_host(some)]
    if len(keys) < len(batches) or not are_few(sum(some.shape[0] for some in keys), size):
        return None
    blocks = empty_membership((size >> _BLOCK_BITS) + 1, torch.device("cpu"))
    for some in keys:
        mark_rows(blocks, some >> _BLOCK_BITS)
    return blocks
