"""Breakers of a program that carries gradients: all rows are there at once, and what autograd does not follow is not used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from tqp.operators.groups import aggregates, gradients, group_ids
from tqp.operators.rows import selection as rows
from tqp.operators.sorting.sort import sort_rows
from tqp.runtime.breakers.aggregate import FoldGroups
from tqp.runtime.breakers.collect import SortRows, key_columns
from tqp.runtime.breakers.collect_groups import CollectGroups, kept_rows, reduce_rows
from tqp.runtime.breakers.concatenate import Concatenate
from tqp.runtime.frame import Frame, FrameColumn, concatenate_values, take_frame, take_values
from tqp.runtime.pipeline import State

#: Reductions through which gradients pass.
REDUCTIONS = frozenset(("sum_float", "min", "max", "first"))
#: Reductions that read which values are NULL, not the values.
COUNTS = frozenset(("count", "count_star", "present"))


def group_rows(breaker: FoldGroups | CollectGroups, frame: Frame, differentiable_columns: set[int]) -> State:
    """What the breaker puts into the program's state, with gradients through its reductions of some columns."""
    if breaker.has_kept:
        frame = kept_rows(frame)
    keys = frame.columns[: breaker.num_keys] if isinstance(breaker, CollectGroups) else ()
    if keys:
        ids, first_rows, count = group_ids.group_ids_of_columns([w for key in keys for w in key_columns(key)])
        ids = ids.to(torch.int64)
    else:
        ids = torch.zeros(frame.num_rows, dtype=torch.int64, device=breaker.device)
        first_rows, count = ids[:1], 1
    columns = [FrameColumn(*(take_values(item, first_rows) for item in key)) for key in keys]
    for reduction in breaker.reductions:
        if reduction.kind == "reference":
            values = take_values(frame.columns[reduction.column].values, first_rows)
        elif reduction.column in differentiable_columns and reduction.kind not in COUNTS:
            values = _reduce(reduction.kind, frame.columns[reduction.column], ids, count)
        else:
            values = reduce_rows(reduction, frame, ids, count)
        columns.append(FrameColumn(values, None))
    return {breaker.slot: Frame(count, tuple(columns))}


def _reduce(kind: str, column: FrameColumn, ids: Tensor, count: int) -> Tensor:
    values, validity = column
    assert isinstance(values, Tensor)
    if kind == "sum_float":
        return gradients.sum_by_group(values, ids, count, validity)
    if kind == "first":
        return rows.take_padded(values, aggregates.first_by_group(ids, count, validity))
    return gradients.extreme_by_group(values, ids, count, validity, is_greatest=kind == "max")


def sort_frame(breaker: SortRows, frame: Frame) -> State:
    """All rows in order, or the window of them that the breaker keeps."""
    order = sort_rows(breaker.keys(frame))
    if breaker.wanted is not None:
        order = order[breaker.offset : breaker.wanted]
    return {breaker.slot: take_frame(Frame(frame.num_rows, frame.columns[len(breaker.directions) :]), order)}


def concatenate(breaker: Concatenate, state: State) -> State:
    """The rows of the frames one after the other."""
    return {breaker.slot: joined([state[source] for source in breaker.sources])}


def joined(frames: Iterable[Frame]) -> Frame:
    """The rows of the frames, which have the same columns, one after the other."""
    frames = list(frames)
    if len(frames) == 1:
        return frames[0]
    columns = []
    for parts in zip(*(frame.columns for frame in frames), strict=True):
        values, validities = zip(*parts, strict=True)
        all_valid = any(validity is None for validity in validities)
        columns.append(FrameColumn(_joined(values), None if all_valid else torch.cat(validities)))
    return Frame(sum(frame.num_rows for frame in frames), tuple(columns))


def _joined(parts: tuple[Any, ...]) -> Any:
    return torch.cat(parts) if isinstance(parts[0], Tensor) else concatenate_values(parts)
