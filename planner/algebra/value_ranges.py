"""Sound ranges of the storage values that integer-like expressions take: interval arithmetic over facts of columns.

A range is what exact arithmetic can give. It may reach beyond the bounds of the expression's own type; then the
operation can overflow and needs a check. As an operand, a checked value lies within its type's bounds again.
"""

from __future__ import annotations

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.schema import InnerFacts
from tqp.core.text.numbers import round_half_away
from tqp.planner.algebra.expressions import Call, Case, Cast, ColumnRef, Expression, Literal, Parameter
from tqp.planner.algebra.known_fields import FieldsById, known_fields
from tqp.planner.functions import ranges
from tqp.planner.functions.conditions import union
from tqp.planner.functions.ranges import Range, clamped, operand
from tqp.planner.functions.registry import SCALARS
from tqp.planner.functions.type_rules import can_cast


def value_range(expression: Expression, schema_by_id: FieldsById) -> Range | None:
    """(smallest, largest) storage value the expression can take, NULLs left out; None where nothing is known.

    Booleans count as 0 and 1 below casts only. For a result of None the caller uses the type's own bounds.
    """
    match expression:
        case ColumnRef():
            field = schema_by_id.get(expression.id)
            return None if field is None else field.facts.range
        case Literal():
            value = expression.value
            return (value, value) if type(value) is int and expression.data_type.is_integer_like else None
        case Parameter():
            return expression.range
        case Call(function="struct_extract" | "list_extract"):
            part = extracted(expression, schema_by_id)
            return None if part is None else part.range
        case Call(function="list_length", arguments=(lists,)):
            longest = longest_list(lists, schema_by_id)
            return ranges.any_length(expression, ()) if longest is None else (0, longest)
        case Call():
            rule = SCALARS[expression.function].range
            return None if rule is None else known_fields(schema_by_id).derived(_call_range, expression)
        case Cast():
            return known_fields(schema_by_id).derived(_cast_range, expression)
        case Case():
            return known_fields(schema_by_id).derived(_case_range, expression)
    return None


def inner_facts(expression: Expression, schema_by_id: FieldsById) -> tuple[InnerFacts, ...]:
    """What is certain of the fields of structs, or of the elements of lists; empty where nothing is known."""
    match expression:
        case ColumnRef():
            field = schema_by_id.get(expression.id)
            return () if field is None else field.facts.inner
        case Call(function="struct_extract" | "list_extract"):
            part = extracted(expression, schema_by_id)
            return () if part is None else part.inner
        case Call(function="list_slice", arguments=(lists, *_)) if lists.data_type.has_elements:
            return inner_facts(lists, schema_by_id)
        case Call(function="list_value", arguments=values) if expression.data_type.element.is_integer_like:
            known = union(values, [value_range(value, schema_by_id) for value in values])
            return () if known is None else (InnerFacts(True, *known),)
    return ()


def longest_list(expression: Expression, schema_by_id: FieldsById) -> int | None:
    """So many elements no list has more of; None where that is not known."""
    match expression:
        case ColumnRef():
            field = schema_by_id.get(expression.id)
            return None if field is None else field.facts.longest
        case Call(function="list_value"):
            return len(expression.arguments)
        case Call(function="list_slice", arguments=(lists, Literal(int(first)), Literal(int(last)))) if (
            first > 0 and last > 0
        ) or (first < 0 and last < 0):
            longest, span = longest_list(lists, schema_by_id), max(0, last - first + 1)
            return span if longest is None else min(longest, span)
    return None


def extracted(call: Call, schema_by_id: FieldsById) -> InnerFacts | None:
    """What is certain of a field that struct_extract takes out of structs, or of an element that list_extract takes out of lists."""
    whole, place = call.arguments
    inner = inner_facts(whole, schema_by_id)
    if not inner:
        return None
    if call.function == "list_extract":
        return inner[0]
    return inner[place.value - 1] if isinstance(place, Literal) and type(place.value) is int else None


def _call_range(call: Call, schema_by_id: FieldsById) -> Range | None:
    rule = SCALARS[call.function].range
    assert rule is not None
    return rule(call, [value_range(argument, schema_by_id) for argument in call.arguments])


def _case_range(case: Case, schema_by_id: FieldsById) -> Range | None:
    values = (*(value for _, value in case.branches), case.default)
    return union(values, [value_range(value, schema_by_id) for value in values])


def operand_range(expression: Expression, schema_by_id: FieldsById) -> Range | None:
    """The range of a value that passed its overflow check; the type's bounds where unknown, None if not integer-like."""
    if not expression.data_type.is_integer_like:
        return None
    return operand(value_range(expression, schema_by_id), expression.data_type)


def is_finite(expression: Expression, schema_by_id: FieldsById) -> bool:
    """True if a date or timestamp provably is not +-infinity (on which most date functions return NULL)."""
    return ranges.is_finite(value_range(expression, schema_by_id), expression.data_type)


def _cast_range(cast: Cast, schema_by_id: FieldsById) -> Range | None:
    source, target = cast.input.data_type, cast.data_type
    if not can_cast(source, target):
        return None
    known = _convert(cast.input, source, target, schema_by_id)
    return clamped(known, target) if known and cast.is_try else known  # what does not fit becomes NULL


def _convert(value: Expression, source: DataType, target: DataType, schema_by_id: FieldsById) -> Range | None:
    if source.kind is TypeKind.BOOLEAN:
        return (0, 10**target.scale) if target.is_integer or target.is_decimal else None
    if source == target:
        return value_range(value, schema_by_id)
    if (source.is_integer or source.is_decimal) and (target.is_integer or target.is_decimal):
        known = operand_range(value, schema_by_id)
        if known is None:
            return None
        shift = target.scale - source.scale
        if shift >= 0:
            return known[0] * 10**shift, known[1] * 10**shift
        divisor = 10**-shift
        return round_half_away(known[0], divisor), round_half_away(known[1], divisor)
    from_day, to_day = ranges.ticks_per_day(source), ranges.ticks_per_day(target)
    known = value_range(value, schema_by_id)
    days = ranges.days(known, source)
    if from_day is None or to_day is None or days is None or not ranges.is_finite(known, source):
        return None
    return days if to_day == 1 else (days[0] * to_day, (days[1] + 1) * to_day)
