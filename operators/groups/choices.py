"""One row of each group, by its place or by the value of a column: what first, last, arg_min and arg_max take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.groups import aggregates
from tqp.operators.numbers import elementwise
from tqp.operators.numbers.comparisons import interval_order
from tqp.operators.numbers.wide import order_keys
from tqp.operators.rows.keys import ordered_bits
from tqp.operators.rows.selection import row_indices, take
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
    rows, ids = _best_rows(values, group_ids, num_groups, validity, greatest)
    return aggregates.least_by_group(rows, ids.to(torch.int64), num_groups)


def last_extreme_rows(
    values: Tensor, group_ids: Tensor, num_groups: int, validity: Tensor | None = None, *, greatest: bool
) -> Tensor:
    """As `first_extreme_rows`, the last of the rows, as DuckDB has it where values that differ are equal."""
    rows, ids = _best_rows(values, group_ids, num_groups, validity, greatest)
    last = torch.full((num_groups,), -1, dtype=torch.int64, device=rows.device)
    return last.scatter_reduce_(0, ids.to(torch.int64), rows, "amax")


def _best_rows(
    values: Tensor | Strings, group_ids: Tensor, num_groups: int, validity: Tensor | None, greatest: bool
) -> tuple[Tensor, Tensor]:
    """The rows with the least (greatest) value of their group, int64 [m], ascending, and their groups."""
    first, *others = _words(values, validity)
    rows = _best_rows_of_word(first, group_ids, num_groups, validity, greatest)
    ids = take(group_ids, rows)
    for word in others:
        best = _best_rows_of_word(take(word, rows), ids, num_groups, None, greatest)
        rows, ids = take(rows, best), take(ids, best)
    return rows, ids


def _best_rows_of_word(
    codes: Tensor, group_ids: Tensor, num_groups: int, validity: Tensor | None, greatest: bool
) -> Tensor:
    extreme = aggregates.max_by_group if greatest else aggregates.min_by_group
    best = extreme(codes, group_ids, num_groups, validity)
    if is_host(codes):
        rows = _up_to_the_worst(codes, best, validity, greatest)
        if rows is not None:
            ids = take(group_ids, rows).to(torch.int64)
            return take(rows, row_indices(elementwise.equal(take(codes, rows), take(best, ids))))
    return row_indices(elementwise.equal(codes, take(best, group_ids.to(torch.int64))), validity)


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


def _words(values: Tensor | Strings, validity: Tensor | None) -> Sequence[Tensor]:
    """Integers [n] that are ordered, and equal, as the values; of those of several words the first one decides, then the next."""
    if isinstance(values, Strings):
        return [order_codes(values, validity)]
    if values.dim() == 2:
        return interval_order(values).unbind(1) if values.shape[1] == 3 else order_keys(values)
    if values.dtype is torch.bool:
        return [values.to(torch.int8)]
    return [ordered_bits(values) if values.is_floating_point() else values]
