"""Sums and extremes by group that autograd follows: `index_add` for accumulators that are written to."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from tqp.operators.groups import aggregates
from tqp.operators.rows.selection import take_padded


def sum_by_group(values: Tensor, ids: Tensor, count: int, validity: Tensor | None) -> Tensor:
    """The sums of the valid values of each group, in the dtype of the values: [count]."""
    if validity is not None:
        values = torch.where(validity, values, 0.0)
    return values.new_zeros(count).index_add(0, ids.to(torch.int64), values)


def extreme_by_group(
    values: Tensor, ids: Tensor, count: int, validity: Tensor | None, *, is_greatest: bool
) -> Tensor:
    """The least or greatest valid value of each group [count]; the gradient goes to the first row that has it."""
    reduce = aggregates.max_by_group if is_greatest else aggregates.min_by_group
    fixed = values.detach()
    best = reduce(fixed, ids, count, validity).index_select(0, ids)
    is_best = (fixed == best) | (fixed.isnan() & best.isnan())
    if validity is not None:
        is_best &= validity
    return take_padded(values, aggregates.first_by_group(ids, count, is_best))


def first_value_by_group(values: Tensor, ids: Tensor, count: int, validity: Tensor | None) -> Tensor:
    """The first valid value of each group [count]."""
    return take_padded(values, aggregates.first_by_group(ids, count, validity))


#: The reductions through which gradients pass.
REDUCTIONS: dict[str, Callable[[Tensor, Tensor, int, Tensor | None], Tensor]] = {
    "sum_float": sum_by_group,
    "min": partial(extreme_by_group, is_greatest=False),
    "max": partial(extreme_by_group, is_greatest=True),
    "first": first_value_by_group,
}
