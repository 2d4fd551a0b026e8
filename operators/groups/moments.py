"""Aggregates beyond sums and extremes: variances and medians.

`group_ids`: integers [n] in [0, num_groups). `validity` (bool [n] or None): rows that count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from tqp.core.datatypes import TIMESTAMP, DataType, TypeKind
from tqp.core.errors import ExecutionError
from tqp.core.time_limits import MICROSECONDS_PER_DAY
from tqp.operators.groups.aggregates import count_by_group, sum_by_group
from tqp.operators.numbers import elementwise, wide
from tqp.operators.numbers.casts import resolve_cast
from tqp.operators.numbers.logic import any_true
from tqp.operators.rows.selection import row_indices, take, take_padded
from tqp.operators.sorting.sort import SortColumn, sort_columns, sort_rows, take_rows


class Moments(NamedTuple):
    """What a variance is computed from: each [num_groups]."""

    counts: Tensor  # int64
    means: Tensor  # float64, 0 for an empty group
    m2: Tensor  # float64, the sum of squared differences from the mean


def variance_by_group(
    values: Tensor, group_ids: Tensor, num_groups: int, validity: Tensor | None = None
) -> Moments:
    """Count, mean and squared differences of each group, in three passes over numbers [n]."""
    if validity is not None:
        rows = row_indices(validity)
        values, group_ids = take(values, rows), take(group_ids, rows)
    values, group_ids = values.to(torch.float64), group_ids.to(torch.int64)
    counts = count_by_group(group_ids, num_groups)
    divisors = counts.clamp(min=1)
    means = _means(values, group_ids, num_groups, divisors)
    # What the mean lacks since it was rounded: values that are equal differ by 0 from what they have in common.
    means = means + sum_by_group(values - take(means, group_ids), group_ids, num_groups) / divisors
    differences = values - take(means, group_ids)
    m2 = sum_by_group(differences * differences, group_ids, num_groups)
    return Moments(
        counts, means, m2.masked_fill_(counts < 2, 0.0)
    )  # a single infinity varies by 0, not by NaN


def _means(values: Tensor, group_ids: Tensor, num_groups: int, counts: Tensor) -> Tensor:
    means = sum_by_group(values, group_ids, num_groups) / counts
    overflown = ~means.isfinite()
    if any_true(overflown):  # the sum may be beyond all floats where the mean is not
        least = values.new_zeros(num_groups).scatter_reduce(0, group_ids, values, "amin", include_self=False)
        shares = (values - take(least, group_ids)) / take(counts, group_ids)
        means = torch.where(overflown, least + sum_by_group(shares, group_ids, num_groups), means)
    return means


class _Ordered(NamedTuple):
    """The valid rows, group by group in the order of some columns; where each group starts, and how many it has."""

    rows: Tensor
    starts: Tensor
    counts: Tensor

    def at(self, positions: Tensor) -> Tensor:
        """The rows at these positions (int64 [num_groups]) of their groups; -1 in an empty group."""
        empty = self.counts == 0
        rows = take_padded(self.rows, (self.starts + positions).masked_fill_(empty, 0))
        return rows.masked_fill_(empty, -1)


def _in_order(
    columns: Sequence[SortColumn], group_ids: Tensor, num_groups: int, validity: Tensor | None
) -> _Ordered:
    rows = None if validity is None else row_indices(validity)
    if rows is not None:
        columns = [take_rows(column, rows) for column in columns]
        group_ids = take(group_ids, rows)
    order = sort_rows([SortColumn(group_ids), *columns])
    counts = count_by_group(group_ids, num_groups)
    return _Ordered(order if rows is None else take(rows, order), counts.cumsum(0) - counts, counts)


def extreme_rows(
    values: Tensor,
    group_ids: Tensor,
    num_groups: int,
    validity: Tensor | None = None,
    *,
    greatest: bool = False,
) -> Tensor:
    """int64 [num_groups]: the last of the rows with the least (greatest) value of each group; -1 if it is empty.

    `values`: anything that `sort_rows` orders, or intervals [n, 3]. DuckDB takes the last one as well.
    """
    ordered = _in_order(sort_columns(values, None, not greatest), group_ids, num_groups, validity)
    return ordered.at((ordered.counts - 1).clamp(min=0))


def median_rows(
    values: Tensor, group_ids: Tensor, num_groups: int, validity: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """(lower, upper), int64 [num_groups]: the rows of the one or two middle values of each group; -1 if it is empty.

    `values`: anything that `sort_rows` orders, or intervals [n, 3].
    """
    ordered = _in_order(sort_columns(values), group_ids, num_groups, validity)
    lower = torch.div(ordered.counts - 1, 2, rounding_mode="floor").clamp_(min=0)
    return ordered.at(lower), ordered.at(ordered.counts // 2)


def median_by_group(
    values: Tensor, group_ids: Tensor, num_groups: int, validity: Tensor | None = None
) -> Tensor:
    """float64 [num_groups]: half-way between the two middle ones of each group's numbers [n]."""
    lower_rows, upper_rows = median_rows(values, group_ids, num_groups, validity)
    lower = take_padded(values, lower_rows).to(torch.float64)
    upper = take_padded(values, upper_rows).to(torch.float64)
    # half of the least number is zero
    return torch.where(lower_rows == upper_rows, lower, lower * 0.5 + upper * 0.5)


