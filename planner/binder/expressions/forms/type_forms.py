"""Calls about the types of their arguments: what they are, what becomes of what, and casts to the type of another value."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tqp.core.datatypes import BOOLEAN, NULL, VARCHAR, DataType
from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.algebra.expressions import Expression, Literal
from tqp.planner.binder.expressions.coercion import cast_to, of_type
from tqp.planner.binder.expressions.forms.forms import Forms, Nodes
from tqp.planner.functions.type_rules import SourceLiteral, implicit_cast_cost
from tqp.planner.parse import Span

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


def _typeof(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    data_type = binder.bind(nodes[0]).data_type
    return Literal('"NULL"', VARCHAR) if data_type == NULL else SourceLiteral(str(data_type), VARCHAR)


def _can_cast(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """can_cast_implicitly(a, b): whether values of the type of a become ones of the type of b without being asked."""
    source, target = (of_type(binder.bind(node).data_type) for node in nodes)
    if source.data_type.is_nested or target.data_type.is_nested:
        raise UnsupportedError("can_cast_implicitly() of nested values is not supported", span)
    return Literal(implicit_cast_cost(source, target.data_type) is not None, BOOLEAN)


def _cast_to_type(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """cast_to_type(x, y): x as a value of the type that y has."""
    value, target = binder.bind_flexible(nodes[0]), binder.bind(nodes[1]).data_type
    if target == NULL:
        raise BindError(
            "cast_to_type() takes a value of the type to cast to, not NULL; write NULL::INTEGER", span
        )
    return cast_to(value, target, span)


def _replace_type(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """replace_type(x, y, z): x with what has the type of y in it, or is it, as values of the type of z."""
    value = binder.bind(nodes[0])
    before, after = (binder.bind(node).data_type for node in nodes[1:])
    if after == NULL:
        raise BindError(
            "replace_type() takes a value of the type that is to be, not NULL; write NULL::INTEGER", span
        )
    return cast_to(value, _with_types(value.data_type, before, after), span)


def _with_types(data_type: DataType, before: DataType, after: DataType) -> DataType:
    """The type with `after` for each `before` in it."""
    if data_type == before:
        return after
    return replace(data_type, children=tuple(_with_types(each, before, after) for each in data_type.children))


TYPE_FORMS: Forms = {
    "typeof": (_typeof, 1, 1),
    "can_cast_implicitly": (_can_cast, 2, 2),
    "cast_to_type": (_cast_to_type, 2, 2),
    "replace_type": (_replace_type, 3, 3),
}
