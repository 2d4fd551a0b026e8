"""Maps: made of lists and of other maps, and looked into by key. A map is a list of its entries, so lists do the rest."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import NULL, UBIGINT, TypeKind, list_of, map_of, row_of
from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.algebra.expressions import Call, Expression, Literal, is_null_literal
from tqp.planner.binder.expressions.coercion import as_list, cast_to, folded, null_after
from tqp.planner.binder.expressions.forms.forms import Forms, Nodes
from tqp.planner.binder.expressions.nested.lambdas import search
from tqp.planner.binder.expressions.operators import apply
from tqp.planner.functions.type_rules import settle
from tqp.planner.parse import Span

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder

_EMPTY = map_of(NULL, NULL)


def _map(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """map(keys, values), which `MAP {key: value}` is read as."""
    if not nodes:
        return Literal((), _EMPTY)
    if len(nodes) != 2:
        raise BindError("map() takes a list of keys and one of values", span)
    return map_of_lists([as_list(binder.bind(node), span) for node in nodes], span)


def map_of_lists(lists: Sequence[Expression], span: Span | None) -> Expression:
    """A map of lists that are bound: NULL where one of them is."""
    for each in lists:
        if each.data_type.kind is not TypeKind.LIST and each.data_type != NULL:
            raise BindError(f"map() takes a list of keys and one of values, not {each.data_type}", span)
    data_type = map_of(*(NULL if each.data_type == NULL else each.data_type.element for each in lists))
    if any(map(is_null_literal, lists)):
        return Literal(None, data_type)
    return folded(Call("map", tuple(lists), data_type, span))


def _from_entries(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """map_from_entries(l): of a list of structs of two fields, whatever their names."""
    value = binder.bind(nodes[0])
    if value.data_type == NULL:
        return Literal(None, NULL)
    if value.data_type == list_of(NULL):
        value = cast_to(value, list_of(row_of((NULL, NULL))), span)
    fields = value.data_type.element.children if value.data_type.kind is TypeKind.LIST else ()
    if len(fields) != 2 or value.data_type.element.kind is not TypeKind.STRUCT:
        raise BindError(
            f"map_from_entries() takes a list of structs of a key and a value, not {value.data_type}", span
        )
    return folded(Call("map_from_entries", (value,), map_of(*fields), span))


def _operand(binder: ExpressionBinder, node: exp.Expr, name: str, span: Span | None) -> Expression:
    """A map; NULL without a type is one of no types."""
    value = binder.bind(node)
    if value.data_type == NULL:
        return Literal(None, _EMPTY)
    if value.data_type.kind is not TypeKind.MAP:
        raise BindError(f"{name}() takes a map, not {value.data_type}", span)
    return value


def _part(name: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """map_keys(m), map_values(m), map_entries(m)"""
    return part_of(name, _operand(binder, nodes[0], name, span), span)


def part_of(name: str, value: Expression, span: Span | None) -> Expression:
    """The keys, values or entries of a map as a list."""
    entry = value.data_type.element
    element = {"map_keys": entry.children[0], "map_values": entry.children[1], "map_entries": entry}[name]
    return folded(Call(name, (value,), list_of(element), span))


def extract_value(
    binder: ExpressionBinder, value: Expression, key: Expression, span: Span | None, shown: str = "[...]"
) -> Expression:
    """m[key]: the value; NULL where the map has no such key. Its type is the map's: it bends to nothing around it."""
    place = _place(binder, value, key, span, shown)
    if is_null_literal(value):
        return settle(null_after(place, value.data_type.element.children[1]))
    return settle(apply("list_extract", (part_of("map_values", value, span), place), span, shown))


def _place(
    binder: ExpressionBinder, value: Expression, key: Expression, span: Span | None, shown: str
) -> Expression:
    """Where the key stands, counted from 1; NULL where it does not."""
    if value.data_type.holds_collation:  # which DuckDB does not mind here
        raise UnsupportedError(f"{shown} of a map that holds texts with a collation is not supported", span)
    return search("list_first_place", binder, part_of("map_keys", value, span), key, span, shown)


