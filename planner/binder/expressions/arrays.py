"""Arrays of floats: `[a, b]::FLOAT[2]`, `array_value(a, b)`, and lists of numbers given for a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tqp.core.datatypes import DOUBLE, FLOAT, NULL, DataType, array
from tqp.core.errors import BindError, ExecutionError, UnsupportedError
from tqp.planner.algebra.expressions import Call, Expression, Literal
from tqp.planner.binder.expressions.coercion import cast_to, unify
from tqp.planner.functions.literal_casts import cast_value, rounded_to_float32
from tqp.planner.parse import Span


def array_of(elements: Sequence[Expression], target: DataType, span: Span | None) -> Expression:
    """The elements as FLOAT[n]: a literal if all are."""
    if len(elements) != target.size:
        raise BindError(f"cannot cast a list of {len(elements)} values to {target}", span)
    has_null = any(each.data_type == NULL for each in elements)
    elements, _ = unify(elements, "a list", span)
    if has_null:
        raise UnsupportedError("an array with a NULL in it is not supported", span)
    values = [_constant(each) for each in elements]
    known = tuple(value for value in values if value is not None)
    if len(known) == len(values):
        return Literal(known, target)
    cast = tuple(cast_to(element, FLOAT, span) for element in elements)
    return Call("array_value", cast, target, span)


def bind_array_value(elements: Sequence[Expression], span: Span | None) -> Expression:
    """array_value(a, ...): elements of type FLOAT only, as other arrays do not exist here."""
    if not elements:
        raise BindError("array_value() takes at least one element", span)
    if any(each.data_type not in (FLOAT, NULL) for each in elements):
        raise UnsupportedError(
            f"of arrays only those of 32-bit floats are supported; write [...]::FLOAT[{len(elements)}]", span
        )
    return array_of(elements, array(len(elements)), span)


def array_literal(values: Sequence[Any], label: str, span: Span | None) -> Literal:
    """A list of numbers that was given for a parameter, as FLOAT[n]."""
    if not values or any(isinstance(each, (bool, str)) or not hasattr(each, "__float__") for each in values):
        raise UnsupportedError(
            f"a list as the value of {label} may stand only after IN, ANY and ALL, as in IN {label}; elsewhere it becomes"
            " FLOAT[n], so give numbers, one at least",
            span,
        )
    try:
        return Literal(tuple(rounded_to_float32(float(value)) for value in values), array(len(values)))
    except (ExecutionError, OverflowError):
        raise BindError(f"a number in the value of {label} is out of range for FLOAT", span) from None


def _constant(element: Expression) -> float | None:
    """The value of a literal as a 32-bit float; None of anything else."""
    if not isinstance(element, Literal):
        return None
    value = cast_value(element.value, element.data_type, DOUBLE)
    return None if value is NotImplemented or value is None else rounded_to_float32(value)
