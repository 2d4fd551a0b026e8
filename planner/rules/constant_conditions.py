"""Conditions that read no column decide once whether there are rows, rather than for each row."""

from __future__ import annotations

from tqp.planner.algebra.expressions import (
    Expression,
    Parameter,
    Varying,
    conjunction,
    conjuncts,
    walk,
)
from tqp.planner.algebra.logical_plan import Filter, Join, JoinType, LogicalPlan, Values
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.functions.constants import OF_CONSTANTS
from tqp.planner.rules.context import OptimizerContext


def constant_conditions(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """A condition of constants that no rule could compute becomes the other side of a join, of one row or none.

    A join whose build side is empty does not run its probe side. What may raise stays where the rows are: there may be none.
    """

    def rewrite(node: Filter) -> LogicalPlan:
        if isinstance(node.input, Values):
            return node
        parts = conjuncts(node.condition)
        constant = tuple(part for part in parts if _is_of_constants(part))
        if not constant:
            return node
        others = tuple(part for part in parts if part not in constant)
        rows = Filter(node.input, conjunction(others)) if others else node.input
        decision = Filter(Values(((),), ()), conjunction(constant))
        return Join(rows, decision, JoinType.INNER)

    return context.rewrite_each(plan, Filter, rewrite)


def _is_of_constants(part: Expression) -> bool:
    return all(isinstance(each, _CONSTANTS) for each in walk(part)) and not may_raise(part, {})


_CONSTANTS = (*OF_CONSTANTS, Parameter, Varying)
