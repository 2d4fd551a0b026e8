"""Lowering of a call to a scalar kernel: the form of its arguments, its validity, the layout of what it returns."""

from __future__ import annotations

import operator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from tqp.core.errors import UnsupportedError
from tqp.core.schema import InnerFacts
from tqp.operators.kernel import Kernel, NullRule
from tqp.operators.memory.arrays import narrowest
from tqp.operators.numbers import logic, wide
from tqp.operators.rows import batches
from tqp.operators.varying_constants import for_each_value
from tqp.operators.vectors import SIMILARITIES
from tqp.planner.algebra.expression_text import format_expression
from tqp.planner.algebra.expressions import Call, Cast, ColumnRef, Expression, column_ids
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.algebra.outcomes import nullable as may_be_null
from tqp.planner.algebra.value_ranges import value_range
from tqp.planner.functions.registry import SCALARS
from tqp.runtime.lowering.graph_builder import NamedKernel, Node
from tqp.runtime.lowering.layouts import NO_INNER_FACTS, Form, canonical_layout
from tqp.runtime.lowering.stream import Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering


def call_kernel(
    lowering: ExpressionLowering, origin: partial[Kernel], expression: Call | Cast, arguments: list[Value]
) -> Value:
    """The kernel that `origin` finds, applied to lowered arguments; `expression` is the call, for its type, name and place."""
    build, kernel = lowering.stream.builder, origin()
    varying = tuple(
        place
        for place, value in enumerate(arguments)
        if place in kernel.varying_arguments and not value.is_constant
    )
    if varying:
        columns = tuple(place for place, value in enumerate(arguments) if not value.is_constant)
        origin = partial(for_each_value, origin, varying, columns, expression.data_type)
        kernel = origin()
    lowered = _arguments(lowering, kernel, expression, arguments)
    validity = None if kernel.nulls is NullRule.CUSTOM else lowering.combine_validity(*arguments)
    keywords = {}
    if kernel.checks:
        keywords["validity"] = _rows_that_count(lowering, kernel, expression, arguments, validity)
    name = expression.function if isinstance(expression, Call) else _cast_name(expression)
    target = NamedKernel(kernel.function, name, expression.span, origin)
    column = lowering.derived(_first_column, expression)
    node = build.call(target, *lowered, name=f"{name}_{column or 'value'}", **keywords)
    node.scans = kernel.scans
    node.makes_text = makes_text(expression)
    nullable = any(value.layout.nullable for value in arguments)
    custom = kernel.nulls is NullRule.CUSTOM
    if custom or kernel.returns_validity:
        pair, node = node, build.call(operator.getitem, node, 0)
        if may_be_null(expression, lowering.stream.fields):
            nullable = True
            produced = build.call(operator.getitem, pair, 1)
            if custom or validity is None:
                validity = lowering.stream.or_all_rows(produced)
            else:
                validity = build.call(logic.combine_validity, validity, produced)
        elif custom:
            nullable = False
    return _result(lowering, expression, arguments, node, validity, nullable, kernel.any_width)


def _rows_that_count(
    lowering: ExpressionLowering,
    kernel: Kernel,
    expression: Call | Cast,
    arguments: list[Value],
    validity: Node | None,
) -> Node | None:
    """The rows for which the kernel may raise; literals have no row of their own, so that they need to be told of none."""
    active = validity if _raises_nowhere(lowering, expression) else lowering.active(validity)
    given = (value for i, value in enumerate(arguments) if i not in kernel.constant_arguments)
    if active is not None or not any(value.is_constant for value in given):
        return active
    stream = lowering.stream
    return stream.builder.call(batches.none_if_rows, stream.num_rows(), stream.object("device"))


def _raises_nowhere(lowering: ExpressionLowering, expression: Call | Cast) -> bool:
    """Does the expression not raise for the rows of other guards either? It is the same for all of them then, and computed once."""
    stream = lowering.stream
    if lowering.guard is None or stream.space.kept is not None:
        return False
    fields = stream.fields
    unseen_nulls = any(fields[each].nullable for each in lowering.present & column_ids(expression))
    return not unseen_nulls and not may_raise(expression, fields)


