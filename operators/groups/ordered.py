"""The rows of groups in an order: what medians, quantiles and choices of one row of each group are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.groups.aggregates import count_by_group
from tqp.operators.memory.arrays import Array
from tqp.operators.rows.selection import row_indices, take, take_padded
from tqp.operators.sorting.sort import SortColumn, sort_columns, sort_rows, take_rows

#: Values of a sample between two of which the one at a place is looked for; and how far from its own place these are, in
#: standard deviations: one time in ten thousand it is not there.
_SAMPLE, _SAFETY = 4096, 4


class RowsInOrder(Protocol):
    """The rows of groups in an order."""

    @property
    def counts(self) -> Tensor:
        """int64 [num_groups]: how many each has."""

    def at(self, positions: Tensor) -> Tensor:
        """The rows at these positions (int64 [num_groups]) of their groups; -1 in an empty group.

        Of rows with equal values it may be the same one at several positions.
        """


class OrderedGroups(NamedTuple):
    """The valid rows, group by group in the order of some columns; where each group starts, and how many it has."""

    rows: Tensor  # int64 [n]
    starts: Tensor  # int64 [num_groups]
    counts: Tensor  # int64 [num_groups]

    def at(self, positions: Tensor) -> Tensor:
        """The rows at these positions (int64 [num_groups]) of their groups; -1 in an empty group."""
        # by arithmetic: filling masks that chance makes takes five times as long
        last = max(0, self.rows.shape[0] - 1)
        rows = take_padded(self.rows, (self.starts + positions).clamp_(max=last))
        return rows.bitwise_or_(-(self.counts == 0).to(torch.int64))


class UnorderedGroup(NamedTuple):
    """The valid rows of the only group, as arrays: the row at a place in the order of its values is found without a sort."""

    values: Array  # [n] integers or floats, of which NaN is the greatest
    validity: Array | None
    counts: Tensor  # int64 [1]

    def at(self, positions: Tensor) -> Tensor:
        """A row at the position (int64 [1]); -1 if there is none."""
        if not int(self.counts):
            return torch.full((1,), -1)
        valid = self.values if self.validity is None else self.values[self.validity]
        value = value_at_place(valid, int(positions))
        holds = np.isnan(self.values) if np.isnan(value) else self.values == value
        row = int((holds if self.validity is None else holds & self.validity).argmax())
        return torch.tensor([row])


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
) -> RowsInOrder:
    """As `order_groups`, in the order of values: anything that `sort_rows` orders, or intervals [n, 3]."""
    if (
        num_groups == 1
        and is_host(values)
        and values.dim() == 1
        and values.dtype is not torch.bool
        and not values.requires_grad
    ):
        counted = None if validity is None else validity.numpy()
        count = values.shape[0] if counted is None else int(np.count_nonzero(counted))
        return UnorderedGroup(values.numpy(), counted, torch.tensor([count]))
    return order_groups(sort_columns(values), group_ids, num_groups, validity)


def middle_rows(ordered: RowsInOrder) -> tuple[Tensor, Tensor]:
    """(lower, upper), int64 [num_groups]: the one or two middle rows of each group; -1 if it is empty."""
    lower = torch.div(ordered.counts - 1, 2, rounding_mode="floor").clamp_(min=0)
    return ordered.at(lower), ordered.at(ordered.counts // 2)


def value_at_place(values: Array, place: int) -> Any:
    """The value at a place, from 0, in the order of integers or floats [n], n > place: among those near one of a sample.

    >>> int(value_at_place(np.array([5, 1, 4]), 1))
    4
    """
    found = _between(values, place) if values.shape[0] > 4 * _SAMPLE else None
    some, before = found or (values, 0)
    return np.partition(some, place - before)[place - before]


def _between(values: Array, place: int) -> tuple[Array, int] | None:
    """The few values around a place, and how many are less than these; None where a sample does not tell."""
    step = values.shape[0] // _SAMPLE
    sample = np.sort(values[::step])
    expected, margin = place // step, int(_SAFETY * math.sqrt(_SAMPLE) / 2)
    low = sample[max(0, expected - margin)]
    high = sample[min(sample.shape[0] - 1, expected + margin)]
    some = values[(values >= low) & (values <= high)]
    if 2 * some.shape[0] > values.shape[0]:
        return None
    before = int(np.count_nonzero(values < low))
    return (some, before) if before <= place < before + some.shape[0] else None
