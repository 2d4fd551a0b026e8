"""Which expressions certainly never are NULL."""

from __future__ import annotations

from tqp.planner.algebra.expressions import Call, Case, Cast, ColumnRef, Expression, InList, Literal, Predict
from tqp.planner.algebra.known_fields import FieldsById, KnownFields, known_fields
from tqp.planner.algebra.value_ranges import is_finite
from tqp.planner.functions.declaration import NullRule
from tqp.planner.functions.registry import SCALARS


def nullable(expression: Expression, schema_by_id: FieldsById) -> bool:
    """False promises that the expression is never NULL."""
    match expression:
        case ColumnRef():
            field = schema_by_id.get(expression.id)
            return field is None or field.nullable
        case Literal():
            return expression.value is None
    if isinstance(schema_by_id, KnownFields):
        return schema_by_id.derived(_derived_nullable, expression)
    return _derived_nullable(expression, schema_by_id)


def _derived_nullable(expression: Expression, schema_by_id: FieldsById) -> bool:
    match expression:
        case Call():
            return _is_nullable_call(expression, schema_by_id)
        case Cast():
            return expression.is_try or nullable(expression.input, schema_by_id)
        case Case():
            values = (*(value for _, value in expression.branches), expression.default)
            return any(nullable(value, schema_by_id) for value in values)
        case InList():
            return nullable(expression.input, schema_by_id)
        case Predict():
            return False
    return True


def _is_nullable_call(call: Call, schema_by_id: FieldsById) -> bool:
    arguments = call.arguments
    match SCALARS[call.function].null:
        case NullRule.STRICT | NullRule.THREE_VALUED:
            return any(nullable(argument, schema_by_id) for argument in arguments)
        case NullRule.NEVER | NullRule.REFUSES:
            return False
        case NullRule.ALL:
            return all(nullable(argument, schema_by_id) for argument in arguments)
        case NullRule.FIRST:
            return nullable(arguments[0], schema_by_id)
        case NullRule.STRICT_IF_FINITE:
            known = known_fields(schema_by_id)
            return any(
                nullable(argument, known)
                or (argument.data_type.is_temporal and not is_finite(argument, known))
                for argument in arguments
            )
        case NullRule.PROPAGATES:
            return True
