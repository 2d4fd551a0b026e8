"""Group by the number of a day or an hour instead of the instant at which it begins: numbers lie close together and need no sorting."""

from __future__ import annotations

from dataclasses import replace

from tqp.core.datatypes import DATE, TypeKind
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import AggregateCall, Call, Cast, Expression, Literal
from tqp.planner.algebra.granularity import number_of_unit, start_of_unit, ticks_read
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan, Project
from tqp.planner.algebra.value_ranges import is_finite
from tqp.planner.functions.granularity import begins_own_unit
from tqp.planner.rules.columns import reference
from tqp.planner.rules.context import OptimizerContext

_WHOLE_DAYS = frozenset("week month quarter year isoyear decade century millennium".split())


def group_by_units(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """GROUP BY date_trunc('hour', x), an instant, becomes GROUP BY the number of the hour; of time_bucket() likewise.

    GROUP BY date_trunc('month', x) becomes GROUP BY that as a date. Both are turned back afterwards. Exact because every such
    instant begins a unit of time, of one length or as a day, and is finite. count(DISTINCT date_trunc('hour', x)) counts numbers, too.
    """
    return context.rewrite_each(plan, Aggregate, lambda node: _by_units(node, context))


def _by_units(plan: Aggregate, context: OptimizerContext) -> LogicalPlan:
    counted = [call.arguments[0] for call in plan.aggregates if call.distinct and _counts_distinct(call)]
    if not [None for value in (*plan.keys, *counted) if value.data_type.is_timestamp and _truncates(value)]:
        return plan
    fields = plan.input.field_facts
    keys, key_fields, outputs = list[Expression](), list[Field](), list[Expression]()
    for key, field in zip(plan.keys, plan.key_fields, strict=True):
        small = _small(key, fields)
        if small is not key:
            made = context.new_field(field.name, small.data_type, field.nullable)
            ticks = _own_ticks(key)
            value = reference(made)
            outputs.append(
                Cast(value, field.data_type)
                if ticks is None
                else start_of_unit(value, ticks, field.data_type)
            )
            field = made
        else:
            outputs.append(reference(field))
        keys.append(small)
        key_fields.append(field)
    calls = tuple(
        [
            replace(call, arguments=(_small(call.arguments[0], fields),)) if _counts_distinct(call) else call
            for call in plan.aggregates
        ]
    )
    if tuple(keys) == plan.keys and calls == plan.aggregates:
        return plan
    grouped = replace(plan, keys=tuple(keys), key_fields=tuple(key_fields), aggregates=calls)
    return Project(grouped, plan.schema, (*outputs, *map(reference, plan.aggregate_fields)))


def _counts_distinct(call: AggregateCall) -> bool:
    return call.function == "count" and call.distinct and len(call.arguments) == 1


def _small(value: Expression, fields: FieldsById) -> Expression:
    """The number of the unit that begins at the value, or the day that does; the same object where none does."""
    if not _truncates(value) or not is_finite(_instant(value), fields):
        return value
    ticks = _own_ticks(value)
    return Cast(value, DATE) if ticks is None else number_of_unit(_instant(value), ticks)


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