def _first_column(expression: Expression, lowering: ExpressionLowering) -> str | None:
    """The name of the first column that the expression reads."""
    if isinstance(expression, ColumnRef):
        return expression.name
    names = (lowering.derived(_first_column, part) for part in expression.inputs)
    return next((name for name in names if name is not None), None)


def makes_text(expression: Call | Cast) -> bool:
    """Whether a call makes new strings of its rows, or reads values out of strings."""
    if isinstance(expression, Call):
        function = SCALARS[expression.function]
        return function.reads_text or (expression.data_type.is_string and not function.slices_text)
    return expression.data_type.is_string or expression.input.data_type.is_string


def _cast_name(cast: Cast) -> str:
    between_floats = cast.data_type.is_float and cast.input.data_type.is_float and not cast.is_try
    return "round_to_float" if between_floats else "cast"


def _arguments(
    lowering: ExpressionLowering, kernel: Kernel, expression: Call | Cast, arguments: list[Value]
) -> list[Any]:
    given = [value for i, value in enumerate(arguments) if i not in kernel.constant_arguments]
    if all(value.is_constant for value in given):  # literals broadcast against rows: there must be some
        arguments = [
            value if i in kernel.constant_arguments else lowering.materialise(value)
            for i, value in enumerate(arguments)
        ]
    lowered: list[Any] = []
    for position, value in enumerate(arguments):
        if position not in kernel.constant_arguments or (kernel.constants_may_vary and not value.is_constant):
            node = _argument(lowering, kernel, expression, value)
            custom = kernel.nulls is NullRule.CUSTOM
            lowered.append((node, lowering.combine_validity(value)) if custom else node)
        elif value.is_constant:
            lowered.append(lowering.plain(value))
        else:
            raise UnsupportedError(
                f"{format_expression(expression)} needs a constant as argument {position + 1}",
                expression.span,
            )
    if kernel.prepare is not None:
        lowered[0] = lowering.stream.builder.call(kernel.prepare, lowered[0])
    return lowered


def _argument(lowering: ExpressionLowering, kernel: Kernel, expression: Call | Cast, value: Value) -> Node:
    if value.layout.data_type.is_string:
        return lowering.strings(value)
    if value.layout.form is Form.WIDE and not kernel.accepts_wide:
        raise UnsupportedError(
            f"{format_expression(expression)} is not supported on {value.layout.data_type} values that need more "
            "than 64 bits; cast to DOUBLE or to a narrower type first",
            expression.span,
        )
    return lowering.constant(value) if value.is_constant else lowering.tensor(value)


def _result(
    lowering: ExpressionLowering,
    expression: Call | Cast,
    arguments: list[Value],
    node: Node,
    validity: Node | None,
    nullable: bool,
    any_width: bool,
) -> Value:
    """Kernels put out 64 bits, or 128 for types that may need them; a known range may allow less."""
    data_type = expression.data_type
    part = _part(expression, arguments)
    if not data_type.is_integer_like:
        layout = canonical_layout(data_type, nullable)
        return Value(replace(layout, inner=part.inner) if part.inner else layout, node, validity)
    build = lowering.stream.builder
    known = value_range(expression, lowering.stream.fields) or part.range
    layout = canonical_layout(data_type, nullable, known)
    if layout.form is Form.WIDE:
        return Value(layout, node, validity)
    if narrowest(data_type.bounds) is None:
        message = f"{format_expression(expression)} is out of the range of 64 bits"
        node = build.call(wide.to_narrow, node, message, lowering.active(validity))
    dtype = (narrowest(known) if known is not None else None) or torch.int64
    if dtype is not torch.int64 or any_width:
        node = build.method("to", node, dtype)
    return Value(replace(layout, dtype=dtype), node, validity)


def _part(expression: Call | Cast, arguments: list[Value]) -> InnerFacts:
    """What is known of a field or an element that a call takes out of what holds it."""
    inner = arguments[0].layout.inner if arguments else ()
    if inner and isinstance(expression, Call):
        if expression.function == "list_extract":
            return inner[0]
        if expression.function == "struct_extract" and type(place := arguments[1].constant) is int:
            return inner[place - 1]
    return NO_INNER_FACTS


def lower_similarity(lowering: ExpressionLowering, call: Call) -> Value:
    """A function of two arrays: rows of the stored matrices are named, not gathered, as few of them may repeat often."""
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
