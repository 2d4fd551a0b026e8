"""IN over a list of literals: by table, by search or by comparisons, as type, length and range ask for."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import torch

from tqp.core.datatypes import BOOLEAN, TypeKind
from tqp.operators.numbers import long_lists
from tqp.operators.strings import compare as string_compare
from tqp.planner.algebra.expressions import InList, Literal
from tqp.runtime.lowering.expressions.code_ranges import lower_integer_list
from tqp.runtime.lowering.expressions.compare import lower_comparison
from tqp.runtime.lowering.graph_builder import Node
from tqp.runtime.lowering.layouts import Form, canonical_layout
from tqp.runtime.lowering.stream import Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering

#: Up to so many floats, intervals or 128-bit integers are compared one by one.
_SHORT_LIST = 16


def lower_in_list(lowering: ExpressionLowering, expression: InList) -> Value:
    """A bool tensor, NULL where the operand is."""
    build = lowering.stream.builder
    value = lowering.lower(expression.input)
    layout = canonical_layout(BOOLEAN, value.layout.nullable)
    literals = [literal.value for literal in expression.values if isinstance(literal, Literal)]
    data_type = value.layout.data_type
    if data_type.is_string:
        encoded = [literal.encode() if isinstance(literal, str) else literal for literal in literals]
        node = build.call(
            string_compare.in_list,
            lowering.materialise(value).node if value.is_constant else lowering.strings(value),
            encoded,
        )
        return Value(layout, node, lowering.combine_validity(value))
    is_number = value.layout.form is Form.NUMBER and not value.is_constant
    if is_number and data_type.is_integer_like:
        integers = [literal for literal in literals if isinstance(literal, int)]
        listed = lower_integer_list(lowering, value, integers)
        if listed is not None:
            return Value(layout, listed, value.validity)
        wanted = lowering.stream.object(lowering.program.integer_list(tuple(literals), value.layout.dtype))
        return Value(layout, build.call(torch.isin, value.node, wanted), value.validity)
    if len(literals) > _SHORT_LIST and not value.is_constant and data_type.kind is not TypeKind.BOOLEAN:
        search = (
            long_lists.wide_in
            if value.layout.form is Form.WIDE
            else long_lists.intervals_in
            if data_type.kind is TypeKind.INTERVAL
            else long_lists.floats_in
        )
        wanted = lowering.stream.object(lowering.program.literal_list(tuple(literals), value.layout))
        return Value(layout, build.call(search, value.node, wanted), value.validity)
    result: Node | None = None
    for literal in expression.values:
        equal = lower_comparison(lowering, "equal", value, lowering.lower(literal)).node
        result = equal if result is None else build.call(operator.or_, result, equal)
    return Value(layout, result, lowering.combine_validity(value))
