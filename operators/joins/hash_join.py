"""Hash join: any 64-bit keys. A hash table of the distinct keys tells where each one's build rows are, sorted by hash."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.data.repeats import repeated
from tqp.operators.joins.offset_array_join import sort_by_key
from tqp.operators.joins.pairs import BuildNulls, build_nulls, expand_ranges
from tqp.operators.memory import allocation
from tqp.operators.numbers import arithmetic, elementwise
from tqp.operators.numbers.logic import all_true
from tqp.operators.rows.hash_table import MULTIPLIERS, HashTable, table_of_rows
from tqp.operators.rows.keys import high_bits
from tqp.operators.rows.selection import count_true, row_indices, take

#: Bits of the hash by which build rows are sorted: so many that few keys share them.
_CODE_BITS = 31
#: From so many build rows on, workers share ranges of the hashes.
_SHARED_ROWS = 131_072
_MAX_RANGE_BITS = 6
#: Batches of so many keys are looked at in a sample of so many: are they in the range of the build keys?
_FEWEST_IN_RANGE, _RANGE_SAMPLE = 65_536, 64
#: Keys of a sample of the build side: one in which keys come twice at all mostly shows two such.
_SAMPLE_ROWS = 16_384


class Workers(Protocol):
    """Threads that share work."""

    threads: int

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """function(item) of each item, in order."""


@dataclass(frozen=True, slots=True)
class HashBuild:
    """`table` tells a key's number. Key number k has the build rows rows[run_starts[k]:run_starts[k + 1]], ascending.

    Without both no two rows have one key, and its number is its row.
    """

    table: HashTable
    rows: Tensor | None  # int32 [number of build rows with a key]
    run_starts: Tensor | None  # int32 [number of distinct keys + 1]
    nulls: BuildNulls
    key_range: tuple[int, int] | None = None  # least and greatest key, where they are known

    @property
    def unique(self) -> bool:
        """True if no two build rows have one key."""
        return self.run_starts is None

    def matches(self, keys: Tensor, validity: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """All pairs (probe_rows, build_rows) with equal keys, ordered by probe row, then build row."""
        numbers, found = self._find(keys, validity)
        probe_rows = None if all_true(found) else row_indices(found)
        if probe_rows is not None:
            numbers = take(numbers, probe_rows)
        if self.run_starts is None:
            if probe_rows is None:
                probe_rows = torch.arange(keys.shape[0], dtype=torch.int32, device=keys.device)
            return probe_rows, numbers
        starts = take(self.run_starts, numbers)
        counts = take(self.run_starts[1:], numbers).sub_(starts)
        within, places = expand_ranges(starts, counts)
        return within if probe_rows is None else take(probe_rows, within), self._rows_at(places)

    def contains(self, keys: Tensor, validity: Tensor | None = None) -> Tensor:
        """bool [n]: has the probe row a match?"""
        return self._find(keys, validity)[1]

    def first_match(self, keys: Tensor, validity: Tensor | None = None) -> Tensor:
        """int32 [n]: the first build row that matches, or -1."""
        numbers, found = self._find(keys, validity)
        if self.run_starts is not None:
            numbers = self._rows_at(take(self.run_starts, numbers))
        return (numbers + 1).mul_(found).sub_(1)

    def _rows_at(self, places: Tensor) -> Tensor:
        assert self.rows is not None
        return take(self.rows, places)

    def _find(self, keys: Tensor, validity: Tensor | None) -> tuple[Tensor, Tensor]:
        """The number of each of the keys, integers [n], and whether it has one; where not the number is any."""
        rows = self._rows_in_range(keys)
        if rows is None:
            numbers, found = self.table.find(keys.to(torch.int64))
        else:
            of_rows = self.table.find(take(keys, rows).to(torch.int64))
            numbers, found = (each.new_zeros(keys.shape[0]).scatter_(0, rows, each) for each in of_rows)
        return numbers, found if validity is None else found.logical_and_(validity)

    def _rows_in_range(self, keys: Tensor) -> Tensor | None:
        """int64: the rows with a key in the range of build keys, if they seem to be few, as of a table that is sorted by the key; else None."""
        if self.key_range is None or keys.shape[0] < _FEWEST_IN_RANGE:
            return None
        sample = keys[:: keys.shape[0] // _RANGE_SAMPLE]
        if count_true(self._is_in_range(sample)) * 2 > sample.shape[0]:
            return None
        return row_indices(self._is_in_range(keys))

    def _is_in_range(self, keys: Tensor) -> Tensor:
        assert self.key_range is not None
        low, high = self.key_range
        return elementwise.greater_equal(keys, low).logical_and_(elementwise.less_equal(keys, high))


def build_hash(keys: Tensor, validity: Tensor | None = None, workers: Workers | None = None) -> HashBuild:
    """Finds a slot for each build row's key (integers [n]), or sorts the rows by its hash; NULL rows are left out."""
    keys = keys.to(torch.int64)
    nulls = build_nulls(keys, validity)
    rows = None if validity is None else row_indices(validity)
    if not _seems_repeated(keys, rows):
        table = table_of_rows(keys, rows)
        if table is not None:
            return HashBuild(table, None, None, nulls, _key_range(keys if rows is None else take(keys, rows)))
    if rows is not None:
        keys = take(keys, rows)
    range_bits = 0  # workers share 2^this ranges of the hashes
    if workers is not None and keys.shape[0] >= _SHARED_ROWS and is_host(keys):
        range_bits = min(_MAX_RANGE_BITS, (workers.threads - 1).bit_length())
    share = workers.map if workers is not None and range_bits else allocation.one_by_one
    codes = _codes(keys)
    ranges = share(lambda number: _sorted_range(keys, codes, number, range_bits), range(1 << range_bits))
    order = allocation.concatenate([part.order for part in ranges])
    run_starts = _from_start([part.run_starts for part in ranges], [part.order.shape[0] for part in ranges])
    table = table_of_rows(allocation.concatenate([part.keys for part in ranges]))
    assert table is not None
    order = order if rows is None else take(rows, order).to(torch.int32)
    return HashBuild(table, order, run_starts, nulls, _key_range(keys))


