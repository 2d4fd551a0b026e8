"""Group by what determines the group; the keys that depend on it are taken from any row of the group."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tqp.planner.algebra.expressions import AggregateCall, read_ids
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan
from tqp.planner.rules.functional_dependencies import Dependencies, same_for_equal_inputs

if TYPE_CHECKING:
    from tqp.planner.optimizer import OptimizerContext


def reduce_group_keys(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """GROUP BY o_orderkey, o_orderdate becomes GROUP BY o_orderkey with any_value(o_orderdate).

    Exact because all rows of a group then have one value (or all NULL) in the other keys.
    """

    def reduce(node: LogicalPlan) -> LogicalPlan:
        node = context.rewrite_inputs(node, reduce)
        if isinstance(node, Aggregate) and len(node.keys) > 1:
            return _reduced(node, context)
        return node

    return reduce(plan)


def _reduced(plan: Aggregate, context: OptimizerContext) -> Aggregate:
    dependencies = Dependencies.of(plan.input)
    kept = list(range(len(plan.keys)))
    # Strings and expressions go first: the cheapest key to group by is an integer column.
    for index in sorted(kept, key=lambda i: (not plan.keys[i].data_type.is_string, -i)):
        if not same_for_equal_inputs(plan.keys[index]):
            continue
        others = [plan.keys[i] for i in kept if i != index]
        known = {identifier for key in others for identifier in dependencies.ids_of(key)}
        if others and read_ids(plan.keys[index]) <= dependencies.closure(known):
            kept.remove(index)
    if len(kept) == len(plan.keys):
        return plan
    dropped = [i for i in range(len(plan.keys)) if i not in kept]
    calls = tuple(AggregateCall("any_value", (plan.keys[i],), plan.keys[i].data_type) for i in dropped)
    return replace(
        plan,
        key_fields=tuple(plan.key_fields[i] for i in kept),
        keys=tuple(plan.keys[i] for i in kept),
        aggregate_fields=(*plan.aggregate_fields, *(plan.key_fields[i] for i in dropped)),
        aggregates=plan.aggregates + calls,
    )
