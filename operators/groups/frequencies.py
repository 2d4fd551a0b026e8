"""How often each value occurs in a group whose rows are all there: the most frequent one, and the entropy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tqp.operators.groups.aggregates import least_by_group, max_by_group, sum_by_group
from tqp.operators.groups.group_ids import counted_combinations
from tqp.operators.rows.selection import row_indices, take


class Frequencies(NamedTuple):
    """The distinct values of groups, in any order: the group, how often it has the value, and the first row with it."""

    groups: Tensor  # int64 [m]
    counts: Tensor  # int64 [m]
    first_rows: Tensor  # int64 [m]


def frequencies(group_ids: Tensor, words: Sequence[Tensor], validity: Tensor | None = None) -> Frequencies:
    """Of the valid rows (bool [n] or None); `words`: integers [n] or [n, 2] that are equal where the values are."""
    rows = None if validity is None else row_indices(validity)
    if rows is not None:
        group_ids, words = take(group_ids, rows), [take(word, rows) for word in words]
    is_one_group = group_ids.shape[0] > 1 and group_ids.stride(0) == 0
    counts, first_rows = counted_combinations(words if is_one_group else [group_ids, *words])
    groups = take(group_ids, first_rows).to(torch.int64)
    return Frequencies(groups, counts, first_rows if rows is None else take(rows, first_rows))


def most_frequent_rows(found: Frequencies, num_groups: int) -> Tensor:
    """int64 [num_groups]: the first row with the most frequent value of each group, of several that which comes first; -1 if empty."""
    most = max_by_group(found.counts, found.groups, num_groups)
    best = row_indices(found.counts == take(most, found.groups))
    return least_by_group(take(found.first_rows, best), take(found.groups, best), num_groups)


def entropy(found: Frequencies, num_groups: int) -> Tensor:
    """float64 [num_groups]: in bits; 0 of an empty group."""
    counts = found.counts.to(torch.float64)
    totals = take(sum_by_group(counts, found.groups, num_groups), found.groups)
    return sum_by_group(counts / totals * torch.log2(totals / counts), found.groups, num_groups)
