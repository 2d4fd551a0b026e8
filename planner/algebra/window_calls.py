"""Calls of window functions: what each computes for a row, from the frame of rows around it in its partition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from operator import is_

from tqp.core.datatypes import DataType
from tqp.planner.algebra.expressions import AggregateCall, Expression, HasExpressions, SortKey


class FrameMode(Enum):
    """What the offsets of a frame count."""

    ROWS = "ROWS"
    GROUPS = "GROUPS"  # of peers: rows that agree in ORDER BY
    RANGE = "RANGE"  # differences of the key of ORDER BY


class BoundKind(Enum):
    """Where a frame starts or ends. The current row stands for its peers unless ROWS are counted."""

    UNBOUNDED_PRECEDING = "UNBOUNDED PRECEDING"
    PRECEDING = "PRECEDING"
    CURRENT_ROW = "CURRENT ROW"
    FOLLOWING = "FOLLOWING"
    UNBOUNDED_FOLLOWING = "UNBOUNDED FOLLOWING"


class Exclusion(Enum):
    """Which rows a frame leaves out."""

    NO_OTHERS = "NO OTHERS"
    CURRENT_ROW = "CURRENT ROW"
    GROUP = "GROUP"  # the current row and its peers
    TIES = "TIES"  # the peers of the current row


@dataclass(frozen=True, slots=True)
class FrameBound(HasExpressions):
    """One end of a frame. `value`: how many rows or groups away it is; of RANGE, the value of the key at which it is."""

    kind: BoundKind
    value: Expression | None = None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return () if self.value is None else (self.value,)

    def map_expressions(self, function: Callable[[Expression], Expression]) -> FrameBound:
        if self.value is None:
            return self
        changed = function(self.value)
        return self if changed is self.value else replace(self, value=changed)


@dataclass(frozen=True, slots=True)
class WindowFrame(HasExpressions):
    """The rows that a call sees. `key`: of RANGE with offsets, the key of ORDER BY in the type of the bounds' values."""

    mode: FrameMode
    start: FrameBound
    end: FrameBound
    exclusion: Exclusion = Exclusion.NO_OTHERS
    key: Expression | None = None
    descending: bool = False  # is the key?

    @property
    def expressions(self) -> tuple[Expression, ...]:
        key = () if self.key is None else (self.key,)
        return (*key, *self.start.expressions, *self.end.expressions)

    def map_expressions(self, function: Callable[[Expression], Expression]) -> WindowFrame:
        key = None if self.key is None else function(self.key)
        start, end = self.start.map_expressions(function), self.end.map_expressions(function)
        if key is self.key and start is self.start and end is self.end:
            return self
        return replace(self, key=key, start=start, end=end)

    @property
    def is_partition(self) -> bool:
        """Is it the whole partition, for each row?"""
        return (
            self.start.kind is BoundKind.UNBOUNDED_PRECEDING
            and self.end.kind is BoundKind.UNBOUNDED_FOLLOWING
            and self.exclusion is Exclusion.NO_OTHERS
        )

    @property
    def has_current_row(self) -> bool:
        """Is the row itself among its rows, whatever these are?"""
        starts = (BoundKind.UNBOUNDED_PRECEDING, BoundKind.CURRENT_ROW)
        ends = (BoundKind.UNBOUNDED_FOLLOWING, BoundKind.CURRENT_ROW)
        excludes = self.exclusion in (Exclusion.CURRENT_ROW, Exclusion.GROUP)
        return self.start.kind in starts and self.end.kind in ends and not excludes


#: Every row of the partition; what functions see that take no frame.
WHOLE_PARTITION = WindowFrame(
    FrameMode.ROWS, FrameBound(BoundKind.UNBOUNDED_PRECEDING), FrameBound(BoundKind.UNBOUNDED_FOLLOWING)
)


@dataclass(frozen=True, slots=True)
class WindowCall(HasExpressions):
    """A window function of `planner/functions/windows.py`, or an aggregate over the rows of the frame."""

    function: str
    arguments: tuple[Expression, ...]
    data_type: DataType
    frame: WindowFrame = WHOLE_PARTITION
    ignore_nulls: bool = False
    distinct: bool = False
    filter: Expression | None = None
    span: tuple[int, int] | None = field(default=None, compare=False)
    order: tuple[SortKey, ...] = ()  # inside the call: of the rows of a frame

    @property
    def aggregate(self) -> AggregateCall:
        """The call as an aggregate of the rows of one frame."""
        return AggregateCall(
            self.function, self.arguments, self.data_type, self.distinct, self.filter, self.span, self.order
        )

    @property
    def expressions(self) -> tuple[Expression, ...]:
        filtered = () if self.filter is None else (self.filter,)
        order = (key.expression for key in self.order)
        return (*self.arguments, *filtered, *order, *self.frame.expressions)

    def map_expressions(self, function: Callable[[Expression], Expression]) -> WindowCall:
        arguments = tuple([function(argument) for argument in self.arguments])
        condition = None if self.filter is None else function(self.filter)
        frame = self.frame.map_expressions(function)
        order = tuple([key.map_expressions(function) for key in self.order])
        same = all(map(is_, (*arguments, *order), (*self.arguments, *self.order)))
        if same and condition is self.filter and frame is self.frame:
            return self
        return replace(self, arguments=arguments, filter=condition, frame=frame, order=order)
