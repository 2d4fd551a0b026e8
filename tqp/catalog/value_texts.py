"""Constants as texts, as tables of the catalog tell of variables."""

from __future__ import annotations

from tqp.core.datatypes import TICKS_PER_SECOND, VARCHAR, DataType, TypeKind
from tqp.core.text.numbers import format_bytes
from tqp.core.uuids import uuid_of_stored
from tqp.data.results.value_text import inner_text, interval_text, quoted_text, time_text, timestamp_text
from tqp.planner.algebra.expressions import Literal, Value
from tqp.planner.functions.literal_casts import cast_value


def text_of(value: Literal) -> str:
    """A value as text."""
    return _text(value.value, value.data_type)


def _text(value: Value, data_type: DataType) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, tuple) and data_type.is_composed:
        return _nested_text(value, data_type)
    kind = data_type.kind
    if data_type.is_enum and isinstance(value, int):
        return data_type.categories[value]
    if kind is TypeKind.UUID and isinstance(value, int):
        return str(uuid_of_stored(value))
    if isinstance(value, bytes):
        return format_bytes(value).decode()
    if kind is TypeKind.INTERVAL and isinstance(value, tuple):
        return interval_text(*value)
    if kind is TypeKind.TIME and isinstance(value, int):
        return time_text(value)
    if kind in TICKS_PER_SECOND and isinstance(value, int):
        return timestamp_text(value, kind)
    text = cast_value(value, data_type, VARCHAR)
    return str(value if text is NotImplemented else text)


def _nested_text(values: tuple[Value, ...], data_type: DataType) -> str:
    if data_type.is_union:
        members = zip(values[1:], data_type.members.values(), strict=True)
        return next((_text(each, member) for each, member in members if each is not None), "NULL")
    if data_type.kind is TypeKind.STRUCT:
        fields = [_inner(each, field) for each, field in zip(values, data_type.children, strict=True)]
        if data_type.is_tuple:
            return f"({', '.join(fields)}{',' if len(fields) == 1 else ''})"
        names = map(quoted_text, data_type.names)
        return f"{{{', '.join(map('{}: {}'.format, names, fields))}}}"
    if data_type.kind is TypeKind.MAP:
        types = data_type.element.children
        entries = ("=".join(map(_inner, entry, types)) for entry in values if isinstance(entry, tuple))
        return f"{{{', '.join(entries)}}}"
    return f"[{', '.join(_inner(each, data_type.element) for each in values)}]"


def _inner(value: Value, data_type: DataType) -> str:
    text = _text(value, data_type)
    return text if value is None or data_type.is_composed else inner_text(text)
