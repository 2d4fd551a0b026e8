"""Read no column for an input of a model that no result depends on."""

from __future__ import annotations

from dataclasses import replace

from tqp.core.datatypes import DOUBLE
from tqp.planner.algebra.expressions import Expression, Literal, Predict, transform
from tqp.planner.algebra.logical_plan import LogicalPlan
from tqp.planner.rules.context import OptimizerContext

_NOTHING = Literal(0.0, DOUBLE)


def ignore_unread_inputs(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """Inputs that a model ignores (weights of zero, features in no tree) become constants: nothing is read for them."""

    def ignore(expression: Expression) -> Expression:
        return transform(expression, without_unread)

    return context.rewrite(plan, lambda node: node.map_expressions(ignore) if node.scorings else node)


def without_unread(node: Expression) -> Expression:
    """A call with constants for the inputs that its model does not read; anything else as it is."""
    if not isinstance(node, Predict) or all(item.is_read for item in node.model.inputs):
        return node
    pairs = zip(node.model.inputs, node.arguments, strict=True)
    arguments = tuple(argument if item.is_read or item.size else _NOTHING for item, argument in pairs)
    return node if arguments == node.arguments else replace(node, arguments=arguments)
