"""Lowering of comparisons: the same six for every type, on whatever form the two sides have."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from tqp.core.datatypes import BOOLEAN, COMPOSED, TypeKind
from tqp.operators.nested import equality as nested_equality
from tqp.operators.numbers import comparisons, elementwise, wide
from tqp.operators.strings import compare as string_compare
from tqp.planner.algebra.expressions import Call
from tqp.planner.functions.conditions import MIRRORED
from tqp.runtime.lowering.expressions.numbers import range_of, wide_node
from tqp.runtime.lowering.graph_builder import GraphBuilder, Node
from tqp.runtime.lowering.layouts import Form, canonical_layout
from tqp.runtime.lowering.stream import Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering

NUMBER_COMPARISONS: dict[str, Callable[..., Any]] = {
    "equal": elementwise.equal,
    "not_equal": elementwise.not_equal,
    "less": elementwise.less,
    "less_equal": elementwise.less_equal,
    "greater": elementwise.greater,
    "greater_equal": elementwise.greater_equal,
}

#: The kernels of `a = b` and `a < b` of two columns.
_Order = tuple[Callable[..., Any], Callable[..., Any]]
_FLOATS: _Order = (comparisons.float_equal, comparisons.float_less)
_INTERVALS: _Order = (comparisons.interval_equal, comparisons.interval_less)
STRINGS: _Order = (string_compare.equal, string_compare.less)
WIDE: _Order = (wide.equal, wide.less)
_BY_LESS = ("less", "less_equal", "greater", "greater_equal")
_INVERTED = ("not_equal", "less_equal", "greater_equal")

#: x > literal as not(x <= literal): then NaN, greater than everything, comes out right. The literal is not NaN.
_THROUGH_COMPLEMENT = {"greater": elementwise.less_equal, "greater_equal": elementwise.less}


def lower_comparison(lowering: ExpressionLowering, function: str, left: Value, right: Value) -> Value:
    """NULL where a side is NULL."""
    if left.is_constant and not right.is_constant:
        left, right, function = right, left, MIRRORED[function]
    left = lowering.materialise(left)
    validity = lowering.combine_validity(left, right)
    layout = canonical_layout(BOOLEAN, left.layout.nullable or right.layout.nullable)
    return Value(layout, compare_nodes(lowering, function, left, right), validity)


def lower_distinct_from(lowering: ExpressionLowering, call: Call, left: Value, right: Value) -> Value:
    """IS [NOT] DISTINCT FROM: NULLs equal each other and nothing else; never NULL."""
    build = lowering.stream.builder
    expression = call.arguments[0]
    if left.is_constant:
        left, right = right, left
        expression = call.arguments[1]
    left = lowering.materialise(left)
    if right.is_null:
        valid = lowering.checked_validity(expression, left)
        node = build.call(operator.invert, valid) if call.function == "is_not_distinct_from" else valid
        return Value(canonical_layout(BOOLEAN, False), node)
    same = compare_nodes(lowering, "equal", left, right)
    if left.layout.nullable or right.layout.nullable:
        left_valid, right_valid = lowering.validity_node(left), lowering.validity_node(right)
        both = build.call(operator.and_, left_valid, right_valid)
        neither = build.call(operator.invert, build.call(operator.or_, left_valid, right_valid))
        same = build.call(operator.or_, build.call(operator.and_, same, both), neither)
    if call.function == "is_distinct_from":
        same = build.call(operator.invert, same)
    return Value(canonical_layout(BOOLEAN, False), same)


def compare_nodes(lowering: ExpressionLowering, function: str, left: Value, right: Value) -> Node:
    """The comparison's bool tensor; what stands under a NULL is unspecified."""
    build = lowering.stream.builder
    data_type = left.layout.data_type
    if data_type.kind in COMPOSED:
        return _compare_composed(lowering, function, left, right)
    forms = {value.layout.form for value in (left, right) if not value.is_null}
    if data_type.is_string:
        if left.layout.has_dictionary and right.layout.pool == left.layout.pool:
            if function in _BY_LESS:
                left, right = lowering.comparable(left), lowering.comparable(right)
            return build.call(NUMBER_COMPARISONS[function], left.node, right.node)
        return compare_by_order(build, STRINGS, function, lowering.strings(left), lowering.strings(right))
    if data_type.kind is TypeKind.INTERVAL:
        return compare_by_order(build, _INTERVALS, function, lowering.tensor(left), lowering.tensor(right))
    if Form.WIDE in forms:
        return compare_by_order(build, WIDE, function, wide_node(lowering, left), wide_node(lowering, right))
    if data_type.is_float:
        return _compare_floats(lowering, function, left, right)
    if right.is_literal and data_type.is_integer_like:
        return _compare_with_literal(lowering, function, left, right)
    return build.call(NUMBER_COMPARISONS[function], lowering.tensor(left), lowering.scalar_or_tensor(right))


def _compare_composed(lowering: ExpressionLowering, function: str, left: Value, right: Value) -> Node:
    build = lowering.stream.builder
    if function in _BY_LESS or not left.layout.data_type.is_nested:
        left, right = lowering.order_key(left), lowering.order_key(right)
        assert left.node is not None and right.node is not None
        return compare_by_order(build, STRINGS, function, left.node, right.node)
    sides = (lowering.constant(each) if each.is_constant else each.node for each in (left, right))
    same = build.call(nested_equality.equal, *sides, left.layout.data_type, name="equal")
    return build.call(operator.invert, same) if function == "not_equal" else same


def _compare_floats(lowering: ExpressionLowering, function: str, left: Value, right: Value) -> Node:
    build = lowering.stream.builder
    if right.is_literal and right.constant == right.constant:  # not NaN
        return compare_with_float(lowering, function, left, right.constant)
    return compare_by_order(build, _FLOATS, function, lowering.tensor(left), lowering.tensor(right))


def compare_by_order(build: GraphBuilder, order: _Order, function: str, left: Node, right: Node) -> Node:
    """A comparison by `a = b` or `a < b`: its sides exchanged, its outcome inverted."""
    kernel = order[function in _BY_LESS]
    if function in ("greater", "less_equal"):
        left, right = right, left
    node: Node = build.call(kernel, left, right)
    return build.call(operator.invert, node) if function in _INVERTED else node


def compare_with_float(lowering: ExpressionLowering, function: str, left: Value, number: Any) -> Node:
    """Floats against one that is not NaN: a Python number, or what gives one."""
    build, node = lowering.stream.builder, lowering.tensor(left)
    if function in _THROUGH_COMPLEMENT:
        return build.call(operator.invert, build.call(_THROUGH_COMPLEMENT[function], node, number))
    return build.call(NUMBER_COMPARISONS[function], node, number)


def _compare_with_literal(lowering: ExpressionLowering, function: str, left: Value, right: Value) -> Node:
    """An integer column against an integer literal that its dtype may be too narrow for."""
    build = lowering.stream.builder
    literal = right.constant
    assert isinstance(literal, int)
    low, high = range_of(left)
    if not left.is_constant:
        limits = torch.iinfo(left.layout.dtype)
        low, high = max(low, limits.min), min(high, limits.max)
    node = lowering.tensor(left)
    if low <= literal <= high:
        return build.call(NUMBER_COMPARISONS[function], node, literal)
    below = literal < low  # then every value is greater than the literal
    outcome = {
        "equal": False,
        "not_equal": True,
        "less": not below,
        "less_equal": not below,
        "greater": below,
        "greater_equal": below,
    }[function]
    return build.call(torch.full_like, node, outcome, dtype=torch.bool)
