"""Nearest join: of the build rows with a probe row's key, the one whose value is next to the probe row's.

Key and value are one word, by which build rows are sorted and probe rows are searched for: each is told by where it lies among
those of the build side, so that whatever range they have, both fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from tqp.operators.joins.sorted_search import MANY_KEYS, first_places, nearly_ascending
from tqp.operators.numbers.elementwise import subtract
from tqp.operators.numbers.logic import all_true
from tqp.operators.rows.keys import is_ascending, sort_bounded, sort_codes
from tqp.operators.rows.runs import Runs
from tqp.operators.rows.selection import row_indices, take

_LOWER = ("less", "less_equal")  # of the build's value: the greatest is nearest
_STRICT = ("less", "greater")
_LARGEST = 2**63 - 1


class Places(Protocol):
    """Where any integers, int64 [n], lie among those of the build side: in their order, equal for equal ones of the build only."""

    @property
    def size(self) -> int: ...

    def of(self, words: Tensor) -> Tensor:
        """int64 [n], each in [0, size)."""


@dataclass(frozen=True, slots=True)
class Distances:
    """From the least of the build side; what is less or greater than all of them lies before or behind."""

    low: int
    high: int

    @property
    def size(self) -> int:
        return self.high - self.low + 3

    def of(self, words: Tensor) -> Tensor:
        inside = words.clamp(self.low, self.high)
        return subtract(inside, self.low).add_(words >= self.low).add_(words > self.high)


@dataclass(frozen=True, slots=True)
class Ranks:
    """Among the different ones of the build side, which have the odd numbers, and the gaps between them the even ones."""

    words: Tensor  # int64 [k], ascending

    @property
    def size(self) -> int:
        return 2 * self.words.shape[0] + 1

    def of(self, words: Tensor) -> Tensor:
        first = _found(self.words, words, after_equal=False).to(torch.int64)
        equal = take(self.words, first.clamp(max=self.words.shape[0] - 1)) == words
        return first.mul_(2).add_(equal)


@dataclass(frozen=True, slots=True)
class NearestBuild:
    """`words` are the different places of keys and values, ascending; `rows` the first build row of each."""

    places: tuple[Places, ...]  # of the key, if there is one, then of the value
    words: Tensor  # int64 [k]
    rows: Tensor  # int32 [k]
    comparison: str
    unique: ClassVar[bool] = True

    def first_match(self, columns: Sequence[Tensor], validity: Tensor | None = None) -> Tensor:
        """int32 [n]: the nearest build row of each probe row, or -1. `columns`: its key, if there is one, and value."""
        num_words = self.words.shape[0]
        if num_words == 0:
            return torch.full(columns[0].shape, -1, dtype=torch.int32, device=columns[0].device)
        least = _least_words(self.places, columns)
        words = _words(least, self.places, columns)
        is_lower = self.comparison in _LOWER
        # the number of words that are less, or are no greater: the last of these, or the one behind them, is nearest
        found = _found(self.words, words, after_equal=is_lower != (self.comparison in _STRICT))
        found = found.sub_(1) if is_lower else found
        is_there = found >= 0 if is_lower else found < num_words
        found.clamp_(0, num_words - 1)
        if least is not None:
            nearest = take(self.words, found)
            is_there &= nearest >= least if is_lower else nearest < least.add_(self.places[-1].size)
        if validity is not None:
            is_there &= validity
        return torch.where(is_there, take(self.rows, found), -1)


def build_nearest(comparison: str, columns: Sequence[Tensor], validity: Tensor | None = None) -> NearestBuild:
    """Sorts the build rows by key, if there is one, and value (integers [n] each); rows of a NULL are left out.

    `comparison`: of the build's value with the probe's, 'less', 'less_equal', 'greater' or 'greater_equal'.
    """
    columns = [column.to(torch.int64) for column in columns]
    rows = None if validity is None or all_true(validity) else row_indices(validity)
    if rows is not None:
        columns = [take(column, rows) for column in columns]
    if columns[0].shape[0] == 0:
        nothing = columns[0]
        return NearestBuild((), nothing, nothing.to(torch.int32), comparison)
    places = _places(columns)
    words = _words(_least_words(places, columns), places, columns)
    ordered, order = (words, None) if is_ascending(words) else sort_bounded(words, _size(places))
    ordered = ordered.to(torch.int64)
    different = Runs(ordered).first_rows
    first = different if order is None else take(order, different)
    first = first if rows is None else take(rows, first)
    return NearestBuild(places, take(ordered, different), first.to(torch.int32), comparison)


def _places(columns: Sequence[Tensor]) -> tuple[Places, ...]:
    """Distances where words of all columns hold them, else ranks of values, or of keys too."""
    extremes = torch.stack([torch.stack(torch.aminmax(column)) for column in columns]).tolist()
    places: list[Distances | Ranks] = [Distances(low, high) for low, high in extremes]
    for position in reversed(range(len(columns))):
        if _size(places) <= _LARGEST:
            break
        ordered, _ = sort_codes(columns[position])
        places[position] = Ranks(take(ordered, Runs(ordered).first_rows))
    return tuple(places)


def _size(places: Sequence[Places]) -> int:
    return math.prod(each.size for each in places)


def _least_words(places: Sequence[Places], columns: Sequence[Tensor]) -> Tensor | None:
    """int64 [n]: the least word with each row's key; None if there are no keys."""
    if len(columns) == 1:
        return None
    return places[0].of(columns[0].to(torch.int64)).mul_(places[1].size)


def _words(least: Tensor | None, places: Sequence[Places], columns: Sequence[Tensor]) -> Tensor:
    """int64 [n]: the places of a row's key and value as one word."""
    own = places[-1].of(columns[-1].to(torch.int64))
    return own if least is None else own.add_(least)


def _found(ordered: Tensor, words: Tensor, *, after_equal: bool) -> Tensor:
    """As `first_places`, of words in any order."""
    order = nearly_ascending(words) if ordered.shape[0] >= MANY_KEYS else None
    if order is None:
        return first_places(ordered, words.contiguous(), after_equal=after_equal)
    found = first_places(ordered, take(words, order), after_equal=after_equal)
    return torch.empty_like(found).scatter_(0, order, found)
