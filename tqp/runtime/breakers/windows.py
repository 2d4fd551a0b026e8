"""Window functions: all rows are sorted by partition and order, and what each call makes of them is put beside them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.core.process.memory_budget import reserve
from tqp.data.nested import COMPOUND, Vector
from tqp.data.strings import Strings
from tqp.operators.groups import group_ids
from tqp.operators.joins.hash_join import Workers
from tqp.operators.nested.layout import choose, concatenate_vectors, take_padded_values
from tqp.operators.rows.selection import padding_validity, row_indices, take
from tqp.operators.sorting.sort import sort_rows
from tqp.operators.windows import ranking, values
from tqp.operators.windows.filled import filled
from tqp.operators.windows.first_rows import candidates
from tqp.operators.windows.partitions import Partitions, segments
from tqp.runtime.breakers.collect import CollectRows, in_order, key_columns, sort_keys
from tqp.runtime.breakers.framed_rows import FramedRows
from tqp.runtime.breakers.grouped_rows import GroupedRows
from tqp.runtime.breakers.reductions import Order, Reduction
from tqp.runtime.breakers.sorted_rows import FrameSpec, SortedRows
from tqp.runtime.frame import Frame, FrameColumn, take_frame
from tqp.runtime.pipeline import State

#: Of each row: its place, the bounds of its partition, of its peers and of its frame, and what is at hand of one call.
_ROW_BYTES = 10 * 8


class Call(ABC):
    """What one call, or one reduction of an aggregate, makes of the sorted rows."""

    __slots__ = ()

    @abstractmethod
    def compute(self, rows: SortedRows) -> FrameColumn:
        """Its column."""


@dataclass(frozen=True, slots=True)
class Rank(Call):
    """A function of the row's place in its partition or, in an `order` of its own, in its frame.

    `tiles`: the column of the argument of ntile.
    """

    function: str
    frame: FrameSpec
    tiles: int | None = None
    order: Order = ()

    def compute(self, rows: SortedRows) -> FrameColumn:
        places = FramedRows(rows, self.frame).places(self.order) if self.order else rows.partitions
        if self.tiles is None:
            return FrameColumn(ranking.RANKINGS[self.function](places), None)
        tiles, validity = rows.column(self.tiles)
        if self.order:
            has_rows = places.sizes > 0
            validity = has_rows if validity is None else validity & has_rows
        return FrameColumn(ranking.ntile(places, tiles, validity), validity)


@dataclass(frozen=True, slots=True)
class Pick(Call):
    """The value of another row. `number`: the column of how far away it is, or of its number in the frame; None: 1.

    `default`: the column of what stands for a row that is not there. `order`: of the rows of the frame, where lag and lead look.
    """

    function: str
    column: int
    frame: FrameSpec
    ignore_nulls: bool
    number: int | None = None
    default: int | None = None
    order: Order = ()

    def compute(self, rows: SortedRows) -> FrameColumn:
        picked, validity = rows.column(self.column)
        number, number_validity = (1, None) if self.number is None else rows.column(self.number)
        counted = values.ValidRows(validity if self.ignore_nulls else None)
        chosen = self._rows(rows, counted, number)
        if number_validity is not None:
            chosen = torch.where(number_validity, chosen, -1)
        valid = padding_validity(chosen, validity)
        taken = take_padded_values(picked, chosen)
        if self.default is None:
            return FrameColumn(taken, valid)
        others, others_validity = rows.column(self.default)
        is_there = chosen >= 0
        if number_validity is not None:
            is_there = is_there | ~number_validity  # NULL, not the default
        if isinstance(taken, COMPOUND):
            taken = choose([is_there], [taken], others)
        else:
            shape = is_there if taken.dim() == 1 else is_there.unsqueeze(1)
            taken = torch.where(shape, taken, others)
        otherwise = ~is_there if others_validity is None else others_validity & ~is_there
        return FrameColumn(taken, torch.where(is_there, valid, otherwise))

    def _rows(self, rows: SortedRows, counted: values.ValidRows, number: Any) -> Tensor:
        if self.order:
            away = -number if self.function == "lag" else number
            return FramedRows(rows, self.frame).places(self.order).rows_from(away)
        match self.function:
            case "lag":
                return values.shifted(rows.partitions, -number, counted)
            case "lead":
                return values.shifted(rows.partitions, number, counted)
            case "last_value":
                return values.last_of_frame(rows.ranges(self.frame), counted)
            case _:
                return values.nth_of_frame(rows.ranges(self.frame), number - 1, counted)


@dataclass(frozen=True, slots=True)
class Fill(Call):
    """The value of the row, or what stands for NULL on the line through others. `key`: the column of ORDER BY."""

    column: int
    data_type: DataType
    key: int
    key_type: DataType

    def compute(self, rows: SortedRows) -> FrameColumn:
        column, key = rows.column(self.column), rows.column(self.key)
        return FrameColumn(*filled(rows.partitions, *column, self.data_type, *key, self.key_type))


@dataclass(frozen=True, slots=True)
class Reduce(Call):
    """A reduction of the rows of each frame."""

    reduction: Reduction
    frame: FrameSpec

    def compute(self, rows: SortedRows) -> FrameColumn:
        reduction, partitions = self.reduction, rows.partitions.partitions
        if self.frame.is_partition:
            reduced = rows.grouped.reduce(reduction)
            if isinstance(reduced, COMPOUND):
                return FrameColumn(take_padded_values(reduced, partitions.numbers), None)
            return FrameColumn(partitions.spread(reduced).contiguous(), None)
        reduced = FramedRows(rows, self.frame).reduce(reduction)
        if reduced is None:
            parts = [Vector(part.reduce(reduction), None) for part in rows.frames_as_groups(self.frame)]
            reduced = concatenate_vectors(parts).values
        return FrameColumn(reduced, None)


@dataclass(eq=False)
class WindowRows(CollectRows):
    """Rows in order of partition and order keys, which are the frame's first columns; then what calls read, and what they make.

    The slot gets the columns `kept`, and a column for each of the calls. `most`: of the first so many rows of each partition only.
    """

    directions: Sequence[tuple[bool, bool]]  # (descending, nulls_first) of each key
    num_partition_keys: int
    kept: Sequence[int]
    calls: Sequence[Call]
    device: torch.device
    most: int | None = None

    def partial(self, outputs: Sequence[Any], state: Any) -> Frame:
        frame = super().partial(outputs, state)
        is_numbered = not any(
            isinstance(key.values, Strings) for key in frame.columns[: self.num_partition_keys]
        )
        return frame if self.most is None or not is_numbered else self._candidates(frame, self.most)

    def finish_rows(self, state: Frame, program_state: State) -> State:
        reserve(_ROW_BYTES * state.num_rows)
        if self._only_groups:
            return {self.slot: self._grouped(state)}
        if self.most is not None:
            state = self._first(state, self.most)
        rows = self._sorted(state, program_state["workers"])
        kept = [rows.frame.columns[index] for index in self.kept]
        made = [call.compute(rows) for call in self.calls]
        return {self.slot: Frame(rows.frame.num_rows, (*kept, *made))}

    @property
    def _only_groups(self) -> bool:
        """Are there only aggregates of whole partitions, for which rows need not be sorted?"""
        if self.num_partition_keys != len(self.directions) or not self.directions:
            return False
        return all(isinstance(call, Reduce) and call.frame.is_partition for call in self.calls)

    def _grouped(self, state: Frame) -> Frame:
        """The rows as they come, beside what their groups have been reduced to."""
        ids, _, count = group_ids.group_ids_of_columns(self._partition_words(state))
        grouped = GroupedRows(state, ids, count)
        reduced = (grouped.reduce(call.reduction) for call in self.calls if isinstance(call, Reduce))
        columns = (FrameColumn(take_padded_values(each, ids), None) for each in reduced)
        return Frame(state.num_rows, (*(state.columns[index] for index in self.kept), *columns))

    def _candidates(self, frame: Frame, most: int) -> Frame:
        """The frame without most of the rows that are not among the first of their partitions."""
        words, first = self._partition_words(frame), self.num_partition_keys
        order = sort_keys(frame.columns[first:], self.directions[first:])
        if not order and self._by_rank:
            return frame  # all rows of a partition are peers
        if not words and not order:
            return frame.cut(0, min(most, frame.num_rows))
        rows = candidates(words, order, most)
        return frame if rows is None else take_frame(frame, rows)

    def _first(self, state: Frame, most: int) -> Frame:
        """The first rows of each partition: the others need not be moved, nor are their columns read."""
        state = self._candidates(state, most)
        columns = sort_keys(state.columns, self.directions)
        if not columns:
            return state
        order = sort_rows(columns)
        rows = self._partitions(
            [[take(word, order) for word in key] for key in self._key_words(state)], state.num_rows
        )
        places = ranking.rank(rows) if self._by_rank else ranking.row_number(rows)
        return take_frame(state, take(order, row_indices(places <= most)))

    @property
    def _by_rank(self) -> bool:
        """Do the rows that tie with a first one count as first, as some call may see them?"""
        return any(isinstance(call, Rank) and call.function != "row_number" for call in self.calls)

    def _partition_words(self, state: Frame) -> list[Tensor]:
        return [word for key in state.columns[: self.num_partition_keys] for word in key_columns(key)]

    def _key_words(self, state: Frame) -> list[list[Tensor]]:
        """Of each key integers that are equal where its values are."""
        return [key_columns(key) for key in state.columns[: len(self.directions)]]

    def _partitions(self, words: Sequence[Sequence[Tensor]], num_rows: int) -> Partitions:
        """The partitions and peers of sorted rows, whose key words are given."""
        by_partition, by_order = (
            [word for key in keys for word in key]
            for keys in (words[: self.num_partition_keys], words[self.num_partition_keys :])
        )
        partitions = segments(by_partition, num_rows, self.device)
        return Partitions(partitions, segments(by_order, num_rows, self.device, partitions))

    def _sorted(self, state: Frame, workers: Workers) -> SortedRows:
        columns = sort_keys(state.columns, self.directions)
        if columns:
            state = in_order(state, columns, workers)
        partitions = self._partitions(self._key_words(state), state.num_rows)
        return SortedRows(state, partitions, workers.map)

    def describe(self) -> str:
        how = "group" if self._only_groups else "sort"
        how += "" if self.most is None else f" and take the first {self.most} of each partition of"
        return f"{how} the rows, compute {len(self.calls)} columns of window functions, into {self.slot}"
