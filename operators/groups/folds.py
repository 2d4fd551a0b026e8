"""Reductions that are computed batch by batch: by name, what folds rows into states, reduces all rows, and merges states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.groups import aggregates, bits
from tqp.operators.joins.pairs import mark_rows
from tqp.operators.memory import allocation
from tqp.operators.numbers import wide
from tqp.operators.numbers.logic import all_true


@dataclass(frozen=True, slots=True)
class Fold:
    """`by_group(values, group_ids, num_groups, validity, out)`: a state for each group, added to `out` if that is given.

    `of_all(values, validity)`: the state of all rows as one group, 0-d (wide: [2]); it makes one of those of batches,
    too, so where it is None there are none. `merge(a, b)`: of the same groups; may change `a`. `shared`: makes what several
    folds of the same values need, of the first four arguments of `by_group`, which is given it as `shared`.
    """

    by_group: Callable[..., Tensor]
    of_all: Callable[..., Tensor] | None
    merge: Callable[[Tensor, Tensor], Tensor]
    shared: Callable[..., Any] | None = None


def _count_rows(values: None, ids: Tensor, size: int, validity: Tensor | None, out: Tensor | None) -> Tensor:
    return aggregates.count_by_group(ids, size, None, out)


def _count(values: Any, ids: Tensor, size: int, validity: Tensor | None, out: Tensor | None) -> Tensor:
    return aggregates.count_by_group(ids, size, validity, out)


#: Rows for each group from which on they are counted in less time than each marks its group.
_ROWS_COUNTED = 4
#: Rows for each group in which groups of like size all come up.
_ROWS_LOOKED_AT = 32


def _mark(values: Any, ids: Tensor, size: int, validity: Tensor | None, out: Tensor | None) -> Tensor:
    marks = allocation.zeros(size, torch.bool, ids.device) if out is None else out
    if size * _ROWS_COUNTED > ids.shape[0]:
        return mark_rows(marks, ids)
    first = size * _ROWS_LOOKED_AT if is_host(ids) else ids.shape[0]
    marks.logical_or_(aggregates.count_by_group(ids[:first], size) > 0)
    if first < ids.shape[0] and not all_true(marks):
        marks.logical_or_(aggregates.count_by_group(ids[first:], size) > 0)
    return marks


def _sum_wide(values: Tensor, ids: Tensor, size: int, validity: Tensor | None, out: Tensor | None) -> Tensor:
    if validity is not None:
        values = values * (validity if values.dim() == 1 else validity.unsqueeze(1))
    sums = wide.sum_by_group(values, ids.to(torch.int64), size)
    return sums if out is None else wide.add(out, sums)


def product_by_group(
    values: Tensor, ids: Tensor, size: int, validity: Tensor | None = None, out: Tensor | None = None
) -> Tensor:
    """Products of floats [n], float64 [size], multiplied in row order; 1 for an empty group."""
    if validity is not None:
        values = torch.where(validity, values, 1.0)
    if out is None:
        out = torch.ones(size, dtype=torch.float64, device=values.device)
    return out.scatter_reduce_(0, ids.to(torch.int64), values, "prod")


def product_all(values: Tensor, validity: Tensor | None = None) -> Tensor:
    """The product of floats [n], float64 0-d, multiplied in row order."""
    one_group = torch.zeros(values.shape[0], dtype=torch.int64, device=values.device)
    return product_by_group(values, one_group, 1, validity)[0]


_SUM = Fold(aggregates.sum_by_group, aggregates.sum_all, torch.add)
_MAX = Fold(aggregates.max_by_group, aggregates.max_all, partial(aggregates.merge_extremes, which="amax"))

FOLDS: dict[str, Fold] = {
    "count_star": Fold(_count_rows, aggregates.sum_all, torch.add),
    "count": Fold(_count, aggregates.sum_all, torch.add),
    "sum": _SUM,
    "sum_float": _SUM,
    "sum_wide": Fold(_sum_wide, aggregates.sum_wide_all, wide.add),
    "min": Fold(
        aggregates.min_by_group, aggregates.min_all, partial(aggregates.merge_extremes, which="amin")
    ),
    "max": _MAX,
    "reference": _MAX,  # any row of the group, the same for any number of threads
    "bool_and": Fold(aggregates.bool_and_by_group, aggregates.bool_and_all, torch.logical_and),
    "bool_or": Fold(aggregates.bool_or_by_group, aggregates.bool_or_all, torch.logical_or),
    "product": Fold(product_by_group, product_all, torch.mul),
    **{
        each: Fold(bits.BY_GROUP[each], bits.OF_ALL[each], bits.MERGES[each], bits.sort_values)
        for each in bits.BY_GROUP
    },
    "present": Fold(_mark, None, torch.logical_or),
}
