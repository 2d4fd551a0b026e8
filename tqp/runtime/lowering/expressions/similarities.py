"""Lowering of functions of two arrays: rows of the stored matrices are named, not gathered, as few of them may repeat often."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tqp.operators.vectors import SIMILARITIES
from tqp.planner.algebra.expressions import Call, ColumnRef, Expression
from tqp.runtime.lowering.graph_builder import NamedKernel, Node
from tqp.runtime.lowering.layouts import canonical_layout
from tqp.runtime.lowering.stream import Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering


def lower_similarity(lowering: ExpressionLowering, call: Call) -> Value:
    """The measure for the rows of the current space."""
    arguments = [lowering.lower(argument) for argument in call.arguments]
    if all(value.is_constant for value in arguments):
        arguments[0] = lowering.materialise(arguments[0])
    validity = lowering.combine_validity(*arguments)
    sides = [_side(lowering, part, value) for part, value in zip(call.arguments, arguments, strict=True)]
    (left, left_rows), (right, right_rows) = sides
    rows = (left_rows, right_rows) if left_rows is not None or right_rows is not None else ()
    kernel = NamedKernel(SIMILARITIES[call.function], call.function, call.span)
    node = lowering.stream.builder.call(kernel, left, right, *rows)
    return Value(canonical_layout(call.data_type, validity is not None), node, validity)


def _side(
    lowering: ExpressionLowering, argument: Expression, value: Value
) -> tuple[Node | None, Node | None]:
    """A matrix, and which row of it each row of the current space has; None: its own, or the only one of a literal."""
    if value.is_constant:
        return lowering.constant(value), None
    if isinstance(argument, ColumnRef):
        return lowering.stream.ungathered(argument.id)
    return value.node, None
