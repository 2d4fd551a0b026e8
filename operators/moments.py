"""Aggregates beyond sums and extremes: variances by mergeable moments, and medians.

`group_ids`: integers [n] in [0, num_groups). `validity` (bool [n] or None): rows that count.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tqp.operators.aggregates import count_by_group, sum_by_group
from tqp.operators.rows import row_indices, take, take_padded
from tqp.operators.sort import SortColumn, sort_rows


class Moments(NamedTuple):
    """State of variances: each [num_groups]."""

    counts: Tensor  # int64
    means: Tensor  # float64, 0 for an empty group
    m2: Tensor  # float64, the sum of squared differences from the mean


def variance_by_group(
    values: Tensor, group_ids: Tensor, num_groups: int, validity: Tensor | None = None
) -> Moments:
    """Count, mean and squared differences of each group, in two passes over numbers [n]."""
    if validity is not None:
        rows = row_indices(validity)
        values, group_ids = take(values, rows), take(group_ids, rows)
    values, group_ids = values.to(torch.float64), group_ids.to(torch.int64)
    counts = count_by_group(group_ids, num_groups)
    means = sum_by_group(values, group_ids, num_groups) / counts.clamp(min=1)
    differences = values - take(means, group_ids)
    m2 = sum_by_group(differences * differences, group_ids, num_groups)
    return Moments(
        counts, means, m2.masked_fill_(counts < 2, 0.0)
    )  # a single infinity varies by 0, not by NaN


def merge_moments(a: Moments, b: Moments) -> Moments:
    """The moments of the union of two sets of rows (Chan, Golub and LeVeque)."""
    counts = a.counts + b.counts
    share = b.counts.to(torch.float64) / counts.clamp(min=1)
    difference = b.means - a.means
    m2 = a.m2 + b.m2 + difference * difference * share * a.counts
    # a side without rows leaves the other as it is, without rounding and whatever infinities there are
    alone = (a.counts == 0) | (b.counts == 0)
    means = torch.where(alone, torch.where(a.counts == 0, b.means, a.means), a.means + difference * share)
    return Moments(counts, means, torch.where(alone, a.m2 + b.m2, m2))


def median_rows(
    values: Tensor, group_ids: Tensor, num_groups: int, validity: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """(lower, upper), int64 [num_groups]: the rows of the one or two middle values of each group; -1 if it is empty.

    `values`: anything that `sort_rows` orders.
    """
    rows = None if validity is None else row_indices(validity)
    if rows is not None:
        values, group_ids = take(values, rows), take(group_ids, rows)
    order = sort_rows([SortColumn(group_ids), SortColumn(values)])
    order = order if rows is None else take(rows, order)
    counts = count_by_group(group_ids, num_groups)
    starts = counts.cumsum(0) - counts
    empty = counts == 0
    lower = take_padded(order, (starts + (counts - 1) // 2).masked_fill_(empty, 0))
    upper = take_padded(order, (starts + counts // 2).masked_fill_(empty, 0))
    return lower.masked_fill_(empty, -1), upper.masked_fill_(empty, -1)


def median_by_group(
    values: Tensor, group_ids: Tensor, num_groups: int, validity: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """(medians float64, validity bool) of each group of numbers [n]: half-way between the two middle values."""
    lower_rows, upper_rows = median_rows(values, group_ids, num_groups, validity)
    lower = take_padded(values, lower_rows).to(torch.float64)
    upper = take_padded(values, upper_rows).to(torch.float64)
    return lower * 0.5 + upper * 0.5, lower_rows >= 0


def median_integers_by_group(
    values: Tensor, group_ids: Tensor, num_groups: int, validity: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """(medians int64, validity bool) of each group of integers [n]: half-way, rounded down, as of decimals and times."""
    lower_rows, upper_rows = median_rows(values, group_ids, num_groups, validity)
    lower = take_padded(values, lower_rows).to(torch.int64)
    upper = take_padded(values, upper_rows).to(torch.int64)
    return lower + ((upper - lower) >> 1), lower_rows >= 0


def variance(moments: Moments, sample: bool) -> tuple[Tensor, Tensor]:
    """(variances float64, validity bool): of a sample, NULL below two rows, or of the population, NULL for none."""
    divisor = moments.counts - 1 if sample else moments.counts
    return moments.m2 / divisor.clamp(min=1), divisor > 0
