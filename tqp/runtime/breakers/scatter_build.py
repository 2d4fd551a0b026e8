"""Builds of unique keys over a dense range, filled by all workers at once: no rows are collected or copied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tqp.operators.groups.distinct_sets import merge_sets
from tqp.operators.joins.pairs import mark_rows
from tqp.operators.joins.perfect_hash_join import MembershipBuild, are_few, blocks_of, empty_membership
from tqp.operators.memory import allocation
from tqp.operators.memory.allocation import Map
from tqp.operators.rows.selection import row_indices, take
from tqp.runtime.frame import Frame, FrameColumn, frame_of_outputs
from tqp.runtime.pipeline import Breaker, State

#: Up to this many keys, every worker fills a set of its own: entries of different workers share cache lines.
_OWN_SET = 1 << 23


class _Tables(NamedTuple):
    keys: Tensor  # bool [size]
    columns: tuple[FrameColumn, ...]  # [size] each; what stands under a key that is not there is any value
    batches: list[Tensor | None]  # the keys of each batch; None: they are not few
    counts: list[int]  # how many keys each batch had


@dataclass(eq=False)
class ScatterBuild(Breaker):
    """The first column is the packed key, below `size`; the others are entered into tables under their row's key.

    Puts the set of keys into `slot` and, if there are other columns, the tables as a frame of `size` rows into
    `payload_slot`; into `has_keys`, if there is such a slot, whether there is any key.
    """

    slot: str
    payload_slot: str
    size: int
    columns: Sequence[tuple[torch.dtype, bool]]  # (dtype, nullable) of each
    padded: bool
    device: torch.device
    name: str
    has_keys: str | None = None

    def initial(self, program_state: State) -> _Tables | None:
        """One set of tables for all workers: each key is written by one row, or always with the same value."""
        if not self.columns and self.size <= _OWN_SET:
            return None
        return self._tables(program_state["workers"].map)

    def _tables(self, workers: Map | None = None) -> _Tables:
        columns = (
            FrameColumn(self._table(dtype), self._table(torch.bool) if nullable else None)
            for dtype, nullable in self.columns
        )
        return _Tables(empty_membership(self.size, self.device, workers), tuple(columns), [], [])

    def _table(self, dtype: torch.dtype) -> Tensor:
        table = allocation.empty((self.size,), dtype, self.device)
        # Entries are read under keys that are there. An outer join also reads the first one, for a row without partner,
        # and may look further up what it finds.
        if self.padded:
            table[:1] = 0
        return table

    def partial(self, outputs: Sequence[Any], state: _Tables | None) -> _Tables:
        if state is None:
            state = self._tables()
        columns = frame_of_outputs(outputs).columns
        keys, validity = columns[0]
        assert isinstance(keys, Tensor)
        rows = None if validity is None else row_indices(validity)
        keys = keys if rows is None else take(keys, rows)
        keys = keys if keys.dtype is torch.int64 else keys.to(torch.int64)
        mark_rows(state.keys, keys)
        state.counts.append(keys.shape[0])
        state.batches.append(keys if are_few(keys.shape[0], self.size) else None)
        for table, column in zip(state.columns, columns[1:], strict=True):
            for target, values in zip(table, column, strict=True):
                if target is not None:
                    assert isinstance(target, Tensor) and isinstance(values, Tensor)
                    values = values if rows is None else take(values, rows)
                    target.scatter_(0, keys, values.to(target.dtype))
        return state

    def merge(self, states: list[_Tables]) -> _Tables:
        first, *others = states
        for other in others:
            if other is not first:
                merge_sets(first.keys, other.keys)
                first.batches.extend(other.batches)
                first.counts.extend(other.counts)
        return first

    def finish(self, state: _Tables, program_state: State) -> State:
        blocks = blocks_of(state.batches, self.size)
        found: State = {self.slot: MembershipBuild(state.keys, blocks=blocks, num_rows=sum(state.counts))}
        if state.columns:
            found[self.payload_slot] = Frame(self.size, state.columns)
        if self.has_keys is not None:
            found[self.has_keys] = sum(state.counts) > 0
        return found

    def describe(self) -> str:
        if not self.columns:
            return f"enter the keys into {self.slot} for the {self.name}"
        return f"enter the keys into {self.slot} for the {self.name}, its columns by key into {self.payload_slot}"
