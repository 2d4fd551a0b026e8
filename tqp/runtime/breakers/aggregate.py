"""GROUP BY that folds each batch into accumulators by group.

Folding is for reductions whose states merge (counts, sums, extremes, sets of DISTINCT values from a small range) where
group ids are known at once: a single group, packed keys used as ids, runs of a clustered key. Everything else (medians,
other DISTINCT values, keys without bounds) collects, see `collect_groups`.
"""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tqp.data.backend import is_host_device
from tqp.data.strings import Strings
from tqp.operators.groups import moments
from tqp.operators.groups.moments import Moment, MomentStates
from tqp.operators.groups.packed_sums import PackedSums
from tqp.operators.groups.runs import long_runs
from tqp.operators.joins.pairs import mark_rows
from tqp.operators.memory.arrays import as_array, as_tensor
from tqp.operators.numbers import elementwise, logic
from tqp.operators.rows import selection as rows
from tqp.operators.rows.runs import Runs
from tqp.operators.strings import layout as string_layout
from tqp.planner.physical.plan import GroupAlgorithm
from tqp.runtime.breakers.grouped_rows import GroupedRows
from tqp.runtime.breakers.reductions import (
    IN_ORDER,
    OF_ALL_ROWS,
    PACKED,
    Reduction,
    add_distinct,
    fold,
    listed,
    merge_states,
    reduce_distinct,
    summands,
    value_of_batch,
)
from tqp.runtime.frame import (
    Frame,
    FrameColumn,
    concatenate_frames,
    frame_of_outputs,
    take_frame,
    take_values,
)
from tqp.runtime.pipeline import Breaker, State

#: Rows of a batch for each group from which on groups are few.
_ROWS_OF_FEW_GROUPS = 16
#: Direct groups whose accumulators one worker merges and reads, at least. More are divided evenly among all workers: in
#: smaller pieces they meet at the interpreter lock too often.
_GROUPS_OF_A_WORKER = 131_072
_INT64 = torch.iinfo(torch.int64)


@dataclass(slots=True)
class _Accumulators:
    """What has been folded so far into a single group or direct groups."""

    states: list[Any]  # one per reduction, a tensor or Strings; None of those in `sums`
    sums: PackedSums | None = None
    moments: MomentStates | None = None
    chosen: Frame | None = None  # rows that choices may take
    reduced: list[list[Any]] = field(default_factory=list)  # of one group: what batches came to, by reduction

    def groups(self, start: int, stop: int) -> _Accumulators:
        """Those of some groups alone, as views."""
        states = [None if state is None else state[start:stop] for state in self.states]
        return _Accumulators(states, None if self.sums is None else self.sums.groups(start, stop))


@dataclass(slots=True)
class _InOrder:
    """What depends on the order of batches, of one batch by direct groups: sums of floats, moments, rows that are chosen."""

    sums: list[Tensor | None]
    moments: MomentStates | None
    chosen: Frame | None
    #: Of everything else: a batch goes on with those that another one is done with.
    others: deque[_Accumulators]


