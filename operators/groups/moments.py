"""Moments of groups, of which `moment_formulas` makes variances, correlations and the like: sums of powers of differences.

`group_ids`: integers [n] in [0, num_groups). `validity` (bool [n] or None): rows that count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.groups.aggregates import count_by_group, sum_by_group
from tqp.operators.groups.moment_rows import GroupedRows, GroupsInRuns, grouped_rows
from tqp.operators.numbers.logic import any_true
from tqp.operators.rows.selection import row_indices, take


class Differences(NamedTuple):
    """How far numbers are from the mean of their group, of the rows that count."""

    group_ids: Tensor  # int64 [m]
    counts: Tensor  # int64 [num_groups]
    values: Tensor  # float64 [m]
    squares: Tensor  # float64 [num_groups], their sums
    is_exact: bool = True  # or right for sums of squares and products only


#: How far a mean that is summed up once may be off, as a part of the values' size for each value of the group: in the squares of
#: differences that are 2 ** 26 times as large this is lost in rounding.
_UNSURE = 2.0**-52 * 2.0**26


def differences_by_group(
    values: Tensor,
    group_ids: Tensor,
    num_groups: int,
    validity: Tensor | None = None,
    *,
    for_squares: bool = False,
) -> Differences:
    """Of numbers [n], in three passes; in two `for_squares`, whose sums are as right then, as are those of products."""
    if validity is not None:
        rows = row_indices(validity)
        values, group_ids = take(values, rows), take(group_ids, rows)
    values, group_ids = values.to(torch.float64), group_ids.to(torch.int64)
    counts = count_by_group(group_ids, num_groups)
    divisors = counts.clamp(min=1)
    means = _means(values, group_ids, num_groups, divisors)
    if for_squares and is_host(values):
        found = Differences(group_ids, counts, *_with_squares(values, means, group_ids, num_groups), False)
        if _is_sure(found.squares, means, divisors):
            return found
    # What the mean lacks since it was rounded: values that are equal differ by 0 from what they have in common.
    means = means + sum_by_group(values - _of_rows(means, group_ids), group_ids, num_groups) / divisors
    return Differences(group_ids, counts, *_with_squares(values, means, group_ids, num_groups))


def _is_sure(squares: Tensor, means: Tensor, divisors: Tensor) -> bool:
    """Are sums of squares [num_groups] so large that it does not show how far the means may be off? `divisors`: the numbers of rows."""
    least = divisors * (means * divisors * _UNSURE).square()
    is_sure = (squares >= least) & (squares < math.inf)  # not of NaN
    return bool(((squares == 0) | is_sure).all())


def _with_squares(values: Tensor, means: Tensor, group_ids: Tensor, num_groups: int) -> tuple[Tensor, Tensor]:
    """How far the values are from the means of their groups, and the sums of the squares."""
    differences = values - _of_rows(means, group_ids)
    return differences, sum_by_group(differences * differences, group_ids, num_groups)


def _of_rows(of_groups: Tensor, group_ids: Tensor) -> Tensor:
    """The value of the group of each row; one group has one value, which broadcasts."""
    return of_groups if of_groups.shape[0] == 1 else take(of_groups, group_ids)


def second_moment(differences: Differences) -> Tensor:
    """float64 [num_groups]: sums of squared differences from the mean."""
    # a single infinity varies by 0, not by NaN
    return differences.squares.masked_fill(differences.counts < 2, 0.0)


def co_moment(ys: Differences, xs: Differences, num_groups: int) -> Tensor:
    """float64 [num_groups]: sums of the products of the differences of pairs, whose rows are the same."""
    return sum_by_group(ys.values * xs.values, ys.group_ids, num_groups)


def higher_moment(differences: Differences, num_groups: int, power: int) -> Tensor:
    """float64 [num_groups]: sums of the third or fourth power of the differences from the mean."""
    squares = differences.values * differences.values
    powers = squares * (differences.values if power == 3 else squares)
    return sum_by_group(powers, differences.group_ids, num_groups)


def _means(values: Tensor, group_ids: Tensor, num_groups: int, counts: Tensor) -> Tensor:
    means = sum_by_group(values, group_ids, num_groups) / counts
    overflown = ~means.isfinite()
    if any_true(overflown):  # the sum may be beyond all floats where the mean is not
        least = values.new_zeros(num_groups).scatter_reduce(0, group_ids, values, "amin", include_self=False)
        shares = (values - _of_rows(least, group_ids)) / _of_rows(counts, group_ids)
        means = torch.where(overflown, least + sum_by_group(shares, group_ids, num_groups), means)
    return means


# ---- states of batches, which merge ----

#: The power of the differences that a reduction adds up. The product of those of two columns is a `co_moment`.
POWERS = {"second_moment": 2, "third_moment": 3, "fourth_moment": 4}
#: The reduction, and the number of the column that it reads, or of both.
Moment: TypeAlias = tuple[str, tuple[int, ...]]
#: Rows of which differences are computed at once. Fewer stay in the cache, but are more calls, at each of which two threads meet at
#: the interpreter lock.
_BLOCK_ROWS = 262_144


class MomentStates(NamedTuple):
    """Moments of columns by group, of some rows. No digits cancel when they are merged (Chan, Golub and LeVeque; Pebay)."""

    counts: list[Tensor]  # by column, float64 [num_groups]
    means: list[Tensor]  # by column, float64 [num_groups]
    powers: list[
        list[Tensor]
    ]  # by column, sums of squares, cubes, ... of differences from the mean, float64 [num_groups] each
    products: dict[
        tuple[int, ...], Tensor
    ]  # by pair of columns, sums of products of the differences, float64 [num_groups]

    def moment(self, moment: Moment) -> Tensor:
        """float64 [num_groups]: as `second_moment`, `higher_moment` or `co_moment` of all rows."""
        kind, (column, *_) = moment
        if kind == "co_moment":
            return self.products[moment[1]]
        sums = self.powers[column][POWERS[kind] - 2]
        # a single infinity varies by 0, not by NaN
        return sums.masked_fill(self.counts[column] < 2, 0.0) if kind == "second_moment" else sums


def moment_states(
    columns: Sequence[tuple[Tensor, Tensor | None]],
    wanted: Sequence[Moment],
    group_ids: Tensor,
    num_groups: int,
) -> MomentStates:
    """Of columns of numbers [n] with their validity; both columns of a product have the same. Rows of group `num_groups` do not count.

    `group_ids`: integers [n], or one for all rows. Rows are read twice, block by block: for the means, and for the differences
    from these; where means may be off by more than is lost in rounding, twice more. Where groups are few, and their means near
    one number, once.
    """
    rows = _GroupedColumns(columns, wanted, group_ids, num_groups)
    at_once = rows.about_known_numbers()
    if at_once is not None:
        return at_once
    counts, means = rows.counts_and_means()
    sums, products = rows.sums_of_differences(means)
    divisors = [count.clamp(min=1) for count in counts]
    if not all(
        _is_sure(of_powers[2], *about) for of_powers, *about in zip(sums, means, divisors, strict=True)
    ):
        firsts, _ = rows.sums_of_differences(means, only_first=True)
        means = [mean + first[1] / n for mean, first, n in zip(means, firsts, divisors, strict=True)]
        sums, products = rows.sums_of_differences(means)
    # what the mean lacks changes sums of higher powers more than those of squares
    powers = [
        _about_mean(count, of_powers) if max(of_powers) > 2 else [of_powers[2]]
        for count, of_powers in zip(counts, sums, strict=True)
    ]
    return MomentStates(counts, means, powers, products)


def _about_mean(counts: Tensor, sums: Mapping[int, Tensor]) -> list[Tensor]:
    """Sums of squares, cubes, ... of differences from the mean, of those of differences (1) from a number near it and of their powers."""
    of_powers = {0: counts, **sums}
    lacks = -sums[1] / counts.clamp(min=1)
    return [_moved(of_powers, power, lacks) for power in range(2, max(sums) + 1)]


def _moved(sums: Mapping[int, Tensor], power: int, offset: Tensor) -> Tensor:
    """The sum of powers of numbers that are further by the offset, of sums of their lower powers; those that are not there are 0."""
    terms = (
        math.comb(power, lower) * sums[lower] * offset ** (power - lower)
        for lower in range(power)
        if lower in sums
    )
    return sums[power] + sum(terms)


class _Block(NamedTuple):
    """Rows that are read at once, by the validity of a column."""

    rows: slice
    by_validity: dict[int, GroupedRows]


class _GroupedColumns:
    """Columns whose moments are asked for, and the group of each row. They are read block by block."""

    def __init__(
        self,
        columns: Sequence[tuple[Tensor, Tensor | None]],
        wanted: Sequence[Moment],
        group_ids: Tensor,
        num_groups: int,
    ) -> None:
        self._columns, self._group_ids, self._num_groups = columns, group_ids, num_groups
        highest = [2] * len(columns)
        for kind, (column, *_) in wanted:
            highest[column] = max(highest[column], POWERS.get(kind, 2))
        self._powers = [[2] if power == 2 else [*range(1, power + 1)] for power in highest]
        self._pairs = [places for kind, places in wanted if kind == "co_moment"]
        self._scratch: dict[int, Tensor] = {}

    def about_known_numbers(self) -> MomentStates | None:
        """By differences of all rows from numbers that are known before, in one pass; None where groups are not few, or digits would cancel out.

        Of few rows of a group the mean is too often further from these numbers than they are from one another.
        """
        num_rows = self._columns[0][0].shape[0]
        are_few = self._num_groups * _ROWS_OF_FEW_GROUPS <= min(num_rows, _BLOCK_ROWS)
        if not (is_host(self._group_ids) and are_few):
            return None
        near = [self._known_number(*column) for column in self._columns]
        counts = {id(validity): self._zeros() for _, validity in self._columns}
        sums = [{power: self._zeros() for power in range(1, max(powers) + 1)} for powers in self._powers]
        products = {pair: self._zeros() for pair in self._pairs}
        of_columns = [counts[id(validity)] for _, validity in self._columns]
        for number, block in enumerate(self._blocks):
            for key, total in counts.items():
                block.by_validity[key].count(total)
            self._add_differences(block, near, sums, products)
            if number == 0 < len(self._blocks) - 2 and not _are_near(of_columns, sums):
                return None
        if not _are_near(of_columns, sums):
            return None
        divisors = [count.clamp(min=1) for count in of_columns]
        offsets = [of_powers[1] / divisor for of_powers, divisor in zip(sums, divisors, strict=True)]
        several = [count > 1 for count in of_columns]  # of one row nothing is left but what was rounded
        powers = [
            [(total * is_several)[:-1] for total in _about_mean(count, of_powers)]
            for count, of_powers, is_several in zip(of_columns, sums, several, strict=True)
        ]
        moved = {(y, x): (total - sums[y][1] * offsets[x]) * several[x] for (y, x), total in products.items()}
        return MomentStates(
            [count[:-1] for count in of_columns],
            [(middle + offset)[:-1] for middle, offset in zip(near, offsets, strict=True)],
            powers,
            {pair: of_groups[:-1] for pair, of_groups in moved.items()},
        )

    def _known_number(self, values: Tensor, validity: Tensor | None) -> Tensor:
        """One near all rows, float64 [1]; where groups stand together, and may be far apart, a value of each, float64 [num_groups + 1]."""
        blocks = [(block.rows, block.by_validity[id(validity)]) for block in self._blocks]
        if not any(isinstance(grouped, GroupsInRuns) for _, grouped in blocks):
            return _middle_of_some(values, validity)
        chosen = self._zeros()
        for rows, grouped in blocks:
            grouped.choose(chosen, grouped.floats(values[rows]))
        return chosen

    def counts_and_means(self) -> tuple[list[Tensor], list[Tensor]]:
        """Of each column, float64 [num_groups]."""
        counts = {id(validity): self._zeros() for _, validity in self._columns}
        sums = [self._zeros() for _ in self._columns]
        for block in self._blocks:
            for key, total in counts.items():
                block.by_validity[key].count(total)
            for (values, validity), total in zip(self._columns, sums, strict=True):
                rows = block.by_validity[id(validity)]
                rows.add(total, rows.floats(values[block.rows]))
        of_columns = [counts[id(validity)][:-1] for _, validity in self._columns]
        means = [total[:-1] / count.clamp(min=1) for total, count in zip(sums, of_columns, strict=True)]
        for column, mean in enumerate(means):
            if any_true(~mean.isfinite()):  # the sum may be beyond all floats where the mean is not
                means[column] = self._mean_of_large(column, of_columns[column].clamp(min=1))
        return of_columns, means

    def _mean_of_large(self, column: int, divisors: Tensor) -> Tensor:
        values, validity = self._columns[column]
        group_ids = self._group_ids.expand(values.shape[0])
        counted = row_indices(group_ids < self._num_groups, validity)
        floats, ids = take(values, counted).to(torch.float64), take(group_ids, counted).to(torch.int64)
        return _means(floats, ids, self._num_groups, divisors)

    def sums_of_differences(
        self, means: Sequence[Tensor], *, only_first: bool = False
    ) -> tuple[list[dict[int, Tensor]], dict[tuple[int, ...], Tensor]]:
        """Of differences from means: by column sums of their powers, as far as they are asked for, and sums of products of pairs."""
        powers = [[1]] * len(means) if only_first else self._powers
        sums = [{power: self._zeros() for power in of_column} for of_column in powers]
        products = {} if only_first else {pair: self._zeros() for pair in self._pairs}
        means = [torch.cat((mean, mean.new_zeros(1))) for mean in means]  # of the rows that do not count, any
        for block in self._blocks:
            self._add_differences(block, means, sums, products)
        kept = [{power: total[:-1] for power, total in of_powers.items()} for of_powers in sums]
        return kept, {pair: total[:-1] for pair, total in products.items()}

    def _add_differences(
        self,
        block: _Block,
        means: Sequence[Tensor],
        sums: Sequence[Mapping[int, Tensor]],
        products: Mapping[tuple[int, ...], Tensor],
    ) -> None:
        """Add what the rows of a block differ by from means to sums of powers and of products."""
        differences: list[Tensor] = []
        for column, ((values, validity), mean, of_powers) in enumerate(
            zip(self._columns, means, sums, strict=True)
        ):
            rows = block.by_validity[id(validity)]
            floats = rows.floats(values[block.rows])
            difference = torch.sub(floats, rows.of_rows(mean), out=self._written(column, floats))
            raised, power = difference, 1
            for wanted, total in of_powers.items():
                while power < wanted:
                    raised = torch.mul(raised, difference, out=self._written(-1, floats))
                    power += 1
                rows.add(total, raised)
            differences.append(difference)
        for (y, x), total in products.items():
            product = torch.mul(differences[y], differences[x], out=self._written(-1, differences[y]))
            block.by_validity[id(self._columns[y][1])].add(total, product)

    def _written(self, number: int, like: Tensor) -> Tensor:
        """A tensor of that size, which block after block is written to: it stays in the cache."""
        known = self._scratch.get(number)
        if known is None or known.shape[0] < like.shape[0]:
            known = self._scratch[number] = torch.empty_like(like)
        return known[: like.shape[0]]

    @cached_property
    def _blocks(self) -> list[_Block]:
        num_rows = self._columns[0][0].shape[0]
        at_once = _BLOCK_ROWS if is_host(self._group_ids) else max(1, num_rows)
        validities = {id(validity): validity for _, validity in self._columns}
        is_one = self._group_ids.shape[0] == 1 < num_rows
        blocks = []
        for first in range(0, num_rows, at_once):
            rows = slice(first, min(first + at_once, num_rows))
            ids = self._group_ids if is_one else self._group_ids[rows]
            of_block = {
                key: grouped_rows(
                    ids, self._num_groups, None if valid is None else valid[rows], rows.stop - rows.start
                )
                for key, valid in validities.items()
            }
            blocks.append(_Block(rows, of_block))
        return blocks

    def _zeros(self) -> Tensor:
        """Of the groups, and of rows that do not count."""
        return torch.zeros(self._num_groups + 1, dtype=torch.float64, device=self._group_ids.device)


#: Rows of a batch for each group from which on groups are few.
_ROWS_OF_FEW_GROUPS = 32
#: Of so many rows the median is near the means of the groups.
_SOME_ROWS = 1024
#: How many times as large as the sum of squares of differences from the mean what is taken off to get it may be: six bits are lost.
_NEAR = 64.0
#: The same where higher powers are asked for, of which more is lost.
_NEAR_OF_HIGHER = 1.0


def _middle_of_some(values: Tensor, validity: Tensor | None) -> Tensor:
    """The median of some of the numbers [n], which is no further from their mean than they deviate: float64 [1]."""
    step = max(1, values.shape[0] // _SOME_ROWS)
    some = values[::step].to(torch.float64)
    if validity is not None:
        some = some[validity[::step]]
    return some.median().unsqueeze(0) if some.shape[0] else some.new_zeros(1)


def _are_near(counts: Sequence[Tensor], sums: Sequence[Mapping[int, Tensor]]) -> bool:
    """Are all groups' means so near to what the sums of differences (1) and of their squares (2) are about that few digits cancel?"""
    for count, of_powers in zip(counts, sums, strict=True):
        taken_off = of_powers[1].square() / count.clamp(min=1)
        left = of_powers[2] - taken_off
        times = _NEAR if max(of_powers) == 2 else _NEAR_OF_HIGHER
        is_near = (taken_off <= times * left) & (left < math.inf)  # not of NaN
        if not bool((is_near | (count < 2) & left.isfinite())[:-1].all()):
            return False
    return True


