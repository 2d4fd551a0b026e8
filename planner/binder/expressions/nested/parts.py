"""What is taken out of lists and structs: elements, slices and fields, by place or by name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import (
    BIGINT,
    BOOLEAN,
    JSON,
    NULL,
    VARCHAR,
    DataType,
    TypeKind,
)
from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.element_expressions import OverElements
from tqp.planner.algebra.expressions import TRUE, Call, Cast, Expression, Literal, is_null_literal
from tqp.planner.algebra.may_raise import is_failing_constant, may_raise
from tqp.planner.binder.expressions.coercion import (
    as_list,
    as_text,
    cast_to,
    compare,
    folded,
    null_after,
)
from tqp.planner.binder.expressions.forms.cases import make_case
from tqp.planner.binder.expressions.forms.forms import Forms, Nodes
from tqp.planner.binder.expressions.nested.maps import extract_value
from tqp.planner.binder.expressions.operators import apply
from tqp.planner.functions.constants import is_constant, no_constant
from tqp.planner.functions.type_rules import SourceLiteral, bends, implicit_cast_cost, settle
from tqp.planner.parse import Span, head_span, span_of
from tqp.planner.syntax.parser import OPEN_END

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


def bind_subscript(binder: ExpressionBinder, node: exp.Bracket) -> Expression:
    """l[1], l[1:2], s['a']"""
    span, (place,) = span_of(node), node.expressions
    value = binder.bind_flexible(node.this)
    if isinstance(place, exp.Slice):
        return _slice(binder, value, place, span)
    place = binder.bind_flexible(place)
    if value.data_type.kind is TypeKind.MAP:
        return extract_value(binder, value, place, span)
    if value.data_type.is_json:
        return _part_of_json(value, place, span)
    return extract(value, place, span, "[...]")


def array_extract(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """array_extract(l, 1), array_extract(s, 'a')"""
    value, place = (binder.bind_flexible(node) for node in nodes)
    return extract(value, place, span, "array_extract()")


def _list_extract(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """list_extract(l, 1), which takes no struct"""
    value, place = (binder.bind_flexible(node) for node in nodes)
    return _element(value, place, span, "list_extract()")


def extract(value: Expression, place: Expression, span: Span | None, shown: str) -> Expression:
    """An element of a list, counted from 1 or from the end, or a field of a struct."""
    kind = value.data_type.kind
    if kind is TypeKind.STRUCT and place.data_type == NULL:
        return Literal(None, NULL)
    if kind is TypeKind.STRUCT or (kind is TypeKind.NULL and place.data_type == VARCHAR):
        return struct_extract(value, place, span)
    return _element(value, place, span, shown)


def _element(value: Expression, place: Expression, span: Span | None, shown: str) -> Expression:
    """An element of a list, or a character of a text."""
    if value.data_type in (VARCHAR, JSON) or value.data_type.is_enum:
        one = () if place.data_type == NULL else (Literal(1, BIGINT),)
        return apply("substring", (value, place, *one), span, shown)
    return apply("list_extract", (value, place), span, shown)


def _array_length(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """array_length(l), array_length(l, 1): of lists in lists, too, the first dimension is the only one that there is."""
    value, *dimension = (binder.bind_flexible(node) for node in nodes)
    if dimension:
        if implicit_cast_cost(dimension[0], BIGINT) is None:
            raise BindError(
                f"the dimension of array_length() is a BIGINT, not {dimension[0].data_type}", span
            )
        # whatever the dimension is, it has to be a list
        apply("array_length", (value,), span, "array_length()")
        counted = cast_to(dimension[0], BIGINT, span)
        if is_null_literal(counted):
            value = Literal(None, NULL)
        elif counted != Literal(1, BIGINT):
            raise UnsupportedError("array_length() of another dimension than 1 is not supported", span)
    return apply("array_length", (value,), span, "array_length()")


def _list_slice(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """list_slice(l, 1, 2), list_slice(l, 1, 2, step)"""
    value, *ends = (binder.bind_flexible(node) for node in nodes)
    return _between(value, ends, span, "list_slice()")


def _between(value: Expression, ends: Sequence[Expression], span: Span | None, shown: str) -> Expression:
    """A slice whose two ends are cast to BIGINT, whatever they are; the step behind them is an integer."""
    is_text = value.data_type.is_string and not value.data_type.is_enum
    if value.data_type.is_enum:
        raise BindError("there is no slice of an ENUM; cast it to VARCHAR", span)
    if is_text and len(ends) > 2:
        raise BindError(f"a slice of {value.data_type} has no step", span)
    nested = next((end for end in ends[:2] if end.data_type.is_nested), None)
    if nested is not None:
        raise BindError(f"the ends of a slice are numbers, not {nested.data_type}", span)
    numbers = [end if end.data_type == NULL else cast_to(end, BIGINT, span) for end in ends[:2]]
    steps = [cast_to(step, BIGINT, span) if bends(step) else step for step in ends[2:]]
    sliced = settle(value) if is_text else as_list(value, span)
    failing = next((each for each in (*numbers, *steps) if is_failing_constant(each)), None)
    if failing is not None and any(map(is_null_literal, (sliced, *numbers, *steps))):
        return null_after(failing, sliced.data_type)  # the ends are computed all the same, as in DuckDB
    if value.data_type == NULL and len(ends) < 3:
        return value
    return apply("list_slice", (sliced, *numbers, *steps), span, shown)


def _slice(binder: ExpressionBinder, value: Expression, node: exp.Slice, span: Span | None) -> Expression:
    """l[1:2:step]: an end that is left out is that of the list, by the direction of the step."""
    first, last, step = (
        None if part is None or part.meta.get(OPEN_END) else binder.bind_flexible(part)
        for part in (node.this, node.expression, node.args.get("step"))
    )
    if step is None and node.args.get("step") is not None:
        raise BindError("behind the second colon of a slice stands its step: [1:2:1]", span)
    begin, end = Literal(1, BIGINT), Literal(-1, BIGINT)
    if step is None:
        return _between(value, (first or begin, last or end), span, "[:]")
    falls = compare("less", step, Literal(0, BIGINT), span)
    first = first or make_case([falls], [end, begin], span)
    last = last or make_case([falls], [begin, end], span)
    return _between(value, (first, last, step), span, "[::]")


def _is_null(value: Expression) -> bool:
    """Is it the constant NULL, or of no type but that? Then so is each of its fields, whatever its name, as in DuckDB."""
    if value.data_type == NULL or is_null_literal(value):
        return True
    return isinstance(value, Call) and value.function == "list_extract" and _finds_null(*value.arguments)


def _finds_null(elements: Expression, place: Expression) -> bool:
    """Does a list of constants have NULL at a place, or no such place, whatever its elements are?

    Where one of them may raise, DuckDB knows of no NULL if it does; whether it does is not known here. Nor is what a function
    makes, which is taken for no NULL: the field is then of its own type, not NULL.
    """
    if not isinstance(place, Literal) or not isinstance(place.value, int) or not is_constant(elements):
        return False
    count = _most_elements(elements)
    if count is None:
        return False
    if 1 <= abs(place.value) <= count:
        if not (isinstance(elements, Call) and elements.function == "list_value"):
            return False
        found = elements.arguments[place.value - (place.value > 0)]
        if not is_null_literal(_uncast(found)):
            return False
    if may_raise(elements, {}):
        raise UnsupportedError(f"a field of element {place.value} of a list of {count} is not supported")
    return True


_IN_ORDER = frozenset(("list_reverse", "list_sort", "list_reverse_sort"))


def _uncast(value: Expression) -> Expression:
    while isinstance(value, Cast):
        value = value.input
    return value


def _is_in_order(value: Expression) -> bool:
    """Does it put the elements of its first argument in some order?"""
    if not isinstance(value, Call):
        return False
    bounds = [each.value if isinstance(each, Literal) else None for each in value.arguments[1:]]
    return value.function in _IN_ORDER or value.function == "list_slice" and bounds == [-1, 1, -1]


def _most_elements(elements: Expression) -> int | None:
    """The number of elements that a list has at most, if that shows."""
    while True:
        if isinstance(elements, OverElements) and elements.function in ("list_transform", "list_filter"):
            elements = elements.input
        elif _is_in_order(elements):
            elements = elements.inputs[0]
        else:
            break
    if isinstance(elements, Call) and elements.function == "list_value":
        return len(elements.arguments)
    if isinstance(elements, Call) and elements.function == "list_zip":
        counts = [_most_elements(each) for each in elements.arguments if each.data_type != BOOLEAN]
        known = [each for each in counts if each is not None]
        is_cut = elements.arguments[-1] == TRUE
        return (min if is_cut else max)(known) if known and len(known) == len(counts) else None
    if isinstance(elements, Call) and elements.function == "list_concat":
        counts = [_most_elements(each) for each in elements.arguments]
        known = [each for each in counts if each is not None]
        return sum(known) if len(known) == len(counts) else None
    if is_null_literal(elements):
        return 0
    if isinstance(elements, Literal) and isinstance(elements.value, tuple):
        return len(elements.value)
    return None


def struct_extract(value: Expression, place: Expression, span: Span | None) -> Expression:
    """The field of a struct that a constant names, or of one without names counts from 1."""
    place = settle(place)
    place = as_text(place, span) if place.data_type.is_enum else place
    _check_kind_of_place(value.data_type, place, span)
    if _is_null(value):  # which fields there are is not asked then
        return Literal(None, NULL)
    if not isinstance(place, Literal) or place.value is None:
        raise no_constant(place, "a field of a struct is named by a constant", span)
    count = len(value.data_type.names)
    if not value.data_type.is_tuple:
        return field_of(value, str(place.value), span)
    assert isinstance(place.value, int)
    if not 1 <= place.value <= count:
        raise BindError(f"there is no field {place.value}: the row has {count}", span)
    return field_at(value, place.value, span)


def _check_kind_of_place(struct_type: DataType, place: Expression, span: Span | None) -> None:
    if place.data_type == NULL:
        return
    is_name = place.data_type == VARCHAR
    if not is_name and implicit_cast_cost(place, BIGINT) is None:
        raise BindError(
            f"a field is named by a text, or counted by a whole number, not by {place.data_type}", span
        )
    if struct_type.is_tuple and is_name:
        raise BindError("the fields of this row have no names; count them from 1", span)
    if struct_type.kind is TypeKind.STRUCT and not struct_type.is_tuple and not is_name:
        raise BindError("a field of a struct has a name; only those of a row without names are counted", span)


def named_part(binder: ExpressionBinder, value: Expression, name: str, span: Span | None) -> Expression:
    """value.name: the field of a struct, and of a map what stands under that key."""
    if value.data_type.kind is TypeKind.MAP:
        return extract_value(binder, value, SourceLiteral(name, VARCHAR), span)
    return field_of(value, name, span)


def _part_of_json(value: Expression, place: Expression, span: Span | None) -> Expression:
    """json[0], json['key'], json.key: a text is a key, whatever path it looks like."""
    place = as_text(place, span) if place.data_type.is_enum else place
    if place.data_type == VARCHAR:
        if not isinstance(place, Literal):
            raise no_constant(place, "a part of JSON is named by a constant; see json_extract()", span)
        place = Literal(None if place.value is None else f'$."{place.value!s}"', VARCHAR)
    return apply("json_extract", (value, place), span, "[...]")


def field_of(value: Expression, name: str, span: Span | None) -> Expression:
    """value.name: the field of a struct, or the member of a union, which is NULL where its tag is another."""
    data_type = value.data_type
    if data_type.is_json:
        return _part_of_json(value, Literal(name, VARCHAR), span)
    if (data_type == NULL or data_type.has_fields) and _is_null(value):
        return Literal(None, NULL)
    if not data_type.has_fields or data_type.is_tuple:
        raise BindError(f'there is no field "{name}" in a value of type {data_type}', span)
    position = _position(data_type, name)
    if position is None:
        names = [each for each in data_type.names if each]
        what, whole = ("member", "union") if data_type.is_union else ("field", "struct")
        hint = nearest(name, names)
        raise BindError(
            f'there is no {what} "{name}" in the {whole}{hint} ({what}s: {", ".join(names[:12])})', span
        )
    return field_at(value, position, span)


def _position(data_type: DataType, name: str) -> int | None:
    lowered = [lower_ascii(each) for each in data_type.names]
    return lowered.index(lower_ascii(name)) + 1 if lower_ascii(name) in lowered else None


def field_at(value: Expression, position: int, span: Span | None) -> Expression:
    """The field of a struct that stands at a position, counted from 1; the first of a union is its tag."""
    data_type = value.data_type.children[position - 1]
    if isinstance(value, Literal) and isinstance(value.value, tuple) and value.value[position - 1] is None:
        return Literal(None, data_type)  # which may decide the type of a call
    return folded(Call("struct_extract", (value, Literal(position, BIGINT)), data_type, span))


def bind_dot(binder: ExpressionBinder, node: exp.Dot) -> Expression:
    """(expression).field, or expression.function(...), which is function(expression, ...)."""
    base, part = node.this, node.expression
    if _are_names(base, part) and binder.scope.has_column(part.name, base.name):
        return binder.bind_flexible(exp.Column(this=part.copy(), table=base.copy()))
    base = before_dot(node)
    if isinstance(part, exp.Anonymous):
        call = part.copy()
        call.set("expressions", [base, *call.expressions])
        return binder.bind_flexible(call)
    if isinstance(part, exp.Star):
        raise UnsupportedError("the fields of a struct as columns (.*) are not supported", span_of(node))
    return named_part(binder, binder.bind(base), part.name, head_span(part) or span_of(node))


def before_dot(node: exp.Dot) -> exp.Expr:
    """A copy of what stands before the dot, as an expression: a column where it is a name, of a table where it is two."""
    base: exp.Expr = node.this
    if isinstance(base, exp.Identifier):
        return exp.Column(this=base.copy())
    if isinstance(base, exp.Dot) and _are_names(base.this, base.expression):  # t.l.len()
        return exp.Column(this=base.expression.copy(), table=base.this.copy())
    return base.copy()


def _are_names(*nodes: exp.Expr) -> bool:
    return all(isinstance(node, exp.Identifier) for node in nodes)


def _named_extract(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    value, place = (binder.bind_flexible(node) for node in nodes)
    if value.data_type.kind is not TypeKind.STRUCT and value.data_type != NULL:
        raise BindError(f"struct_extract() takes a struct, not {value.data_type}", span)
    return struct_extract(value, place, span)


def _extract_at(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    value, place = (binder.bind(node) for node in nodes)
    if value.data_type.kind is not TypeKind.STRUCT and value.data_type != NULL:
        raise BindError(f"struct_extract_at() takes a struct, not {value.data_type}", span)
    if _is_null(value):
        return Literal(None, NULL)
    count = len(value.data_type.names)
    if not isinstance(place, Literal) or not isinstance(place.value, int) or not 1 <= place.value <= count:
        raise no_constant(place, f"the place of the field is a constant from 1 to {count}", span)
    return field_at(value, place.value, span)


def _part(ends: tuple[int, ...], binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """The slice of a list between constant ends, by a constant step."""
    value = binder.bind(nodes[0])
    return apply("list_slice", (value, *(Literal(end, BIGINT) for end in ends)), span, "this function")


NESTED_PART_FORMS: Forms = {
    "struct_extract": (_named_extract, 2, 2),
    "struct_extract_at": (_extract_at, 2, 2),
    "array_extract": (array_extract, 2, 2),
    **dict.fromkeys(("list_extract", "list_element"), (_list_extract, 2, 2)),
    "array_length": (_array_length, 1, 2),
    **dict.fromkeys(("list_slice", "array_slice"), (_list_slice, 3, 4)),
    **dict.fromkeys(("list_reverse", "array_reverse"), (partial(_part, (-1, 1, -1)), 1, 1)),
    "array_pop_back": (partial(_part, (1, -2)), 1, 1),
    "array_pop_front": (partial(_part, (2, -1)), 1, 1),
}
