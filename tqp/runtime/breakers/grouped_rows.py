"""Rows that are all there, with their groups: reductions of them, and what these share, such as a sort of rows within groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tqp.data.nested import Vector
from tqp.data.strings import Strings
from tqp.operators.groups import (
    aggregates,
    bit_strings,
    choices,
    distinct_pairs,
    frequencies,
    gradients,
    moments,
    quantiles,
)
from tqp.operators.groups.frequencies import Frequencies
from tqp.operators.groups.moments import Differences
from tqp.operators.groups.ordered import RowsInOrder, middle_rows, order_values
from tqp.operators.nested.elements import lists_of_groups
from tqp.operators.nested.layout import take_padded_values
from tqp.operators.nested.maps import histograms
from tqp.operators.rows import selection as rows
from tqp.operators.sorting.sort import SortColumn, sort_columns, sort_rows
from tqp.operators.string_keys import codes as string_codes
from tqp.operators.strings import layout as string_layout
from tqp.operators.strings.join_groups import join_entries_of_groups, join_groups
from tqp.runtime.breakers.collect import key_columns
from tqp.runtime.breakers.collect import order_values as comparable
from tqp.runtime.breakers.reductions import Order, Reduction, fold
from tqp.runtime.frame import Frame, FrameColumn, take_values


class _Rows(NamedTuple):
    """Which rows a reduction reads, as a key of what is known: the column, and that of which rows count, -1 for neither."""

    column: int
    counted: int


class GroupedRows:
    """Rows of a frame and the group of each: `ids` [n] from 0 to `count` - 1. `pools`: by slot, those of reductions."""

    def __init__(
        self, frame: Frame, ids: Tensor, count: int, pools: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        self.ids, self.count, self.pools, self._frame = ids, count, pools, frame
        self._narrowed: dict[object, SomeRows] = {}
        self._known: dict[object, Any] = {}

    def column(self, index: int) -> FrameColumn:
        """A column of the rows; no values for -1."""
        return FrameColumn(None, None) if index < 0 else self._frame.columns[index]

    def reduce(self, reduction: Reduction) -> Any:
        """One value for each group, a tensor or Strings [count]; what an empty group gets is unspecified."""
        if reduction.order:
            return self._in_order(reduction.order).reduce(replace(reduction, order=()))
        column = self.column(reduction.column)
        values, differentiable = column.values, gradients.REDUCTIONS.get(reduction.kind)
        if differentiable is not None and isinstance(values, Tensor) and values.requires_grad:
            return differentiable(values, self.ids, self.count, column.validity)
        if reduction.distinct:
            if reduction.kind == "count" and not reduction.whole:
                word = key_columns(FrameColumn(values, None))[0]
                return distinct_pairs.count_distinct_by_group(self.ids, self.count, word, column.validity)
            return self._distinct(reduction).reduce(replace(reduction, distinct=False, whole=()))
        if reduction.kind in _CHOICES:
            return self._chosen_values(reduction)
        if reduction.is_mergeable:
            index = 0 if reduction.column >= 0 else -1
            one = Frame(self.ids.shape[0], (column,))
            return fold(Reduction(reduction.kind, index), one, self.ids, self.count, None)
        return self._collected(reduction)

    def _collected(self, reduction: Reduction) -> Any:
        kind, (values, validity) = reduction.kind, self.column(reduction.column)
        assert values is not None
        if kind == "list":
            return lists_of_groups(values, validity, self.ids, self.count, self.validity(reduction))
        if kind == "histogram":
            counted = self._counted(reduction) if reduction.others else self._frequencies(reduction)
            keys = self.column(reduction.compared).values
            assert keys is not None
            return histograms(counted, Vector(values, None), keys, self.count)
        if kind == "entropy":
            return frequencies.entropy(self._frequencies(reduction), self.count)
        if kind == "string_agg":
            assert isinstance(reduction.parameter, str)
            how = self.ids, self.count, validity, reduction.parameter
            if isinstance(values, Strings):
                return join_groups(values, *how)
            return join_entries_of_groups(
                self.pools[reduction.pool], _tensor(self.column(reduction.column)), *how
            )
        if kind == "combined_bits":
            assert isinstance(values, Strings) and isinstance(reduction.parameter, str)
            return bit_strings.combined_by_group(values, self.ids, self.count, validity, reduction.parameter)
        assert isinstance(values, Tensor)
        if kind == "bitstring_agg":
            assert isinstance(reduction.parameter, bit_strings.BitRange)
            return bit_strings.bits_of_integers(values, self.ids, self.count, validity, reduction.parameter)
        if kind in quantiles.MEDIANS:
            return quantiles.MEDIANS[kind](values, self._ordered(reduction))
        if kind in quantiles.QUANTILES:
            assert isinstance(reduction.parameter, float)
            return quantiles.QUANTILES[kind](values, self._ordered(reduction), reduction.parameter)
        if kind in quantiles.DEVIATIONS:
            return quantiles.DEVIATIONS[kind](values, self.ids, self.count, validity)
        if kind == "second_moment":
            return moments.second_moment(self._differences(reduction.column))
        if kind in ("third_moment", "fourth_moment"):
            power = 3 if kind == "third_moment" else 4
            differences = self._differences(reduction.column, for_squares=False)
            return moments.higher_moment(differences, self.count, power)
        assert kind == "co_moment", kind
        ys, xs = (self._differences(each) for each in (reduction.column, *reduction.others))
        return moments.co_moment(ys, xs, self.count)

    # rows that are put in order, or of which some are left

    def _in_order(self, order: Order) -> SomeRows:
        """The rows group by group in the order of some columns."""
        known = self._narrowed.get(order)
        if known is None:
            columns = [column for index, *how in order for column in sort_columns(*self.column(index), *how)]
            rows_in_order = sort_rows([SortColumn(self.ids), *columns])
            known = self._narrowed[order] = SomeRows(self, rows_in_order)
        return known

    def _distinct(self, reduction: Reduction) -> SomeRows:
        """The rows that count, of those that agree in all that the reduction reads one for each group."""
        at, columns = self._place(reduction), reduction.whole or (reduction.compared, *reduction.others)
        known = self._narrowed.get((at, columns))
        if known is None:
            given = [self.column(index) for index in columns]
            if at.counted < 0:  # NULLs do not count
                given = [FrameColumn(each.values, None) for each in given]
            words = [word for each in given for word in key_columns(each)]
            chosen = distinct_pairs.one_of_each(self.ids, words, self.validity(reduction))
            known = self._narrowed[at, columns] = SomeRows(self, rows.row_indices(chosen))
        return known

    # what several reductions need

    def _place(self, reduction: Reduction) -> _Rows:
        return _Rows(reduction.compared, reduction.counted)

    def validity(self, reduction: Reduction) -> Tensor | None:
        """Which rows count, bool [n]; None: all."""
        if reduction.counted < 0:
            return self.column(reduction.column).validity
        counted = self.column(reduction.counted).values
        assert isinstance(counted, Tensor)
        return counted

    def _ordered(self, reduction: Reduction) -> RowsInOrder:
        """The rows that count in the order of their values, group by group."""
        at = self._place(reduction)
        known: RowsInOrder | None = self._known.get(("ordered", at))
        if known is None:
            validity = self.validity(reduction)
            values = comparable(FrameColumn(self.column(reduction.compared).values, validity))
            known = order_values(values, self.ids, self.count, validity)
            self._known["ordered", at] = known
        return known

    def _differences(self, index: int, *, for_squares: bool = True) -> Differences:
        """How far the valid numbers of a column are from the mean of their group; see `differences_by_group`."""
        known: Differences | None = self._known.get(("differences", index))
        if known is None or not (for_squares or known.is_exact):
            values, validity = self.column(index)
            assert isinstance(values, Tensor)
            known = moments.differences_by_group(
                values, self.ids, self.count, validity, for_squares=for_squares
            )
            self._known["differences", index] = known
        return known

    def _frequencies(self, reduction: Reduction) -> Frequencies:
        at = self._place(reduction)
        known: Frequencies | None = self._known.get(("frequencies", at))
        if known is None:
            words = key_columns(FrameColumn(self.column(reduction.compared).values, None))
            known = frequencies.frequencies(self.ids, words, self.validity(reduction))
            self._known["frequencies", at] = known
        return known

    def _counted(self, reduction: Reduction) -> Frequencies:
        """Of rows that are one for each value of a group, where another column says how often it occurs."""
        (counts,) = (_tensor(self.column(each)) for each in reduction.others)
        validity = self.validity(reduction)
        chosen = (
            torch.arange(self.ids.shape[0], device=self.ids.device)
            if validity is None
            else rows.row_indices(validity)
        )
        groups, counts = (rows.take(each, chosen).to(torch.int64) for each in (self.ids, counts))
        return Frequencies(groups, counts, chosen)

    # rows that are chosen

    def chosen_rows(self, reduction: Reduction) -> Tensor:
        """int64 [count]: the row of each group whose value a choice is, -1 for none."""
        key = replace(reduction, of_validity=False)
        chosen: Tensor | None = self._known.get(key)
        if chosen is None:
            chosen = self._known[key] = _CHOICES[reduction.kind](self, reduction)
        return chosen

    def _chosen_values(self, reduction: Reduction) -> Any:
        chosen = self.chosen_rows(reduction)
        values, validity = self.column(reduction.column)
        if reduction.of_validity:
            return rows.padding_validity(chosen, validity)
        assert values is not None
        return take_padded_values(values, chosen)

    def _first(self, reduction: Reduction) -> Tensor:
        return aggregates.first_by_group(self.ids, self.count, self.validity(reduction))

    def _last(self, reduction: Reduction) -> Tensor:
        return aggregates.last_by_group(self.ids, self.count, self.validity(reduction))

    def _first_extreme(self, reduction: Reduction) -> Tensor:
        (by,) = reduction.others
        values, validity = self.column(by)
        assert isinstance(values, Tensor | Strings)
        greatest, nulls_last = reduction.kind.startswith("arg_max"), reduction.kind.endswith("nulls_last")
        return choices.first_extreme_rows(
            values,
            self.ids,
            self.count,
            self.validity(reduction),
            greatest=greatest,
            nulls_last=validity if nulls_last else None,
        )

    def _extreme(self, reduction: Reduction) -> Tensor:
        values, validity = self.column(reduction.compared).values, self.validity(reduction)
        if isinstance(values, Strings):
            return _extreme_strings(reduction.kind, values, validity, self.ids, self.count)
        assert isinstance(values, Tensor)
        return choices.last_extreme_rows(
            values, self.ids, self.count, validity, greatest=reduction.kind == "greatest"
        )

    def _middle(self, reduction: Reduction) -> Tensor:
        return middle_rows(self._ordered(reduction))[0]

    def _quantile(self, reduction: Reduction) -> Tensor:
        assert isinstance(reduction.parameter, float)
        return quantiles.ROWS[reduction.kind](self._ordered(reduction), reduction.parameter)

    def _mode(self, reduction: Reduction) -> Tensor:
        return frequencies.most_frequent_rows(self._frequencies(reduction), self.count)


class SomeRows(GroupedRows):
    """Rows of others, in an order of their own; columns are taken when they are first asked for.

    `ids`, `count`: their groups, if these are others, too.
    """

    def __init__(
        self, all_rows: GroupedRows, chosen: Tensor, ids: Tensor | None = None, count: int | None = None
    ) -> None:
        super().__init__(
            Frame(chosen.shape[0], ()),
            rows.take(all_rows.ids, chosen) if ids is None else ids,
            all_rows.count if count is None else count,
            all_rows.pools,
        )
        self._all, self._rows, self._taken = all_rows, chosen, dict[int, FrameColumn]()

    def column(self, index: int) -> FrameColumn:
        known = self._taken.get(index)
        if known is None:
            column = self._all.column(index)
            known = FrameColumn(*(take_values(item, self._rows) for item in column))
            self._taken[index] = known
        return known


#: Reductions that are the value of a row, by kind: what finds the row of each group, int64 [count], -1 for none.
#: `first`, `last`: as the rows come. `least`, `greatest`: the last of the equal ones. `median_lower`: the lower of the two
#: middle values. `arg_min`, ...: the first of the rows with an extreme of another column.
_CHOICES: dict[str, Callable[[GroupedRows, Reduction], Tensor]] = {
    "first": GroupedRows._first,
    "last": GroupedRows._last,
    "least": GroupedRows._extreme,
    "greatest": GroupedRows._extreme,
    "median_lower": GroupedRows._middle,
    **dict.fromkeys(quantiles.ROWS, GroupedRows._quantile),
    "mode": GroupedRows._mode,
    **dict.fromkeys(
        ("arg_min", "arg_max", "arg_min_nulls_last", "arg_max_nulls_last"), GroupedRows._first_extreme
    ),
}


def _tensor(column: FrameColumn) -> Tensor:
    assert isinstance(column.values, Tensor)
    return column.values


def _extreme_strings(kind: str, values: Strings, validity: Tensor | None, ids: Tensor, count: int) -> Tensor:
    """A row with the least or greatest string of each group (0 for an empty one), without a sort: int64 [count]."""
    chosen = torch.zeros(count, dtype=torch.int64, device=ids.device)
    if count == 1:
        valid = None if validity is None else rows.row_indices(validity)
        candidates = values if valid is None else string_layout.take(values, valid)
        if candidates.num_rows:
            row = string_codes.extreme_row(candidates, greatest=kind == "greatest")
            chosen[0] = row if valid is None else valid[row]
        return chosen
    of_best, groups = string_codes.extreme_rows(values, validity, ids, count, greatest=kind == "greatest")
    return chosen.scatter_(0, groups, of_best)
