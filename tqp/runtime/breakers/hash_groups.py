"""GROUP BY that folds each batch into accumulators by number of the key in a hash table: keys of any range, few against the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from tqp.operators.groups.packed_sums import PackedSums
from tqp.operators.joins.pairs import mark_rows
from tqp.operators.numbers import elementwise
from tqp.operators.numbers.logic import any_true
from tqp.operators.rows.close_keys import close_codes, steps_of_unit
from tqp.operators.rows.hash_table import HashTable, empty_table
from tqp.operators.rows.selection import row_indices, take
from tqp.runtime.breakers.reductions import PACKED, Reduction, fold, listed, summands
from tqp.runtime.frame import Frame, FrameColumn, frame_of_outputs, take_values
from tqp.runtime.pipeline import Breaker, State


class _Groups:
    """The groups that one worker has seen: accumulators by the number of the key. Those behind the last are of NULL."""

    __slots__ = ("capacity", "has_null", "key_dtype", "nullable", "states", "steps", "sums", "table")

    def __init__(self, table: HashTable, reductions: int) -> None:
        self.table, self.capacity = table, 0
        self.states: list[Tensor | None] = [None] * reductions
        self.sums: PackedSums | None = None
        self.key_dtype, self.nullable, self.has_null = torch.int64, False, False
        # of a unit, of which all keys are multiples that lie close together; None: of none; -1: not known yet
        self.steps: int | None = -1

    @property
    def size(self) -> int:
        """Of the accumulators."""
        return self.capacity + 1

    def numbers(self, keys: Tensor) -> Tensor:
        """The numbers of keys [n] of their own type: int32 of those that lie close together, each of which the table sees once; else int64."""
        if self.steps == -1:
            self.steps = steps_of_unit(keys)
        codes = None if self.steps is None else close_codes(keys, self.steps)
        if codes is None:
            self.steps = None
            return self.table.insert(_words(keys))
        of_rows, by_code = codes
        present = row_indices(mark_rows(torch.zeros(by_code.shape[0], dtype=torch.bool), of_rows))
        numbers = torch.zeros(by_code.shape[0], dtype=torch.int32)
        numbers[present] = self.table.insert(_words(take(by_code, present))).to(torch.int32)
        return take(numbers, of_rows)

    def places(self, numbers: Tensor) -> Tensor:
        """int64 [m]: where the accumulators of the keys with these numbers are, and those of NULL if it was there."""
        return torch.cat([numbers, numbers.new_full((1,), self.capacity)]) if self.has_null else numbers

    def key_column(self, keys: Tensor) -> tuple[Tensor, Tensor | None]:
        """Values and validity of a column: the keys of the table [m], and NULL if it was there."""
        if not self.nullable:
            return keys, None
        validity = torch.ones(keys.shape[0] + self.has_null, dtype=torch.bool)
        if self.has_null:
            validity[-1] = False
            keys = torch.cat([keys, keys.new_zeros(1)])
        return keys, validity


class HashGroups(Breaker):
    """Accumulators by the number that a hash table gives a key, the first output column: integers of up to 64 bits, or floats.

    Floats are known by their bits. 0.0 and -0.0, which have other bits and are equal, become one group at the end, under the zero
    that was there first. The slot gets a frame: the keys, ascending, with NULL last; then one column per reduction.
    """

    def __init__(
        self, slot: str, reductions: Sequence[Reduction], expected_groups: float, max_rows: int
    ) -> None:
        self.slot, self.reductions = slot, tuple(reductions)
        self.expected_groups, self.max_rows = expected_groups, max_rows
        # sums of floats depend on the order of their batches
        self.ordered = self.fixed_batches = any(r.kind == "sum_float" for r in self.reductions)
        self._packed = [index for index, r in enumerate(self.reductions) if r.kind in PACKED]

    def partial(self, outputs: Sequence[Any], state: _Groups | None) -> _Groups:
        frame = frame_of_outputs(outputs)
        keys, validity = frame.columns[0]
        assert isinstance(keys, Tensor)
        groups = state or _Groups(empty_table(self.expected_groups, keys.device), len(self.reductions))
        groups.key_dtype, groups.nullable = keys.dtype, validity is not None
        numbers = self._numbers(groups, groups.numbers, keys, validity)
        if groups.sums is not None:
            groups.sums.add([summands(self.reductions[index], frame) for index in self._packed], numbers)
        for index, reduction in enumerate(self.reductions):
            if index not in self._packed:
                groups.states[index] = fold(reduction, frame, numbers, groups.size, groups.states[index])
        return groups

    def _numbers(
        self, groups: _Groups, insert: Callable[[Tensor], Tensor], keys: Tensor, validity: Tensor | None
    ) -> Tensor:
        """Where the accumulators of the keys are, whose numbers `insert` gives, integers [n]. Room is made for those of new keys."""
        nulls = None if validity is None else row_indices(~validity)
        if nulls is None or not nulls.shape[0]:
            numbers = insert(keys)
        elif nulls.shape[0] == keys.shape[0]:
            numbers = torch.empty(keys.shape[0], dtype=torch.int64)
        else:  # the table must see no key that is not there
            assert validity is not None
            valid = int(validity.to(torch.int8).argmax())
            one = keys[valid : valid + 1]
            numbers = insert(elementwise.choose(validity, keys, one, keys.dtype))
        if groups.capacity < groups.table.capacity:
            self._make_room(groups)
        if nulls is not None and nulls.shape[0]:
            groups.has_null = True
            numbers.scatter_(0, nulls, groups.capacity)
        return numbers

    def _make_room(self, groups: _Groups) -> None:
        """Accumulators for as many groups as the table has room for."""
        before = copy(groups)
        groups.capacity = groups.table.capacity
        groups.states = [None] * len(self.reductions)
        ranges = [self.reductions[index].value_range for index in self._packed]
        groups.sums = PackedSums(ranges, groups.size, self.max_rows, torch.device("cpu")) if ranges else None
        if before.capacity:
            numbers = torch.arange(before.capacity)
            self._add(groups, groups.places(numbers), before, before.places(numbers))

    def merge(self, states: list[_Groups]) -> _Groups:
        merged = states[0]
        for following in states[1:]:
            keys = following.key_column(following.table.keys())
            targets = self._numbers(merged, merged.table.insert, *keys)
            self._add(merged, targets, following, following.places(torch.arange(following.table.count)))
        return merged

    def _add(self, groups: _Groups, targets: Tensor, others: _Groups, sources: Tensor) -> None:
        """Adds what `others` hold in the places `sources` to `targets` of the groups: sums of sums, extremes of extremes."""
        if groups.sums is not None and others.sums is not None:
            groups.sums.add_sums([take(total, sources) for total in others.sums.totals()], targets)
        for index, (reduction, state) in enumerate(zip(self.reductions, others.states, strict=True)):
            if state is not None:
                frame = Frame(sources.shape[0], (FrameColumn(take(state, sources), None),))
                groups.states[index] = fold(
                    replace(reduction, column=0), frame, targets, groups.size, groups.states[index]
                )

    def finish(self, state: _Groups, program_state: State) -> State:
        keys, order = torch.sort(_keys_of_words(state.table.keys(), state.key_dtype))
        if state.key_dtype.is_floating_point:
            keys, order = self._with_one_zero(state, keys, order)
        places = state.places(order)
        states = list(state.states)
        if state.sums is not None:
            for index, total in zip(self._packed, state.sums.totals(), strict=True):
                states[index] = total
        columns = [FrameColumn(take_values(values, places), None) for values in states]
        key = FrameColumn(*state.key_column(keys))
        return {self.slot: Frame(places.shape[0], (key, *columns))}

    def _with_one_zero(self, state: _Groups, keys: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
        """The keys, and their numbers, without the zero that came second if both are there; the other has its rows, too."""
        zeros = row_indices(keys == 0)
        if zeros.shape[0] < 2:
            return keys, order
        first, second = zeros[torch.argsort(order[zeros])]
        self._add(state, order[first : first + 1], copy(state), order[second : second + 1])
        others = torch.arange(keys.shape[0]) != second
        return keys[others], order[others]

    def describe(self) -> str:
        return f"hash group-by: fold {listed(self.reductions)} into {self.slot}"


def _words(keys: Tensor) -> Tensor:
    """int64 [n]: integers as they are, the bits of floats. All NaNs have the same."""
    if not keys.is_floating_point():
        return keys.to(torch.int64)
    is_nan = torch.isnan(keys)
    if any_true(is_nan):
        keys = keys.masked_fill(is_nan, math.nan)
    return keys.view(torch.int32 if keys.dtype is torch.float32 else torch.int64).to(torch.int64)


def _keys_of_words(words: Tensor, dtype: torch.dtype) -> Tensor:
    if not dtype.is_floating_point:
        return words.to(dtype)
    return words.to(torch.int32 if dtype is torch.float32 else torch.int64).view(dtype)
