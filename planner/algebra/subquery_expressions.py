"""Expressions with a plan of their own, which exist only until the unnesting rule has run."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from tqp.core.datatypes import BOOLEAN, DataType
from tqp.core.frozen import dataclass
from tqp.planner.algebra.derived import derived_once
from tqp.planner.algebra.expressions import ColumnRef, Expression, walk

if TYPE_CHECKING:
    from tqp.planner.algebra.logical_plan import LogicalPlan


@dataclass(frozen=True, slots=True)
class ScalarSubquery(Expression):
    """(SELECT one column): NULL for no row, an ExecutionError for more than one."""

    plan: LogicalPlan
    data_type: DataType
    span: tuple[int, int] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Exists(Expression):
    plan: LogicalPlan

    @property
    def data_type(self) -> DataType:
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class QuantifiedComparison(Expression):
    """operand <comparison> ANY|ALL (plan). IN is `equal` ANY, NOT IN is `not` around that.

    `operands` pair up with the plan's output columns (row IN has several, with `equal` only), already of one type.
    """

    comparison: str  # equal, not_equal, less, less_equal, greater, greater_equal
    is_all: bool
    operands: tuple[Expression, ...]
    plan: LogicalPlan

    @property
    def data_type(self) -> DataType:
        return BOOLEAN

    @property
    def inputs(self) -> tuple[Expression, ...]:
        return self.operands

    def with_inputs(self, inputs: tuple[Expression, ...]) -> Expression:
        return replace(self, operands=inputs)


Subquery = ScalarSubquery | Exists | QuantifiedComparison
SUBQUERIES = frozenset((ScalarSubquery, Exists, QuantifiedComparison))


@derived_once
def read_ids(expression: Expression) -> frozenset[int]:
    """Ids of the columns an expression reads, those that its subqueries read from outside included."""
    found: set[int] = set()
    left = [expression]
    while left:
        node = left.pop()
        if isinstance(node, ColumnRef):
            found.add(node.id)
            continue
        if isinstance(node, Subquery):
            found |= node.plan.free_ids
        left += node.inputs
    return frozenset(found)


@derived_once
def has_subquery(expression: Expression) -> bool:
    """Does a subquery stand anywhere in the expression?"""
    return any(isinstance(node, Subquery) for node in walk(expression))