def _extract_value(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    value = _operand(binder, nodes[0], "map_extract_value", span)
    return extract_value(binder, value, binder.bind_flexible(nodes[1]), span, "map_extract_value()")


def _extract(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """map_extract(m, key): a list of the value, or an empty one."""
    value = _operand(binder, nodes[0], "map_extract", span)
    place = _place(binder, value, binder.bind_flexible(nodes[1]), span, "map_extract()")
    if isinstance(place, Literal):
        place = Literal(place.value or 0, place.data_type)
    else:
        place = Call("coalesce", (place, Literal(0, place.data_type)), place.data_type, span)
    return apply("list_slice", (part_of("map_values", value, span), place, place), span, "map_extract()")


def _contains(name: str, part: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """map_contains(m, key), map_contains_value(m, value)"""
    value = _operand(binder, nodes[0], name, span)
    return contains(part, binder, value, binder.bind_flexible(nodes[1]), span, f"{name}()")


def contains(
    part: str, binder: ExpressionBinder, value: Expression, wanted: Expression, span: Span | None, shown: str
) -> Expression:
    """Whether a value is among the keys, values or entries of a map."""
    return search("list_any", binder, part_of(part, value, span), wanted, span, shown)


def _contains_entry(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """map_contains_entry(m, key, value)"""
    value = _operand(binder, nodes[0], "map_contains_entry", span)
    key, wanted = (binder.bind(node) for node in nodes[1:])
    entry = Call("struct_pack", (key, wanted), map_of(key.data_type, wanted.data_type).element, span)
    return contains("map_entries", binder, value, folded(entry), span, "map_contains_entry()")


def _concat(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """map_concat(m, n): a map that is NULL has no entries, and neither has one of no types."""
    given = [binder.bind(node) for node in nodes]
    for each in given:
        if each.data_type.kind is not TypeKind.MAP and each.data_type != NULL:
            raise BindError(f"map_concat() takes maps, not {each.data_type}", span)
    types = list(dict.fromkeys(each.data_type for each in given if each.data_type not in (NULL, _EMPTY)))
    if len(types) > 1:
        raise BindError(f"map_concat() takes maps of one type, not {types[0]} and {types[1]}; cast one", span)
    if all(each.data_type == NULL for each in given):
        return Literal(None, NULL)
    data_type = types[0] if types else _EMPTY
    maps = tuple(cast_to(each, data_type, span) for each in given if each.data_type != NULL)
    return maps[0] if len(maps) == 1 else Call("map_concat", maps, data_type, span)


def _cardinality(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """cardinality(m): how many entries a map has, or elements a list."""
    values = [as_list(binder.bind(node), span) for node in nodes]
    if any(each.data_type == NULL or is_null_literal(each) for each in values):
        return Literal(None, UBIGINT)
    value = values[0]
    if len(values) > 1:
        raise BindError(f"cardinality() takes 1 argument, not {len(values)}", span)
    if not value.data_type.has_elements:
        raise BindError(f"cardinality() takes a map or a list, not {value.data_type}", span)
    return folded(Call("cardinality", (value,), UBIGINT, span))


MAP_FORMS: Forms = {
    "map": (_map, 0, None),
    "map_from_entries": (_from_entries, 1, 1),
    **{name: (partial(_part, name), 1, 1) for name in ("map_keys", "map_values", "map_entries")},
    "map_extract_value": (_extract_value, 2, 2),
    **dict.fromkeys(("map_extract", "element_at"), (_extract, 2, 2)),
    "map_contains": (partial(_contains, "map_contains", "map_keys"), 2, 2),
    "map_contains_value": (partial(_contains, "map_contains_value", "map_values"), 2, 2),
    "map_contains_entry": (_contains_entry, 3, 3),
    "map_concat": (_concat, 2, None),
    "cardinality": (_cardinality, 1, None),
}
