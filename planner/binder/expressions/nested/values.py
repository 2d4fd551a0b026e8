"""Lists, structs and rows: made of their values, joined with others, and split from text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import (
    BOOLEAN,
    NULL,
    VARCHAR,
    TypeKind,
    list_of,
    row_of,
    struct,
)
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.expressions import Call, Expression, Literal
from tqp.planner.binder.expressions.coercion import (
    as_list,
    as_text,
    cast_to,
    common_type_of,
    folded,
    unify,
)
from tqp.planner.binder.expressions.forms.cases import make_case, null_with
from tqp.planner.binder.expressions.forms.forms import Forms, Nodes
from tqp.planner.binder.expressions.nested.lambdas import bind_comprehension
from tqp.planner.binder.expressions.operators import apply
from tqp.planner.functions.type_rules import bends, settle
from tqp.planner.parse import Span, head_span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


def bind_list(binder: ExpressionBinder, node: exp.Array) -> Expression:
    """[a, b]"""
    if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Comprehension):
        return bind_comprehension(binder, node.expressions[0], span_of(node))
    return list_value(binder, node.expressions, span_of(node))


def list_value(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """list_value(a, b): the elements in their common type."""
    return list_of_values([binder.bind_flexible(each) for each in nodes], span)


def list_of_values(values: Sequence[Expression], span: Span | None) -> Expression:
    """A list of values that are bound, which are paired in turn: what is written bends to what it is paired with.

    But the first value behind a NULL that leads the list does not bend. A number that is written again is one number, and
    texts that are written are one text.
    """
    if not values:
        return Literal((), list_of(NULL))
    known = [value for value in values if value.data_type != NULL] or [values[0]]
    if values[0].data_type == NULL:
        known[0] = settle(known[0])
    same = takewhile(lambda value: bends(value) and _is_same_literal(value, known[0]), known)
    common = common_type_of(known[max(0, len(list(same)) - 1) :], "a list", span)
    elements = tuple(cast_to(value, common, span) for value in values)
    return folded(Call("list_value", elements, list_of(common), span))


def _is_same_literal(one: Expression, other: Expression) -> bool:
    return (
        isinstance(one, Literal)
        and isinstance(other, Literal)
        and one.data_type == other.data_type
        and (one.value == other.value or one.data_type == VARCHAR)
    )


def bind_struct(binder: ExpressionBinder, node: exp.Struct) -> Expression:
    """{'a': 1}"""
    return struct_pack(binder, node.expressions, span_of(node))


def struct_pack(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """struct_pack(a := 1)"""
    if not nodes:
        raise UnsupportedError("a struct without fields is not supported", span)
    return struct_of_values(
        named_values(binder, [_named(binder, node) for node in nodes], "struct_pack", span), span
    )


def _named(binder: ExpressionBinder, node: exp.Expr) -> exp.Expr:
    """A column by itself as a field of its name."""
    column = node.unnest()
    if not isinstance(column, exp.Column) or not binder.scope.has_column(column.name, column.table or None):
        return node
    name = binder.scope.display_name(column.name, column.table or None)
    return exp.PropertyEQ(this=exp.to_identifier(name), expression=column)


def named_values(
    binder: ExpressionBinder, nodes: Nodes, function: str, span: Span | None
) -> dict[str, Expression]:
    """a := 1, b := 2"""
    fields: dict[str, Expression] = {}
    for node in nodes:
        if not isinstance(node, exp.PropertyEQ):
            raise BindError(f"a field of {function}() has a name: a := 1", span_of(node) or span)
        name = node.this.name
        if any(lower_ascii(name) == lower_ascii(known) for known in fields):
            raise BindError(f'the field "{name}" stands twice in the struct', head_span(node.this) or span)
        if not name:
            raise UnsupportedError("a field without a name is not supported", span)
        fields[name] = binder.bind(node.expression)
    return fields


def struct_of_values(fields: dict[str, Expression], span: Span | None) -> Expression:
    """A struct of values that are bound."""
    types = {name: value.data_type for name, value in fields.items()}
    return folded(Call("struct_pack", tuple(fields.values()), struct(types), span))


def bind_tuple(binder: ExpressionBinder, node: exp.Tuple) -> Expression:
    """(a, b)"""
    return row(binder, node.expressions, span_of(node))


def row(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """row(a, b): a struct whose fields have no names."""
    if not nodes:
        raise UnsupportedError("rows without fields are not supported", span)
    return row_of_values([binder.bind(each) for each in nodes], span)


def row_of_values(values: Sequence[Expression], span: Span | None) -> Expression:
    """A row of values that are bound."""
    return folded(Call("struct_pack", tuple(values), row_of(each.data_type for each in values), span))


def _concat(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """list_concat(l, m): a list that is NULL has no elements. Of no lists it is the empty text, as in DuckDB."""
    if not nodes:
        return Literal("", VARCHAR)
    return joined([binder.bind_flexible(node) for node in nodes], span)


def joined(values: Sequence[Expression], span: Span | None) -> Expression:
    """The elements of all lists, one list after the other."""
    values = [as_list(value, span) for value in values]
    for value in values:
        if value.data_type.kind is not TypeKind.LIST and value.data_type != NULL:
            raise BindError(f"a list cannot be joined with {value.data_type}; cast it, or append [...]", span)
    lists, common = unify(values, "a concatenation of lists", span)
    if common == NULL:
        return Literal(None, NULL)
    return folded(Call("list_concat", lists, common, span))


def are_lists(values: Sequence[Expression]) -> bool:
    """Is each of them a list or an array, or NULL beside one?"""
    kinds = {value.data_type.kind for value in values}
    return kinds != {TypeKind.NULL} and kinds <= {TypeKind.LIST, TypeKind.ARRAY, TypeKind.NULL}


def concatenated(left: Expression, right: Expression, span: Span | None) -> Expression:
    """l || m, which is NULL where one of them is."""
    both = joined((left, right), span)
    nulls = [folded(Call("is_null", (settle(side),), BOOLEAN, span)) for side in (left, right)]
    return make_case(
        [folded(Call("or", tuple(nulls), BOOLEAN, span))], [Literal(None, both.data_type), both], span
    )


def _append(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    value, element = (binder.bind_flexible(node) for node in nodes)
    return joined((value, list_of_values([element], span)), span)


def _prepend(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    element, value = (binder.bind_flexible(node) for node in nodes)
    return joined((list_of_values([element], span), value), span)


def _push_front(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    return _prepend(binder, nodes[::-1], span)


def _split(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """string_split(s, separator); without a separator the text is one piece."""
    text, separator = (binder.bind_flexible(node) for node in nodes)
    split = apply("string_split", (text, separator), span, "string_split()")
    if isinstance(separator, Literal) and text.data_type != NULL and separator.value is None:
        return null_with(settle(text), list_of_values([as_text(text, span)], span), span)
    return split


NESTED_VALUE_FORMS: Forms = {
    "list_value": (list_value, 0, None),
    "construct_array": (list_value, 0, None),
    "struct_pack": (struct_pack, 0, None),
    "row": (row, 0, None),
    "list_concat": (_concat, 0, None),
    "string_split": (_split, 2, 2),
    **dict.fromkeys(("list_append", "array_append", "array_push_back"), (_append, 2, 2)),
    **dict.fromkeys(("list_prepend", "array_prepend"), (_prepend, 2, 2)),
    "array_push_front": (_push_front, 2, 2),
}
