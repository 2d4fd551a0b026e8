"""Conditions that rules write: conjunction, negation, the test for NULL; and the filter on them."""

from __future__ import annotations

from tqp.core.datatypes import BOOLEAN
from tqp.planner.algebra.expressions import Call, Expression, conjunction, conjuncts
from tqp.planner.algebra.logical_plan import Filter, LogicalPlan


def conjoin(*parts: Expression) -> Expression:
    """The AND of the parts' conjuncts, without repeats."""
    unique: dict[Expression, None] = {}
    for part in parts:
        unique.update(dict.fromkeys(conjuncts(part)))
    return conjunction(tuple(unique))


def filtered(plan: LogicalPlan, parts: tuple[Expression, ...]) -> LogicalPlan:
    """The rows of the plan on which all parts are true."""
    return Filter(plan, conjunction(parts)) if parts else plan


def negate(condition: Expression) -> Expression:
    """NOT condition."""
    return Call("not", (condition,), BOOLEAN)


def is_null(expression: Expression) -> Expression:
    """expression IS NULL."""
    return Call("is_null", (expression,), BOOLEAN)
