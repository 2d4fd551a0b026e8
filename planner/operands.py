"""Constants that a query computes with, such as a rate, the width of a bucket or a label: which may be parameters of a shape.

How x + 5 is computed depends on how large the constant may be: whether the sum can overflow, and how many bits it takes. So
an integer or decimal becomes a parameter with a range, which is part of the shape: from one power of 16 to the next, on one side of zero.
Only constants that were seen to vary among texts with the same words become parameters, as the plan for one value is
the better one. Zero never does.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tqp.planner.algebra.expressions import Call, Case, Expression, Literal, Varying
from tqp.planner.algebra.logical_plan import LogicalPlan, Project
from tqp.planner.functions.ranges import Range
from tqp.planner.functions.registry import SCALARS

#: Bits of the steps in which ranges of parameters grow.
_STEP = 4

Lifted = Callable[[Literal | Varying], Expression]


def with_operands(expression: Expression, lifted: Lifted) -> Expression:
    """The expression with `lifted` of each constant that it computes with itself; those of its parts are left."""
    match expression:
        case Call(function, arguments) if SCALARS[function].constants_vary:
            if any(isinstance(each, Literal | Varying) for each in arguments):
                return expression.map_inputs(lambda each: _lifted(each, lifted))
        case Case(branches, default) if not expression.data_type.is_string:
            values = tuple([(condition, _lifted(value, lifted)) for condition, value in branches])
            return Case(values, _lifted(default, lifted), expression.data_type)
    return expression


def with_labels(node: LogicalPlan, lifted: Lifted) -> LogicalPlan:
    """The node with `lifted` of each constant that it puts out."""
    if not isinstance(node, Project):
        return node
    return node.map_expressions(lambda each: _lifted(each, lifted))


def _lifted(expression: Expression, lifted: Lifted) -> Expression:
    return lifted(expression) if isinstance(expression, Literal | Varying) else expression


def can_compute(literal: Literal) -> bool:
    """Can a parameter take the place of the constant? Not of zero, by which nothing can be divided."""
    value, data_type = literal.value, literal.data_type
    match value:
        case bool() | None:
            return False
        case int():
            return data_type.is_integer_like and value != 0
        case float():
            return data_type.is_float and value != 0 and math.isfinite(value)
        case str():
            return data_type.is_string
    return False


def range_of(literal: Literal) -> Range | None:
    """The values that a parameter in the place of an integer may have; None of other constants.

    >>> from tqp.core.datatypes import SMALLINT
    >>> range_of(Literal(300, SMALLINT)), range_of(Literal(-255, SMALLINT))
    ((256, 4095), (-255, -16))
    """
    value = literal.value
    if type(value) is not int:
        return None
    steps = (abs(value).bit_length() - 1) // _STEP
    least, most = 1 << _STEP * steps, (1 << _STEP * (steps + 1)) - 1
    low, high = literal.data_type.bounds
    return (least, min(most, high)) if value > 0 else (max(-most, low), -least)
