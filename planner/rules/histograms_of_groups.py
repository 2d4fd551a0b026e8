"""Histograms as the counts of the groups by their values."""

from __future__ import annotations

from dataclasses import replace

from tqp.core.datatypes import BIGINT
from tqp.planner.algebra.expressions import AggregateCall, Expression
from tqp.planner.algebra.field_facts import fit_table
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan, Project
from tqp.planner.rules.columns import key_field, reference
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.merged_aggregates import is_mergeable, merged, parts_of, result_of

#: Rows for each group of the first step, at least.
_ROWS_PER_GROUP = 16.0
_FEWEST_ROWS = 100_000.0
_COUNT = AggregateCall("count_star", (), BIGINT)


def histograms_of_groups(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """GROUP BY k with histogram(x) is one by k and x with count(*) first, where these have few combinations.

    Rows are counted batch by batch then, and not collected. Other aggregates must be mergeable.
    """
    return context.rewrite_each(plan, Aggregate, lambda node: _split(node, context))


def _split(plan: Aggregate, context: OptimizerContext) -> LogicalPlan:
    values = {call.arguments[0] for call in plan.aggregates if _is_plain_histogram(call)}
    below = plan.input
    if len(values) != 1 or (rows := context.estimator.rows(below)) < _FEWEST_ROWS:
        return plan
    (value,) = values
    fields, keys = below.field_facts, (*plan.keys, value)
    if not fit_table(keys, fields, rows) or context.estimator.distinct(below, keys) * _ROWS_PER_GROUP > rows:
        return plan
    others = [call for call in plan.aggregates if not _is_plain_histogram(call)]
    if not all(is_mergeable(call, fields, below.max_rows) for call in others):
        return plan
    parts = tuple(dict.fromkeys([_COUNT, *(part for call in others for part in parts_of(call))]))
    partial = {part: context.new_field(part.function, part.data_type) for part in parts}
    first_keys = tuple(context.renewed(field) for field in plan.key_fields)
    counted = context.renewed(key_field(value, below, context))
    first = Aggregate(below, (*first_keys, counted), keys, tuple(partial.values()), parts)
    over = {
        part: (context.renewed(partial[part]), merged(part, reference(partial[part])))
        for part in parts
        if part is not _COUNT or any(_COUNT in parts_of(call) for call in others)
    }
    counts: tuple[Expression, ...] = (reference(counted), reference(partial[_COUNT]))
    histograms = {
        call: (
            context.new_field(call.function, call.data_type),
            replace(call, function="counted_histogram", arguments=counts),
        )
        for call in plan.aggregates
        if _is_plain_histogram(call)
    }
    made, calls = zip(*over.values(), *histograms.values(), strict=True)
    grouped = Aggregate(first, plan.key_fields, tuple(map(reference, first_keys)), made, calls)
    results = [
        reference(histograms[call][0])
        if call in histograms
        else result_of(
            call,
            [reference(over[part][0]) for part in parts_of(call)],
            plan.aggregates,
            bool(plan.keys),
            fields,
        )
        for call in plan.aggregates
    ]
    return Project(grouped, plan.schema, (*map(reference, plan.key_fields), *results))


def _is_plain_histogram(call: AggregateCall) -> bool:
    """Of values that are equal only where they are the same: not of floats, of which zeros differ."""
    if call.function != "histogram" or len(call.arguments) > 1 or call.distinct or call.filter is not None:
        return False
    data_type = call.arguments[0].data_type
    return not (data_type.is_float or data_type.is_composed)
