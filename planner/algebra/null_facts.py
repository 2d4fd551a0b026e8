"""What is certain about NULL: which expressions never are NULL, and which columns a true predicate proves not to be."""

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


def null_rejected_columns(condition: Expression, outcome: bool = True) -> frozenset[int]:
    """Ids of columns that are certainly not NULL in a row where `condition` is `outcome` (and not NULL).

    A predicate on the padded side of an outer join that rejects NULLs turns it into an inner join.
    """
    if isinstance(condition, Call):
        function, arguments = condition.function, condition.arguments
        if function == "not":
            return null_rejected_columns(arguments[0], not outcome)
        if function in ("and", "or"):
            parts = [null_rejected_columns(argument, outcome) for argument in arguments]
            every_part_holds = (function == "and") == outcome
            return frozenset.union(*parts) if every_part_holds else frozenset.intersection(*parts)
        if function == "is_null":
            return frozenset() if outcome else _strict_columns(arguments[0])
    return _strict_columns(condition)


def _strict_columns(expression: Expression) -> frozenset[int]:
    """Columns that are not NULL wherever the expression is not NULL."""
    match expression:
        case ColumnRef():
            return frozenset((expression.id,))
        case Cast() | InList():
            return _strict_columns(expression.input)
        case Call() if SCALARS[expression.function].is_null_for_null:
            return frozenset().union(*(_strict_columns(argument) for argument in expression.arguments))
    return frozenset()
