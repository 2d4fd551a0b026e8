"""Aggregates of distinct values as aggregates of the groups by these values."""

from __future__ import annotations

from dataclasses import replace

from tqp.planner.algebra.expressions import AggregateCall, ColumnRef, Expression
from tqp.planner.algebra.field_facts import key_codes
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan, Project
from tqp.planner.functions.registry import AGGREGATES
from tqp.planner.rules.columns import reference
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.merged_aggregates import is_mergeable, merged, parts_of, result_of

#: Rows from which on it is worth a step of its own.
_FEWEST_ROWS = 100_000.0


def distinct_as_groups(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """count(DISTINCT x), sum(y): count(x) and the sum of the sums, over GROUP BY x with sum(y).

    Values that have small numbers are marked in a set, which is faster still. All others would be sorted, where groups are hashed.
    """
    return context.rewrite_each(plan, Aggregate, lambda node: _of_groups(node, context))


def _of_groups(plan: Aggregate, context: OptimizerContext) -> LogicalPlan:
    value = _value(plan)
    if value is None:
        return plan
    below, fields = plan.input, plan.input.field_facts
    rows = context.estimator.rows(below)
    codes = key_codes(value, fields)
    if rows < _FEWEST_ROWS or (codes is not None and codes[1] <= rows):
        return plan
    others = [call for call in plan.aggregates if not call.distinct]
    if not all(is_mergeable(call, fields, below.max_rows) for call in others):
        return plan
    parts = tuple(dict.fromkeys(part for call in others for part in parts_of(call)))
    partial = tuple(context.new_field(part.function, part.data_type) for part in parts)
    if isinstance(value, ColumnRef):
        (key,) = (field for field in below.schema if field.id == value.id)
    else:
        key = context.new_field("value", value.data_type)
    first = Aggregate(below, (key,), (value,), partial, parts)
    made = {part: context.renewed(field) for part, field in zip(parts, partial, strict=True)}
    calls = [merged(part, reference(field)) for part, field in zip(parts, partial, strict=True)]
    singles = {
        call: context.new_field(call.function, call.data_type) for call in plan.aggregates if call.distinct
    }
    over_values = [replace(call, arguments=(reference(key),), distinct=False) for call in singles]
    grouped = Aggregate(first, (), (), (*made.values(), *singles.values()), (*calls, *over_values))
    results = [
        reference(singles[call])
        if call.distinct
        else result_of(call, [reference(made[part]) for part in parts_of(call)], plan.aggregates, fields)
        for call in plan.aggregates
    ]
    return Project(grouped, plan.schema, tuple(results))


def _value(plan: Aggregate) -> Expression | None:
    """What all aggregates of distinct values are of; None where there is no such, or there are groups."""
    distinct = [call for call in plan.aggregates if call.distinct]
    if plan.keys or not distinct or not all(map(_is_plain, distinct)):
        return None
    values = {call.arguments[0] for call in distinct}
    return values.pop() if len(values) == 1 else None


def _is_plain(call: AggregateCall) -> bool:
    is_of_one = len(call.arguments) == 1 and not call.arguments[0].data_type.is_nested
    return is_of_one and call.filter is None and not call.order and not AGGREGATES[call.function].minds_order
