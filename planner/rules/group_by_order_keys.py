"""Group by bytes that stand for nested values; the values are taken from any row of the group."""

from __future__ import annotations

from dataclasses import replace

from tqp.core.datatypes import BLOB
from tqp.planner.algebra.expressions import AggregateCall, Call
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan
from tqp.planner.rules.context import OptimizerContext


def group_by_order_keys(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """GROUP BY a list becomes GROUP BY its order key with any_value(list), and so does DISTINCT.

    Exact because order keys are equal where the values are, NULL being NULL.
    """
    return context.rewrite_each(plan, Aggregate, lambda node: _by_order_keys(node, context))


def _by_order_keys(plan: Aggregate, context: OptimizerContext) -> Aggregate:
    if not any(key.data_type.is_composed for key in plan.keys):
        return plan
    key_fields, keys, taken = [], [], []
    for field, key in zip(plan.key_fields, plan.keys, strict=True):
        if key.data_type.is_composed:
            taken.append((field, AggregateCall("any_value", (key,), key.data_type)))
            key = Call("order_key", (key,), BLOB)
            field = context.new_field(f"key_{field.name}", BLOB, field.nullable)
        key_fields.append(field)
        keys.append(key)
    return replace(
        plan,
        key_fields=tuple(key_fields),
        keys=tuple(keys),
        aggregate_fields=(*plan.aggregate_fields, *(field for field, _ in taken)),
        aggregates=(*plan.aggregates, *(call for _, call in taken)),
    )
