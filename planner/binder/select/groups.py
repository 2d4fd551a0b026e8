"""Groups of a query block and of DISTINCT: of texts that are equal under a collation, the first stands for all."""

from __future__ import annotations

from collections.abc import Sequence

from tqp.core.schema import Field
from tqp.planner.algebra.expressions import AggregateCall, ColumnRef, Expression
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan, Project
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.collations import compared


def grouped(
    context: BindContext,
    plan: LogicalPlan,
    fields: Sequence[Field],
    keys: Sequence[Expression],
    made: Sequence[Field],
    calls: Sequence[AggregateCall],
) -> LogicalPlan:
    """The groups of the keys, whose values stand in `fields`, with the results of `calls` in `made`.

    The field of a text with a collation is no column of the plan's: its value is another one.
    """
    alike = [compared(key) for key in keys]
    if all(each is key for each, key in zip(alike, keys, strict=True)):
        return Aggregate(plan, tuple(fields), tuple(keys), tuple(made), tuple(calls))
    key_fields = [
        field if each is key else context.new_field(field.name, each.data_type)
        for field, key, each in zip(fields, keys, alike, strict=True)
    ]
    firsts = [
        (field, AggregateCall("first", (key,), key.data_type))
        for field, key, each in zip(fields, keys, alike, strict=True)
        if each is not key
    ]
    first_fields, first_calls = zip(*firsts, strict=True)
    groups = Aggregate(plan, tuple(key_fields), tuple(alike), (*made, *first_fields), (*calls, *first_calls))
    columns = (*fields, *made)
    return Project(groups, columns, tuple(map(ColumnRef.of, columns)))


def distinct_rows(context: BindContext, plan: LogicalPlan) -> LogicalPlan:
    """The rows of a plan, each once, texts being equal as their collations have it."""
    keys = [ColumnRef.of(each) for each in plan.schema]
    fields = [context.renewed(each) if each.data_type.collation else each for each in plan.schema]
    return grouped(context, plan, fields, keys, (), ())
