"""Rows of a block whose values are added up by group: what their groups are, in one of three forms.

Totals are float64 [num_groups + 1]; the last one is of rows that do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from tqp.operators.groups.aggregates import count_by_group
from tqp.operators.groups.runs import long_runs
from tqp.operators.memory.arrays import Array
from tqp.operators.rows.selection import row_indices, take


class GroupedRows(Protocol):
    """Values are float64 [n], a number for each of the rows that `floats` answers."""

    def floats(self, values: Tensor) -> Tensor:
        """float64: those of the values [rows] that are added up."""

    def count(self, totals: Tensor) -> None:
        """Add to the totals how many values are added up."""

    def of_rows(self, of_groups: Tensor) -> Tensor:
        """The value of the group of each row that is added up; one that broadcasts for one group, and of one value."""

    def add(self, totals: Tensor, values: Tensor) -> None:
        """Add the values to the totals of their groups."""

    def choose(self, chosen: Tensor, values: Tensor) -> None:
        """Write into `chosen` some value of each group."""


@dataclass(frozen=True, slots=True)
class OneGroup:
    """All rows are of group 0. `counted`: those that count, int64 [m]; None: all, of which there are `num_rows`."""

    num_rows: int
    counted: Tensor | None

    def floats(self, values: Tensor) -> Tensor:
        return (values if self.counted is None else take(values, self.counted)).to(torch.float64)

    def count(self, totals: Tensor) -> None:
        totals[:1] += self.num_rows if self.counted is None else self.counted.shape[0]

    def of_rows(self, of_groups: Tensor) -> Tensor:
        return of_groups[:1]

    def add(self, totals: Tensor, values: Tensor) -> None:
        totals[:1] += values.sum()

    def choose(self, chosen: Tensor, values: Tensor) -> None:
        chosen[:1] = values[:1]


@dataclass(frozen=True, slots=True)
class AnyGroups:
    """`ids`: int64 [n]; `narrow`: the same as they came, integers [n], which are counted faster."""

    ids: Tensor
    narrow: Tensor

    def floats(self, values: Tensor) -> Tensor:
        return values.to(torch.float64)

    def count(self, totals: Tensor) -> None:
        totals += count_by_group(self.narrow, totals.shape[0])

    def of_rows(self, of_groups: Tensor) -> Tensor:
        return of_groups if of_groups.shape[0] == 1 else take(of_groups, self.ids)

    def add(self, totals: Tensor, values: Tensor) -> None:
        totals.scatter_add_(0, self.ids, values)

    def choose(self, chosen: Tensor, values: Tensor) -> None:
        chosen.scatter_(0, self.ids, values)


@dataclass(frozen=True, slots=True)
class GroupsInRuns:
    """Rows of a group that stand together are added up before its total is touched, on the host."""

    ids: Tensor  # of each run, int64 [r]
    starts: Array  # int64 [r]
    lengths: Array  # int64 [r]

    def floats(self, values: Tensor) -> Tensor:
        return values.to(torch.float64)

    def count(self, totals: Tensor) -> None:
        totals.scatter_add_(0, self.ids, torch.from_numpy(self.lengths).to(torch.float64))

    def of_rows(self, of_groups: Tensor) -> Tensor:
        if of_groups.shape[0] == 1:
            return of_groups
        return torch.from_numpy(np.repeat(take(of_groups, self.ids).numpy(), self.lengths))

    def add(self, totals: Tensor, values: Tensor) -> None:
        totals.scatter_add_(0, self.ids, torch.from_numpy(np.add.reduceat(values.numpy(), self.starts)))

    def choose(self, chosen: Tensor, values: Tensor) -> None:
        chosen.scatter_(0, self.ids, take(values, torch.from_numpy(self.starts)))


def grouped_rows(group_ids: Tensor, num_groups: int, validity: Tensor | None, num_rows: int) -> GroupedRows:
    """Rows of groups, integers [n], or one for all rows; `validity`: those that count, bool [n], None: all."""
    if group_ids.shape[0] == 1 < num_rows:
        return OneGroup(num_rows, None if validity is None else row_indices(validity))
    ids = group_ids.to(torch.int64)
    if validity is not None:
        group_ids = ids = torch.where(validity, ids, num_groups)
    runs = long_runs(ids)
    if runs is None:
        return AnyGroups(ids, group_ids)
    starts = runs.first_rows
    return GroupsInRuns(take(ids, torch.from_numpy(starts)), starts, runs.lengths())
