"""The first row of every group, for LIMIT 1 in a correlated subquery: the plan is then computed for all outer rows.

There is no ranking: for one sort key after the other, the rows stay that have the key's best value in their group.
What is left are rows that agree in every key, of which the first one is the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tqp.core.datatypes import BIGINT, BOOLEAN
from tqp.core.schema import NO_ESTIMATES, NO_FACTS, Field, Schema
from tqp.planner.algebra.expressions import (
    AggregateCall,
    Call,
    Case,
    ColumnRef,
    Expression,
    Literal,
    conjunction,
)
from tqp.planner.algebra.logical_plan import Aggregate, Join, JoinType, LogicalPlan, Project, SortKey
from tqp.planner.rules.columns import reference, renumber, shared_twice
from tqp.planner.rules.context import OptimizerContext


def first_row(
    rows: LogicalPlan, group: Schema, keys: Sequence[SortKey], kept: Schema, context: OptimizerContext
) -> LogicalPlan:
    """One row, the first by `keys`, for every value of the columns `group`; puts out `kept` and `group`."""
    for key in keys:
        rows = _with_best_value(rows, group, key, context)
    fixed = {key.expression.id for key in keys if isinstance(key.expression, ColumnRef)}
    results, calls = [], []
    for field in kept:
        if field.id in fixed:
            continue
        inner = context.renewed(field)
        rows = renumber(rows, {field.id: inner.id})
        results.append(replace(field, nullable=True, facts=NO_FACTS, estimates=NO_ESTIMATES))
        calls.append(AggregateCall("first", (reference(inner),), field.data_type))
    by_id = {field.id: field for field in rows.schema}
    key_fields = tuple(
        replace(by_id[field.id], facts=NO_FACTS, estimates=NO_ESTIMATES)
        for field in (*kept, *group)
        if field.id in by_id
    )
    return Aggregate(rows, key_fields, tuple(map(reference, key_fields)), tuple(results), tuple(calls))


def _with_best_value(
    rows: LogicalPlan, group: Schema, key: SortKey, context: OptimizerContext
) -> LogicalPlan:
    """The rows whose key is the one that sorts first in their group."""
    value = key.expression
    if not isinstance(value, ColumnRef):
        made = context.new_field("key", value.data_type)
        schema = rows.schema
        rows = Project(rows, (*schema, made), (*map(reference, schema), value))
        value = reference(made)
    rows, again = shared_twice(rows, context)
    renamed = {field.id: other for field, other in zip(rows.fields, again.fields, strict=True)}
    groups = tuple(replace(renamed[field.id], facts=NO_FACTS, estimates=NO_ESTIMATES) for field in group)
    best, field = _best_value(again, groups, renamed[value.id], key, context)
    pairs = [*zip(map(reference, group), map(reference, groups), strict=True), (value, reference(field))]
    condition = conjunction(tuple(Call("is_not_distinct_from", pair, BOOLEAN) for pair in pairs))
    return Join(rows, best, JoinType.SEMI, condition)


def _best_value(
    rows: LogicalPlan, group: Schema, column: Field, key: SortKey, context: OptimizerContext
) -> tuple[LogicalPlan, Field]:
    """For every group the value of the column that sorts first: NULL where that is first, or the only one."""
    value = reference(column)
    extreme = context.new_field("extreme", column.data_type)
    calls = [AggregateCall("max" if key.descending else "min", (value,), column.data_type)]
    if not key.nulls_first:
        return Aggregate(rows, group, tuple(map(reference, group)), (extreme,), tuple(calls)), extreme
    valid, total = (context.new_field(name, BIGINT, nullable=False) for name in ("valid", "total"))
    calls += [AggregateCall("count", (value,), BIGINT), AggregateCall("count_star", (), BIGINT)]
    grouped = Aggregate(rows, group, tuple(map(reference, group)), (extreme, valid, total), tuple(calls))
    has_null = Call("less", (reference(valid), reference(total)), BOOLEAN)
    first = context.new_field("first", column.data_type)
    output: Expression = Case(
        ((has_null, Literal(None, column.data_type)),), reference(extreme), column.data_type
    )
    return Project(grouped, (*group, first), (*map(reference, group), output)), first
