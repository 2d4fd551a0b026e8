"""Group by the day instead of the instant at which it begins: dates lie close together and need no sorting."""

from __future__ import annotations

from dataclasses import replace

from tqp.core.datatypes import DATE, TypeKind
from tqp.planner.algebra.expressions import Call, Cast, Expression, Literal
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan, Project
from tqp.planner.algebra.value_ranges import is_finite
from tqp.planner.rules.columns import reference
from tqp.planner.rules.context import OptimizerContext

_WHOLE_DAYS = frozenset("day week month quarter year isoyear decade century millennium".split())


def group_by_days(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """GROUP BY date_trunc('month', x), a timestamp, becomes GROUP BY that as a date, cast back afterwards.

    Exact because every such timestamp is midnight of a day, and finite.
    """

    def rewrite(node: Aggregate) -> LogicalPlan:
        if any(map(_truncates, node.keys)):
            fields = node.input.field_facts
            if any(_begins_a_day(key, fields) for key in node.keys):
                return _by_days(node, fields, context)
        return node

    return context.rewrite_each(plan, Aggregate, rewrite)


def _truncates(key: Expression) -> bool:
    return isinstance(key, Call) and key.function == "date_trunc" and key.data_type.kind is TypeKind.TIMESTAMP


def _begins_a_day(key: Expression, fields: FieldsById) -> bool:
    if not isinstance(key, Call) or not _truncates(key):
        return False
    part, source = key.arguments
    return isinstance(part, Literal) and part.value in _WHOLE_DAYS and is_finite(source, fields)


def _by_days(plan: Aggregate, fields: FieldsById, context: OptimizerContext) -> Project:
    keys, key_fields, outputs = list(plan.keys), list(plan.key_fields), list[Expression]()
    for position, (key, field) in enumerate(zip(plan.keys, plan.key_fields, strict=True)):
        if _begins_a_day(key, fields):
            assert isinstance(key, Call)
            part, source = key.arguments
            by_the_day = isinstance(part, Literal) and part.value == "day"
            keys[position] = Cast(source if by_the_day else key, DATE)
            key_fields[position] = context.new_field(field.name, DATE, field.nullable)
        new = key_fields[position]
        outputs.append(reference(new) if new is field else Cast(reference(new), field.data_type))
    outputs += map(reference, plan.aggregate_fields)
    grouped = replace(plan, keys=tuple(keys), key_fields=tuple(key_fields))
    return Project(grouped, plan.schema, tuple(outputs))
