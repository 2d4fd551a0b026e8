"""How far two finite instants lie apart, as a number of ticks or of units of time: no interval is made of every row for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tqp.core.datatypes import BIGINT, DOUBLE, TypeKind
from tqp.core.schema import Field
from tqp.core.time_limits import DAYS_PER_MONTH, MICROSECONDS_PER_DAY
from tqp.planner.algebra.expressions import AggregateCall, Call, Expression, Literal
from tqp.planner.algebra.granularity import number_of_unit
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan, Project
from tqp.planner.algebra.value_ranges import is_finite
from tqp.planner.functions.granularity import ticks_of_counted_part
from tqp.planner.functions.ranges import within
from tqp.planner.rules.columns import reference
from tqp.planner.rules.context import OptimizerContext

AreFinite = Callable[[Sequence[Expression]], bool]


def compared_by_ticks(call: Call, are_finite: AreFinite) -> Call:
    """`a - b > INTERVAL '1 hour'` as a number of microseconds compared with another; else the same object."""
    difference, literal = call.arguments
    if not _is_difference(difference) or not isinstance(literal, Literal):
        return call
    if literal.data_type.kind is not TypeKind.INTERVAL or not isinstance(literal.value, tuple):
        return call
    months, days, microseconds = map(int, literal.value)
    if min(months, days, microseconds) < 0 < max(months, days, microseconds):
        return call  # whose order is not that of its length
    total = (months * DAYS_PER_MONTH + days) * MICROSECONDS_PER_DAY + microseconds
    if not within((total, total), BIGINT) or not are_finite(difference.inputs):
        return call
    return replace(call, arguments=(_ticks(difference), Literal(total, BIGINT)))


def measured_by_ticks(call: Call, are_finite: AreFinite) -> Call:
    """`epoch(a - b)` and `date_diff('hour', b, a)` of the ticks; else the same object."""
    match call:
        case Call("date_part", (Literal("epoch"), difference)) if _is_difference(difference):
            if are_finite(difference.inputs):
                return Call("epoch_of_ticks", (_ticks(difference),), DOUBLE, call.span)
        case Call("date_diff", (_, start, end)):
            ticks = ticks_of_counted_part(call)
            if ticks is not None and are_finite((start, end)):
                counts = number_of_unit(end, ticks), number_of_unit(start, ticks)
                return Call("subtract", counts, BIGINT, call.span)
    return call


def extremes_of_differences(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """max(a - b), an interval, becomes max of the ticks, turned back afterwards; so does min."""

    def rewrite(node: Aggregate) -> LogicalPlan:
        if not [None for call in node.aggregates if call.data_type.kind is TypeKind.INTERVAL]:
            return node
        fields = node.input.field_facts
        made, calls = list[Field](), list[AggregateCall]()
        outputs: list[Expression] = [*map(reference, node.key_fields)]
        for call, field in zip(node.aggregates, node.aggregate_fields, strict=True):
            output: Expression = reference(field)
            if _is_extreme_difference(call) and all_finite(call.arguments[0].inputs, fields):
                field = context.new_field(field.name, BIGINT)
                call = replace(call, arguments=(_ticks(call.arguments[0]),), data_type=BIGINT)
                output = Call("interval_of_ticks", (reference(field),), output.data_type)
            made.append(field)
            calls.append(call)
            outputs.append(output)
        if tuple(calls) == node.aggregates:
            return node
        grouped = replace(node, aggregate_fields=tuple(made), aggregates=tuple(calls))
        return Project(grouped, node.schema, tuple(outputs))

    return context.rewrite_each(plan, Aggregate, rewrite)


def all_finite(instants: Sequence[Expression], fields: FieldsById) -> bool:
    """Are they provably no infinities?"""
    return all(is_finite(instant, fields) for instant in instants)


def _is_extreme_difference(call: AggregateCall) -> bool:
    return call.function in ("min", "max") and len(call.arguments) == 1 and _is_difference(call.arguments[0])


def _is_difference(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.function == "subtract_timestamps"


def _ticks(difference: Expression) -> Call:
    return Call("ticks_between", difference.inputs, BIGINT)
