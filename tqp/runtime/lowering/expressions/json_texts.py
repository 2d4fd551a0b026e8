"""Values of other types as JSON: what CAST makes of everything but text, which it parses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tqp.core.datatypes import DOUBLE, FLOAT, JSON, VARCHAR, TypeKind, list_of
from tqp.core.json.values import DIGITS_OF_DOUBLE
from tqp.operators.nested.unions import member_texts
from tqp.operators.text import json_writing, nested_writing
from tqp.runtime.lowering.expressions.elements import cast_rows, elements_of, field_of, fields_of
from tqp.runtime.lowering.graph_builder import Node
from tqp.runtime.lowering.layouts import canonical_layout
from tqp.runtime.lowering.stream import Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering


def lower_json(lowering: ExpressionLowering, value: Value) -> Value:
    """A value as JSON: NULL where it is."""
    value = lowering.materialise(value)
    data_type, build = value.layout.data_type, lowering.stream.builder
    if data_type.is_json:
        return value
    if data_type.is_vector:
        return lower_json(lowering, cast_rows(lowering, value, list_of(FLOAT)))
    if data_type.has_elements:
        is_map = data_type.kind is TypeKind.MAP
        with elements_of(lowering, value) as elements:
            inside = (_entry if is_map else _inner)(lowering, elements.values)
        around = "{}" if is_map else "[]"
        node = build.call(
            nested_writing.list_texts,
            inside,
            elements.rows,
            elements.lengths,
            around,
            between=",",
            name="json",
        )
    elif data_type.is_union:
        tag, *members = fields_of(lowering, value)
        objects = [
            build.call(json_writing.struct_texts, (name,), _inner(lowering, member), name="json")
            for name, member in zip(data_type.members, members, strict=True)
        ]
        node = build.call(member_texts, tag.node, *objects, name="json")
    elif data_type.is_nested:
        fields = [_inner(lowering, field) for field in fields_of(lowering, value)]
        node = build.call(json_writing.struct_texts, data_type.names, *fields, name="json")
    elif data_type.is_float or (data_type.is_decimal and data_type.precision <= DIGITS_OF_DOUBLE):
        value = lowering.materialise(cast_rows(lowering, value, DOUBLE))
        node = build.call(json_writing.float_texts, value.node, name="json")
    else:
        text = _text(lowering, value)
        if data_type.is_numeric or data_type.kind is TypeKind.BOOLEAN:
            return replace(text, layout=replace(text.layout, data_type=JSON))
        node = build.call(json_writing.quoted_strings, lowering.strings(text), name="json")
    node.makes_text = True
    return Value(canonical_layout(JSON, value.layout.nullable), node, value.validity)


def _text(lowering: ExpressionLowering, value: Value) -> Value:
    return lowering.materialise(cast_rows(lowering, value, VARCHAR))


def _inner(lowering: ExpressionLowering, value: Value) -> Node:
    """A value inside of another, where NULL is null."""
    made = lower_json(lowering, value)
    strings = lowering.strings(made)
    return lowering.stream.builder.call(
        nested_writing.text_or_null, strings, made.validity, "null", name="json"
    )


def _entry(lowering: ExpressionLowering, entry: Value) -> Node:
    """ "key":value"""
    key = lowering.strings(_text(lowering, field_of(lowering, entry, 0)))
    build = lowering.stream.builder
    key = build.call(json_writing.quoted_strings, key, name="json")
    value = _inner(lowering, field_of(lowering, entry, 1))
    return build.call(nested_writing.entry_texts, key, value, ":", name="json")
