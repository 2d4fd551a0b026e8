"""Functions of ENUMs: of the type alone, or of a value's place in it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tqp.core.datatypes import BIGINT, VARCHAR, DataType
from tqp.core.errors import BindError
from tqp.planner.algebra.expressions import Call, Expression, Literal, is_null_literal
from tqp.planner.binder.expressions.coercion import cast_to, folded
from tqp.planner.binder.expressions.forms.forms import Forms, Nodes
from tqp.planner.binder.expressions.nested.values import list_of_values
from tqp.planner.binder.expressions.operators import apply
from tqp.planner.parse import Span

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


def _operand(name: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    value = binder.bind(nodes[0])
    if not value.data_type.is_enum:
        raise BindError(f"{name}() takes an ENUM, not {value.data_type}", span)
    return value


def _place(value: Expression, span: Span | None) -> Expression:
    return folded(Call("enum_code", (value,), value.data_type.position_type, span))


def _enum_code(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    return _place(_operand("enum_code", binder, nodes, span), span)


def _end(name: str, place: int, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    categories = _operand(name, binder, nodes, span).data_type.categories
    return Literal(categories[place] if categories else None, VARCHAR)


def _range(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    return _categories(_operand("enum_range", binder, nodes, span).data_type, span)


def _categories(enum: DataType, span: Span | None) -> Expression:
    return list_of_values([Literal(each, VARCHAR) for each in enum.categories], span)


def _part_of_range(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """enum_range_boundary(a, b): from one value to another; NULL stands for the first, or the last."""
    bound = [binder.bind(node) for node in nodes]
    types = {value.data_type for value in bound if not is_null_literal(value)}
    if not types or not all(each.is_enum for each in types):
        raise BindError("enum_range_boundary() takes values of an ENUM, of which one may be NULL", span)
    if len(types) > 1:
        raise BindError("enum_range_boundary() takes values of one ENUM, and these are of two", span)
    (enum,) = types
    first, last = (
        _or_end(value, end, span) for value, end in zip(bound, (0, len(enum.categories) - 1), strict=True)
    )
    one = Literal(1, BIGINT)
    ends = [apply("add", [each, one], span, "+") for each in (first, last)]
    return apply("list_slice", [_categories(enum, span), *ends], span, "enum_range_boundary()")


def _or_end(value: Expression, end: int, span: Span | None) -> Expression:
    if is_null_literal(value):
        return Literal(end, BIGINT)
    place = cast_to(_place(value, span), BIGINT, span)
    return folded(Call("coalesce", (place, Literal(end, BIGINT)), BIGINT, span))


ENUM_FORMS: Forms = {
    "enum_code": (_enum_code, 1, 1),
    "enum_first": (partial(_end, "enum_first", 0), 1, 1),
    "enum_last": (partial(_end, "enum_last", -1), 1, 1),
    "enum_range": (_range, 1, 1),
    "enum_range_boundary": (_part_of_range, 2, 2),
}
