"""One row of each group, by its place or by the value of a column: what first, last, arg_min and arg_max take."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.groups import aggregates
from tqp.operators.numbers import elementwise
from tqp.operators.rows.keys import ordered_bits
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.sorting.sort import sort_columns, sort_rows
from tqp.operators.string_keys.codes import order_codes

#: One row in so many is few.
_FEW = 16


def first_extreme_rows(
    values: Tensor | Strings,
    group_ids: Tensor,
    num_groups: int,
    validity: Tensor | None = None,
    *,
    greatest: bool,
    nulls_last: Tensor | None = None,
) -> Tensor:
    """int64 [num_groups]: the first of the rows with the least (greatest) value of each group; -1 if it is empty.

    `values`: anything that `sort_rows` orders, or intervals [n, 3]. `validity`: rows that count. `nulls_last`: which of them
    have a value; a row without one is taken only where the group has no other.
    """
    if nulls_last is not None:
        counted = nulls_last if validity is None else validity & nulls_last
        chosen = first_extreme_rows(values, group_ids, num_groups, counted, greatest=greatest)
        return torch.where(chosen < 0, aggregates.first_by_group(group_ids, num_groups, validity), chosen)
    codes = _codes(values, validity, greatest)
    extreme = aggregates.max_by_group if greatest else aggregates.min_by_group
    best = extreme(codes, group_ids, num_groups, validity)
    if is_host(codes):
        rows = _up_to_the_worst(codes, best, validity, greatest)
        if rows is not None:
            ids = take(group_ids, rows).to(torch.int64)
            is_best = elementwise.equal(take(codes, rows), take(best, ids))
            chosen = row_indices(is_best)
            return aggregates.least_by_group(take(rows, chosen), take(ids, chosen), num_groups)
    is_best = elementwise.equal(codes, take(best, group_ids.to(torch.int64)))
    return aggregates.first_by_group(
        group_ids, num_groups, is_best if validity is None else is_best & validity
    )


def _up_to_the_worst(codes: Tensor, best: Tensor, validity: Tensor | None, greatest: bool) -> Tensor | None:
    """int64 [m]: the rows whose codes are as good as the worst of the best ones of groups; None if these are not few.

    A comparison of each row takes a fifth of looking up the best one of its group.
    """
    codes_of_rows, of_groups = codes.numpy(), best.numpy()
    limits = np.iinfo(of_groups.dtype)
    nothing = limits.min if greatest else limits.max
    known = of_groups[of_groups != nothing]
    if not known.size:
        return None
    worst = known.min() if greatest else known.max()
    candidates = codes_of_rows >= worst if greatest else codes_of_rows <= worst
    if known.size < of_groups.size:  # groups without rows, or with no other value
        candidates |= codes_of_rows == nothing
    if validity is not None:
        candidates &= validity.numpy()
    if _FEW * np.count_nonzero(candidates) > candidates.size:
        return None
    return row_indices(torch.from_numpy(candidates))


def _codes(values: Tensor | Strings, validity: Tensor | None, greatest: bool) -> Tensor:
    """Integers [n] that are ordered, and equal, as the values; of those of several words, the first of equal ones is the best."""
    if isinstance(values, Strings):
        return order_codes(values, validity)
    if values.dim() == 1:
        if values.dtype is torch.bool:
            return values.to(torch.int8)
        return ordered_bits(values) if values.is_floating_point() else values
    order = sort_rows(sort_columns(values, None, greatest))
    places = torch.empty_like(order)
    places[order] = torch.arange(order.shape[0], device=order.device)
    return -places if greatest else places
