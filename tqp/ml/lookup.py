"""Categories: which one a number or code is, and tables with a row of features for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

import torch
from torch import Tensor, nn

from tqp.core.errors import ExecutionError
from tqp.ml.layers import Affine

T = TypeVar("T")

#: Positions of what is not a category: missing values, unseen ones; the categories follow, and unseen ones again.
MISSING, UNSEEN, FIRST = 0, 1, 2
#: Whole numbers this far apart are looked up by their difference to the smallest.
_DENSE = 1 << 12


class Codes(nn.Module):
    """Positions of whole numbers from `low` on; codes of strings are those from 0."""

    def __init__(self, low: int, count: int, may_be_fractional: bool) -> None:
        super().__init__()
        self.low, self.count, self.may_be_fractional = low, count, may_be_fractional

    def forward(self, numbers: Tensor) -> Tensor:
        """int32 [n] of floats [n]."""
        places = numbers + (FIRST - self.low)
        if self.may_be_fractional:
            places = torch.where(
                numbers.frac() == 0, places, torch.where(numbers.isnan(), torch.nan, float(UNSEEN))
            )
        places = places.clamp(UNSEEN, self.count + FIRST)
        return places.nan_to_num_(nan=MISSING).to(torch.int32)


class Among(nn.Module):
    """Positions of numbers among sorted ones."""

    def __init__(self, categories: Tensor) -> None:
        super().__init__()
        self.categories = nn.Buffer(categories)

    def forward(self, numbers: Tensor) -> Tensor:
        """int32 [n] of floats [n]."""
        numbers = numbers.contiguous()
        places = torch.searchsorted(self.categories, numbers, out_int32=True)
        places = places.clamp_(max=self.categories.shape[0] - 1)
        is_category = torch.index_select(self.categories, 0, places) == numbers
        found = torch.where(is_category, places + FIRST, UNSEEN)
        return found * ~numbers.isnan()


class Intervals(nn.Module):
    """Positions of intervals between sorted edges; one that begins with a number holds it."""

    def __init__(self, edges: Tensor) -> None:
        super().__init__()
        self.edges = nn.Buffer(edges)

    def forward(self, numbers: Tensor) -> Tensor:
        """int32 [n] of floats [n]."""
        places = torch.searchsorted(self.edges, numbers.contiguous(), right=True, out_int32=True)
        return places.add_(FIRST)


@dataclass(frozen=True)
class Category:
    """One feature's category. `place`: of the feature; `count`: of the categories that `finder` knows; `refuses`: the
    input, if it is an error that a category is unseen."""

    place: int
    finder: nn.Module
    count: int
    refuses: str | None = None

    def positions(self, features: Tensor) -> Tensor:
        """int32 [n] of features [n, f]. Raises ExecutionError if a category is unseen and that is refused."""
        found: Tensor = self.finder(features[:, self.place])
        if self.refuses is not None and self._has_unseen(found):
            raise ExecutionError(
                f'the input "{self.refuses}" has a category that the model was not fitted with, and its encoder refuses '
                f'them (handle_unknown="error"); leave such rows out with WHERE'
            )
        return found

    def _has_unseen(self, found: Tensor) -> bool:
        if found.shape[0] == 0:
            return False
        low, high = torch.aminmax(found)
        if int(low) >= FIRST and int(high) < self.count + FIRST:
            return False
        return bool(((found == UNSEEN) | (found == self.count + FIRST)).any())  # or some are missing


class ByCategory(nn.Module):
    """What one feature's category says: [n, f] to [n, width]."""

    def __init__(self, category: Category, table: Tensor, width: int | None = None) -> None:
        """`table` [count + 3, ...]: of missing values, unseen ones, each category, and unseen ones again."""
        super().__init__()
        self.category, self.finder = category, category.finder
        self.table = nn.Buffer(table)
        self.width = table.shape[1] if width is None else width

    def at(self, place: int) -> Self:
        """The same of another feature."""
        return type(self)(replace(self.category, place=place), self.table, self.width)

    def filled(self, value: float) -> Self:
        """As if missing values were this number."""
        table = self.table.clone()
        table[MISSING] = table[self.category.finder(torch.tensor([value], dtype=torch.float64))[0]]
        return type(self)(self.category, table, self.width)

    def then(self, module: nn.Module) -> Lookup | None:
        """What a module makes of the rows, looked up at once."""
        raise NotImplementedError


class Lookup(ByCategory):
    """The category's row of a table [count + 3, width]."""

    def forward(self, features: Tensor) -> Tensor:
        places = self.category.positions(features)
        if self.width == 1:
            return torch.index_select(self.table[:, 0], 0, places)[:, None]
        return torch.index_select(self.table, 0, places)

    def then(self, module: nn.Module) -> Lookup | None:
        return Lookup(self.category, module(self.table))


class OneHot(ByCategory):
    """A column for each category: 1 in that of the feature's, which the table int64 [count + 3] says, 0 in the others.

    All are 0 where it says `width`.
    """

    def forward(self, features: Tensor) -> Tensor:
        columns = torch.index_select(self.table, 0, self.category.positions(features))
        made = features.new_zeros((features.shape[0], self.width + 1))
        return made.scatter_(1, columns[:, None], 1.0)[:, : self.width]

    def then(self, module: nn.Module) -> Lookup | None:
        """Of a linear one its weights are the table."""
        if isinstance(module, Affine):
            weight = torch.cat([module.weight, module.weight.new_zeros((1, module.weight.shape[1]))])
            return Lookup(self.category, weight[self.table] + module.bias)
        if self.width > _DENSE:
            return None
        rows = torch.eye(self.width + 1, self.width, dtype=torch.float64)
        return Lookup(self.category, module(rows)[self.table])


def finder_of_numbers(categories: Sequence[float]) -> tuple[nn.Module, list[int], int]:
    """A finder of categories that are numbers, the position of each among those it knows, and how many these are."""
    if all(each.is_integer() for each in categories):
        whole = [int(each) for each in categories]
        low, high = min(whole, default=0), max(whole, default=-1)
        if high - low < _DENSE:
            return Codes(low, high - low + 1, True), [each - low for each in whole], high - low + 1
    ascending = sorted(categories)
    finder = Among(torch.tensor(ascending, dtype=torch.float64))
    return finder, [ascending.index(each) for each in categories], len(ascending)


def by_position(values: Sequence[T], places: Sequence[int], count: int, missing: T, unseen: T) -> list[T]:
    """What each position has, [count + 3]: `values` at `places` of categories, and what other positions get."""
    table = [unseen] * (count + FIRST + 1)
    for place, value in zip(places, values, strict=True):
        table[place + FIRST] = value
    table[MISSING] = missing
    return table
