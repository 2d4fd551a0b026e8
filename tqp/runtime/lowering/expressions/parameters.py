"""Lowering of comparisons with a parameter: what the program compares with is made of its value before each run.

An integer is clamped to what the column can hold, and one beyond on either side, so that columns are compared in their own
narrow dtype; text that is compared with codes of a dictionary becomes a code by binary search.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from tqp.core.datatypes import BOOLEAN, VARCHAR
from tqp.operators.numbers import elementwise
from tqp.planner.algebra.expressions import Call, Expression, Parameter
from tqp.planner.functions.conditions import COMPARISONS, MIRRORED
from tqp.runtime.lowering.expressions.compare import (
    NUMBER_COMPARISONS,
    STRINGS,
    WIDE,
    compare_by_order,
    compare_with_float,
)
from tqp.runtime.lowering.expressions.numbers import range_of, wide_node
from tqp.runtime.lowering.graph_builder import Node
from tqp.runtime.lowering.layouts import Form, Layout, canonical_layout
from tqp.runtime.lowering.stream import Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering


def lower_with_parameter(lowering: ExpressionLowering, expression: Expression) -> Value | None:
    """A comparison with a parameter, NULL where the other side is; None of all else."""
    if not isinstance(expression, Call) or expression.function not in COMPARISONS:
        return None
    function, (left, right) = expression.function, expression.arguments
    if isinstance(left, Parameter):
        function, left, right = MIRRORED[function], right, left
    if not isinstance(right, Parameter):
        return None
    value = lowering.materialise(lowering.lower(left))
    layout = Layout(BOOLEAN, Form.NUMBER, torch.bool, value.layout.nullable)
    return Value(layout, _compared(lowering, function, value, right), value.validity)


def _compared(lowering: ExpressionLowering, function: str, left: Value, parameter: Parameter) -> Node:
    """The comparison's bool tensor; what stands under a NULL is unspecified."""
    build, layout = lowering.stream.builder, left.layout

    def given(form: object, convert: Callable[[Any], Any]) -> Node:
        return lowering.stream.object(lowering.program.parameter(parameter.index, form, convert))

    if layout.data_type.is_string:
        pool = layout.pool if layout.form is Form.CODES else None
        entries = lowering.program.dictionary(pool) if pool is not None else None
        if pool is None or entries is None:
            text = given(
                Form.STRINGS, partial(lowering.program.one_row, layout=canonical_layout(VARCHAR, False))
            )
            return compare_by_order(build, STRINGS, function, lowering.strings(left), text)
        compare, find = _BY_CODE[function]
        return build.call(compare, left.node, given((pool.slot, find), partial(find, entries)))
    if layout.form is Form.WIDE:
        row = given(Form.WIDE, partial(lowering.program.one_row, layout=layout))
        return compare_by_order(build, WIDE, function, wide_node(lowering, left), row)
    if layout.data_type.is_float:
        return compare_with_float(lowering, function, left, given("number", lambda value: value))
    limits = torch.iinfo(layout.dtype)
    low, high = range_of(left)
    low, high = max(low, limits.min) - 1, min(high, limits.max) + 1
    node = lowering.tensor(left)
    if low < limits.min or high > limits.max:
        node, limits = lowering.to_dtype(left, torch.int64), torch.iinfo(torch.int64)
        low, high = max(low, limits.min), min(high, limits.max)
    clamped = given((low, high), lambda value: min(max(value, low), high))
    return build.call(NUMBER_COMPARISONS[function], node, clamped)


def _code_of(entries: Sequence[bytes], text: str) -> int:
    """Of the text; -1 if the dictionary lacks it."""
    word = text.encode()
    place = bisect_left(entries, word)
    return place if place < len(entries) and entries[place] == word else -1


def _last_below(entries: Sequence[bytes], text: str) -> int:
    return bisect_left(entries, text.encode()) - 1


def _last_through(entries: Sequence[bytes], text: str) -> int:
    return bisect_right(entries, text.encode()) - 1


#: How codes of a sorted dictionary are compared, and with which; all of these are at least -1 and less than its size.
_BY_CODE: dict[str, tuple[Callable[..., Any], Callable[[Sequence[bytes], str], int]]] = {
    "equal": (elementwise.equal, _code_of),
    "not_equal": (elementwise.not_equal, _code_of),
    "less": (elementwise.less_equal, _last_below),
    "less_equal": (elementwise.less_equal, _last_through),
    "greater": (elementwise.greater, _last_through),
    "greater_equal": (elementwise.greater, _last_below),
}