class FoldGroups(Breaker):
    """Accumulators over `size` groups (SINGLE: one; DIRECT: the packed key), or over the runs of a CLUSTERED key.

    `has_kept`: the last output column tells which rows count (or is None: all). `presence`: of DIRECT groups, the reduction
    that is above zero where a group has rows. `factors`: where DIRECT keys are packed with columns by which rows are grouped
    too until sums are multiplied (see `FactoredSum`), how many values each of these has; all reductions are integer sums or
    counts then. `whole`: columns without NULL. The slot gets a frame: the key codes (but for SINGLE), then one column per
    reduction.
    """

    def __init__(
        self,
        slot: str,
        algorithm: GroupAlgorithm,
        size: int,
        reductions: Sequence[Reduction],
        max_rows: int,
        device: torch.device,
        has_kept: bool = False,
        presence: int | None = None,
        factors: Sequence[int] = (),
        whole: Collection[int] = (),
    ) -> None:
        self.slot, self.algorithm, self.size, self.device = slot, algorithm, size, device
        self.presence = presence
        self.reductions, self.max_rows, self.has_kept = tuple(reductions), max_rows, has_kept
        self.factors = tuple(factors)
        clustered = algorithm is GroupAlgorithm.CLUSTERED
        # sums of floats depend on the order of their batches; runs have to be joined with their neighbours
        self._float_sums = [i for i, reduction in enumerate(reductions) if reduction.kind == "sum_float"]
        #: Moments: columns that these read, each once, and what is computed of them.
        self._moments = [i for i, reduction in enumerate(reductions) if reduction.is_moment]
        self._moment_columns = list(dict.fromkeys(c for i in self._moments for c in reductions[i].columns))
        self._of_moments: list[Moment] = [
            (reductions[i].kind, tuple(map(self._moment_columns.index, reductions[i].columns)))
            for i in self._moments
        ]
        self._choices = [i for i, reduction in enumerate(reductions) if reduction.is_choice]
        #: Columns from which rows are chosen: what choices read.
        self._choice_columns = {*(column for i in self._choices for column in reductions[i].columns)}
        self.fixed_batches = bool(self._float_sums or self._moments)
        in_order = any(reduction.kind in IN_ORDER for reduction in reductions)
        self.ordered = clustered or self.fixed_batches or bool(self._choices) or in_order
        self._packed = [
            index
            for index, reduction in enumerate(self.reductions)
            if algorithm is GroupAlgorithm.DIRECT and reduction.kind in PACKED and not reduction.distinct
        ]
        assert not factors or len(self._packed) == len(self.reductions)
        #: Do all workers merge and read the accumulators, each those of some groups?
        self._divides = (
            algorithm is GroupAlgorithm.DIRECT
            and is_host_device(device)
            and size >= 2 * _GROUPS_OF_A_WORKER
            and not (factors or self.ordered or any(each.distinct for each in self.reductions))
        )
        #: Numbers of rows of direct groups that moments know, by reduction: of which of their columns.
        self._counts = self._counted_by_moments(whole) if self._moments and not factors else {}
        self._packed = [index for index in self._packed if index not in self._counts]
        apart = {*self._packed, *self._moments, *self._counts, *self._choices}
        self._plain = [index for index in range(len(self.reductions)) if index not in apart]
        # extremes first: what runs through values brings them into the caches faster than what adds them to groups
        self._plain.sort(key=lambda index: self.reductions[index].kind not in ("min", "max"))
        #: What is summed for each packed reduction: those that differ in their factors share it.
        of_rows = [replace(self.reductions[index], tables=(), combine="sum") for index in self._packed]
        self._summed = list(dict.fromkeys(of_rows))
        self._place = [self._summed.index(each) for each in of_rows]
        self.takes_arrays = is_host_device(device) and (
            all(reduction.reduced and reduction.is_mergeable for reduction in self.reductions)
            if algorithm is GroupAlgorithm.SINGLE
            else len(self._packed) == len(self.reductions)
        )

    def _counted_by_moments(self, whole: Collection[int]) -> dict[int, int]:
        column_of = {column: place for place, column in enumerate(self._moment_columns)}
        every_row = next((place for column, place in column_of.items() if column in whole), None)
        kinds = ((index, self.reductions[index]) for index in self._packed)
        found = {
            index: every_row if reduction.kind == "count_star" else column_of.get(reduction.column)
            for index, reduction in kinds
            if reduction.kind != "sum"
        }
        return {index: place for index, place in found.items() if place is not None}

    @property
    def scatters(self) -> bool:
        """Are rows folded into accumulators that lie anywhere?"""
        return self.algorithm is GroupAlgorithm.DIRECT

    def initial(self, program_state: State) -> deque[_Accumulators] | None:
        return deque() if self.algorithm is GroupAlgorithm.DIRECT and self.ordered else None

    def partial(self, outputs: Sequence[Any], state: Any) -> _Accumulators | _InOrder | Frame:
        frame = frame_of_outputs(as_array(outputs) if self.takes_arrays else outputs)
        kept = frame.columns[-1].values if self.has_kept else None
        match self.algorithm:
            case GroupAlgorithm.SINGLE:
                return self._fold_single(frame, kept, state)
            case GroupAlgorithm.DIRECT if self.ordered:
                return self._fold_batch(frame, kept, state)
            case GroupAlgorithm.DIRECT:
                return self._fold_direct(frame, kept, state)
        return self._fold_runs(frame)

    def _fold_batch(self, frame: Frame, kept: Any, others: deque[_Accumulators]) -> _InOrder:
        try:
            state = others.pop()
        except IndexError:
            state = None
        state = self._fold_direct(frame, kept, state)
        sums = [state.states[index] for index in self._float_sums]
        batch = _InOrder(sums, state.moments, state.chosen, others)
        state.moments = state.chosen = None
        for index in self._float_sums:
            state.states[index] = None
        others.append(state)
        return batch

    def _fold_direct(self, frame: Frame, kept: Any, state: _Accumulators | None) -> _Accumulators:
        codes: Any = frame.columns[0].values
        if state is None:
            sums, groups = None, self.size * math.prod(self.factors)
            if self._summed:
                ranges = [reduction.value_range for reduction in self._summed]
                sums = PackedSums(ranges, groups, self.max_rows, self.device, self.has_kept)
            state = _Accumulators([None] * len(self.reductions), sums)
        runs = long_runs(codes) if kept is None else None
        if state.sums is not None:
            columns = [summands(reduction, frame) for reduction in self._summed]
            if runs is None:
                state.sums.add(columns, codes, kept)
            else:
                self._add_runs(state.sums, columns, runs, codes)
        if len(self._packed) == len(self.reductions):
            return state
        size = self.size + self.has_kept
        if kept is not None:  # the others fall into a group behind the last one
            codes = elementwise.choose(kept, codes, self.size, codes.dtype)
        # few groups are left in the width that they have, which most kernels take; the others would each convert them
        ids = codes if size * _ROWS_OF_FEW_GROUPS <= frame.num_rows else codes.to(torch.int64)
        shared: dict[object, Any] = {}
        for index in self._plain:
            reduction = self.reductions[index]
            if reduction.distinct:
                state.states[index] = add_distinct(reduction, frame, codes, size, state.states[index])
            else:
                state.states[index] = fold(reduction, frame, ids, size, state.states[index], shared, runs)
        if self._moments:
            state.moments = self._moments_of(frame, ids)
        if self._choices:
            state.chosen = self._chosen(frame, ids.to(torch.int64), size)
        return state

    def _add_runs(self, sums: PackedSums, columns: list[Any], runs: Runs[Any], codes: Any) -> None:
        of_runs: list[Any] = [
            runs.lengths() if column is None else runs.sums(column, reduction.value_range)
            for column, reduction in zip(as_array(columns), self._summed, strict=True)
        ]
        groups = rows.take(as_array(codes), runs.first_rows).astype(np.int64, copy=False)
        sums.add_sums(as_tensor(of_runs), as_tensor(groups))

    def _moments_of(self, frame: Frame, ids: Tensor, kept: Any = None) -> MomentStates:
        """Of the rows of a batch."""
        columns = [frame.columns[column] for column in self._moment_columns]
        if kept is not None:
            valid = {id(each.validity): logic.combine_validity(each.validity, kept) for each in columns}
            columns = [FrameColumn(each.values, valid[id(each.validity)]) for each in columns]
        pairs: list[Any] = list(columns)
        return moments.moment_states(pairs, self._of_moments, ids, self.size)

    def _chosen(self, frame: Frame, ids: Tensor, size: int, kept: Any = None) -> Frame:
        """The rows of a batch that choices take of it, in their order: those that they take of all batches are among them.

        Their groups are the last column.
        """
        columns = (
            column if index in self._choice_columns else FrameColumn(None, None)
            for index, column in enumerate(frame.columns)
        )
        frame = Frame(frame.num_rows, (*columns, FrameColumn(ids, None)))
        if kept is not None:
            frame = take_frame(frame, rows.row_indices(kept))
            ids = _tensor(frame.columns[-1])
        grouped = GroupedRows(frame, ids, size)
        is_chosen = torch.zeros(frame.num_rows + 1, dtype=torch.bool, device=ids.device)
        for index in self._choices:
            chosen = grouped.chosen_rows(self.reductions[index])
            mark_rows(is_chosen, torch.where(chosen < 0, frame.num_rows, chosen))
        return take_frame(frame, rows.row_indices(is_chosen[:-1]))

    def _fold_runs(self, frame: Frame) -> Frame:
        """The keys of the runs and their states."""
        codes: Any = frame.columns[0].values
        # on the CPU, arrays: few calls then give the interpreter lock away
        on_device = as_array if is_host_device(self.device) else _same
        codes = on_device(codes)
        runs = Runs(codes)
        columns: list[Any] = [rows.take(codes, runs.first_rows)]
        for reduction in self.reductions:
            if reduction.kind in PACKED:
                column = on_device(summands(reduction, frame))
                columns.append(runs.lengths() if column is None else runs.sums(column, reduction.value_range))
            elif reduction.kind == "reference":
                columns.append(rows.take(on_device(frame.columns[reduction.column].values), runs.first_rows))
            else:
                columns.append(fold(reduction, frame, as_tensor(runs.ids()), runs.count, None))
        return Frame(runs.count, tuple(FrameColumn(values, None) for values in as_tensor(columns)))

    def _fold_single(self, frame: Frame, kept: Any, state: _Accumulators | None) -> _Accumulators:
        state = state or _Accumulators([None] * len(self.reductions))
        state.reduced.append([value_of_batch(reduction, frame) for reduction in self.reductions])
        if self._moments:
            state.moments = self._moments_of(
                frame, torch.zeros(1, dtype=torch.int64, device=self.device), kept
            )
        if self._choices:
            ids = torch.zeros(1, dtype=torch.int64, device=self.device).expand(frame.num_rows)
            state.chosen = self._chosen(frame, ids, 1, kept)
        for index, reduction in enumerate(self.reductions):
            if reduction.distinct:
                state.states[index] = add_distinct(reduction, frame, None, 1, state.states[index], kept)
        return state

    def _merge_single(self, states: list[_Accumulators]) -> _Accumulators:
        """Few calls for all batches together, in their order."""
        merged, batches = states[0], [batch for state in states for batch in state.reduced]
        _merge_folds(merged, states)
        for index, reduction in enumerate(self.reductions):
            if reduction.is_moment or reduction.is_choice:
                continue
            if reduction.distinct:
                sets = [state.states[index] for state in states]
                merged.states[index] = functools.reduce(functools.partial(merge_states, reduction), sets)
                continue
            values = [batch[index] for batch in batches]
            if isinstance(values[0], Strings):
                given = (string_layout.concatenate(values), None, *reduction.parameters)
                found = OF_ALL_ROWS[reduction.kind](*given)
                merged.states[index] = (
                    found if found.num_rows else string_layout.from_list([b""], self.device)
                )
                continue
            if len(values) == 1 and reduction.kind != "sum_float":  # which makes 0.0 of -0.0
                merged.states[index] = as_tensor(values[0]).unsqueeze(0)
                continue
            stacked = torch.from_numpy(np.stack(values)) if self.takes_arrays else torch.stack(values)
            merged.states[index] = OF_ALL_ROWS[reduction.kind](stacked).unsqueeze(0)
        return merged

    def merge(self, states: list[Any]) -> Any:
        if self.algorithm is GroupAlgorithm.CLUSTERED:
            return self._join_runs(states)
        if self.algorithm is GroupAlgorithm.SINGLE:
            return self._merge_single(states)
        if isinstance(states[0], _InOrder):
            return self._merge_batches(states)
        return states if self._divides else self._merge_direct(states)

    def _merge_direct(self, states: Sequence[_Accumulators]) -> _Accumulators:
        merged = states[0]
        for following in states[1:]:
            if merged.sums is not None and following.sums is not None:
                merged.sums.merge(following.sums)
            merged.states = self._merged(merged.states, following.states)
        return merged

    def _merge_batches(self, batches: list[_InOrder]) -> _Accumulators:
        merged = self._merge_direct(list(batches[0].others))
        for index, sums in zip(self._float_sums, zip(*(batch.sums for batch in batches)), strict=True):
            merged.states[index] = functools.reduce(torch.add, sums)
        _merge_folds(merged, batches)
        return merged

    def _merged(self, a: list[Tensor | None], b: list[Tensor | None]) -> list[Tensor | None]:
        return [
            None if mine is None or theirs is None else merge_states(reduction, mine, theirs)
            for reduction, mine, theirs in zip(self.reductions, a, b, strict=True)
        ]

    def _join_runs(self, states: list[Frame]) -> list[Frame]:
        """The runs of each batch. One may end in a batch and go on in the next."""
        joined: list[Frame] = []
        for state in states:
            if joined and state.num_rows and _equal_keys(joined[-1], state):
                last = [_tensor(column)[-1:] for column in joined[-1].columns[1:]]
                first = [_tensor(column)[:1] for column in state.columns[1:]]
                for reduction, before, after in zip(self.reductions, last, first, strict=True):
                    before.copy_(merge_states(reduction, before, after))
                state = state.cut(1, state.num_rows)
            if state.num_rows:
                joined.append(state)
        return joined or states[:1]

    def finish(self, state: Any, program_state: State) -> State:
        if self.algorithm is GroupAlgorithm.CLUSTERED:
            return {self.slot: concatenate_frames(state, program_state["workers"].map)}
        if not isinstance(state, list):
            return {self.slot: self._groups(state, 0)}
        workers = program_state["workers"]
        at_once = max(_GROUPS_OF_A_WORKER, -(-self.size // workers.threads))

        def groups(first: int) -> Frame:
            stop = min(first + at_once, self.size)
            return self._groups(self._merge_direct([each.groups(first, stop) for each in state]), first)

        frames = workers.map(groups, range(0, self.size, at_once))
        return {self.slot: concatenate_frames(frames, workers.map)}

    def _groups(self, state: _Accumulators, first: int) -> Frame:
        """The groups that have rows, of those from `first` on that the accumulators are for."""
        states = list(state.states)
        if state.sums is not None:
            totals = state.sums.totals()
            for index, place in zip(self._packed, self._place, strict=True):
                states[index] = self._multiplied(totals[place], self.reductions[index])
        if state.moments is not None:
            for index, moment in zip(self._moments, self._of_moments, strict=True):
                states[index] = state.moments.moment(moment)
            for index, column in self._counts.items():
                states[index] = state.moments.counts[column].to(torch.int64)
        size = 1 if self.algorithm is GroupAlgorithm.SINGLE else self.size + self.has_kept
        if state.chosen is not None:
            grouped = GroupedRows(state.chosen, _tensor(state.chosen.columns[-1]), size)
            for index in self._choices:
                states[index] = grouped.reduce(self.reductions[index])
        for index, (reduction, sets) in enumerate(zip(self.reductions, states, strict=True)):
            if reduction.distinct and sets is not None:
                states[index] = reduce_distinct(reduction, sets, size)
        columns = [FrameColumn(values, None) for values in states]
        if self.algorithm is GroupAlgorithm.SINGLE:
            return Frame(1, tuple(columns))
        keys = rows.row_indices(self._present(states)[: self.size])
        columns = [FrameColumn(take_values(values, keys), None) for values in states]
        return Frame(keys.shape[0], (FrameColumn(keys + first if first else keys, None), *columns))

    def _multiplied(self, totals: Tensor, reduction: Reduction) -> Tensor:
        """int64 [size]: totals [size * values of the factors] times what the tables say, added up for each group.

        Or the least or the greatest number of the table that has rows.
        """
        totals = totals.view(-1, *self.factors)
        for table in reversed(reduction.tables or (None,) * len(self.factors)):
            if isinstance(table, range):
                numbers = torch.arange(table.start, table.stop, device=totals.device)
            elif table is not None:
                numbers = torch.tensor(table, device=totals.device)
            if table is None:
                totals = totals.sum(-1)
            elif reduction.combine == "min":
                totals = torch.where(totals > 0, numbers, _INT64.max).amin(-1)
            elif reduction.combine == "max":
                totals = torch.where(totals > 0, numbers, _INT64.min).amax(-1)
            else:
                totals = (totals * numbers).sum(-1)
        return totals

    def _present(self, states: Sequence[Tensor | None]) -> Tensor:
        assert self.presence is not None
        values = states[self.presence]
        assert values is not None
        if values.dtype is torch.bool:
            return values
        # of a group without rows, a reference is less than any number of a row, and than -1
        return elementwise.greater(values, -2 if self.reductions[self.presence].kind == "reference" else 0)

    def describe(self) -> str:
        how = f" by {math.prod(self.factors)} combinations of factors" if self.factors else ""
        return f"{self.algorithm.value}: fold {listed(self.reductions)}{how} into {self.slot}"


def _merge_folds(merged: _Accumulators, batches: Sequence[_Accumulators | _InOrder]) -> None:
    """Give the accumulators the moments, and the rows that choices may take, of all batches, in their order."""
    of_batches = [batch.moments for batch in batches if batch.moments is not None]
    if of_batches:
        merged.moments = moments.merge_moments(of_batches)
    chosen = [batch.chosen for batch in batches if batch.chosen is not None]
    if chosen:
        merged.chosen = concatenate_frames(chosen)


def _same(item: Any) -> Any:
    return item


def _equal_keys(before: Frame, after: Frame) -> bool:
    """Is the last group of the one the first of the other?"""
    return torch.equal(_tensor(before.columns[0])[-1:], _tensor(after.columns[0])[:1])


def _tensor(column: FrameColumn) -> Tensor:
    assert isinstance(column.values, Tensor)
    return column.values
