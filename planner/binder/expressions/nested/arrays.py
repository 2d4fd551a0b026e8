"""Arrays: `[a, b]::FLOAT[2]`, `array_value(a, b)`, how near two are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import DOUBLE, FLOAT, NULL, DataType, TypeKind, array, list_of
from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.algebra.expressions import Call, Expression, Literal, is_null_literal
from tqp.planner.binder.expressions.coercion import as_list, cast_to, folded, unify
from tqp.planner.binder.expressions.forms.forms import Forms, Nodes
from tqp.planner.binder.expressions.operators import apply
from tqp.planner.functions.literal_casts import cast_value, rounded_to_float32
from tqp.planner.parse import Span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


def array_of(elements: Sequence[Expression], target: DataType, span: Span | None) -> Expression:
    """The elements as FLOAT[n]: a literal if all are."""
    if len(elements) != target.size:
        raise BindError(f"cannot cast a list of {len(elements)} values to {target}", span)
    elements, _ = unify(elements, "a list", span)
    if any(map(is_null_literal, elements)):
        raise UnsupportedError("an array with a NULL in it is not supported", span)
    values = [_constant(each) for each in elements]
    known = tuple(value for value in values if value is not None)
    if len(known) == len(values):
        return Literal(known, target)
    cast = tuple(cast_to(element, FLOAT, span) for element in elements)
    return Call("array_value", cast, target, span)


def bind_array_value(elements: Sequence[Expression], span: Span | None) -> Expression:
    """array_value(a, ...): the elements in their common type."""
    if not elements:
        raise BindError("array_value() takes at least one element", span)
    made, common = unify(elements, "an array", span)
    target = array(len(elements), common)
    if target.is_vector:
        return array_of(elements, target, span)
    return cast_to(folded(Call("list_value", made, list_of(common), span)), target, span)


def bind_measure(name: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """array_distance(a, b) and its like: of vectors, and of DOUBLE arrays as lists of one length."""
    sides = _sides(binder, nodes)
    types = [side.data_type for side in sides]
    shown = f"{name}()"
    if not any(each.kind is TypeKind.ARRAY and not each.is_vector for each in types):
        return apply(name, sides, span, shown)
    if NULL in types:
        return Literal(None, DOUBLE)
    if any(each.kind is not TypeKind.ARRAY or each.element not in (FLOAT, DOUBLE) for each in types):
        raise BindError(f"{shown} takes two arrays of FLOAT or DOUBLE, not {types[0]} and {types[1]}", span)
    if types[0].size != types[1].size:
        raise BindError(f"{shown} takes two arrays of one size, not {types[0]} and {types[1]}", span)
    lists = [cast_to(side, list_of(DOUBLE), span) for side in sides]
    return apply(name.replace("array_", "list_"), lists, span, shown)


def _sides(binder: ExpressionBinder, nodes: Sequence[exp.Expr]) -> list[Expression]:
    """The two operands of a measure. A list of numbers that is given for a parameter is FLOAT[n], for which DuckDB wants a cast."""
    sides = []
    for node in nodes:
        side = binder.bind_flexible(node)
        if isinstance(node, exp.Placeholder) and isinstance(side, Literal) and isinstance(side.value, tuple):
            is_vector = side.data_type.kind is TypeKind.LIST and side.data_type.element.is_numeric
            if is_vector and None not in side.value:
                side = cast_to(side, array(len(side.value)), span_of(node))
        sides.append(side)
    return _of_one_size(sides)


def _of_one_size(sides: Sequence[Expression]) -> list[Expression]:
    """Two arrays, of which a constant NULL has the size of the other one, as in DuckDB."""
    first, second = sides
    for side, other in ((first, second), (second, first)):
        is_array = all(each.data_type.kind is TypeKind.ARRAY for each in sides)
        if is_array and is_null_literal(side) and side.data_type.size != other.data_type.size:
            element = side.data_type.element
            null = Literal(None, array(other.data_type.size, element if element.is_float else FLOAT))
            return [null if each is side else each for each in sides]
    return [first, second]


_DISTANCES: dict[type, tuple[str, str]] = {
    exp.Distance: ("<->", "distance"),
    exp.CosineDistance: ("<=>", "cosine_distance"),
}


def bind_distance(binder: ExpressionBinder, node: exp.Binary) -> Expression:
    """a <-> b, a <=> b: of vectors, and of anything else that is a list or an array as lists of numbers."""
    sign, name = _DISTANCES[type(node)]
    span = span_of(node)
    sides = _sides(binder, (node.this, node.expression))
    if all(side.data_type.is_vector or side.data_type == NULL for side in sides):
        return apply(f"array_{name}", sides, span, sign)
    return apply(f"list_{name}", [as_list(side, span) for side in sides], span, sign)


def _cross_product(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """array_cross_product(a, b)"""
    written = [binder.bind(node) for node in nodes]
    sides, common = unify(written, "array_cross_product()", span)
    if common.kind is TypeKind.ARRAY and common.element.is_numeric and not common.element.is_float:
        common = array(common.size, DOUBLE)
        sides = tuple(cast_to(side, common, span) for side in sides)
    types = [common, *(side.data_type for side in written if side.data_type.kind is TypeKind.ARRAY)]
    for each in types:
        if each.kind is not TypeKind.ARRAY or each.size != 3 or not common.element.is_float:
            raise BindError(f"array_cross_product() takes two arrays FLOAT[3] or DOUBLE[3], not {each}", span)
    lists = tuple(as_list(side, span) for side in sides)
    return cast_to(Call("array_cross_product", lists, list_of(common.element), span), common, span)


ARRAY_FORMS: Forms = {
    "array_cross_product": (_cross_product, 2, 2),
    **{
        name: (partial(bind_measure, name), 2, 2)
        for name in """
        array_distance array_cosine_similarity array_cosine_distance array_inner_product array_dot_product
        array_negative_inner_product array_negative_dot_product
        """.split()
    },
}


def _constant(element: Expression) -> float | None:
    """The value of a literal as a 32-bit float; None of anything else."""
    if not isinstance(element, Literal):
        return None
    value = cast_value(element.value, element.data_type, DOUBLE)
    return None if value is NotImplemented or value is None else rounded_to_float32(value)
