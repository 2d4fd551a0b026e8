"""Group the right side of a left join by the join key before joining, where every group is one left row."""

from __future__ import annotations

from dataclasses import replace

from tqp.core.datatypes import BOOLEAN
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import AggregateCall, Call, ColumnRef, Expression, Literal, conjunction
from tqp.planner.algebra.logical_plan import Aggregate, Join, JoinType, LogicalPlan, Project
from tqp.planner.algebra.may_raise import aggregate_may_raise
from tqp.planner.functions.registry import AGGREGATES
from tqp.planner.rules.columns import key_field, reference
from tqp.planner.rules.context import OptimizerContext

#: A join that keeps fewer of the right rows than this is done first: it leaves less to group.
_LEAST_SHARE = 0.5


def group_before_join(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """SELECT c.id, count(o.id) FROM c LEFT JOIN o ON c.id = o.c GROUP BY c.id joins c with the counts of each o.c.

    Then the join finds at most one partner for each row, and forms no pairs. (Eager aggregation; Yan and Larson,
    VLDB 1995, in its simplest form.)
    """

    def push(node: Aggregate) -> LogicalPlan:
        return _pushed(node, node.input, context) if isinstance(node.input, Join) and node.keys else node

    return context.rewrite_each(plan, Aggregate, push)


def _pushed(plan: Aggregate, join: Join, context: OptimizerContext) -> LogicalPlan:
    if join.join_type is not JoinType.LEFT:
        return plan
    keys = join.keys
    if not keys.left or keys.residual or any(keys.null_equal):
        return plan
    left_ids, right_ids = join.left.output_ids, join.right.output_ids
    group_ids = {key.id for key in plan.keys if isinstance(key, ColumnRef) and key.id in left_ids}
    if len(group_ids) < len(plan.keys):
        return plan
    if not any(unique <= group_ids for unique in join.left.unique_sets):
        return plan
    if context.estimator.rows(join) < _LEAST_SHARE * context.estimator.rows(join.right):
        return plan
    right_fields, right_rows = join.right.field_facts, join.right.max_rows
    fields: list[Field] = []
    calls: list[AggregateCall] = []
    outputs: list[Expression] = list(plan.keys)
    for field, call in zip(plan.aggregate_fields, plan.aggregates, strict=True):
        # A bare column is NULL in the row of a left row without partner, which is what makes that row not count.
        argument = call.arguments[0] if len(call.arguments) == 1 else None
        if not isinstance(argument, ColumnRef) or call.filter is not None:
            return plan
        if argument.id not in right_ids:
            return plan
        if aggregate_may_raise(call, right_fields, right_rows):  # for a group that finds no partner
            return plan
        function = AGGREGATES[call.function]
        if not function.fewest_values:  # a row without partner counts
            return plan
        of_nothing = function.of_nothing
        if of_nothing is not None:
            grouped_field = context.new_field(field.name, field.data_type)
            either = (reference(grouped_field), Literal(of_nothing, field.data_type))
            outputs.append(Call("coalesce", either, field.data_type))
            field = grouped_field
        else:
            outputs.append(reference(field))
        fields.append(field)
        calls.append(call)
    key_fields = tuple([key_field(key, join.right, context) for key in keys.right])
    grouped = Aggregate(join.right, key_fields, keys.right, tuple(fields), tuple(calls))
    equal = tuple(
        Call("equal", (key, reference(field)), BOOLEAN)
        for key, field in zip(keys.left, key_fields, strict=True)
    )
    joined = replace(join, right=grouped, condition=conjunction(equal))
    return Project(joined, plan.schema, tuple(outputs))
