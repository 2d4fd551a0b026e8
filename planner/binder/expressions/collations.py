"""COLLATE: texts are compared and sorted as functions of them, which the collation of their type names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import BIGINT, BOOLEAN, VARCHAR, DataType, TypeKind, list_of
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.element_expressions import ElementRef, OverElements
from tqp.planner.algebra.expressions import Call, Case, Cast, Expression, Literal, Varying
from tqp.planner.functions.constant_folding import fold
from tqp.planner.parse import Span, head_span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder

#: By name in lower case: what stands for a text.
_FUNCTIONS = {
    "nocase": "lower",
    "noaccent": "strip_accents",
    "nfc": "nfc_normalize",
    **dict.fromkeys(("c", "posix", "binary")),
}
#: Elements of lists are numbered from here on, beyond those of any lambda around.
_FIRST_ELEMENT = 1 << 20


def bind_collate(binder: ExpressionBinder, node: exp.Collate) -> Expression:
    """text COLLATE name: the text, of a type that says how it is compared."""
    text = binder.bind(node.this)
    data_type = collated_type(
        text.data_type, ".".join(collation_names(node)), span_of(node), head_span(node.expression)
    )
    return Cast(text, data_type)


def collation_names(node: exp.Collate) -> Sequence[str]:
    """The names of the collations that are applied one after the other, as they are written."""
    written = node.expression
    parts = written.parts if isinstance(written, exp.Column) else [written]
    return [part.name for part in parts]


def collated_type(data_type: DataType, names: str, span: Span | None, names_span: Span | None) -> DataType:
    """The type with a collation. Raises BindError for one that there is not and for what is no VARCHAR, UnsupportedError for one of a language."""
    if data_type.kind is not TypeKind.VARCHAR:
        raise BindError(f"a collation is for VARCHAR, not for {data_type}", span)
    for name in names.split("."):
        if lower_ascii(name) in _FUNCTIONS:
            continue
        if len(name) in (2, 5) or lower_ascii(name).startswith("icu"):
            raise UnsupportedError(f'the collation "{name}" is not supported', names_span)
        raise BindError(f'there is no collation "{name}"', names_span)
    return replace(VARCHAR, collation=names)


def common_collation(types: Sequence[DataType], span: Span | None) -> str:
    """The one collation that some of the types have, or none. Raises BindError for two."""
    found = [each.collation for each in types if each.collation]
    if len({*map(lower_ascii, found)}) > 1:
        raise BindError(
            f"texts with the collations {found[0]} and {found[1]} do not go together; cast one of them by COLLATE",
            span,
        )
    return found[0] if found else ""


def with_collation(common: DataType, left: DataType, right: DataType) -> DataType:
    """The common type of values of two types, as a text with the collation of either; that of the right one where both have one."""
    wanted = right.collation or left.collation
    return common if common.collation == wanted or common != VARCHAR else replace(common, collation=wanted)


def of_arguments(result: DataType, arguments: Sequence[Expression], span: Span | None) -> DataType:
    """The type of a function's result: of a text, with the collation of its arguments."""
    if result.kind is not TypeKind.VARCHAR:
        return result
    names = common_collation([each.data_type for each in arguments], span)
    return replace(result, collation=names) if names else result


def compared(value: Expression, span: Span | None = None) -> Expression:
    """What is compared, sorted and grouped by in the place of a text with a collation; any other value as it is."""
    data_type = value.data_type
    if data_type.collation or data_type.children:
        return collated((value,), span)[0]
    return value


def collated(values: Sequence[Expression], span: Span | None) -> Sequence[Expression]:
    """What is compared in the place of values of one type: functions of them all where one has a collation."""
    for value in values:
        data_type = value.data_type
        if data_type.collation or (data_type.children and data_type.holds_collation):
            break
    else:
        return values
    types = [each.data_type for each in values]
    if all(each.is_nested for each in types):
        return [_within(value, types, 0, span) for value in values]
    names = common_collation(types, span)
    return [_applied(names, value, span) for value in values]


def _within(value: Expression, types: Sequence[DataType], depth: int, span: Span | None) -> Expression:
    """What is compared in the place of a value, beside which there are values of the types: of a nested one, a value of what is
    compared in the place of its parts. Of several collations of a part the last one holds, as in DuckDB."""
    data_type = value.data_type
    if not any(each.holds_collation for each in types):
        return value
    if not data_type.is_nested:
        return _applied([each.collation for each in types if each.collation][-1], value, span)
    if {each.kind for each in types} == {TypeKind.LIST}:
        element = ElementRef(_FIRST_ELEMENT + depth, data_type.element, "x")
        body = _within(element, [each.element for each in types], depth + 1, span)
        return OverElements("list_transform", value, body, element, None, list_of(body.data_type), span=span)
    if {each.kind for each in types} == {TypeKind.STRUCT}:
        return _struct_within(value, types, depth, span)
    raise UnsupportedError(
        f"comparing values of {data_type} that hold texts with a collation is not supported", span
    )


def _struct_within(value: Expression, types: Sequence[DataType], depth: int, span: Span | None) -> Expression:
    fields = []
    for place, field_type in enumerate(value.data_type.children):
        field = fold(Call("struct_extract", (value, Literal(place + 1, BIGINT)), field_type, span))
        fields.append(_within(field, [each.children[place] for each in types], depth, span))
    made = replace(value.data_type, children=tuple(each.data_type for each in fields))
    packed = fold(Call("struct_pack", tuple(fields), made, span))
    return Case(((Call("is_null", (value,), BOOLEAN, span), Literal(None, made)),), packed, made)


def _applied(names: str, value: Expression, span: Span | None) -> Expression:
    for name in names.split("."):
        function = _FUNCTIONS[lower_ascii(name)]
        if function is not None:
            if isinstance(value, Cast) and isinstance(value.input, Literal | Varying):
                # a constant text may be folded, of which the cast says the collation
                value = value.input if value.input.data_type == VARCHAR else value
            value = fold(Call(function, (value,), VARCHAR, span))
    return Cast(value, VARCHAR) if value.data_type.collation else value
