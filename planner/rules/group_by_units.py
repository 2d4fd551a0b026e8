"""Group by the number of a day or an hour instead of the instant at which it begins: numbers lie close together and need no sorting."""

from __future__ import annotations

from dataclasses import replace

from tqp.core.datatypes import BIGINT, DATE, TypeKind
from tqp.planner.algebra.expressions import Call, Cast, Expression, Literal
from tqp.planner.algebra.granularity import number_of_unit, start_of_unit, ticks_read
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan, Project
from tqp.planner.algebra.value_ranges import is_finite
from tqp.planner.functions.granularity import begins_own_unit
from tqp.planner.rules.columns import reference
from tqp.planner.rules.context import OptimizerContext

_WHOLE_DAYS = frozenset("week month quarter year isoyear decade century millennium".split())


def group_by_units(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """GROUP BY date_trunc('hour', x), an instant, becomes GROUP BY the number of the hour; of time_bucket() likewise.

    GROUP BY date_trunc('month', x) becomes GROUP BY that as a date. Both are turned back afterwards. Exact because every such
    instant begins a unit of time, of one length or as a day, and is finite.
    """

    def rewrite(node: Aggregate) -> LogicalPlan:
        if not any(map(_truncates, node.keys)):
            return node
        fields = node.input.field_facts
        keys, key_fields, outputs = list(node.keys), list(node.key_fields), list[Expression]()
        for position, (key, field) in enumerate(zip(node.keys, node.key_fields, strict=True)):
            if not _truncates(key) or not is_finite(_instant(key), fields):
                outputs.append(reference(field))
                continue
            if (ticks := _own_ticks(key)) is not None:
                key_fields[position] = made = context.new_field(field.name, BIGINT, field.nullable)
                keys[position] = number_of_unit(_instant(key), ticks)
                outputs.append(start_of_unit(reference(made), ticks, field.data_type))
            else:
                key_fields[position] = made = context.new_field(field.name, DATE, field.nullable)
                keys[position] = Cast(key, DATE)
                outputs.append(Cast(reference(made), field.data_type))
        if keys == list(node.keys):
            return node
        outputs += map(reference, node.aggregate_fields)
        grouped = replace(node, keys=tuple(keys), key_fields=tuple(key_fields))
        return Project(grouped, node.schema, tuple(outputs))

    return context.rewrite_each(plan, Aggregate, rewrite)


def _truncates(key: Expression) -> bool:
    """Is it where a unit of time begins, which has one length, or where a day does?"""
    if _own_ticks(key) is not None:
        return True
    if (
        not isinstance(key, Call)
        or key.function != "date_trunc"
        or key.data_type.kind is not TypeKind.TIMESTAMP
    ):
        return False
    part, source = key.arguments
    is_day = source.data_type.kind is TypeKind.DATE and begins_own_unit(key)
    return is_day or (isinstance(part, Literal) and part.value in _WHOLE_DAYS)


def _own_ticks(key: Expression) -> int | None:
    """How long the unit of the instant is, in ticks, at whose begin the key is."""
    return ticks_read(key) if isinstance(key, Call) and begins_own_unit(key) else None


def _instant(key: Expression) -> Expression:
    return key.inputs[1]
