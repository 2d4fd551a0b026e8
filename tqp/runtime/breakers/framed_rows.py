"""Reductions of the rows of each frame that need not look at each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from tqp.operators.groups.aggregates import Which
from tqp.operators.nested.layout import take_padded_values
from tqp.operators.rows.selection import padding_validity
from tqp.operators.sorting.sort import SortColumn, sort_columns, sort_rows
from tqp.operators.windows import reductions, values
from tqp.operators.windows.occurrences import Occurrences
from tqp.runtime.breakers.collect import key_columns
from tqp.runtime.breakers.reductions import Reduction
from tqp.runtime.breakers.sorted_rows import FrameSpec, SortedRows
from tqp.runtime.frame import FrameColumn


class FramedRows:
    """Sorted rows, and a frame of each."""

    def __init__(self, rows: SortedRows, spec: FrameSpec) -> None:
        self.rows, self.spec, self.ranges = rows, spec, rows.ranges(spec)

    def reduce(self, reduction: Reduction) -> Any | None:
        """One value for each row, unspecified for a frame without any; None if there is no way but to look at each row of frames."""
        if reduction.distinct and (
            reduction.kind in _IN_ROW_ORDER or not self.spec.has_end_of_partition or reduction.order
        ):
            return None
        choose = _CHOICES.get(reduction.kind)
        if choose is not None:
            return self._chosen_values(reduction, choose)
        if reduction.order or reduction.of_validity:
            return None
        column, validity = self.rows.column(reduction.column)[0], self._validity(reduction)
        kernel = reductions.FRAME_REDUCTIONS.get(reduction.kind)
        if kernel is not None:
            return kernel(column, validity, self.ranges)
        which = _EXTREMES.get(reduction.kind)
        if which is None:
            return None
        if isinstance(column, Tensor) and column.dim() == 1:
            return reductions.extreme_frames(column, validity, self.rows.partitions, self.ranges, which)
        return take_padded_values(column, self._extreme_rows(sort_columns(column), validity, which))

    # rows that count

    def _validity(self, reduction: Reduction) -> Tensor | None:
        """Which rows count, bool [n]; None: all. Of DISTINCT, one for each value, nearest to the end of the partition that frames share."""
        counted = self.rows.grouped.validity(reduction)
        if not reduction.distinct:
            return counted
        read = reduction.whole or (reduction.column, *reduction.others)
        return self._occurrences(read, reduction).once(self.spec.starts_partition)

    def _occurrences(self, columns: tuple[int, ...], reduction: Reduction) -> Occurrences:
        """The rows that count by what they have in some columns."""

        def make() -> Occurrences:
            given = [FrameColumn(self.rows.column(index)[0], None) for index in columns]
            words = [word for each in given for word in key_columns(each)]
            return Occurrences(words, self.rows.grouped.validity(reduction), self.rows.partitions)

        return self.rows.once(("occurrences", columns, reduction.column, reduction.counted), make)

    # rows that are chosen

    def _chosen_values(
        self, reduction: Reduction, choose: Callable[[FramedRows, Reduction], Tensor | None]
    ) -> Any | None:
        key = ("chosen", self.spec, replace(reduction, of_validity=False))
        chosen = self.rows.once(key, lambda: choose(self, reduction))
        if chosen is None:
            return None
        column, validity = self.rows.column(reduction.column)
        return (
            padding_validity(chosen, validity)
            if reduction.of_validity
            else take_padded_values(column, chosen)
        )

    def _extreme_rows(self, columns: Sequence[SortColumn], validity: Tensor | None, which: Which) -> Tensor:
        """int64 [n]: the first row of each frame in the order of the columns, or the last; -1 of none."""
        order = sort_rows(columns)
        return reductions.extreme_rows(order, validity, self.rows.partitions, self.ranges, which)

    def _in_order(self, reduction: Reduction) -> list[SortColumn]:
        """The columns by which the rows of a frame are ordered for the call."""
        return [
            column
            for index, *how in reduction.order
            for column in sort_columns(*self.rows.column(index), *how)
        ]

    def _first(self, reduction: Reduction) -> Tensor:
        if reduction.order:
            return self._extreme_rows(self._in_order(reduction), self._validity(reduction), "amin")
        return values.nth_of_frame(self.ranges, 0, values.ValidRows(self._validity(reduction)))

    def _last(self, reduction: Reduction) -> Tensor:
        if reduction.order:
            return self._extreme_rows(self._in_order(reduction), self._validity(reduction), "amax")
        return values.last_of_frame(self.ranges, values.ValidRows(self._validity(reduction)))

    def _first_extreme(self, reduction: Reduction) -> Tensor:
        (by,) = reduction.others
        columns = sort_columns(*self.rows.column(by), reduction.kind.startswith("arg_max"), False)
        return self._extreme_rows([*columns, *self._in_order(reduction)], self._validity(reduction), "amin")

    def _mode(self, reduction: Reduction) -> Tensor | None:
        if reduction.order or not self.spec.has_end_of_partition:
            return None
        occurrences = self._occurrences((reduction.column,), reduction)
        return occurrences.modes(self.ranges, self.spec.starts_partition)


#: Reductions that are the value of a row, by kind, as in `GroupedRows`: what finds the row of each frame.
_CHOICES: dict[str, Callable[[FramedRows, Reduction], Tensor | None]] = {
    "first": FramedRows._first,
    "last": FramedRows._last,
    "mode": FramedRows._mode,
    **dict.fromkeys(
        ("arg_min", "arg_max", "arg_min_nulls_last", "arg_max_nulls_last"), FramedRows._first_extreme
    ),
}
#: Those of which it matters which of the rows with a value counts where it is DISTINCT.
_IN_ROW_ORDER = frozenset(_CHOICES)
_EXTREMES: dict[str, Which] = {"min": "amin", "least": "amin", "max": "amax", "greatest": "amax"}
