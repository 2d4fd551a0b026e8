"""Functions of whole structs: other structs made of their fields, their names and values, and searches among them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import BOOLEAN, INTEGER, NULL, VARCHAR, TypeKind, list_of
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.expressions import FALSE, TRUE, Expression, Literal, is_null_literal
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.binder.expressions.coercion import cast_to, compare, null_after, of_type
from tqp.planner.binder.expressions.forms.cases import make_case, null_with
from tqp.planner.binder.expressions.forms.forms import Forms, Nodes
from tqp.planner.binder.expressions.nested.parts import field_at
from tqp.planner.binder.expressions.nested.values import (
    list_of_values,
    named_values,
    row_of_values,
    struct_of_values,
)
from tqp.planner.functions.type_rules import common_type
from tqp.planner.parse import Span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder

#: The fields of a struct, by their names.
Fields = dict[str, Expression]


def _operand(binder: ExpressionBinder, node: exp.Expr, function: str, span: Span | None) -> Expression:
    """A struct, with or without names."""
    if isinstance(node, exp.PropertyEQ):
        raise BindError(f"the struct that {function}() takes has no name before it", span_of(node) or span)
    value = binder.bind(node)
    if value.data_type.kind is not TypeKind.STRUCT:
        raise BindError(f"{function}() takes a struct, not {value.data_type}", span)
    return value


def _fields_of(value: Expression, function: str, span: Span | None) -> Fields:
    if value.data_type.is_tuple:
        raise BindError(f"{function}() takes a struct whose fields have names, not {value.data_type}", span)
    return dict(zip(value.data_type.names, _values_of(value, span), strict=True))


def _values_of(value: Expression, span: Span | None) -> list[Expression]:
    return [field_at(value, place, span) for place in range(1, len(value.data_type.children) + 1)]


def _insert(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """struct_insert(s, b := 2). Of a struct that is NULL the fields are NULL, and the new struct is not, as in DuckDB."""
    value, given = _changed("struct_insert", binder, nodes, span)
    return _joined("struct_insert", [_fields_of(value, "struct_insert", span), given], span)


def _update(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """struct_update(s, a := 2): new fields stand behind the others, and one that is replaced is spelled as the new one."""
    value, given = _changed("struct_update", binder, nodes, span)
    fields = _fields_of(value, "struct_update", span)
    spelled = {lower_ascii(name): name for name in given}
    renamed = {spelled.get(lower_ascii(name), name): each for name, each in fields.items()}
    if renamed.keys() <= given.keys() and may_raise(value, {}):
        raise UnsupportedError(
            "struct_update() of all fields of a struct that may fail is not supported", span
        )
    return struct_of_values({**renamed, **given}, span)


def _changed(
    function: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None
) -> tuple[Expression, Fields]:
    """A struct, and the fields that are given for it."""
    return _operand(binder, nodes[0], function, span), named_values(binder, nodes[1:], function, span)


def _concat(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """struct_concat(s, t): all with names, or all without."""
    values = [_operand(binder, node, "struct_concat", span) for node in nodes]
    if all(value.data_type.is_tuple for value in values):
        return row_of_values([field for value in values for field in _values_of(value, span)], span)
    return _joined("struct_concat", [_fields_of(value, "struct_concat", span) for value in values], span)


def _joined(function: str, parts: Sequence[Fields], span: Span | None) -> Expression:
    """A struct of the fields of all, whose names differ by more than their case."""
    known: set[str] = set()
    for name in chain.from_iterable(parts):
        if lower_ascii(name) in known:
            raise BindError(f'the field "{name}" would stand twice in the struct of {function}()', span)
        known.add(lower_ascii(name))
    return struct_of_values(dict(chain.from_iterable(part.items() for part in parts)), span)


def _keys(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """struct_keys(s): the names of the fields, which are the same in each row where the struct is not NULL."""
    value = binder.bind(nodes[0])
    if value.data_type == NULL:
        return Literal(None, list_of(VARCHAR))
    if value.data_type.kind is not TypeKind.STRUCT or value.data_type.is_tuple:
        raise BindError(f"struct_keys() takes a struct whose fields have names, not {value.data_type}", span)
    names = [Literal(name, VARCHAR) for name in value.data_type.names]
    return null_with(value, list_of_values(names, span), span)


def _values(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """struct_values(s): the fields without their names."""
    value = binder.bind(nodes[0])
    if value.data_type == NULL:
        return value
    if value.data_type.kind is not TypeKind.STRUCT:
        raise BindError(f"struct_values() takes a struct, not {value.data_type}", span)
    return null_with(value, row_of_values(_values_of(value, span), span), span)


def _contains(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """struct_contains(row(1, 2), 2): NULL where the row or what is looked for is."""
    value, wanted = (binder.bind(node) for node in nodes)
    if any(map(is_null_literal, (value, wanted))):
        return Literal(None, BOOLEAN)  # of whatever types they are
    found = [condition for _, condition in _matches("struct_contains", value, wanted, span)]
    contains = make_case(found, [*[TRUE] * len(found), FALSE], span)
    return null_with(value, null_with(wanted, contains, span), span)


def _position(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """struct_position(row(1, 2), 2): the place of the first field that is equal, counted from 1; NULL is equal to NULL."""
    value, wanted = (binder.bind(node) for node in nodes)
    if value.data_type == NULL:
        return null_after(wanted, NULL)
    matches = _matches("struct_position", value, wanted, span)
    if not matches:
        return null_with(value, null_after(wanted, INTEGER), span)
    places = [Literal(place, INTEGER) for place, _ in matches]
    first = make_case([found for _, found in matches], [*places, Literal(None, INTEGER)], span)
    return null_with(value, first, span)


def _matches(
    function: str, value: Expression, wanted: Expression, span: Span | None
) -> list[tuple[int, Expression]]:
    """The places of the fields that may equal what is looked for, by their types, each with whether it does.

    All are compared as one type, which a NULL without a type gets from the first field. A field that went with the types before it
    need not go with the type of all: TRUE is an INTEGER, but no DECIMAL.
    """
    if not value.data_type.is_tuple:
        raise BindError(f"{function}() takes a row whose fields have no names, not {value.data_type}", span)
    common, candidates = wanted.data_type, []
    for place, field in enumerate(_values_of(value, span), 1):
        both = common_type(of_type(common), of_type(field.data_type))
        if both is not None:
            common = both
            candidates.append((place, field))
    wanted = cast_to(wanted, common, span)
    return [
        (place, compare("is_not_distinct_from", cast_to(field, common, span), wanted, span))
        for place, field in candidates
        if common_type(of_type(common), of_type(field.data_type)) is not None
    ]


STRUCT_FORMS: Forms = {
    "struct_insert": (_insert, 2, None),
    "struct_update": (_update, 2, None),
    "struct_concat": (_concat, 1, None),
    "struct_keys": (_keys, 1, 1),
    "struct_values": (_values, 1, 1),
    **dict.fromkeys(("struct_contains", "struct_has"), (_contains, 2, 2)),
    **dict.fromkeys(("struct_position", "struct_indexof"), (_position, 2, 2)),
}