def _key_range(keys: Tensor) -> tuple[int, int] | None:
    """The least and the greatest key, of the CPU, where to compare keys with them is less work than to look them up; else None."""
    return arithmetic.value_range(keys) if is_host(keys) and keys.shape[0] else None


def _seems_repeated(keys: Tensor, rows: Tensor | None) -> bool:
    """Does a key come twice in a sample of int64 keys [n], or of those in some rows? Of few keys, False."""
    num_rows = keys.shape[0] if rows is None else rows.shape[0]
    if num_rows < 4 * _SAMPLE_ROWS:
        return False
    step = num_rows // _SAMPLE_ROWS
    sample = torch.sort(keys[::step] if rows is None else take(keys, rows[::step]))[0]
    return bool(elementwise.equal(sample[1:], sample[:-1]).any())


class _Range(NamedTuple):
    """The build rows of consecutive hashes."""

    order: Tensor  # int32 [m]: the rows by code, then key
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
        keys = take(keys, run_starts[:-1])
    return _Range(order, keys, run_starts)


def _sort_within(shared: Tensor, codes: Tensor, keys: Tensor, order: Tensor) -> None:
    """Sorts, in place, the rows of each of the `shared` codes by key, those of one key as they are."""
    starts = torch.searchsorted(codes, shared)
    counts = torch.searchsorted(codes, shared, right=True).sub_(starts)
    before = counts.cumsum(0).sub_(counts)
    places = repeated(starts - before, counts)
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


def _codes(keys: Tensor) -> Tensor:
    """int32 [n]: the high bits of the hashes."""
    return high_bits(keys, _CODE_BITS, MULTIPLIERS[0]).to(torch.int32)
