"""Arguments that are constants: what they are, and what is said of those that are none."""

from __future__ import annotations

import struct

from tqp.core.datatypes import TypeKind
from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.algebra.element_expressions import ElementRef, OverElements, ReduceElements
from tqp.planner.algebra.expressions import Call, Case, Cast, Expression, InList, Literal, Try, walk

#: Expressions that are constant where their inputs are.
OF_CONSTANTS = (Literal, Call, Cast, Case, Try, InList, OverElements, ReduceElements, ElementRef)


def is_constant(expression: Expression) -> bool:
    """Is it computed of constants alone?"""
    return all(isinstance(each, OF_CONSTANTS) for each in walk(expression))


def no_constant(
    expression: Expression, message: str, span: tuple[int, int] | None = None
) -> BindError | UnsupportedError:
    """The error for an argument that has to be a constant, and is none that is known while a query is planned."""
    written = expression
    while isinstance(written, Cast):  # a literal that cannot be cast is written all the same
        written = written.input
    if is_constant(written) and not isinstance(written, Literal):
        return UnsupportedError(f"{message}: one that is computed by a function is not supported", span)
    return BindError(message, span)


def constant_number(expression: Expression) -> float | None:
    """The number that an argument is, if it is one; a FLOAT as that rounds it."""
    if isinstance(expression, Cast):
        number = constant_number(expression.input)
        if number is None or not expression.data_type.is_float:
            return None
        if expression.data_type.kind is TypeKind.FLOAT:
            number = float(struct.unpack("f", struct.pack("f", number))[0])
        return number
    if not isinstance(expression, Literal) or isinstance(expression.value, bool):
        return None
    value = expression.value
    if isinstance(value, int) and expression.data_type.is_decimal:
        return float(value) / 10.0**expression.data_type.scale
    return float(value) if isinstance(value, (int, float)) else None


def constant_text(expression: Expression) -> str | None:
    """The text that an argument is, if it is one."""
    if isinstance(expression, Literal) and isinstance(expression.value, str):
        return expression.value
    return None
