"""Results of aggregates that are still to be made: of which accumulators, or of which row of a stored column."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tqp.core.frozen import dataclass
from tqp.runtime.lowering.graph_builder import Node
from tqp.runtime.lowering.stream import Space, StoredColumn, Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering


@dataclass(frozen=True, slots=True)
class Reference:
    """A column that is equal in all rows of a group, as a row of where it is stored; -1 for NULL if `padded`."""

    reduction: int
    stored: StoredColumn
    home: Space
    padded: bool


@dataclass(frozen=True, slots=True)
class Pending:
    """An aggregate whose accumulators are known: `finish(lowering, reduced values)` makes the result from them."""

    reductions: tuple[int, ...]
    finish: Callable[[ExpressionLowering, list[Node]], Value]
