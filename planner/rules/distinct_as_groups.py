"""Aggregates of distinct values as aggregates of the groups by these values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from tqp.planner.algebra.expressions import AggregateCall, Expression
from tqp.planner.algebra.field_facts import key_codes
from tqp.planner.algebra.logical_plan import Aggregate, Filter, Join, JoinType, LogicalPlan, Project, Scan
from tqp.planner.functions.registry import AGGREGATES
from tqp.planner.rules.columns import fresh_copy, key_field, reference, substitute
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.merged_aggregates import is_mergeable, merged, parts_of, result_of, substituted

#: Rows from which on it is worth a step of its own.
_FEWEST_ROWS = 100_000.0


def distinct_as_groups(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """count(DISTINCT x), sum(y): count(x) and the sum of the sums, over GROUP BY x with sum(y).

    Values that have small numbers are marked in a set, which is faster still. All others would be sorted, where groups are hashed.
    Several such values of a table are found one after the other.
    """
    return context.rewrite_each(plan, Aggregate, lambda node: _rewritten(node, context))


def _rewritten(plan: Aggregate, context: OptimizerContext) -> LogicalPlan:
    if plan.keys or context.estimator.rows(plan.input) < _FEWEST_ROWS:
        return plan
    calls_of: dict[Expression, list[AggregateCall]] = {}
    for call in plan.aggregates:
        if call.distinct and _is_plain(call) and _is_sorted(call.arguments[0], plan, context):
            calls_of.setdefault(call.arguments[0], []).append(call)
    num_plain = sum(not call.distinct for call in plan.aggregates)
    if len(calls_of) == 1 and sum(map(len, calls_of.values())) + num_plain == len(plan.aggregates):
        return _of_groups(plan, next(iter(calls_of)), context)
    if not calls_of or not _is_of_table(plan.input):
        return plan
    apart = {call for calls in calls_of.values() for call in calls}
    rest = _part(plan, plan.input, [call for call in plan.aggregates if call not in apart])
    pieces: list[LogicalPlan] = [rest] if rest.aggregates else []
    for value, calls in calls_of.items():
        copy, _ = fresh_copy(plan.input, context)
        columns = {old.id: reference(new) for old, new in zip(plan.input.schema, copy.schema, strict=True)}
        part = _part(plan, copy, calls, columns)
        pieces.append(_of_groups(part, substitute(value, columns), context))
    joined = pieces[0]
    for piece in pieces[1:]:
        joined = Join(joined, piece, JoinType.INNER)
    return Project(joined, plan.schema, tuple(map(reference, plan.schema)))


def _is_sorted(value: Expression, plan: Aggregate, context: OptimizerContext) -> bool:
    """Are there no numbers for the values that a set would mark?"""
    codes = key_codes(value, plan.input.field_facts)
    return codes is None or codes[1] > context.estimator.rows(plan.input)


def _is_of_table(plan: LogicalPlan) -> bool:
    """Is the input read from a table, and by little more than that?"""
    while isinstance(plan, Filter | Project) and not plan.scorings:
        plan = plan.input
    return isinstance(plan, Scan)


def _part(
    plan: Aggregate,
    below: LogicalPlan,
    calls: Collection[AggregateCall],
    columns: Mapping[int, Expression] | None = None,
) -> Aggregate:
    """Some of the aggregates of all rows, over a copy of the input with these columns."""
    pairs = [pair for pair in zip(plan.aggregate_fields, plan.aggregates, strict=True) if pair[1] in calls]
    over = [call if columns is None else substituted(call, columns) for _, call in pairs]
    return Aggregate(below, (), (), tuple(field for field, _ in pairs), tuple(over))


def _of_groups(plan: Aggregate, value: Expression, context: OptimizerContext) -> LogicalPlan:
    """All of whose aggregates of distinct values are of this one."""
    below, fields = plan.input, plan.input.field_facts
    others = [call for call in plan.aggregates if not call.distinct]
    if not all(is_mergeable(call, fields, below.max_rows) for call in others):
        return plan
    parts = tuple(dict.fromkeys(part for call in others for part in parts_of(call)))
    partial = tuple(context.new_field(part.function, part.data_type) for part in parts)
    key = key_field(value, below, context)
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
        else result_of(
            call, [reference(made[part]) for part in parts_of(call)], plan.aggregates, False, fields
        )
        for call in plan.aggregates
    ]
    return Project(grouped, plan.schema, tuple(results))


def _is_plain(call: AggregateCall) -> bool:
    is_of_one = len(call.arguments) == 1 and not call.arguments[0].data_type.is_composed
    return is_of_one and call.filter is None and not call.order and not AGGREGATES[call.function].minds_order
