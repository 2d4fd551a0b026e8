"""Group by what determines the group; the keys that depend on it are taken from any row of the group."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tqp.planner.algebra.expressions import AggregateCall, ColumnRef
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan
from tqp.planner.algebra.subquery_expressions import read_ids
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.functional_dependencies import Dependencies, same_for_equal_inputs


def reduce_group_keys(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """GROUP BY o_orderkey, o_orderdate becomes GROUP BY o_orderkey with any_value(o_orderdate).

    Exact because all rows of a group then have one value (or all NULL) in the other keys.
    """
    return context.rewrite_each(plan, Aggregate, _reduced)


def _reduced(plan: Aggregate) -> Aggregate:
    if len(plan.keys) < 2:
        return plan
    dependencies = Dependencies.of(plan.input)
    left_out: set[int] = set()
    columns = Counter(key.id for key in plan.keys if isinstance(key, ColumnRef))  # of the keys that are kept
    # Strings and expressions go first: the cheapest key to group by is an integer column.
    for index in sorted(range(len(plan.keys)), key=lambda i: (not plan.keys[i].data_type.is_string, -i)):
        key = plan.keys[index]
        if len(left_out) == len(plan.keys) - 1 or not same_for_equal_inputs(key):
            continue
        others = columns - Counter((key.id,)) if isinstance(key, ColumnRef) else columns
        if read_ids(key) <= dependencies.closure(others):
            left_out.add(index)
            columns = others
    if not left_out:
        return plan
    kept = [index for index in range(len(plan.keys)) if index not in left_out]
    dropped = sorted(left_out)
    calls = tuple(AggregateCall("any_value", (plan.keys[i],), plan.keys[i].data_type) for i in dropped)
    return replace(
        plan,
        key_fields=tuple(plan.key_fields[i] for i in kept),
        keys=tuple(plan.keys[i] for i in kept),
        aggregate_fields=(*plan.aggregate_fields, *(plan.key_fields[i] for i in dropped)),
        aggregates=plan.aggregates + calls,
    )
