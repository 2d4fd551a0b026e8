"""The rows of groups in an order: what medians, quantiles and choices of one row of each group are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from tqp.operators.groups.aggregates import count_by_group
from tqp.operators.rows.selection import row_indices, take, take_padded
from tqp.operators.sorting.sort import SortColumn, sort_columns, sort_rows, take_rows


class RowsInOrder(Protocol):
    """The rows of groups in an order."""

    @property
    def counts(self) -> Tensor:
        """int64 [num_groups]: how many each has."""

    def at(self, positions: Tensor) -> Tensor:
        """The rows at these positions (int64 [num_groups]) of their groups; -1 in an empty group."""


class OrderedGroups(NamedTuple):
    """The valid rows, group by group in the order of some columns; where each group starts, and how many it has."""

    rows: Tensor  # int64 [n]
    starts: Tensor  # int64 [num_groups]
    counts: Tensor  # int64 [num_groups]

    def at(self, positions: Tensor) -> Tensor:
        """The rows at these positions (int64 [num_groups]) of their groups; -1 in an empty group."""
        empty = self.counts == 0
        rows = take_padded(self.rows, (self.starts + positions).masked_fill_(empty, 0))
        return rows.masked_fill_(empty, -1)


def order_groups(
    columns: Sequence[SortColumn], group_ids: Tensor, num_groups: int, validity: Tensor | None = None
) -> OrderedGroups:
    """The rows of each group (`group_ids` [n]) in the order of the columns, of those that are valid (bool [n] or None)."""
    rows = None if validity is None else row_indices(validity)
    if rows is not None:
        columns = [take_rows(column, rows) for column in columns]
        group_ids = take(group_ids, rows)
    order = sort_rows([SortColumn(group_ids), *columns])
    counts = count_by_group(group_ids, num_groups)
    return OrderedGroups(order if rows is None else take(rows, order), counts.cumsum(0) - counts, counts)


def order_values(
    values: Tensor, group_ids: Tensor, num_groups: int, validity: Tensor | None = None
) -> OrderedGroups:
    """As `order_groups`, in the order of values: anything that `sort_rows` orders, or intervals [n, 3]."""
    return order_groups(sort_columns(values), group_ids, num_groups, validity)


def middle_rows(ordered: RowsInOrder) -> tuple[Tensor, Tensor]:
    """(lower, upper), int64 [num_groups]: the one or two middle rows of each group; -1 if it is empty."""
    lower = torch.div(ordered.counts - 1, 2, rounding_mode="floor").clamp_(min=0)
    return ordered.at(lower), ordered.at(ordered.counts // 2)


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
    ordered = order_groups(sort_columns(values, None, not greatest), group_ids, num_groups, validity)
    return ordered.at((ordered.counts - 1).clamp(min=0))
