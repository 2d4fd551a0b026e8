"""Group by what determines the group; the other keys are computed of it for each group, or taken from any of its rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tqp.planner.algebra.expressions import AggregateCall, ColumnRef
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan, Project
from tqp.planner.algebra.subquery_expressions import read_ids
from tqp.planner.rules.columns import reference, substitute
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.functional_dependencies import Dependencies, same_for_equal_inputs


def reduce_group_keys(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """GROUP BY o_orderkey, o_orderdate becomes GROUP BY o_orderkey with any_value(o_orderdate); GROUP BY x, x - 1 becomes GROUP BY x.

    Exact because all rows of a group then have one value (or all NULL) in the other keys.
    """
    return context.rewrite_each(plan, Aggregate, _reduced)


def _reduced(plan: Aggregate) -> LogicalPlan:
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
    known = {
        key.id: reference(field)
        for key, field in zip(plan.keys, plan.key_fields, strict=True)
        if isinstance(key, ColumnRef)
    }
    computed = [
        index
        for index in sorted(left_out)
        if not isinstance(plan.keys[index], ColumnRef) and read_ids(plan.keys[index]) <= known.keys()
    ]
    taken = sorted(left_out.difference(computed))
    calls = tuple([AggregateCall("any_value", (plan.keys[i],), plan.keys[i].data_type) for i in taken])
    grouped = replace(
        plan,
        key_fields=tuple([plan.key_fields[i] for i in kept]),
        keys=tuple([plan.keys[i] for i in kept]),
        aggregate_fields=(*plan.aggregate_fields, *[plan.key_fields[i] for i in taken]),
        aggregates=plan.aggregates + calls,
    )
    if not computed:
        return grouped
    return Project(
        grouped,
        (*grouped.schema, *[plan.key_fields[i] for i in computed]),
        (*map(reference, grouped.schema), *[substitute(plan.keys[i], known) for i in computed]),
    )