#: Which way half of an odd number goes: DuckDB takes another one for each family of types.
Halves = Literal["down", "up", "to_zero", "away"]


def median_integers_by_group(
    values: Tensor,
    group_ids: Tensor,
    num_groups: int,
    validity: Tensor | None = None,
    halves: Halves = "down",
) -> Tensor:
    """Medians of each group's integers [n] (or [n, 2]): int64 [num_groups] (or [num_groups, 2]).

    Half-way between the two middle values; `halves` are rounded towards zero for decimals, down for those of 128 bits
    (which are always rounded so), and away from zero for times.
    """
    lower_rows, upper_rows = median_rows(values, group_ids, num_groups, validity)
    lower = take_padded(values, lower_rows).to(torch.int64)
    upper = take_padded(values, upper_rows).to(torch.int64)
    if wide.is_wide(values):
        return _half_way_wide(lower, upper)
    return _half_way(lower, upper, halves)


def _half_way(lower: Tensor, upper: Tensor, halves: Halves) -> Tensor:
    """(lower + upper) / 2 of int64 [n], without the carry: what both have, and half of what one of them has."""
    either = lower ^ upper
    middle = (lower & upper) + (either >> 1)
    if halves == "down":
        return middle
    half = either & 1
    if halves == "up":
        return middle + half
    return middle + (half & ((middle < 0) if halves == "to_zero" else (middle >= 0)))


def _half_way_wide(lower: Tensor, upper: Tensor) -> Tensor:
    """As `_half_way`, of int64 [n, 2], rounded down."""
    either = lower ^ upper
    half = torch.stack([either[:, 0] >> 1, ((either[:, 1] >> 1) & (2**63 - 1)) | (either[:, 0] << 63)], 1)
    return wide.add(lower & upper, half)


def median_days_by_group(
    values: Tensor, group_ids: Tensor, num_groups: int, validity: Tensor | None = None
) -> Tensor:
    """int64 [num_groups]: medians of each group's dates [n], as microseconds. Only the middle ones need be instants."""
    to_instants = resolve_cast(DataType(TypeKind.DATE), TIMESTAMP, False).function
    rows = median_rows(values, group_ids, num_groups, validity)
    lower, upper = (to_instants(take_padded(values, each), validity=each >= 0) for each in rows)
    return _half_way(lower, upper, "away")


#: Days and microseconds of the least and the greatest 64-bit number of microseconds.
_FIRST_LENGTH, _LAST_LENGTH = (divmod(each, MICROSECONDS_PER_DAY) for each in (-(2**63), 2**63 - 1))


