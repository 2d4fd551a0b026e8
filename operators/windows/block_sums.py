"""Sums of ranges of rows in two look-ups for each, whatever its length; no value of another row has a part in one.

Rows stand in blocks of 2^k. A range that begins in one block and ends in the next is the sum of the rows from where it begins to the end
of the one, and that of the rows from the start of the other to where it ends (van Herk; Gil and Werman): both are running sums of
blocks, backwards and forwards. Where blocks have all rows of the longest range but one, each range crosses one boundary at
most. Those within a block cross the middle of it, or of its half, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tqp.operators.memory.allocation import Map, empty, one_by_one
from tqp.operators.numbers import elementwise
from tqp.operators.rows.selection import (
    count_true,
    row_indices,
    select_most,
    take,
    take_padded,
    take_selected,
)
from tqp.operators.windows.frames import Range, by_blocks, longest
from tqp.operators.windows.running import Combine, States

#: The part of the ranges of a block of them, so few of which wait for those of the other blocks.
_FEW = 16
#: Rows of blocks for each range, from which on it is asked which blocks are needed.
_SPARSE = 4


@dataclass(frozen=True, slots=True)
class Fold:
    """A reduction of columns of float64 to states, each float64 [n]: running values of the columns, or what those of terms make."""

    num_states: int
    neutral: float  # each state of no rows
    combine: Combine
    #: The states of single rows.
    leaves: Callable[[Sequence[Tensor]], States]
    #: torch.cumsum or its like, and what puts two of its values together.
    running: Callable[[Tensor, int], Tensor] = torch.cumsum
    join: Callable[[Tensor, Tensor], Tensor] = torch.add
    #: The terms of columns and of the values of some row of the same range, which broadcast.
    terms: Callable[[Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]] | None = None
    #: The states of the sums of terms, the values of that row, and how many rows there are.
    states: Callable[[Sequence[Tensor], Sequence[Tensor], Tensor], States] | None = None


def fold_ranges(fold: Fold, columns: Sequence[Tensor], ranges: Range, share: Map = one_by_one) -> States:
    """The states of the rows of each range, float64 [q]; of an empty one what is neutral."""

    def room(size: int) -> States:
        return tuple(empty((size,), torch.float64, columns[0].device) for _ in range(fold.num_states))

    def fill(part: Sequence[Range], rows: slice) -> tuple[Tensor]:
        few = part[0].begins.shape[0] // _FEW
        return (_fill(tuple(state[rows] for state in found), fold, columns, part[0], few) + rows.start,)

    found = room(ranges.begins.shape[0])
    (left,) = by_blocks(fill, [ranges], share, 4 * longest([ranges]))
    if left.shape[0]:
        of_left = room(left.shape[0])
        _fill(of_left, fold, columns, Range(take(ranges.begins, left), take(ranges.ends, left)), 0)
        _write(found, left, of_left)
    return found


def _fill(found: States, fold: Fold, columns: Sequence[Tensor], ranges: Range, few: int) -> Tensor:
    """Writes the states of ranges; the numbers of those that are left when they are few, int64."""
    begins, last = ranges.begins, ranges.ends - 1
    rows, width = torch.arange(begins.shape[0], device=begins.device), 0
    while begins.shape[0] > few:
        distances = last - begins
        most = int(distances.max())
        if most < 1:
            _write(found, rows, _alone(fold, columns, begins, last))
            return rows[:0]
        width = _width(distances, most, width)
        numbers = elementwise.floor_divide(last, width).clamp_(min=1)  # of the block on the right
        starts = numbers * width
        crosses = elementwise.less(begins, starts)
        crosses &= elementwise.greater_equal(last, starts)
        chosen, _, count = select_most(crosses, begins.shape[0])
        if count:
            of_chosen = (take_selected(each, chosen) for each in (begins, last, numbers))
            _write(found, take_selected(rows, chosen), _across(fold, columns, width, *of_chosen))
        inside = row_indices(~crosses)
        rows, begins, last = take(rows, inside), take(begins, inside), take(last, inside)
    return rows


def _width(distances: Tensor, most: int, within: int) -> int:
    """The rows of blocks of which each range crosses one boundary at most.

    `distances`: from the first to the last row of each, `most` of them at most. `within`: each is in one block of so many; 0: in any.
    """
    if not within and 2 * count_true(elementwise.equal(distances, most)) > distances.shape[0]:
        return most
    enough: int = 1 << (most - 1).bit_length()
    has_halves = within & (within - 1) == 0
    return min(enough, within // 2) if within and has_halves else enough


def _write(found: States, rows: Tensor, states: States) -> None:
    for state, new in zip(found, states, strict=True):
        state.index_copy_(0, rows, new)


def _alone(fold: Fold, columns: Sequence[Tensor], begins: Tensor, last: Tensor) -> States:
    """The states of single rows, or of none."""
    is_there = elementwise.less_equal(begins, last)
    rows = torch.where(is_there, begins, -1)
    leaves = fold.leaves([take_padded(column, rows) for column in columns])
    return tuple(torch.where(is_there, leaf, fold.neutral) for leaf in leaves)


def _across(
    fold: Fold, columns: Sequence[Tensor], width: int, begins: Tensor, last: Tensor, numbers: Tensor
) -> States:
    """The states of ranges, from their first rows to the last, that cross into the blocks with these numbers; of others anything."""
    blocks, places = _Blocks.of_numbers(numbers, width)
    of_left = [blocks.cut(column, -1).flip(1) for column in columns]
    of_right = [blocks.cut(column, 0) for column in columns]
    starts, first = numbers * width, places * width
    forwards = (last - starts).clamp_(min=0).add_(first)
    backwards = (starts - begins).sub_(1).clamp_(min=0).add_(first)

    def total(left: Tensor, right: Tensor) -> Tensor:
        behind, before = (fold.running(terms, 1).flatten() for terms in (left, right))
        return fold.join(take(behind, backwards), take(before, forwards))

    if fold.terms is None or fold.states is None:
        return tuple(map(total, of_left, of_right))
    # the first row of the block on the right, which all ranges have that cross into it
    inside = [block[:, :1] for block in of_right]
    sums = [*map(total, fold.terms(of_left, inside), fold.terms(of_right, inside))]
    counts = (last - begins).add_(1).to(torch.float64)
    return fold.states(sums, [take(each.flatten(), places) for each in inside], counts)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Blocks of `width` rows, `count` of them from the first one on, or only some of these (int64 [c])."""

    width: int
    first: int
    count: int
    only: Tensor | None

    @classmethod
    def of_numbers(cls, numbers: Tensor, width: int) -> tuple[_Blocks, Tensor]:
        """The blocks with these numbers, int64 [n], and the place of each number among them."""
        first, last = (int(extreme) for extreme in torch.aminmax(numbers))
        count, places = last - first + 1, numbers - first
        if count * width <= _SPARSE * numbers.shape[0]:
            return cls(width, first, count, None), places
        is_used = torch.zeros(count, dtype=torch.bool, device=numbers.device)
        only = row_indices(is_used.index_fill_(0, places, True))
        among = torch.empty_like(is_used, dtype=torch.int64)
        among.index_copy_(0, only, torch.arange(only.shape[0], device=only.device))
        return cls(width, first, count, only), take(among, places)

    def cut(self, column: Tensor, away: int) -> Tensor:
        """[c, width]: the blocks so many behind these, of a column [n]; any values for rows beyond the last one."""
        first = (self.first + away) * self.width
        rows = column[first : first + self.count * self.width]
        lacking = -rows.shape[0] % self.width
        if lacking:
            rows = torch.cat([rows, rows.new_zeros(lacking)])
        blocks = rows.view(-1, self.width)
        return blocks if self.only is None else take(blocks, self.only)
