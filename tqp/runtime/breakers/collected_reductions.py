"""Reductions that need all rows of a group at once: first values, extremes of strings and intervals, medians."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators.groups import aggregates, moments
from tqp.operators.numbers import elementwise
from tqp.operators.rows.batches import pool_rows
from tqp.operators.rows.selection import row_indices, take_padded
from tqp.operators.string_keys import codes as string_codes
from tqp.operators.strings import layout as string_layout
from tqp.runtime.breakers.collect import order_values
from tqp.runtime.frame import FrameColumn


def reduce_collected(kind: str, column: FrameColumn, ids: Tensor, count: int) -> Any:
    """One value per group id, a tensor or Strings [count]; what an empty group gets is unspecified.

    `first`: of the rows as they come. `least`, `greatest`: the last of the equal ones. `median_lower`: the lower of
    the two middle values. `median`: half-way, float64; `median_down`, `median_to_zero`, `median_away`: half-way between
    integers, halves rounded so; `median_days`, `median_interval`. `second_moment`: squared differences from the mean.
    """
    values, validity = column
    assert values is not None
    if kind == "first":
        return _take(values, aggregates.first_by_group(ids, count, validity))
    if kind in ("least", "greatest"):
        if isinstance(values, Strings):
            return pool_rows(values, _extreme_strings(kind, values, validity, ids, count))
        rows = moments.extreme_rows(values, ids, count, validity, greatest=kind == "greatest")
        return _take(values, rows)
    if kind == "median_lower":
        return _take(values, moments.median_rows(order_values(column), ids, count, validity)[0])
    assert isinstance(values, Tensor)
    return moments.COLLECTED[kind](values, ids, count, validity)


def _extreme_strings(kind: str, values: Strings, validity: Tensor | None, ids: Tensor, count: int) -> Tensor:
    """A row with the least or greatest string of each group (0 for an empty one), without a sort: int64 [count]."""
    chosen = torch.zeros(count, dtype=torch.int64, device=ids.device)
    if count == 1:
        valid = None if validity is None else row_indices(validity)
        candidates = values if valid is None else string_layout.take(values, valid)
        if candidates.num_rows:
            row = string_codes.extreme_row(candidates, greatest=kind == "greatest")
            chosen[0] = row if valid is None else valid[row]
        return chosen
    codes = string_codes.order_codes(values, validity)
    extreme = aggregates.min_by_group if kind == "least" else aggregates.max_by_group
    best = extreme(codes, ids, count, validity)
    rows = row_indices(elementwise.equal(codes, torch.index_select(best, 0, ids)), validity)
    return chosen.scatter_(0, torch.index_select(ids, 0, rows), rows)


def _take(values: Any, rows: Tensor) -> Any:
    """The rows of a tensor or Strings; any value where a row is -1."""
    if isinstance(values, Strings):
        return pool_rows(values, rows.clamp(min=0))
    return take_padded(values, rows)