def median_intervals_by_group(
    values: Tensor, group_ids: Tensor, num_groups: int, validity: Tensor | None = None
) -> Tensor:
    """int64 [num_groups, 3]: medians of each group's intervals [n, 3].

    The middle one as it stands; between two, half-way in days and microseconds, a month being 30 days: the lower one and
    half of what is between them, as in DuckDB, so that half a microsecond is rounded up. Raises
    ExecutionError if one of the two does not fit in 64 bits of microseconds.
    """
    lower_rows, upper_rows = median_rows(values, group_ids, num_groups, validity)
    lower, upper = take_padded(values, lower_rows), take_padded(values, upper_rows)
    is_between = lower_rows != upper_rows
    middle = _half_way(_microseconds(lower, is_between), _microseconds(upper, is_between), "up")
    days = torch.div(middle, MICROSECONDS_PER_DAY, rounding_mode="trunc")
    between = torch.stack([torch.zeros_like(days), days, middle - days * MICROSECONDS_PER_DAY], 1)
    return torch.where(is_between.unsqueeze(1), between, lower)


def _microseconds(intervals: Tensor, validity: Tensor) -> Tensor:
    """How long intervals [n, 3] are, a month being 30 days, int64 [n]; raises for a valid row beyond 64 bits."""
    clock = intervals[:, 2]
    whole = torch.div(clock, MICROSECONDS_PER_DAY, rounding_mode="floor")
    days, rest = intervals[:, 0] * 30 + intervals[:, 1] + whole, clock - whole * MICROSECONDS_PER_DAY
    (first, first_rest), (last, last_rest) = _FIRST_LENGTH, _LAST_LENGTH
    beyond = (days > last) | (days < first) | ((days == last) & (rest > last_rest))
    if any_true(validity & (beyond | ((days == first) & (rest < first_rest)))):
        raise ExecutionError("The median of INTERVALs of more than 292471 years is out of range")
    return days * MICROSECONDS_PER_DAY + rest


# ---- results of squared differences from the mean (float64 [n]) and numbers of values (int64 [n]) ----


def variance(m2: Tensor, counts: Tensor) -> Tensor:
    """Of a population, float64 [n]; of no values anything."""
    return m2 / counts.clamp(min=1)


def sample_variance(m2: Tensor, counts: Tensor) -> Tensor:
    """Of a sample, float64 [n]; of less than two values anything."""
    return m2 / (counts - 1).clamp(min=1)


def deviation(m2: Tensor, counts: Tensor) -> Tensor:
    """The standard deviation of a population, float64 [n]."""
    return elementwise.square_root(variance(m2, counts))


def sample_deviation(m2: Tensor, counts: Tensor) -> Tensor:
    """The standard deviation of a sample, float64 [n]."""
    return elementwise.square_root(sample_variance(m2, counts))


#: Aggregates that are computed from reductions of their values: which ones, and what makes the results of them.
FORMULAS: dict[str, tuple[tuple[str, ...], Callable[..., Tensor]]] = {
    "var_pop": (("second_moment", "count"), variance),
    "var_samp": (("second_moment", "count"), sample_variance),
    "stddev_pop": (("second_moment", "count"), deviation),
    "stddev_samp": (("second_moment", "count"), sample_deviation),
}


#: Reductions that need all rows of a group at once: `kernel(values, group_ids, num_groups, validity)`, [num_groups].
COLLECTED: dict[str, Callable[..., Tensor]] = {
    "second_moment": lambda *rows: variance_by_group(*rows).m2,
    "median": median_by_group,
    "median_days": median_days_by_group,
    "median_interval": median_intervals_by_group,
    "median_down": partial(median_integers_by_group, halves="down"),
    "median_to_zero": partial(median_integers_by_group, halves="to_zero"),
    "median_away": partial(median_integers_by_group, halves="away"),
}
