"""Applies a function to every expression of a bound plan, subqueries' own plans excepted (the function sees to those)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from tqp.planner.algebra.expressions import AggregateCall, Expression
from tqp.planner.algebra.logical_plan import Aggregate, Filter, Join, LogicalPlan, Project, Sort, Values

_Node = TypeVar("_Node")


def map_expressions(plan: LogicalPlan, function: Callable[[Expression], Expression]) -> LogicalPlan:
    """The plan with `function` applied to each expression of each node."""
    inputs = plan.inputs
    changed = tuple(map_expressions(child, function) for child in inputs)
    if any(new is not old for new, old in zip(changed, inputs)):
        plan = plan.with_inputs(changed)
    match plan:
        case Filter():
            return _replaced(plan, condition=function(plan.condition))
        case Project():
            return _replaced(plan, outputs=_each(plan.outputs, function))
        case Join():
            return _replaced(plan, condition=function(plan.condition))
        case Values():
            return _replaced(plan, rows=tuple(_each(row, function) for row in plan.rows))
        case Sort():
            keys = tuple(_replaced(key, expression=function(key.expression)) for key in plan.keys)
            return _replaced(plan, keys=keys)
        case Aggregate():
            calls = tuple(_call(call, function) for call in plan.aggregates)
            return _replaced(plan, keys=_each(plan.keys, function), aggregates=calls)
        case _:
            return plan


def _each(
    expressions: tuple[Expression, ...], function: Callable[[Expression], Expression]
) -> tuple[Expression, ...]:
    return tuple(function(expression) for expression in expressions)


def _call(call: AggregateCall, function: Callable[[Expression], Expression]) -> AggregateCall:
    filter_ = None if call.filter is None else function(call.filter)
    return _replaced(call, arguments=_each(call.arguments, function), filter=filter_)


def _replaced(node: _Node, **changes: object) -> _Node:
    """`replace`, but the node itself where nothing changes."""
    if all(getattr(node, name) is value or getattr(node, name) == value for name, value in changes.items()):
        return node
    return replace(node, **changes)  # type: ignore[type-var]
