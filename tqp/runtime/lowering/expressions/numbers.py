"""Lowering of integer and decimal arithmetic: value ranges choose the width and prove the absence of overflow."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from tqp.core.datatypes import DataType, TypeKind
from tqp.data.division import divide_by
from tqp.operators.memory.arrays import narrowest
from tqp.operators.numbers import arithmetic, elementwise, wide, wide_divide
from tqp.planner.algebra.expressions import Call, Cast
from tqp.runtime.lowering.graph_builder import NamedKernel, Node
from tqp.runtime.lowering.layouts import Form, Layout, canonical_layout, integer_layout, widest
from tqp.runtime.lowering.stream import Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering

Range = tuple[int, int]

#: 64 bits hold powers of ten up to this one.
_POWERS_OF_INT64 = 18


def _multiply_ranges(a: Range, b: Range) -> Range:
    products = [x * y for x in a for y in b]
    return min(products), max(products)


_OPERATORS: dict[
    str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any], Callable[[Range, Range], Range]]
] = {
    # kernel where nothing can overflow, checked 64-bit kernel, wide kernel, range of the result
    "add": (elementwise.add, arithmetic.add_checked, wide.add, lambda a, b: (a[0] + b[0], a[1] + b[1])),
    "subtract": (
        elementwise.subtract,
        arithmetic.subtract_checked,
        wide.subtract,
        lambda a, b: (a[0] - b[1], a[1] - b[0]),
    ),
    "multiply": (elementwise.multiply, arithmetic.multiply_checked, wide.multiply, _multiply_ranges),
}


_FLOAT_OPERATORS = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}


def lower_arithmetic(lowering: ExpressionLowering, call: Call, left: Value, right: Value) -> Value:
    """add, subtract or multiply; `negate` comes as 0 - x."""
    build = lowering.stream.builder
    plain, checked, on_wide, combine = _OPERATORS[call.function]
    if left.is_constant and right.is_constant:
        left = lowering.materialise(left)
    validity = lowering.combine_validity(left, right)
    nullable = left.layout.nullable or right.layout.nullable
    if call.data_type.is_float:
        dtype = torch.float64 if call.data_type.kind is TypeKind.DOUBLE else torch.float32
        operands = [lowering.number(each, dtype) for each in (left, right)]
        node = build.call(_FLOAT_OPERATORS[call.function], *operands, name=call.function)
        return Value(Layout(call.data_type, Form.NUMBER, dtype, nullable), node, validity)
    bounds = call.data_type.bounds
    result = combine(range_of(left), range_of(right))
    proven = bounds[0] <= result[0] and result[1] <= bounds[1]
    layout = integer_layout(call.data_type, result, nullable)
    # a wide operand may have a narrow result: times zero, or less what it is made of
    if Form.WIDE in (layout.form, left.layout.form, right.layout.form):
        convert = multiplicand if call.function == "multiply" else wide_node
        arguments: list[Any] = [convert(lowering, left), convert(lowering, right)]
        active = lowering.active(validity)  # rows that do not count may hold anything, whatever is proven
        kernel = NamedKernel(on_wide, call.function, call.span)
        node = build.call(kernel, *arguments, validity=active, message=_overflow(call), name=call.function)
        if not proven:
            check = NamedKernel(arithmetic.check_bounds, "check_bounds", call.span)
            node = build.call(check, node, bounds, _overflow(call), validity=active, name=call.function)
        if layout.form is not Form.WIDE:
            layout = replace(layout, dtype=torch.int64)
            node = _narrowed(lowering, node, active)
        return Value(layout, node, validity)
    if proven:
        dtype = widest(layout.dtype, left.layout.dtype, right.layout.dtype)
        node = build.call(plain, *_in_width(lowering, left, right, dtype), name=call.function)
        return Value(replace(layout, dtype=dtype), node, validity)
    node = build.call(
        NamedKernel(checked, call.function, call.span),
        narrow_node(lowering, left),
        narrow_node(lowering, right),
        bounds,
        str(call.data_type),
        validity=lowering.active(validity),
        name=call.function,
    )
    return Value(replace(layout, dtype=torch.int64), node, validity)


def _in_width(lowering: ExpressionLowering, left: Value, right: Value, dtype: torch.dtype) -> tuple[Any, Any]:
    """The operands, so that kernels compute in `dtype`: one of them must have it, the other may be narrower."""
    nodes: list[Any] = [lowering.plain(value) if value.is_constant else value.node for value in (left, right)]
    tensors = [i for i, value in enumerate((left, right)) if not value.is_constant]
    if not any((left, right)[i].layout.dtype == dtype for i in tensors):
        widened = tensors[0]
        nodes[widened] = lowering.stream.builder.method("to", nodes[widened], dtype)
    return nodes[0], nodes[1]


def _overflow(call: Call) -> str:
    words = {"add": "addition", "subtract": "subtraction", "multiply": "multiplication"}
    return (
        f"Overflow in {words[call.function]} of {call.data_type}; "
        "cast the operands to a wider type, or to DOUBLE where a rounded result will do"
    )


def range_of(value: Value) -> Range:
    """A sound range of an integer-like value."""
    if isinstance(value.constant, int):
        return int(value.constant), int(value.constant)
    return value.layout.value_range or value.layout.data_type.bounds


def wide_node(lowering: ExpressionLowering, value: Value) -> Node:
    """The value as int64 [n, 2]; a literal as [1, 2]."""
    if value.is_constant:
        return lowering.constant(
            replace(value, layout=replace(value.layout, form=Form.WIDE, dtype=torch.int64))
        )
    assert value.node is not None
    if value.layout.form is Form.WIDE:
        return value.node
    return lowering.stream.builder.call(wide.from_narrow, value.node)


def multiplicand(lowering: ExpressionLowering, value: Value) -> Node:
    """The value as `wide.multiply` takes it: wide only if it has to be, since products of narrow ones are cheaper."""
    if value.layout.form is Form.WIDE:
        return wide_node(lowering, value)
    return lowering.constant(value) if value.is_constant else lowering.tensor(value)


def narrow_node(lowering: ExpressionLowering, value: Value) -> Any:
    """The value as int64 [n]; a constant as a Python int. The range of a wide value must fit."""
    if value.is_constant:
        return lowering.plain(value)
    if value.layout.form is Form.WIDE:
        assert value.node is not None
        return _narrowed(lowering, value.node, lowering.active(value.validity))
    return lowering.to_dtype(value, torch.int64)


def _narrowed(lowering: ExpressionLowering, node: Node, validity: Node | None) -> Node:
    """A wide value that fits 64 bits, as int64 [n]."""
    message = "value out of the range of 64 bits"
    return lowering.stream.builder.call(wide.to_narrow, node, message, validity)


def scale_of(data_type: DataType) -> int:
    """Digits after the point; 0 of integers."""
    return data_type.scale if data_type.is_decimal else 0


def lower_numeric_cast(lowering: ExpressionLowering, cast: Cast, value: Value) -> Value | None:
    """Integer or decimal to integer, decimal or float; None where a kernel has to do it (TRY_CAST that may fail)."""
    source, target = value.layout.data_type, cast.data_type
    if not (source.is_integer or source.is_decimal):
        return None
    if target.is_float:
        return _to_float(lowering, value, target)
    if not (target.is_integer or target.is_decimal):
        return None
    shift = scale_of(target) - scale_of(source)
    low, high = range_of(value)
    result = (_rescale(low, shift), _rescale(high, shift))
    bounds = target.bounds
    proven = bounds[0] <= result[0] and result[1] <= bounds[1]
    if cast.is_try and not proven:
        return None
    if proven and shift == 0:
        return replace(value, layout=replace(value.layout, data_type=target))
    build = lowering.stream.builder
    layout = integer_layout(target, result, value.layout.nullable)
    message = (
        f"Type {source} with a value that is out of range for the destination type {target}; "
        "cast to a wider type, or use TRY_CAST to get NULL"
    )
    active = lowering.active(value.validity)

    def checked(node: Node) -> Node:
        check = NamedKernel(arithmetic.check_bounds, "check_bounds", cast.span)
        return node if proven else build.call(check, node, bounds, message, validity=active)

    is_wide = layout.form is Form.WIDE or value.layout.form is Form.WIDE
    if is_wide or narrowest(result) is None or shift > _POWERS_OF_INT64:
        node = wide_node(lowering, value)
        if shift:
            node = build.call(
                NamedKernel(wide_divide.rescale, "rescale", cast.span),
                node,
                scale_of(source),
                scale_of(target),
                message,
                active,
            )
        node = checked(node)
        if layout.form is Form.WIDE:
            return Value(layout, node, value.validity)
        node = build.call(NamedKernel(wide.to_narrow, "to_narrow", cast.span), node, message, active)
        return Value(replace(layout, dtype=torch.int64), node, value.validity)
    if shift > 0:
        factor = 10**shift if shift <= _POWERS_OF_INT64 else 0  # only zeros have such a product of 64 bits
        dtype = widest(*(narrowest(r) or torch.int64 for r in (result, (0, factor))), value.layout.dtype)
        node = build.call(elementwise.multiply, lowering.to_dtype(value, dtype), factor)
    elif shift < 0:
        dtype = torch.int64
        node = build.call(arithmetic.rescale, value.node, scale_of(source), scale_of(target))
    else:
        dtype = value.layout.dtype
        assert value.node is not None
        node = value.node
    return Value(replace(layout, dtype=dtype), checked(node), value.validity)


def _rescale(storage: int, shift: int) -> int:
    """The storage value with `shift` more (or fewer) digits after the point, halves rounded away from zero."""
    if shift >= 0:
        return storage * int(10**shift)
    unit = int(10**-shift)
    quotient, remainder = divmod(abs(storage), unit)
    quotient += int(remainder * 2 >= unit)
    return quotient if storage >= 0 else -quotient


#: Integers up to this magnitude, and powers of ten up to the second, are doubles themselves.
_EXACT_DOUBLE = 2**53
_EXACT_POWER = 22


def _to_float(lowering: ExpressionLowering, value: Value, target: DataType) -> Value:
    """The nearest float of the type, as DuckDB converts."""
    build = lowering.stream.builder
    layout = canonical_layout(target, value.layout.nullable)
    scale = scale_of(value.layout.data_type)
    low, high = range_of(value)
    is_exact = low >= -_EXACT_DOUBLE and high <= _EXACT_DOUBLE and scale <= _EXACT_POWER
    if value.layout.form is Form.WIDE or not is_exact:
        node = build.call(arithmetic.scaled_to_float, lowering.tensor(value), scale, layout.dtype)
        return Value(layout, node, value.validity)
    node = lowering.to_dtype(value, torch.float64)
    if scale:
        node = build.call(divide_by, node, float(10**scale))
    if layout.dtype is torch.float32:
        node = build.method("to", node, torch.float32)
    return Value(layout, node, value.validity)
