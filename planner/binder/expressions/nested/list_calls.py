"""Functions of several lists: their types, where these do not follow from overloads alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeGuard

from sqlglot import exp

from tqp.core.datatypes import BIGINT, BOOLEAN, NULL, UBIGINT, VARCHAR, TypeKind, list_of, row_of
from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.algebra.element_expressions import OverElements
from tqp.planner.algebra.expressions import Call, Expression, Literal, is_null_literal
from tqp.planner.binder.expressions.coercion import as_list, cast_to, folded, null_after, unify
from tqp.planner.binder.expressions.forms.forms import Forms, Nodes
from tqp.planner.binder.expressions.nested.lambdas import element_of
from tqp.planner.binder.expressions.operators import apply
from tqp.planner.catalog_protocol import OrderDefaults
from tqp.planner.functions.type_rules import bends, settle
from tqp.planner.parse import Span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder

#: Constants up to which each element is compared with all of them.
_FEW = 8


def _zip(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """list_zip(l, m, true): a truth value behind the lists says whether they end with the shortest."""
    values = [as_list(binder.bind(node), span) for node in nodes]
    truncates = len(values) > 1 and values[-1].data_type == BOOLEAN
    lists, rest = (values[:-1], values[-1:]) if truncates else (values, [])
    for each in lists:
        if each.data_type.kind is not TypeKind.LIST and each.data_type != NULL:
            raise BindError(f"list_zip() takes lists, not {each.data_type}", span)
    lists = [each if each.data_type != NULL else Literal(None, list_of(NULL)) for each in lists]
    result = list_of(row_of(each.data_type.element for each in lists))
    return Call("list_zip", (*lists, *rest), result, span)


def _resize(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """list_resize(l, size, filling): what it is filled with becomes an element."""
    value = as_list(binder.bind(nodes[0]), span)
    if value.data_type == NULL:
        return null_after(cast_to(binder.bind_flexible(nodes[1]), UBIGINT, span), NULL)
    if value.data_type.kind is not TypeKind.LIST:
        raise BindError(f"list_resize() takes a list, not {value.data_type}", span)
    size = cast_to(cast_to(binder.bind_flexible(nodes[1]), UBIGINT, span), BIGINT, span)
    element = value.data_type.element
    filling = cast_to(binder.bind_flexible(nodes[2]), element, span) if nodes[2:] else Literal(None, element)
    return Call("list_resize", (value, size, filling), value.data_type, span)


def _pair(name: str, values: Sequence[Expression], span: Span | None) -> tuple[Expression, ...]:
    """Two lists of one type; NULL without a type is one of it."""
    for each in values:
        if each.data_type == VARCHAR:
            raise UnsupportedError(f"{name}() of {each.data_type} is not supported; cast it to a list", span)
        if each.data_type.kind is not TypeKind.LIST and each.data_type != NULL:
            raise BindError(f"{name}() takes two lists, not {each.data_type}", span)
    pair, common = unify(values, f"the lists of {name}()", span)
    return pair if common != NULL else tuple(cast_to(each, list_of(NULL), span) for each in pair)


def _is_null_of_lists(values: Sequence[Expression]) -> bool:
    """Is one the constant NULL, and the other a list, or a text that may be one?"""
    return any(each.data_type == NULL for each in values) and all(
        each.data_type in (NULL, VARCHAR) and _has_no_type(each) or each.data_type.kind is TypeKind.LIST
        for each in values
    )


def _has_no_type(value: Expression) -> bool:
    """Has it no type yet?"""
    return value.data_type == NULL or bends(value)


def _compare_sets(name: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """list_has_any(l, m), list_has_all(l, m)"""
    values = [as_list(binder.bind_flexible(node), span) for node in nodes]
    is_null = any(map(is_null_literal, values))
    if _is_null_of_lists(values) or is_null and all(each.data_type.kind is TypeKind.LIST for each in values):
        return Literal(None, BOOLEAN)  # of whatever types the lists are
    pair = _pair(name, [settle(each) for each in values], span)
    if name == "list_has_any":
        for lists, constants in (pair, pair[::-1]):
            if _are_few(constants) and not isinstance(lists, Literal):
                return _any_of(binder, lists, constants, span)
    return folded(Call(name, pair, BOOLEAN, span))


def _are_few(constants: Expression) -> TypeGuard[Literal]:
    """Are they values with which each element may be compared?"""
    values = constants.value if isinstance(constants, Literal) else None
    if not isinstance(values, tuple) or constants.data_type.element.is_composed:
        return False
    return 0 < len(values) <= _FEW and None not in values


def _any_of(binder: ExpressionBinder, lists: Expression, constants: Literal, span: Span | None) -> Expression:
    """Is an element of the list one of the constants?"""
    assert isinstance(constants.value, tuple)
    element = element_of(binder, lists, "x")
    values = (Literal(each, element.data_type) for each in constants.value)
    parts = tuple(Call("equal", (element, each), BOOLEAN, span) for each in values)
    body = parts[0] if len(parts) == 1 else Call("or", parts, BOOLEAN)
    return OverElements("list_any", lists, body, element, None, BOOLEAN, span=span)


def bind_set_operator(binder: ExpressionBinder, node: exp.Binary) -> Expression:
    """l && m, l @> m, l <@ m"""
    name = "list_has_any" if isinstance(node, exp.ArrayOverlaps) else "list_has_all"
    sides = (node.this, node.expression)
    return _compare_sets(
        name, binder, sides[::-1] if isinstance(node, exp.ArrayContainedBy) else sides, span_of(node)
    )


#: The operators that compare lists as sets.
SET_OPERATORS: dict[type, str] = {
    exp.ArrayOverlaps: "&&",
    exp.ArrayContainsAll: "@>",
    exp.ArrayContainedBy: "<@",
}


def _intersect(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """list_intersect(l, m)"""
    pair = _pair("list_intersect", [as_list(binder.bind(node), span) for node in nodes], span)
    return Call("list_intersect", pair, pair[0].data_type, span)


def _repeat(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """repeat(l, times), which also repeats text."""
    value, times = (as_list(binder.bind_flexible(node), span) for node in nodes)
    return apply("repeat", (value, times), span, "repeat()")


def _taken(name: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """list_where(l, masks), list_select(l, places)"""
    values = [as_list(binder.bind_flexible(node), span) for node in nodes]
    if _is_null_of_lists(values):
        if values[1].data_type.kind is TypeKind.LIST:  # which has to be one of places or masks
            apply(name, (Literal(None, list_of(NULL)), values[1]), span, f"{name}()")
        return Literal(None, NULL)
    return apply(name, values, span, f"{name}()")


def _sorted(name: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """list_sort(l, order, nulls) and the like: what is not said is what settings say for ORDER BY. list_reverse_sort(l, nulls) goes the other way
    than these say."""
    values = [binder.bind_flexible(node) for node in nodes]
    defaults = binder.context.catalog.order_defaults()
    if defaults != OrderDefaults():
        said = [Literal(word, VARCHAR) for word in _order(name, values[1:], defaults)]
        name = "list_grade_up" if name == "list_grade_up" else "list_sort"
        values = [values[0], *said]
    return apply(name, values, span, f"{name}()")


def _order(name: str, said: Sequence[Expression], defaults: OrderDefaults) -> Sequence[str]:
    words = [str(each.value).upper() if isinstance(each, Literal) else "" for each in said]
    if name == "list_reverse_sort":
        words.insert(0, "ASC" if defaults.descends else "DESC")
    elif not words:
        words.append("DESC" if defaults.descends else "ASC")
    if len(words) < 2:
        words.append("NULLS FIRST" if defaults.nulls_first(words[0] == "DESC") else "NULLS LAST")
    return words


LIST_CALLS: Forms = {
    **{name: (partial(_sorted, "list_sort"), 1, 3) for name in ("list_sort", "array_sort")},
    **{
        name: (partial(_sorted, "list_reverse_sort"), 1, 2)
        for name in ("list_reverse_sort", "array_reverse_sort")
    },
    **{
        name: (partial(_sorted, "list_grade_up"), 1, 3)
        for name in ("list_grade_up", "array_grade_up", "grade_up")
    },
    "list_zip": (_zip, 1, None),
    "list_resize": (_resize, 2, 3),
    **{name: (partial(_compare_sets, name), 2, 2) for name in ("list_has_any", "list_has_all")},
    "list_intersect": (_intersect, 2, 2),
    **{name: (partial(_taken, name), 2, 2) for name in ("list_where", "list_select")},
    "repeat": (_repeat, 2, 2),
}
