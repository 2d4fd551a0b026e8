"""Evaluates calls and casts whose arguments are all literals, with DuckDB's results and errors.

`fold` is exact or does nothing: what it does not know stays as it is and is computed by a kernel.
"""

from __future__ import annotations

from tqp.core.datatypes import BOOLEAN
from tqp.core.errors import ExecutionError
from tqp.planner.algebra.expressions import (
    FALSE,
    TRUE,
    Call,
    Cast,
    Expression,
    Literal,
    Varying,
    is_false,
    is_true,
)
from tqp.planner.algebra.may_raise import decided_by_null
from tqp.planner.functions.declaration import NullRule
from tqp.planner.functions.literal_casts import cast_value
from tqp.planner.functions.registry import SCALARS
from tqp.planner.functions.type_rules import can_cast


def fold(expression: Expression) -> Expression:
    """The literal that `expression` (its inputs already folded) is, or the expression unchanged.

    Raises ExecutionError (with the span) where evaluating it fails: overflow, a text that is no date, and so on.
    """
    if not isinstance(expression, Cast | Call):
        return expression
    if Varying in map(type, expression.inputs):
        return _fold_varying(expression)
    return _fold_cast(expression) if isinstance(expression, Cast) else _fold_call(expression)


def _fold_varying(expression: Cast | Call) -> Expression:
    """Only a value that has no NULL and decides nothing, as another text's would be folded too."""
    example = fold(expression.map_inputs(lambda each: each.literal if isinstance(each, Varying) else each))
    if not isinstance(example, Literal) or example.value is None or example.data_type == BOOLEAN:
        return expression
    recipe = expression.map_inputs(lambda each: each.recipe if isinstance(each, Varying) else each)
    return Varying(recipe, example.data_type, example.value)


def _fold_cast(cast: Cast) -> Expression:
    operand = cast.input
    if not isinstance(operand, Literal):
        return cast
    if operand.value is not None and not can_cast(operand.data_type, cast.data_type):
        return cast  # raises where a row is computed
    try:
        value = cast_value(operand.value, operand.data_type, cast.data_type)
    except ExecutionError as error:
        if cast.is_try:
            return Literal(None, cast.data_type)
        error.span = error.span or cast.span
        raise
    return cast if value is NotImplemented else Literal(value, cast.data_type)


def _fold_call(call: Call) -> Expression:
    function = SCALARS[call.function]
    if function.null is NullRule.THREE_VALUED:
        return _fold_connective(call)
    literals = [argument for argument in call.arguments if isinstance(argument, Literal)]
    values = [literal.value for literal in literals]
    is_all_null = len(values) == len(call.arguments) and all(value is None for value in values)
    if function.null is NullRule.ALL and is_all_null:
        return Literal(None, call.data_type)
    null = decided_by_null(call) if None in values else None
    if null is not None:
        return null
    if function.fold is None or len(values) < len(call.arguments):
        return call
    try:
        value = function.fold(call, *values)
    except ExecutionError as error:
        error.span = error.span or call.span
        raise
    return call if value is NotImplemented else Literal(value, call.data_type)


def _fold_connective(call: Call) -> Expression:
    """AND, OR: constants drop out or decide."""
    is_and = call.function == "and"
    is_decisive, is_neutral = (is_false, is_true) if is_and else (is_true, is_false)
    rest = tuple([argument for argument in call.arguments if not is_neutral(argument)])
    if any(map(is_decisive, rest)):
        return FALSE if is_and else TRUE
    if not rest:
        return TRUE if is_and else FALSE
    if len(rest) == 1 or all(isinstance(argument, Literal) for argument in rest):
        return rest[0]
    return call if len(rest) == len(call.arguments) else Call(call.function, rest, BOOLEAN, call.span)
