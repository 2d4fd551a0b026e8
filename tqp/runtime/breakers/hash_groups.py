"""GROUP BY that folds each batch into accumulators by slot of a hash table: keys of any range, few against the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from tqp.operators import elementwise
from tqp.operators.key_table import KeyTable
from tqp.operators.packed_sums import PackedSums
from tqp.operators.rows import row_indices, take
from tqp.runtime.breakers.aggregate import PACKED, Reduction, fold, summands
from tqp.runtime.frame import Frame, FrameColumn, frame_of_outputs, take_values
from tqp.runtime.pipeline import State


class _Groups:
    """The groups that one worker has seen. The accumulators behind the table's slots are those of NULL."""

    __slots__ = ("has_null", "key_dtype", "nullable", "states", "sums", "table")

    def __init__(self, table: KeyTable, states: list[Tensor | None], sums: PackedSums | None) -> None:
        self.table, self.states, self.sums = table, states, sums
        self.key_dtype, self.nullable, self.has_null = torch.int64, False, False


class HashGroups:
    """Accumulators by the slot of a key, the first output column: integers of up to 64 bits.

    The slot gets a frame: the keys, ascending, with NULL last; then one column per reduction.
    """

    def __init__(
        self, slot: str, reductions: Sequence[Reduction], expected_groups: float, max_rows: int
    ) -> None:
        self.slot, self.reductions = slot, tuple(reductions)
        self.expected_groups, self.max_rows = expected_groups, max_rows
        # sums of floats depend on the order of their batches
        self.ordered = self.fixed_batches = any(r.kind == "sum_float" for r in self.reductions)
        self._packed = [index for index, r in enumerate(self.reductions) if r.kind in PACKED]

    def initial(self, program_state: State) -> None:
        return None

    def _empty(self, expected_groups: float) -> _Groups:
        table = KeyTable(expected_groups)
        ranges = [self.reductions[index].value_range for index in self._packed]
        sums = PackedSums(ranges, table.size + 1, self.max_rows, torch.device("cpu")) if ranges else None
        return _Groups(table, [None] * len(self.reductions), sums)

    def partial(self, outputs: Sequence[Any], state: _Groups | None) -> _Groups:
        frame = frame_of_outputs(outputs)
        keys, validity = frame.columns[0]
        assert isinstance(keys, Tensor)
        groups = self._empty(self.expected_groups) if state is None else state
        groups.key_dtype, groups.nullable = keys.dtype, validity is not None
        groups, slots = self._slots(groups, keys.to(torch.int64), validity)
        size = groups.table.size + 1
        if groups.sums is not None:
            groups.sums.add([summands(self.reductions[index], frame) for index in self._packed], slots)
        for index, reduction in enumerate(self.reductions):
            if index not in self._packed:
                groups.states[index] = fold(reduction, frame, slots, size, groups.states[index])
        return groups

    def _slots(self, groups: _Groups, keys: Tensor, validity: Tensor | None) -> tuple[_Groups, Tensor]:
        """The slots of the keys, int64 [n], and the groups with them, in a larger table if need be."""
        nulls = None if validity is None else row_indices(~validity)
        if nulls is not None and nulls.shape[0]:
            groups.has_null = True
            if nulls.shape[0] == keys.shape[0]:
                return groups, torch.full_like(nulls, groups.table.size)
            assert validity is not None
            # the table must see no key that is not there
            keys = elementwise.choose(
                validity, keys, int(keys[int(validity.to(torch.int8).argmax())]), keys.dtype
            )
        while (slots := groups.table.slots(keys)) is None:
            larger = self._empty(groups.table.size)
            larger.key_dtype, larger.nullable = groups.key_dtype, groups.nullable
            groups = self._absorb(larger, groups)
        if nulls is not None:
            slots.scatter_(0, nulls, torch.full_like(nulls, groups.table.size))
        return groups, slots

    def merge(self, states: list[_Groups]) -> _Groups:
        merged = states[0]
        for following in states[1:]:
            merged = self._absorb(merged, following)
        return merged

    def _absorb(self, groups: _Groups, others: _Groups) -> _Groups:
        """`groups` with what `others` hold besides: sums of sums, extremes of extremes."""
        keys, validity, slots = _occupied(others)
        groups, targets = self._slots(groups, keys, validity)
        size = groups.table.size + 1
        if groups.sums is not None and others.sums is not None:
            groups.sums.add_sums([take(total, slots) for total in others.sums.totals()], targets)
        for index, (reduction, state) in enumerate(zip(self.reductions, others.states, strict=True)):
            if state is not None:
                frame = Frame(slots.shape[0], (FrameColumn(take(state, slots), None),))
                groups.states[index] = fold(
                    replace(reduction, column=0), frame, targets, size, groups.states[index]
                )
        return groups

    def finish(self, state: _Groups, program_state: State) -> State:
        keys, validity, slots = _occupied(state)
        states = list(state.states)
        if state.sums is not None:
            for index, total in zip(self._packed, state.sums.totals(), strict=True):
                states[index] = total
        columns = [FrameColumn(take_values(values, slots), None) for values in states]
        key = FrameColumn(keys.to(state.key_dtype), validity)
        return {self.slot: Frame(slots.shape[0], (key, *columns))}

    def describe(self) -> str:
        kinds = ", ".join(reduction.kind for reduction in self.reductions) or "nothing"
        return f"hash group-by: fold {kinds} into {self.slot}"


def _occupied(groups: _Groups) -> tuple[Tensor, Tensor | None, Tensor]:
    """The key of each group, int64 [m], its validity, and its slot, int64 [m]."""
    keys, slots = groups.table.keys()
    if not groups.nullable:
        return keys, None, slots
    validity = torch.ones(keys.shape[0] + groups.has_null, dtype=torch.bool)
    if groups.has_null:
        validity[-1] = False
        keys = torch.cat([keys, keys.new_zeros(1)])
        slots = torch.cat([slots, slots.new_full((1,), groups.table.size)])
    return keys, validity, slots
