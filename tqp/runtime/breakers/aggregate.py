"""GROUP BY: folds each batch into accumulators by group, or collects the rows and groups them all at the end.

Folding is for reductions whose states merge (counts, sums, extremes) where group ids are known at once: a single group,
packed keys used as ids, runs of a clustered key. Everything else (DISTINCT, medians, keys without bounds) collects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tqp.operators import aggregates, allocation, group_ids, rows, wide
from tqp.operators.join_pairs import mark_rows
from tqp.planner.physical_plan import GroupAlgorithm
from tqp.runtime.breakers.collect import Collect, key_columns
from tqp.runtime.breakers.collected_reductions import reduce_collected
from tqp.runtime.frame import Frame, FrameColumn, frame_of_outputs, take_values
from tqp.runtime.pipeline import State


@dataclass(frozen=True, slots=True)
class Reduction:
    """One accumulator. `column` is the frame column it reads, -1 for none (count_star, present)."""

    kind: str  # a key of _MERGES, or one that `reduce_collected` knows
    column: int = -1
    distinct: bool = False

    @property
    def folds(self) -> bool:
        """Can it be computed batch by batch?"""
        return self.is_mergeable and not self.distinct

    @property
    def is_mergeable(self) -> bool:
        return self.kind in _MERGES


#: Reductions that fold batch by batch, and what merges two of their states.
_MERGES = {
    "count_star": "add",
    "count": "add",
    "sum": "add",
    "sum_float": "add",
    "sum_wide": "add_wide",
    "min": "amin",
    "max": "amax",
    "bool_and": "and",
    "bool_or": "or",
    "present": "or",
}
_Fold = tuple[Tensor | None, list[Tensor]]  # keys of the groups (None: 0, 1, ...) and one state per reduction


class FoldGroups:
    """Accumulators over `size` groups (SINGLE: one; DIRECT: the packed key), or over the runs of a CLUSTERED key.

    The slot gets a frame: the key codes (but for SINGLE), then one column per reduction.
    """

    def __init__(
        self,
        slot: str,
        algorithm: GroupAlgorithm,
        size: int,
        reductions: Sequence[Reduction],
        device: torch.device,
    ) -> None:
        self.slot, self.algorithm, self.size, self.device = slot, algorithm, size, device
        self.reductions = tuple(reductions)
        clustered = algorithm is GroupAlgorithm.CLUSTERED
        # sums of floats depend on the order of their batches; runs have to be joined with their neighbours
        self.ordered = clustered or any(reduction.kind == "sum_float" for reduction in reductions)

    def initial(self, program_state: State) -> None:
        return None

    def partial(self, outputs: Sequence[Any], state: _Fold | None) -> _Fold:
        frame = frame_of_outputs(outputs)
        keys: Tensor | None = None
        if self.algorithm is GroupAlgorithm.SINGLE:
            ids, size = torch.zeros(frame.num_rows, dtype=torch.int64, device=self.device), 1
        else:
            codes = frame.columns[0].values
            assert isinstance(codes, Tensor)
            if self.algorithm is GroupAlgorithm.CLUSTERED:
                ids, first_rows, size = group_ids.cluster_boundaries(codes)
                keys = rows.take(codes, first_rows)
            else:
                ids, size = codes.to(torch.int64), self.size
        before = [None] * len(self.reductions) if state is None else state[1]
        single = self.algorithm is GroupAlgorithm.SINGLE
        states = [
            _fold(reduction, frame, ids, size, out, single)
            for reduction, out in zip(self.reductions, before, strict=True)
        ]
        return keys, states

    def merge(self, states: list[_Fold]) -> _Fold:
        if self.algorithm is GroupAlgorithm.CLUSTERED:
            return self._join_runs(states)
        merged = states[0][1]
        for _, following in states[1:]:
            merged = [
                _merge(_MERGES[reduction.kind], a, b)
                for reduction, a, b in zip(self.reductions, merged, following, strict=True)
            ]
        return None, merged

    def _join_runs(self, states: list[_Fold]) -> _Fold:
        """Runs of one key may end in one batch and go on in the next."""
        keys = allocation.concatenate([keys for keys, _ in states if keys is not None])
        columns = [
            allocation.concatenate(parts) for parts in zip(*(state for _, state in states), strict=True)
        ]
        ids, first_rows, size = group_ids.cluster_boundaries(keys)
        if size == keys.shape[0]:
            return keys, columns
        again = {
            "add": "sum",
            "add_wide": "sum_wide",
            "amin": "min",
            "amax": "max",
            "and": "bool_and",
            "or": "bool_or",
        }
        joined = []
        for reduction, values in zip(self.reductions, columns, strict=True):
            kind = "sum_float" if reduction.kind == "sum_float" else again[_MERGES[reduction.kind]]
            frame = Frame(keys.shape[0], (FrameColumn(values, None),))
            joined.append(_fold(Reduction(kind, 0), frame, ids, size, None, False))
        return rows.take(keys, first_rows), joined

    def finish(self, state: _Fold, program_state: State) -> State:
        keys, states = state
        columns = [FrameColumn(values, None) for values in states]
        if self.algorithm is GroupAlgorithm.SINGLE:
            return {self.slot: Frame(1, tuple(columns))}
        if keys is None:
            keys = rows.row_indices(self._present(states))
            columns = [FrameColumn(rows.take(values, keys), None) for values in states]
        return {self.slot: Frame(keys.shape[0], (FrameColumn(keys, None), *columns))}

    def _present(self, states: list[Tensor]) -> Tensor:
        for reduction, values in zip(self.reductions, states, strict=True):
            if reduction.kind in ("count_star", "present"):
                return values if values.dtype is torch.bool else values > 0
        raise AssertionError("a direct group-by needs count_star or present")

    def describe(self) -> str:
        kinds = ", ".join(reduction.kind for reduction in self.reductions) or "nothing"
        return f"{self.algorithm.value}: fold {kinds} into {self.slot}"


class CollectGroups(Collect):
    """Keeps the rows; groups and reduces them once all are there.

    The first `num_keys` columns of the frame are the keys. The slot gets a frame of the key columns, one row per group,
    then one column per reduction.
    """

    def __init__(
        self, slot: str, num_keys: int, reductions: Sequence[Reduction], device: torch.device
    ) -> None:
        super().__init__(slot)
        self.num_keys, self.reductions, self.device = num_keys, tuple(reductions), device

    def finish(self, state: Frame, program_state: State) -> State:
        if self.num_keys == 0:
            ids = torch.zeros(state.num_rows, dtype=torch.int64, device=self.device)
            representatives, count = ids[:1], 1
        else:
            columns = [word for key in state.columns[: self.num_keys] for word in key_columns(key)]
            ids, representatives, count = group_ids.group_ids_of_columns(columns)
        keys = [
            FrameColumn(take_values(key.values, representatives), take_values(key.validity, representatives))
            for key in state.columns[: self.num_keys]
        ]
        reduced = [self._reduce(reduction, state, ids, count) for reduction in self.reductions]
        return {self.slot: Frame(count, (*keys, *reduced))}

    def _reduce(self, reduction: Reduction, frame: Frame, ids: Tensor, count: int) -> FrameColumn:
        column = frame.columns[reduction.column] if reduction.column >= 0 else FrameColumn(None, None)
        if reduction.distinct:
            word = key_columns(FrameColumn(column.values, None))[0]
            chosen = aggregates.distinct_rows(ids, word, column.validity)
            ids = rows.take(ids, chosen)
            column = FrameColumn(take_values(column.values, chosen), None)
        if not reduction.is_mergeable:
            return FrameColumn(reduce_collected(reduction.kind, column, ids, count), None)
        plain = Frame(ids.shape[0], (column,))
        index = 0 if reduction.column >= 0 else -1
        return FrameColumn(_fold(Reduction(reduction.kind, index), plain, ids, count, None, False), None)

    def describe(self) -> str:
        kinds = ", ".join(("distinct " if r.distinct else "") + r.kind for r in self.reductions) or "nothing"
        return f"group all rows at the end: reduce {kinds} into {self.slot}"


def _fold(
    reduction: Reduction, frame: Frame, ids: Tensor, size: int, out: Tensor | None, single: bool
) -> Tensor:
    """One reduction over one batch, into `out` if there is one."""
    values: Any = None
    validity: Tensor | None = None
    if reduction.column >= 0:
        values, validity = frame.columns[reduction.column]
    kind = reduction.kind
    if single and kind in ("count_star", "count", "sum", "sum_float"):
        return _fold_single(kind, frame.num_rows, values, validity, ids, out)
    match kind:
        case "count_star":
            return aggregates.count_by_group(ids, size, None, out)
        case "count":
            return aggregates.count_by_group(ids, size, validity, out)
        case "present":
            table = allocation.zeros(size, torch.bool, ids.device) if out is None else out
            return mark_rows(table, ids)
        case "sum" | "sum_float":
            return aggregates.sum_by_group(values, ids, size, validity, out)
        case "sum_wide":
            if validity is not None:
                values = values * (validity if values.dim() == 1 else validity.unsqueeze(1))
            sums = wide.sum_by_group(values, ids, size)
            return sums if out is None else wide.add(out, sums)
        case "min":
            return aggregates.min_by_group(values, ids, size, validity, out)
        case "max":
            return aggregates.max_by_group(values, ids, size, validity, out)
        case "bool_and":
            return aggregates.bool_and_by_group(values, ids, size, validity, out)
        case _:
            return aggregates.bool_or_by_group(values, ids, size, validity, out)


def _fold_single(
    kind: str, num_rows: int, values: Any, validity: Tensor | None, ids: Tensor, out: Tensor | None
) -> Tensor:
    """Counts and sums of a single group need no scatter."""
    if kind.startswith("count"):
        result = aggregates.count_all(num_rows, validity if kind == "count" else None, ids.device)
    else:
        result = aggregates.sum_all(values, validity)
    result = result.reshape(1)
    return result if out is None else out + result


def _merge(how: str, a: Tensor, b: Tensor) -> Tensor:
    match how:
        case "add":
            return a + b
        case "add_wide":
            return wide.add(a, b)
        case "and":
            return a & b
        case "or":
            return a | b
        case "amin":
            return aggregates.merge_extremes(a, b, "amin")
        case _:
            return aggregates.merge_extremes(a, b, "amax")