def merge_moments(states: Sequence[MomentStates]) -> MomentStates:
    """Of the rows of all of them together."""
    if len(states) == 1:
        return states[0]
    counts, means, powers = list[Tensor](), list[Tensor](), list[list[Tensor]]()
    offsets: list[
        tuple[Tensor, Tensor]
    ] = []  # by column, [states, num_groups]: rows, and how far their mean is from that of all
    for column, of_column in enumerate(states[0].powers):
        rows = torch.stack([state.counts[column] for state in states])
        of_states = torch.stack([state.means[column] for state in states])
        total, known = rows.sum(0), rows > 0
        # beyond one that is there: means that are equal differ by 0 from what they have in common
        base = of_states.gather(0, known.to(torch.int8).argmax(0, keepdim=True))
        beyond = torch.where(known, of_states - base, 0.0)
        of_all = (rows * beyond).sum(0) / total.clamp(min=1)
        offset = torch.where(known, beyond - of_all, 0.0)
        sums = {0: rows}
        for place in range(len(of_column)):
            sums[place + 2] = torch.stack([state.powers[column][place] for state in states])
        powers.append([_moved(sums, place + 2, offset).sum(0) for place in range(len(of_column))])
        counts.append(total)
        means.append(base[0] + of_all)
        offsets.append((rows, offset))
    products = {}
    for pair in states[0].products:
        (rows, of_y), (_, of_x) = (offsets[column] for column in pair)
        own = torch.stack([state.products[pair] for state in states])
        products[pair] = (own + rows * of_y * of_x).sum(0)
    return MomentStates(counts, means, powers, products)
