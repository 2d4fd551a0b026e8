"""Calls of window functions: what each computes for a row, from the frame of rows around it in its partition."""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from tqp.core.datatypes import DataType
from tqp.core.frozen import dataclass
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

    EXPRESSIONS = ("value",)

    kind: BoundKind
    value: Expression | None = None


@dataclass(frozen=True, slots=True)
class WindowFrame(HasExpressions):
    """The rows that a call sees. `key`: of RANGE with offsets, the key of ORDER BY in the type of the bounds' values."""

    EXPRESSIONS = ("key", "start", "end")

    mode: FrameMode
    start: FrameBound
    end: FrameBound
    exclusion: Exclusion = Exclusion.NO_OTHERS
    key: Expression | None = None
    descending: bool = False  # is the key?

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

    EXPRESSIONS = ("arguments", "filter", "order", "frame")

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
