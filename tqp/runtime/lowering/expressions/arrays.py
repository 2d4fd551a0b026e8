"""Casts between arrays and lists of the same elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tqp.core.datatypes import TypeKind
from tqp.operators.nested import arrays as kernels
from tqp.planner.algebra.expressions import Cast
from tqp.runtime.lowering.graph_builder import NamedKernel
from tqp.runtime.lowering.layouts import canonical_layout
from tqp.runtime.lowering.stream import Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering


def lower_array_cast(lowering: ExpressionLowering, cast: Cast, value: Value) -> Value:
    """An array as a list, or a list as an array, of which each has so many elements."""
    build = lowering.stream.builder
    source, target = value.layout.data_type, cast.data_type
    value = lowering.materialise(value)
    node, validity = value.node, value.validity
    if target.kind is TypeKind.LIST:
        if source.is_vector:
            node = build.call(kernels.lists_of_vectors, node, name="list")
        return Value(canonical_layout(target, value.layout.nullable), node, validity)
    if cast.is_try:
        fits = build.call(kernels.have_length, node, target.size)
        validity = lowering.all_valid(validity, fits)
    else:
        check = NamedKernel(kernels.checked_arrays, "array", cast.span)
        node = build.call(check, node, target.size, validity=lowering.active(validity), name="array")
    if target.is_vector:
        make = NamedKernel(kernels.vectors_of_lists, "array", cast.span)
        node = build.call(make, node, target.size, validity=lowering.active(validity), name="array")
    return Value(canonical_layout(target, validity is not None), node, validity)
