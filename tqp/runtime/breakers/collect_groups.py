"""GROUP BY that keeps the rows, in partitions by a hash of their keys, and groups each partition once all are there.

Of batches whose rows share few texts as their key, what they come to is kept in their place (`reduced_batches`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tqp.core.process.memory_budget import reserve
from tqp.data.backend import is_host_device
from tqp.data.strings import Strings
from tqp.operators.groups import group_ids
from tqp.operators.joins.pairs import mark_rows
from tqp.operators.memory import allocation
from tqp.operators.numbers import elementwise
from tqp.operators.rows import keys as key_kernels
from tqp.operators.rows import selection as rows
from tqp.operators.string_keys import hash as string_hash
from tqp.operators.string_keys.pack import Packing, repack
from tqp.runtime.breakers.collect import key_columns
from tqp.runtime.breakers.grouped_rows import GroupedRows
from tqp.runtime.breakers.reduced_batches import (
    reduce_batch,
    reductions_of_states,
    shares_few_texts,
)
from tqp.runtime.breakers.reductions import Reduction, listed
from tqp.runtime.frame import (
    Frame,
    FrameColumn,
    concatenate_frames,
    frame_of_outputs,
    take_frame,
    take_values,
)
from tqp.runtime.pipeline import Breaker, State

#: A partition of about so many rows is grouped within the caches ...
_PARTITION_ROWS = 262_144
#: ... and from so many rows on, this and workers that share them are worth distributing them.
_PARTITIONED_ROWS = 262_144
_WORD = 8  # bytes
#: Batches are cut into pieces of at least about so many rows.
_ROWS_OF_A_PIECE = 64
_MAX_PARTITION_BITS = 6
#: Up to so many possible groups a row, a table of all is cheaper than numbering those that there are.
_TABLE_SLOTS_PER_ROW = 4


def partition_bits(expected_rows: float, device: torch.device) -> int:
    """The logarithm of the number of partitions for so many rows: 0, meaning one, for few."""
    if not is_host_device(device) or expected_rows < _PARTITIONED_ROWS:
        return 0
    return min(_MAX_PARTITION_BITS, int(expected_rows // _PARTITION_ROWS).bit_length())


class _PackedKey(NamedTuple):
    """A key of strings as integers, see `string_keys.pack`."""

    codes: Tensor
    packing: Packing
    wanted: Packing | None  # that of all batches


class _Partition(NamedTuple):
    """The rows of a batch that lie in a partition, and of each key its codes, if it has some."""

    frame: Frame
    packed: tuple[_PackedKey | None, ...]
    is_reduced: bool = False  # are these the states of groups, not rows?


class _Batch(NamedTuple):
    """The rows of a batch, or with `is_reduced` what they come to; partition by partition where they are many."""

    frame: Frame
    is_reduced: bool = False
    packed: tuple[_PackedKey | None, ...] = ()
    ends: list[int] | None = None  # of the partitions

    def partition(self, number: int, packings: Sequence[Packing | None]) -> _Partition:
        assert self.ends is not None
        start, end = self.ends[number - 1] if number else 0, self.ends[number]
        packed = (
            key and wanted and _PackedKey(key.codes[start:end], key.packing, wanted)
            for key, wanted in zip(self.packed, packings, strict=True)
        )
        return _Partition(self.frame.cut(start, end), tuple(packed), self.is_reduced)


@dataclass(eq=False)
class CollectGroups(Breaker):
    """Groups and reduces rows that have all been collected.

    The first `num_keys` columns of the frame are the keys; with `has_kept` the last one tells which rows count. Workers
    distribute each batch over 2^`bits` partitions and then group the partitions. `size`: the key is one of integers from 0
    to `size` - 1, None: anything else. The slot gets a frame of the key columns, one row per group, then one column
    per reduction.
    """

    ordered = True
    slot: str
    num_keys: int
    reductions: Sequence[Reduction]
    device: torch.device
    has_kept: bool = False
    bits: int = 0
    size: int | None = None

    def __post_init__(self) -> None:
        self._of_states = reductions_of_states(self.reductions)

    @property
    def reads(self) -> Sequence[str]:
        return [each.pool for each in self.reductions if each.pool]

    def partial(self, outputs: Sequence[Any], state: Any) -> _Batch:
        """The rows of a batch, or what they come to; of more than a few rows partition by partition."""
        frame = frame_of_outputs(outputs)
        if self.has_kept:
            frame = kept_rows(frame)
        is_reduced = self.num_keys == 1 and self._of_states is not None and shares_few_texts(frame)
        if is_reduced:
            frame = reduce_batch(frame, self.reductions)
        many = self.bits and frame.num_rows >= _ROWS_OF_A_PIECE << self.bits
        return self._distributed(frame, is_reduced) if many else _Batch(frame, is_reduced)

    def _distributed(self, frame: Frame, is_reduced: bool) -> _Batch:
        # Of each row its place, and of each key hashes, codes and codes in order; then the rows themselves once more.
        reserve(_WORD * frame.num_rows * (2 + 3 * self.num_keys + len(frame.columns)))
        hashes: list[Tensor] = []
        packed: list[_PackedKey | None] = []
        for key in frame.columns[: self.num_keys]:
            words, codes = _words_and_codes(key)
            hashes += words
            packed.append(codes)
        word = hashes[0] if len(hashes) == 1 and hashes[0].dim() == 1 else key_kernels.hash_combine(hashes)
        order, ends = key_kernels.partition_rows(word, self.bits, self.size is not None)
        packed = [key and key._replace(codes=rows.take(key.codes, order)) for key in packed]
        return _Batch(take_frame(frame, order), is_reduced, tuple(packed), ends)

    def merge(self, states: list[_Batch]) -> list[list[_Partition]]:
        """For each partition its rows, in batch order; only one of them if there are fewer rows than expected."""
        is_reduced = any(state.is_reduced for state in states)
        if is_reduced:  # all are, then
            states = [
                state if state.is_reduced else _Batch(reduce_batch(state.frame, self.reductions), True)
                for state in states
                if state.frame.num_rows
            ]
        if not self.bits or sum(state.frame.num_rows for state in states) < _PARTITIONED_ROWS:
            return [[_Partition(state.frame, (None,) * self.num_keys, is_reduced) for state in states]]
        batches = [
            self._distributed(state.frame, is_reduced) if state.ends is None else state
            for state in states
            if state.frame.num_rows
        ]
        packings = [_joined([batch.packed[key] for batch in batches]) for key in range(self.num_keys)]
        return [[batch.partition(number, packings) for batch in batches] for number in range(1 << self.bits)]

    def finish(self, state: list[list[_Partition]], program_state: State) -> State:
        pools = {slot: program_state[slot] for slot in self.reads}
        if len(state) == 1:
            return {self.slot: self._group(state[0], 0, 0, pools)}

        def group(partition: int) -> Frame:
            return self._group(state[partition], partition, self.bits, pools)

        workers = program_state["workers"].map
        return {self.slot: concatenate_frames(workers(group, range(len(state))), workers)}

    def _group(
        self, parts: list[_Partition], partition: int, bits: int, pools: Mapping[str, Strings]
    ) -> Frame:
        """The groups of a partition, whose number `bits` bits of the hash (of a dense key, the low bits) tell."""
        frame = concatenate_frames([part.frame for part in parts])
        reductions = self._of_states if parts[0].is_reduced and self._of_states else self.reductions
        if self.size is not None and self.size >> bits < _TABLE_SLOTS_PER_ROW * frame.num_rows:
            return self._group_by_table(frame, partition, bits, pools)
        keys = frame.columns[: self.num_keys]
        if keys:
            packed = [[part.packed[number] for part in parts] for number in range(self.num_keys)]
            words = [word for key, codes in zip(keys, packed, strict=True) for word in _key_words(key, codes)]
            ids, first_rows, count = group_ids.group_ids_of_columns(words)
        else:
            ids = torch.zeros(1, dtype=torch.int64, device=self.device).expand(frame.num_rows)
            first_rows, count = ids[:1], 1
        chosen = take_frame(Frame(frame.num_rows, keys), first_rows).columns
        grouped = GroupedRows(frame, ids, count, pools)
        reduced = [
            FrameColumn(take_values(frame.columns[reduction.column].values, first_rows), None)
            if reduction.kind == "reference"
            else FrameColumn(grouped.reduce(reduction), None)
            for reduction in reductions
        ]
        return Frame(count, (*chosen, *reduced))

    def _group_by_table(self, frame: Frame, partition: int, bits: int, pools: Mapping[str, Strings]) -> Frame:
        """As `_group`, of a dense key: a group for each value that it can have, of which those with rows are kept."""
        codes = frame.columns[0].values
        assert isinstance(codes, Tensor) and self.size is not None
        ids, count = (codes >> bits if bits else codes).to(torch.int64), (self.size >> bits) + 1
        reduced = [*map(GroupedRows(frame, ids, count, pools).reduce, self.reductions)]
        groups = rows.row_indices(self._present(frame, ids, count, reduced))
        keys = ((groups << bits) | partition).to(codes.dtype)
        columns = (FrameColumn(take_values(values, groups), None) for values in reduced)
        return Frame(groups.shape[0], (FrameColumn(keys, None), *columns))

    def _present(self, frame: Frame, ids: Tensor, count: int, reduced: Sequence[Any]) -> Tensor:
        """bool [count]: has the group rows?"""
        for reduction, values in zip(self.reductions, reduced, strict=True):
            counts_rows = reduction.kind == "count" and frame.columns[reduction.column].validity is None
            if counts_rows or reduction.kind == "count_star":
                assert isinstance(values, Tensor)
                return elementwise.greater(values, 0)
        return mark_rows(allocation.zeros(count, torch.bool, self.device), ids)

    def describe(self) -> str:
        where = f" in {1 << self.bits} partitions" if self.bits else ""
        return f"group all rows at the end{where}: reduce {listed(self.reductions)} into {self.slot}"


def kept_rows(frame: Frame) -> Frame:
    """Without the last column, which tells which rows count."""
    kept: Any = frame.columns[-1].values
    frame = Frame(frame.num_rows, frame.columns[:-1])
    return frame if kept is None else take_frame(frame, rows.row_indices(kept))


def _words_and_codes(key: FrameColumn) -> tuple[list[Tensor], _PackedKey | None]:
    """Integers that are equal for equal keys, NULL being equal to NULL, in every batch; of strings also their codes."""
    if not isinstance(key.values, Strings):
        return key_columns(key), None
    valid = None if key.validity is None else rows.row_indices(key.validity)
    strings = key.values if valid is None else take_values(key.values, valid)
    if strings.num_rows == 0:
        return [torch.zeros_like(key.values.starts)], None
    word, packed = string_hash.partition_and_pack(strings)
    if valid is not None:
        word = torch.zeros_like(key.values.starts).index_copy_(0, valid, word)
    if packed is None:
        return [word], None
    codes, packing = packed
    if valid is not None:
        codes = torch.zeros_like(word).index_copy_(0, valid, codes)
    return [word], _PackedKey(codes, packing, None)


def _joined(keys: Sequence[_PackedKey | None]) -> Packing | None:
    """A packing for a key of all batches, if there is one."""
    joined: Packing | None = None
    for key in keys:
        if key is None:
            return None
        joined = key.packing if joined is None else joined.joined(key.packing)
        if joined is None:
            return None
    return joined


def _key_words(key: FrameColumn, packed: Sequence[_PackedKey | None]) -> list[Tensor]:
    """As `key_columns`, of the codes of each batch where they are known."""
    codes = [
        repack(part.codes, part.packing, part.wanted)
        for part in packed
        if part is not None and part.wanted is not None
    ]
    if not codes:
        return key_columns(key)
    return key_columns(FrameColumn(allocation.concatenate(codes), key.validity))
