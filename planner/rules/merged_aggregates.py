"""Aggregates in two steps: of parts of the groups, and of what these came to.

| aggregate | of each part | of the parts |
|---|---|---|
| count | itself | `sum_of_counts` |
| sum | itself | `sum_of_sums` |
| avg | sum, count | the quotient of both |
| min, max, bool_and, ... | itself | itself |

Which aggregate merges the parts is declared with the function (`merged_by`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tqp.core.datatypes import BIGINT, DOUBLE, HUGEINT, MAX_DECIMAL_PRECISION, TypeKind, decimal
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import AggregateCall, Call, Cast, Expression
from tqp.planner.algebra.float_averages import divides_float_sum
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan, Project
from tqp.planner.algebra.may_raise import aggregate_may_raise
from tqp.planner.functions.registry import AGGREGATES
from tqp.planner.rules.columns import NewIds, reference, substitute


def is_mergeable(call: AggregateCall, fields: FieldsById, max_rows: int) -> bool:
    """Whether the call can be made of what it comes to for parts of the groups. It may not fail, nor may a part.

    any_value() of a query takes the first value, which is not that of the first part.
    """
    if call.distinct or call.order or (call.function == "any_value" and call.span is not None):
        return False
    parts = parts_of(call)
    return bool(parts) and not any(aggregate_may_raise(part, fields, max_rows) for part in parts)


def parts_of(call: AggregateCall) -> tuple[AggregateCall, ...]:
    """What is to be known of each part; nothing if the call cannot be made of parts."""
    if AGGREGATES[call.function].merged_by is not None:
        return (call,)
    if call.function != "avg" or call.data_type.kind is not TypeKind.DOUBLE:
        return ()
    summed = call.arguments[0].data_type
    total = decimal(MAX_DECIMAL_PRECISION, summed.scale) if summed.is_decimal else HUGEINT
    return (
        replace(call, function="sum", data_type=DOUBLE if summed.is_float else total),
        replace(call, function="count", data_type=BIGINT),
    )


def substituted(call: AggregateCall, columns: Mapping[int, Expression]) -> AggregateCall:
    """The call with the columns replaced."""
    changed = substitute(call, columns)
    assert isinstance(changed, AggregateCall)
    return changed


def merged(part: AggregateCall, column: Expression) -> AggregateCall:
    """The aggregate that makes one value of a column of those of the parts."""
    function = AGGREGATES[part.function].merged_by
    assert function is not None
    return AggregateCall(function, (column,), part.data_type, span=part.span)


def in_two_steps(
    plan: Aggregate,
    below: LogicalPlan,
    key_fields: Sequence[Field],
    keys: Sequence[Expression],
    second_keys: Sequence[Expression],
    new: NewIds,
    picked: Sequence[Field] = (),
) -> LogicalPlan:
    """The aggregation of rows `below`, all of whose calls are mergeable: by `keys`, then by `second_keys`, of what that puts out.

    `picked`: columns that the first keys determine, to be put out beside them.
    """
    parts = tuple(dict.fromkeys(part for call in plan.aggregates for part in parts_of(call)))
    partial = [new.new_field(part.function, part.data_type) for part in parts]
    picks = [AggregateCall("any_value", (reference(each),), each.data_type) for each in picked]
    first = Aggregate(below, tuple(key_fields), tuple(keys), (*partial, *picked), (*parts, *picks))
    made = tuple(new.renewed(field) for field in partial)
    calls = tuple(map(merged, parts, map(reference, partial)))
    grouped = Aggregate(first, plan.key_fields, tuple(second_keys), made, calls)
    values = dict(zip(parts, map(reference, made), strict=True))
    results = [
        result_of(call, [values[part] for part in parts_of(call)], plan.aggregates, True, below.field_facts)
        for call in plan.aggregates
    ]
    return Project(grouped, plan.schema, (*map(reference, plan.key_fields), *results))


def result_of(
    call: AggregateCall,
    parts: Sequence[Expression],
    calls: Collection[AggregateCall],
    is_grouped: bool,
    fields: FieldsById,
) -> Expression:
    """The call's value, of the values of its parts. `calls`: all of its aggregation, over rows with these fields."""
    if call.function != "avg":
        (value,) = parts
        return value
    total, count = parts
    if total.data_type.is_float or divides_float_sum(call, calls, is_grouped, fields):
        return Call("divide", (Cast(total, DOUBLE), Cast(count, DOUBLE)), DOUBLE, call.span)
    return Call("average", (total, count), DOUBLE, call.span)
