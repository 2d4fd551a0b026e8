"""What a predicate costs, and every other expression: nanoseconds for a row, by what is known of its columns."""

from __future__ import annotations

from tqp.core.datatypes import TypeKind
from tqp.planner.algebra.expressions import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Parameter,
    Predict,
    PythonCall,
)
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.value_ranges import value_range
from tqp.planner.functions.declaration import Work
from tqp.planner.functions.registry import SCALARS

# Nanoseconds a row on one core (docs/performance.md).
_COMPARISON = {1: 0.03, 2: 0.05, 4: 0.07, 8: 0.13}  # by bytes of a value
_ARITHMETIC_BYTE = 0.035  # for each byte of the result
MASK_COST = 0.04  # AND, OR or NOT of two masks
LOOK_UP_COST = 0.6
_CALCULATION = 0.5
_DATE_FUNCTION = 2.0
_STRING_PREDICATE = 20.0
_STRING_SEARCH = 60.0
_ELEMENT = 0.2  # of an array
_UNKNOWN_FUNCTION = 200.0


def cost(expression: Expression, fields: FieldsById) -> float:
    """Estimated nanoseconds to evaluate the expression for one row."""
    own, inputs = own_cost(expression, fields), expression.inputs
    return own + sum([cost(part, fields) for part in inputs]) if inputs else own


def own_cost(expression: Expression, fields: FieldsById) -> float:
    """What the outermost operation alone costs, its inputs given."""
    match expression:
        case ColumnRef() | Literal() | Parameter():
            return 0.0
        case InList(operand, values):
            one = _COMPARISON[_bytes(operand, fields)] + MASK_COST
            return _on_strings(operand, fields, min(LOOK_UP_COST, len(values) * one), _STRING_PREDICATE)
        case Cast() | Case():
            return _CALCULATION
        case Predict():
            return expression.model.cost
        case PythonCall():
            return expression.function.cost
        case Call():
            return _call_cost(expression, fields)
    return _UNKNOWN_FUNCTION


def _call_cost(call: Call, fields: FieldsById) -> float:
    work = SCALARS[call.function].work
    operand = next((part for part in call.arguments if not isinstance(part, Literal | Parameter)), call)
    match work:
        case Work.COMPARISON:
            one = _COMPARISON[max([_bytes(part, fields) for part in call.arguments])]
            return _on_strings(operand, fields, one, _STRING_PREDICATE)
        case Work.MASKS:
            return MASK_COST * max(1, len(call.arguments) - 1)
        case Work.ARITHMETIC:
            return _ARITHMETIC_BYTE * _bytes(call, fields)
        case Work.CALCULATION if not call.data_type.is_string:
            return _CALCULATION
        case Work.CALENDAR:
            return _DATE_FUNCTION
    if operand.data_type.is_string or call.data_type.is_string:
        text = _STRING_SEARCH if work is Work.SEARCH else _STRING_PREDICATE
        return _on_strings(operand, fields, LOOK_UP_COST, text)
    if operand.data_type.kind is TypeKind.ARRAY:
        return _ELEMENT * operand.data_type.size
    return _UNKNOWN_FUNCTION


def _bytes(expression: Expression, fields: FieldsById) -> int:
    """How many bytes a value has in flight."""
    if expression.data_type.kind is TypeKind.BOOLEAN:
        return 1
    if expression.data_type.kind is TypeKind.FLOAT:
        return 4
    known = value_range(expression, fields)
    if isinstance(expression, ColumnRef) and (field := fields.get(expression.id)) is not None:
        size = field.facts.dictionary_size
        known = known if size is None else (0, size)
    elif isinstance(expression, Parameter) or (
        isinstance(expression, Literal) and expression.data_type.is_string
    ):
        return 1
    if known is None:
        return 8
    return next((n for n in (1, 2, 4) if -(1 << 8 * n - 1) <= known[0] and known[1] < 1 << 8 * n - 1), 8)


def _on_strings(operand: Expression, fields: FieldsById, otherwise: float, text: float) -> float:
    """What costs `text` on strings and `otherwise` on numbers: a predicate on dictionary codes is one of these."""
    if not operand.data_type.is_string:
        return otherwise
    direct = isinstance(operand, ColumnRef)
    while isinstance(operand, Call) and operand.arguments and operand.arguments[0].data_type.is_string:
        operand = operand.arguments[0]
    field = fields.get(operand.id) if isinstance(operand, ColumnRef) else None
    if field is None or field.facts.dictionary_size is None:
        return text
    return otherwise if direct else LOOK_UP_COST
