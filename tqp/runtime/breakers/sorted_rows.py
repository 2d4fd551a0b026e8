"""Sorted rows of window functions, and the frames that calls look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import Tensor

from tqp.core.errors import UnsupportedError
from tqp.core.process.memory_budget import reserve
from tqp.operators.joins.pairs import pairs_at_once
from tqp.operators.memory.allocation import Map
from tqp.operators.windows import frames, value_bounds
from tqp.operators.windows.frames import Range
from tqp.operators.windows.partitions import Partitions
from tqp.planner.algebra.window_calls import BoundKind, Exclusion, FrameMode
from tqp.runtime.breakers.grouped_rows import GroupedRows, SomeRows
from tqp.runtime.frame import Frame

#: Frames of which each is a group of its own: rows that they hold together at once, and at all.
_ROWS_AT_ONCE, _MOST_ROWS = 1 << 21, 1 << 32
_Known = TypeVar("_Known")


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a frame; `column`: of the offsets, or of the values of the key at which it is."""

    kind: BoundKind
    column: int | None = None


@dataclass(frozen=True, slots=True)
class FrameSpec:
    """A frame, and the columns that it reads. `key`: of RANGE with offsets."""

    mode: FrameMode
    start: Bound
    end: Bound
    exclusion: Exclusion
    key: int | None = None
    descending: bool = False
    nulls_first: bool = False

    @property
    def is_partition(self) -> bool:
        kinds = self.start.kind, self.end.kind
        whole = BoundKind.UNBOUNDED_PRECEDING, BoundKind.UNBOUNDED_FOLLOWING
        return kinds == whole and self.exclusion is Exclusion.NO_OTHERS

    @property
    def starts_partition(self) -> bool:
        """Does it start with its partition?"""
        return self.start.kind is BoundKind.UNBOUNDED_PRECEDING

    @property
    def has_end_of_partition(self) -> bool:
        """Does it start or end with its partition, with all rows between?"""
        ends = self.end.kind is BoundKind.UNBOUNDED_FOLLOWING
        return (self.starts_partition or ends) and self.exclusion is Exclusion.NO_OTHERS


class SortedRows:
    """The rows in order, with their partitions; the frame of each that calls ask for is found once.

    `share`: how work is shared among threads.
    """

    def __init__(self, frame: Frame, partitions: Partitions, share: Map) -> None:
        self.frame, self.partitions, self.share = frame, partitions, share
        self.grouped = GroupedRows(frame, partitions.partitions.numbers, partitions.partitions.count)
        self._ranges: dict[FrameSpec, Sequence[Range]] = {}
        self.known: dict[object, Any] = {}  # what calls have found that others may read
        self._small: dict[FrameSpec, GroupedRows] = {}  # frames that are groups, all at once

    def ranges(self, spec: FrameSpec) -> Sequence[Range]:
        """The frame of each row, as ranges of rows in row order."""
        known = self._ranges.get(spec)
        if known is None:
            whole = frames.frame(self._bound(spec, spec.start, False), self._bound(spec, spec.end, True))
            known = self._ranges[spec] = frames.excluding(self.partitions, whole, spec.exclusion.value)
        return known

    def frames_as_groups(self, spec: FrameSpec) -> Iterator[GroupedRows]:
        """The rows of the frames of consecutive rows, each frame a group."""
        if spec in self._small:
            yield self._small[spec]
            return
        ranges = self.ranges(spec)
        num_rows = int(frames.count_rows(ranges).sum())
        if num_rows > _MOST_ROWS:
            raise UnsupportedError(
                f"frames of {num_rows:,} rows together are not supported for aggregates that look at each of them; "
                f"at most {_MOST_ROWS:,} are: narrow the frames, or the partitions"
            )
        device = self.partitions.rows.device
        for part in frames.parts_of_frames(
            ranges, lambda: min(_ROWS_AT_ONCE, pairs_at_once(_ROWS_AT_ONCE, device))
        ):
            reserve()
            numbers, rows = frames.rows_of_frames(part)
            grouped = SomeRows(self.grouped, rows, numbers, part[0].begins.shape[0])
            if num_rows <= _ROWS_AT_ONCE:
                self._small[spec] = grouped
            yield grouped

    def column(self, index: int) -> tuple[Any, Tensor | None]:
        """Values and validity of a column of the rows; no values for -1."""
        return self.grouped.column(index)

    def once(self, key: object, make: Callable[[], _Known]) -> _Known:
        """What several calls read is made for the first of them."""
        if key not in self.known:
            self.known[key] = make()
        found: _Known = self.known[key]
        return found

    def _bound(self, spec: FrameSpec, bound: Bound, is_end: bool) -> Tensor:
        rows, peers = self.partitions, self.partitions.peers
        match bound.kind:
            case BoundKind.UNBOUNDED_PRECEDING:
                return rows.begins
            case BoundKind.UNBOUNDED_FOLLOWING:
                return rows.ends
            case BoundKind.CURRENT_ROW:
                if spec.mode is FrameMode.ROWS:
                    return rows.rows + int(is_end)
                return peers.ends if is_end else peers.begins
        precedes = bound.kind is BoundKind.PRECEDING
        assert bound.column is not None
        offsets, validity = self.column(bound.column)
        if spec.mode is FrameMode.RANGE:
            assert spec.key is not None
            key = value_bounds.order_key(*self.column(spec.key), spec.descending, spec.nulls_first)
            codes = value_bounds.range_codes(offsets, spec.descending)
            return value_bounds.values_from(rows, key, codes, validity, precedes, is_end, self.share)
        away = frames.offsets(offsets, validity, f"{spec.mode.value} {bound.kind.value}")
        find = frames.rows_from if spec.mode is FrameMode.ROWS else frames.groups_from
        return find(rows, -away if precedes else away, is_end)
