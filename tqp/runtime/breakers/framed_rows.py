"""Reductions of the rows of each frame that need not look at each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from tqp.data.nested import Lists, Vector
from tqp.data.strings import Strings
from tqp.operators.groups import quantiles
from tqp.operators.groups.aggregates import Which
from tqp.operators.groups.ordered import middle_rows
from tqp.operators.nested.elements import lists_of_runs
from tqp.operators.nested.layout import take_padded_values
from tqp.operators.rows.selection import padding_validity
from tqp.operators.sorting.sort import SortColumn, sort_columns, sort_rows
from tqp.operators.strings.join_groups import join_runs
from tqp.operators.windows import reductions, values
from tqp.operators.windows.folds import FRAME_FOLDS, moment_frames, pair_moment_frames
from tqp.operators.windows.occurrences import Occurrences
from tqp.operators.windows.ordered import OrderedFrames, OrderedPieces, PlacesInFrames, half_of_pieces
from tqp.operators.windows.reductions import FRAME_REDUCTIONS
from tqp.runtime.breakers.collect import key_columns
from tqp.runtime.breakers.reductions import Order, Reduction
from tqp.runtime.breakers.sorted_rows import FrameSpec, SortedRows
from tqp.runtime.frame import FrameColumn


class FramedRows:
    """Sorted rows, and a frame of each."""

    def __init__(self, rows: SortedRows, spec: FrameSpec) -> None:
        self.rows, self.spec, self.ranges = rows, spec, rows.ranges(spec)

    def reduce(self, reduction: Reduction) -> Any | None:
        """One value for each row, unspecified for a frame without any; None if there is no way but to look at each row of frames."""
        if reduction.distinct and not self.spec.has_end_of_partition and reduction.kind == "count":
            return self._count_distinct(reduction)
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
        kernel = FRAME_REDUCTIONS.get(reduction.kind)
        if kernel is not None:
            return kernel(column, validity, self.ranges)
        fold = FRAME_FOLDS.get(reduction.kind)
        if fold is not None:
            return fold(column, validity, self.rows.partitions, self.ranges, self.rows.share)
        if reduction.kind == "co_moment" or reduction.kind in _POWERS:
            return self._moment(reduction, validity)
        which = _EXTREMES.get(reduction.kind)
        if which is not None:
            if isinstance(column, Tensor) and column.dim() == 1:
                return reductions.extreme_frames(column, validity, self.rows.partitions, self.ranges, which)
            columns = sort_columns(self.rows.column(reduction.compared)[0])
            return take_padded_values(column, self._extreme_rows(columns, validity, which))
        if reduction.kind in quantiles.MEDIANS:
            return quantiles.MEDIANS[reduction.kind](column, self._ordered(reduction))
        if reduction.kind in quantiles.QUANTILES:
            assert isinstance(reduction.parameter, float)
            return quantiles.QUANTILES[reduction.kind](column, self._ordered(reduction), reduction.parameter)
        if reduction.kind in ("list", "string_agg") and len(self.ranges) == 1:
            return self._run(reduction)
        return None

    def places(self, order: Order) -> PlacesInFrames:
        """Where each row stands in its frame by an order inside a call; no rows are excluded."""
        rows = self.rows

        def make() -> tuple[OrderedPieces, list[Tensor]]:
            keys = [FrameColumn(*rows.column(index)) for index, *_ in order]
            words = [word for key in keys for word in key_columns(key)]
            return OrderedPieces(self._in_order(order), None, rows.partitions), words

        (frames,) = self.ranges
        return PlacesInFrames(*rows.once(("places", order), make), rows.partitions, frames, rows.share)

    def _run(self, reduction: Reduction) -> Lists | Strings:
        """A list or a text of the rows that count of a frame, which stand together: a part of that of all rows."""
        column, validity = self.rows.column(reduction.column)
        counted = values.ValidRows(self._validity(reduction))
        of_counted, validity = counted.only_of(Vector(column, validity))
        begins, ends = counted.among(self.ranges[0])
        if reduction.kind == "list":
            return lists_of_runs(of_counted, validity, begins, ends)
        assert isinstance(of_counted, Strings) and isinstance(reduction.parameter, str)
        return join_runs(of_counted, begins, ends, reduction.parameter)

    # rows that count

    def _validity(self, reduction: Reduction) -> Tensor | None:
        """Which rows count, bool [n]; None: all. Of DISTINCT, one for each value, nearest to the end of the partition that frames share."""
        counted = self.rows.grouped.validity(reduction)
        if not reduction.distinct:
            return counted
        read = reduction.whole or (reduction.compared, *reduction.others)
        return self._occurrences(read, reduction).once(self.spec.starts_partition)

    def _occurrences(self, columns: tuple[int, ...], reduction: Reduction) -> Occurrences:
        """The rows that count by what they have in some columns."""

        def make() -> Occurrences:
            given = [FrameColumn(self.rows.column(index)[0], None) for index in columns]
            words = [word for each in given for word in key_columns(each)]
            return Occurrences(words, self.rows.grouped.validity(reduction), self.rows.partitions)

        return self.rows.once(("occurrences", columns, reduction.column, reduction.counted), make)

    def _count_distinct(self, reduction: Reduction) -> Tensor | None:
        if len(self.ranges) > 1:
            return None
        occurrences = self._occurrences(reduction.whole or (reduction.compared,), reduction)
        return occurrences.count_values(self.ranges[0], self.rows.share)

    def _ordered(self, reduction: Reduction) -> OrderedFrames:
        """The rows that count of each frame in the order of their values."""

        half = half_of_pieces(self.ranges, self.rows.partitions)

        def make() -> OrderedPieces:
            columns = sort_columns(self.rows.column(reduction.compared)[0])
            return OrderedPieces(columns, self._validity(reduction), self.rows.partitions, half)

        from_start = self.spec.starts_partition if reduction.distinct else None
        key = ("ordered", reduction.column, reduction.counted, reduction.whole, from_start, half)
        return OrderedFrames(self.rows.once(key, make), self.ranges, self.rows.share)

    def _moment(self, reduction: Reduction, validity: Tensor | None) -> Tensor:
        """A sum of powers of differences from the mean; what is found on the way to it is kept for reductions that come after."""
        known = self.rows.known
        if (self.spec, reduction) not in known:
            column, share = reduction.column, self.rows.share
            values = self.rows.column(column)[0]
            frames = validity, self.rows.partitions, self.ranges
            if reduction.others:
                (other,) = reduction.others
                found = pair_moment_frames(values, self.rows.column(other)[0], *frames, share)
                names = [("second_moment", column), ("second_moment", other)]
            else:
                found = moment_frames(values, *frames, _POWERS[reduction.kind], share)
                names = [(kind, column) for kind in _POWERS]
            for (kind, place), sums in zip(names, found, strict=False):
                known[self.spec, replace(reduction, kind=kind, column=place, others=())] = sums
            known[self.spec, reduction] = found[-1]
        moment: Tensor = known[self.spec, reduction]
        return moment

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

    def _in_order(self, order: Order) -> list[SortColumn]:
        """The columns by which the rows of a frame are ordered for the call."""
        return [column for index, *how in order for column in sort_columns(*self.rows.column(index), *how)]

    def _first(self, reduction: Reduction) -> Tensor:
        if reduction.order:
            return self._extreme_rows(self._in_order(reduction.order), self._validity(reduction), "amin")
        return values.nth_of_frame(self.ranges, 0, values.ValidRows(self._validity(reduction)))

    def _last(self, reduction: Reduction) -> Tensor:
        if reduction.order:
            return self._extreme_rows(self._in_order(reduction.order), self._validity(reduction), "amax")
        return values.last_of_frame(self.ranges, values.ValidRows(self._validity(reduction)))

    def _first_extreme(self, reduction: Reduction) -> Tensor:
        (by,) = reduction.others
        columns = sort_columns(*self.rows.column(by), reduction.kind.startswith("arg_max"), False)
        return self._extreme_rows(
            [*columns, *self._in_order(reduction.order)], self._validity(reduction), "amin"
        )

    def _middle(self, reduction: Reduction) -> Tensor:
        return middle_rows(self._ordered(reduction))[0]

    def _quantile(self, reduction: Reduction) -> Tensor:
        assert isinstance(reduction.parameter, float)
        return quantiles.ROWS[reduction.kind](self._ordered(reduction), reduction.parameter)

    def _mode(self, reduction: Reduction) -> Tensor | None:
        if reduction.order or not self.spec.has_end_of_partition:
            return None
        occurrences = self._occurrences((reduction.compared,), reduction)
        return occurrences.modes(self.ranges, self.spec.starts_partition)


#: Reductions that are the value of a row, by kind, as in `GroupedRows`: what finds the row of each frame.
_CHOICES: dict[str, Callable[[FramedRows, Reduction], Tensor | None]] = {
    "first": FramedRows._first,
    "last": FramedRows._last,
    "median_lower": FramedRows._middle,
    **dict.fromkeys(quantiles.ROWS, FramedRows._quantile),
    "mode": FramedRows._mode,
    **dict.fromkeys(
        ("arg_min", "arg_max", "arg_min_nulls_last", "arg_max_nulls_last"), FramedRows._first_extreme
    ),
}
_POWERS = {"second_moment": 2, "third_moment": 3, "fourth_moment": 4}
#: Those of which it matters which of the rows with a value counts where it is DISTINCT.
_IN_ROW_ORDER = frozenset(("list", "string_agg", *_CHOICES)) - {"median_lower", *quantiles.ROWS}
_EXTREMES: dict[str, Which] = {"min": "amin", "least": "amin", "max": "amax", "greatest": "amax"}
