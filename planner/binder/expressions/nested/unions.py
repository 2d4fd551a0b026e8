"""Unions: made of a member, and what their tag and their members are. A union is a struct of its tag and its members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tqp.core.datatypes import NULL, VARCHAR, union_of
from tqp.core.errors import BindError
from tqp.planner.algebra.expressions import Expression, Literal, is_null_literal
from tqp.planner.binder.expressions.coercion import as_text, union_of_member
from tqp.planner.binder.expressions.forms.forms import Forms, Nodes
from tqp.planner.binder.expressions.nested.parts import field_at, field_of
from tqp.planner.binder.expressions.nested.values import named_values
from tqp.planner.functions.constants import no_constant
from tqp.planner.parse import Span

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


def _value(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """union_value(k := 1): a union of one member, which a cast makes one of more."""
    if len(nodes) != 1:
        raise BindError(f"union_value() takes one member: union_value(k := 1), not {len(nodes)}", span)
    ((name, value),) = named_values(binder, nodes, "union_value", span).items()
    return union_of_member(union_of({name: value.data_type}), 1, value, span)


def _tag(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """union_tag(u): the name of the member that there is, as an ENUM of all of them."""
    value = binder.bind(nodes[0])
    if value.data_type == NULL:
        return value
    _check(value, "union_tag", span)
    return field_at(value, 1, span)


def _extract(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """union_extract(u, 'k'): the member of that name; NULL where there is another."""
    value, name = (binder.bind(node) for node in nodes)
    if value.data_type != NULL:
        _check(value, "union_extract", span)
    name = as_text(name, span) if name.data_type.is_enum else name
    if name.data_type not in (VARCHAR, NULL):
        raise BindError(f"union_extract() names a member by a text, not by {name.data_type}", span)
    if value.data_type == NULL or is_null_literal(name):
        return Literal(None, NULL)
    if not isinstance(name, Literal):
        raise no_constant(name, "a member of a union is named by a constant", span)
    return field_of(value, str(name.value), span)


def _check(value: Expression, function: str, span: Span | None) -> None:
    if not value.data_type.is_union:
        raise BindError(f"{function}() takes a union, not {value.data_type}", span)


UNION_FORMS: Forms = {
    "union_value": (_value, 0, None),
    "union_tag": (_tag, 1, 1),
    "union_extract": (_extract, 2, 2),
}
