"""Group the right side of a left join by the join key before joining, where groups are of left rows."""

from __future__ import annotations

from dataclasses import replace

from tqp.core.datatypes import BOOLEAN, HUGEINT
from tqp.planner.algebra.expressions import (
    AggregateCall,
    Call,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    all_column_ids,
    conjunction,
)
from tqp.planner.algebra.field_facts import fit_table
from tqp.planner.algebra.logical_plan import Aggregate, Join, JoinType, LogicalPlan, Project
from tqp.planner.algebra.may_raise import aggregate_may_raise
from tqp.planner.functions.registry import AGGREGATES
from tqp.planner.rules.columns import key_field, reference
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.merged_aggregates import is_mergeable, merged, parts_of, result_of

#: A join that keeps fewer of the right rows than this is done first: it leaves less to group. Unless it takes no more than a look-up.
_LEAST_SHARE = 0.5
#: Most groups of the right rows, as a share of these, where groups of left rows are aggregated again.
_LARGEST_SHARE = 0.5


def group_before_join(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """SELECT c.id, count(o.id) FROM c LEFT JOIN o ON c.id = o.c GROUP BY c.id joins c with the counts of each o.c.

    Then the join finds at most one partner for each row, and forms no pairs. (Eager aggregation; Yan and Larson,
    VLDB 1995, in its simplest form.) Where a group may be of several left rows, as GROUP BY c.country is, what these come to is
    aggregated once more.
    """

    def push(node: Aggregate) -> LogicalPlan:
        return _pushed(node, node.input, context) if isinstance(node.input, Join) and node.keys else node

    return context.rewrite_each(plan, Aggregate, push)


def _pushed(plan: Aggregate, join: Join, context: OptimizerContext) -> LogicalPlan:
    keys, left_ids = join.keys, join.left.output_ids
    if join.join_type is not JoinType.LEFT or not keys.left or keys.residual or any(keys.null_equal):
        return plan
    if not all_column_ids(plan.keys) <= left_ids:
        return plan
    if not all(_is_of_right(call, join.right) for call in plan.aggregates):
        return plan
    right_fields, right_rows = join.right.field_facts, context.estimator.rows(join.right)
    keeps_few = context.estimator.rows(join) < _LEAST_SHARE * right_rows
    if keeps_few and not fit_table(keys.right, right_fields, right_rows):
        return plan
    group_ids = {key.id for key in plan.keys if isinstance(key, ColumnRef)}
    is_one_row = len(group_ids) == len(plan.keys) and any(
        unique <= group_ids for unique in join.left.unique_sets
    )
    calls = plan.aggregates
    if not is_one_row:
        groups = context.estimator.distinct(join.right, keys.right)
        if groups > _LARGEST_SHARE * right_rows:
            return plan
        if not all(is_mergeable(call, right_fields, join.right.max_rows) for call in calls):
            return plan
        calls = tuple(dict.fromkeys(part for call in calls for part in parts_of(call)))
    fields = tuple(context.new_field(call.function, call.data_type) for call in calls)
    key_fields = tuple([key_field(key, join.right, context) for key in keys.right])
    grouped = Aggregate(join.right, key_fields, keys.right, fields, calls)
    equal = tuple(
        Call("equal", (key, reference(field)), BOOLEAN)
        for key, field in zip(keys.left, key_fields, strict=True)
    )
    joined = replace(join, right=grouped, condition=conjunction(equal))
    values = {call: _of_row(call, reference(field)) for call, field in zip(calls, fields, strict=True)}
    if is_one_row:
        return Project(joined, plan.schema, (*plan.keys, *(values[call] for call in plan.aggregates)))
    return _of_several_rows(plan, joined, values, context)


def _is_of_right(call: AggregateCall, right: LogicalPlan) -> bool:
    """Is a row without a partner told by what the call counts: none, or the row itself? For a group that finds none it may not fail.

    A bare column is NULL in such a row, which is what makes that row not count.
    """
    if call.filter is not None or not all_column_ids(call.inputs) <= right.output_ids:
        return False
    if aggregate_may_raise(call, right.field_facts, right.max_rows):
        return False
    if call.function == "count_star":
        return True
    argument = call.arguments[0] if len(call.arguments) == 1 else None
    return isinstance(argument, ColumnRef) and bool(AGGREGATES[call.function].fewest_values)


def _of_row(call: AggregateCall, column: ColumnRef) -> Expression:
    """What a left row's partners come to, or the row without any."""
    of_none = 1 if call.function == "count_star" else AGGREGATES[call.function].of_nothing
    if of_none is None:
        return column
    return Call("coalesce", (column, Literal(of_none, call.data_type)), call.data_type)


def _of_several_rows(
    plan: Aggregate, joined: Join, values: dict[AggregateCall, Expression], context: OptimizerContext
) -> LogicalPlan:
    """The groups of left rows with what the partners of each come to: `values`, by what was aggregated.

    Several may have the same partners, so that the sum of what these come to is further from 0 than that of all partners.
    """
    calls, results = [], {}
    for part, value in values.items():
        call = merged(part, value)
        if call.function in ("sum_of_sums", "sum_of_counts"):
            is_count = call.function == "sum_of_counts"
            call = replace(call, function="sum", data_type=HUGEINT if is_count else part.data_type)
        if aggregate_may_raise(call, joined.field_facts, joined.max_rows):
            return plan
        field = context.new_field(part.function, call.data_type)
        column = reference(field)
        results[part] = column if call.data_type == part.data_type else Cast(column, part.data_type)
        calls.append((field, call))
    fields = tuple(field for field, _ in calls)
    grouped = Aggregate(joined, plan.key_fields, plan.keys, fields, tuple(call for _, call in calls))
    rows = plan.input.field_facts
    outputs = (
        result_of(call, [results[part] for part in parts_of(call)], plan.aggregates, True, rows)
        for call in plan.aggregates
    )
    return Project(grouped, plan.schema, (*map(reference, plan.key_fields), *outputs))
