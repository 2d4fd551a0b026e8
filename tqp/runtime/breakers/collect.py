"""Collect: the rows as they come, as one frame; optionally a window of them, sorted rows, or the build of a join."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.data.strings import Strings
from tqp.operators.joins.hash_join import Workers
from tqp.operators.joins.pairs import unmet_rows
from tqp.operators.nested.order_keys import leading_numbers, order_key
from tqp.operators.numbers.comparisons import interval_order
from tqp.operators.numbers.logic import any_true
from tqp.operators.rows import keys as key_kernels
from tqp.operators.sorting.sort import SortColumn, sort_columns, sort_rows, take_rows
from tqp.operators.sorting.sort_ranges import sort_ranges
from tqp.operators.sorting.top_rows import Bound, rows_up_to_a_bound, top_rows
from tqp.operators.string_keys import codes as string_codes
from tqp.runtime.frame import (
    Frame,
    FrameColumn,
    compact_strings,
    concatenate_frames,
    frame_of_outputs,
    take_frame,
    take_frame_by_parts,
)
from tqp.runtime.pipeline import Breaker, State

#: Rows of a batch that are kept rather than searched for the first: calls for so few cost more than what they leave out.
_FEW_ROWS = 4096


@dataclass(eq=False)
class CollectRows(Breaker):
    """A breaker that needs all rows at once, in batch order."""

    ordered = True
    slot: str

    def partial(self, outputs: Sequence[Any], state: Any) -> Frame:
        return frame_of_outputs(outputs)

    def merge(self, states: list[Frame]) -> list[Frame]:
        return states

    def finish(self, state: list[Frame], program_state: State) -> State:
        return self.finish_rows(concatenate_frames(state, program_state["workers"].map), program_state)

    def finish_rows(self, state: Frame, program_state: State) -> State:
        """What `finish` answers, given all rows."""
        raise NotImplementedError


@dataclass(eq=False)
class Collect(CollectRows):
    """All rows in batch order, or rows [offset, offset + limit) of them, into the slot."""

    limit: int | None = None
    offset: int = 0

    def finish_rows(self, state: Frame, program_state: State) -> State:
        stop = state.num_rows if self.limit is None else min(state.num_rows, self.offset + self.limit)
        return {self.slot: state.cut(min(self.offset, stop), stop)}

    @property
    def _takes_all(self) -> bool:
        return self.limit is None and not self.offset

    def describe(self) -> str:
        if self._takes_all:
            return f"collect the rows into {self.slot}"
        return f"collect rows {self.offset} to {'the end' if self.limit is None else self.offset + self.limit} into {self.slot}"


@dataclass(eq=False)
class CollectAndMeet(CollectRows):
    """All rows of a join in batch order, but for the last column, which tells the build row of each, or -1.

    Of the rows in the slot `build_rows`, the numbers of those that are no such build row go into the slot `unmet`.
    """

    build_rows: str
    unmet: str

    @property
    def reads(self) -> Sequence[str]:
        return (self.build_rows,)

    def finish_rows(self, state: Frame, program_state: State) -> State:
        *columns, (met, _) = state.columns
        assert isinstance(met, Tensor)
        rows = unmet_rows(met, program_state[self.build_rows].num_rows)
        return {
            self.slot: Frame(state.num_rows, tuple(columns)),
            self.unmet: Frame(rows.shape[0], (FrameColumn(rows, None),)),
        }

    def describe(self) -> str:
        return f"collect the rows into {self.slot}, and which of {self.build_rows} are not among them into {self.unmet}"


@dataclass(eq=False)
class SortRows(CollectRows):
    """Rows in order; the frame's first columns are the sort keys and are dropped.

    `wanted`: of a top-k, how many rows, with the `offset` first ones that are left out. `packed`: the slot of the packed
    strings that are the first key, where the second are these strings. `composed`: the types of keys of a top-k that are
    composed values as they are; the bytes that compare are made only of rows that their first part does not leave out.
    `best_first`: of a top-k by a column of integers, whether the best rows come first, and a bound ends the reading.
    """

    directions: Sequence[tuple[bool, bool]]  # (descending, nulls_first) of each key
    wanted: int | None
    offset: int
    packed: str | None = None
    composed: Sequence[DataType | None] = ()
    best_first: bool = False

    @property
    def reads(self) -> Sequence[str]:
        return () if self.packed is None else (self.packed,)

    def initial(self, program_state: State) -> Bound | None:
        return None if self.wanted is None else Bound()

    def partial(self, outputs: Sequence[Any], state: Bound | None) -> Frame:
        frame = frame_of_outputs(outputs)
        if self.wanted is not None and frame.num_rows > max(4 * self.wanted, _FEW_ROWS):
            frame = self._candidates(frame, self.wanted, state)
            frame = take_frame(frame, top_rows(self._keys(frame), self.wanted, state))
        if self.best_first:
            assert state is not None and self.wanted is not None
            state.add(self._keys(frame)[0], self.wanted)
        return frame

    def finish_rows(self, state: Frame, program_state: State) -> State:
        if self.wanted is not None:
            state = self._candidates(state, self.wanted)
        keys = self._keys(state)
        frame = Frame(state.num_rows, state.columns[len(self.directions) :])
        if self.wanted is not None:
            return {self.slot: take_frame(frame, top_rows(keys, self.wanted)[self.offset :])}
        if self.packed is not None:
            keys[1] = keys[1]._replace(offset=program_state[self.packed].num_bytes)
        return {self.slot: in_order(frame, keys, program_state["workers"])}

    def _candidates(self, frame: Frame, wanted: int, bound: Bound | None = None) -> Frame:
        """The rows of which bytes that compare may have to be made, or all."""
        if not any(self.composed):
            return frame
        candidates = rows_up_to_a_bound(self._first_key(frame), wanted, bound)
        return frame if candidates is None else take_frame(frame, candidates)

    def _first_key(self, frame: Frame) -> SortColumn:
        (values, validity), data_type = frame.columns[0], self.composed[0]
        if data_type is not None:
            assert values is not None
            values = leading_numbers(values, data_type)
        return sort_columns(values, validity, *self.directions[0])[0]

    def _keys(self, frame: Frame) -> list[SortColumn]:
        if not any(self.composed):
            return sort_keys(frame.columns, self.directions)
        columns = list(frame.columns)
        for place, data_type in enumerate(self.composed):
            values = columns[place].values
            if data_type is not None and values is not None:
                columns[place] = columns[place]._replace(values=order_key(values, data_type))
        keys = sort_keys(columns, self.directions)
        return keys if self.composed[0] is None else [self._first_key(frame), *keys]

    def describe(self) -> str:
        how = "sort the rows" if self.wanted is None else f"keep the first {self.wanted} rows in order"
        return f"{how} into {self.slot}"


def in_order(frame: Frame, keys: Sequence[SortColumn], workers: Workers) -> Frame:
    """The rows in the order of the keys, sorted by several workers where they are many; strings contiguous if rows move."""
    # One worker alone has nothing to share: sorting all rows at once takes three quarters of the time.
    many = sort_ranges(keys, workers.map) if workers.threads > 1 else None
    if many is None:
        order = sort_rows(keys)
        return frame if key_kernels.is_ascending(order) else compact_strings(take_frame(frame, order))
    keys, ranges = many

    def order_of(rows: Tensor) -> Tensor:
        return sort_rows([take_rows(key, rows) for key in keys])

    return take_frame_by_parts(frame, ranges, order_of, workers.map)


def order_values(column: FrameColumn) -> Tensor:
    """A tensor that compares as the column does: of strings, codes that do."""
    if isinstance(column.values, Strings):
        return string_codes.order_codes(column.values, column.validity)
    assert isinstance(column.values, Tensor)
    return column.values


@dataclass(eq=False)
class BuildJoin(CollectRows):
    """The build side of a join: the first column is the key, the others the payload. Puts the build and the payload.

    With `num_keys` > 1, the first ones are keys, which the build gets as a list, with the validity of the first.
    Into the slot `has_keys`, if there is one, goes whether a build row has a key.
    """

    build_slot: str
    build: Callable[[Any, Tensor | None, Workers], Any] | None
    name: str
    num_keys: int = 1
    has_keys: str | None = None

    def finish_rows(self, state: Frame, program_state: State) -> State:
        if self.build is None:
            return {self.slot: state}
        payload = Frame(state.num_rows, state.columns[self.num_keys :])
        keys = [column.values for column in state.columns[: self.num_keys]]
        validity = state.columns[0].validity
        build = self.build(keys[0] if self.num_keys == 1 else keys, validity, program_state["workers"])
        found: State = {self.build_slot: build, self.slot: payload}
        if self.has_keys is not None:
            found[self.has_keys] = state.num_rows > 0 if validity is None else any_true(validity)
        return found

    def describe(self) -> str:
        return f"build {self.build_slot} for the {self.name}, its columns in {self.slot}"


@dataclass(eq=False)
class BuildDictionary(CollectRows):
    """A look-up table of strings: puts the codes of the one column into the slot, a new sorted dictionary into `pool_slot`."""

    pool_slot: str
    dtype: torch.dtype

    def finish_rows(self, state: Frame, program_state: State) -> State:
        (column,) = state.columns
        assert isinstance(column.values, Strings)
        codes, dictionary = string_codes.factorize(column.values, column.validity)
        return {
            self.slot: Frame(state.num_rows, (FrameColumn(codes.to(self.dtype), column.validity),)),
            self.pool_slot: dictionary,
        }

    def describe(self) -> str:
        return f"dictionary-encode the strings: codes into {self.slot}, entries into {self.pool_slot}"


def sort_keys(columns: Sequence[FrameColumn], directions: Sequence[tuple[bool, bool]]) -> list[SortColumn]:
    """The first of the columns as keys of a sort, one for each pair of (descending, nulls_first)."""
    return [
        key
        for column, how in zip(columns, directions, strict=False)
        for key in sort_columns(column.values, column.validity, *how)
    ]


def key_columns(column: FrameColumn) -> list[Tensor]:
    """Integer tensors that are equal, row by row, where the column's values are; NULL equals NULL only."""
    values = column.values
    assert values is not None
    if isinstance(values, Strings):
        words = [string_codes.group_codes(values, column.validity)]
    else:
        assert isinstance(values, Tensor), "nested values are told apart by their order keys"
        words = [_key_word(values)]
    if column.validity is None:
        return words
    valid = column.validity
    words = [word * (valid if word.dim() == 1 else valid.unsqueeze(1)) for word in words]
    return [*words, valid.to(torch.int8)]


def _key_word(values: Tensor) -> Tensor:
    if values.is_floating_point():
        return key_kernels.ordered_bits(values)
    if values.dim() == 2 and values.shape[1] == 3:
        return interval_order(values)
    return values.to(torch.int8) if values.dtype is torch.bool else values
