"""The structure that the values of a JSON file have in common: where they differ it is JSON, and values stay as they are written.

Values are those of `parse_json`: objects are tuples of pairs. A structure is None of nothing but null, the name of a scalar type, a
list of the structure of all elements, a mapping of those of all keys, or `MIXED`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa

from tqp.core.json.values import write_json

#: Values of several types.
MIXED = "JSON"
#: The only column of what are no objects.
ONLY = "json"
_Structure = Any


def records_of(values: Sequence[Any], said: bool | None) -> tuple[list[Any], bool]:
    """An object for each value, and whether that is the value itself; others are under the key "json".

    `said`: whether they are, where a query says it. Raises ValueError where they are none.
    """
    are_objects = all(value is None or isinstance(value, tuple) for value in values) and any(
        value is not None for value in values
    )
    if said and not are_objects:
        raise ValueError("records = true, and not all of its values are objects")
    if are_objects and said is not False:
        return [value or () for value in values], True
    return [((ONLY, value),) for value in values], False


def structure_of(values: Iterable[Any], depth: int) -> _Structure:
    """What all of them have in common; `depth`: what lies deeper is JSON."""
    return _cut(reduce(_common, map(_structure, values), None), depth)


def _structure(value: Any) -> _Structure:
    if isinstance(value, list):
        return [reduce(_common, map(_structure, value), None)]
    if isinstance(value, tuple):
        return {key: _structure(each) for key, each in value}
    if value is None or isinstance(value, bool | str):
        return None if value is None else type(value).__name__
    return "number"


def _common(left: _Structure, right: _Structure) -> _Structure:
    if left is None or right is None or left == right:
        return right if left is None else left
    if isinstance(left, list) and isinstance(right, list):
        return [_common(left[0], right[0])]
    if isinstance(left, dict) and isinstance(right, dict):
        return {key: _common(left.get(key), right.get(key)) for key in {**left, **right}}
    return MIXED


def _cut(structure: _Structure, depth: int) -> _Structure:
    if depth == 0:
        return MIXED
    if isinstance(structure, list):
        return [_cut(structure[0], depth - 1)]
    if isinstance(structure, dict):
        return {key: _cut(each, depth - 1) for key, each in structure.items()}
    return structure


def as_texts(value: Any, structure: _Structure) -> Any:
    """The value with texts where the structure is JSON."""
    if value is None:
        return None
    if structure == MIXED:
        return write_json(value)
    if isinstance(structure, list):
        return [as_texts(each, structure[0]) for each in value]
    if isinstance(structure, dict):
        return tuple((key, as_texts(each, structure[key])) for key, each in value)
    return value


def type_of_texts(structure: _Structure) -> pa.DataType | None:
    """A type with that of text where the structure is JSON, and nothing else; None where it is nowhere."""
    if structure == MIXED:
        return pa.string()
    if isinstance(structure, list):
        element = type_of_texts(structure[0])
        return None if element is None else pa.list_(element)
    if isinstance(structure, dict):
        fields = [(key, type_of_texts(each)) for key, each in structure.items()]
        found = [(key, each) for key, each in fields if each is not None]
        return pa.struct(found) if found else None
    return None


def with_json(array: pa.Array, structure: _Structure) -> pa.Array:
    """The array with JSON where the structure is that."""
    if structure == MIXED:
        return pa.ExtensionArray.from_storage(pa.json_(), array)
    if type_of_texts(structure) is None:
        return array
    missing = array.is_null() if array.null_count else None
    if isinstance(structure, list):
        return pa.ListArray.from_arrays(array.offsets, with_json(array.values, structure[0]), mask=missing)
    names = list(structure)  # which Arrow has in another order where it is told some of their types
    fields = [with_json(array.field(name), structure[name]) for name in names]
    return pa.StructArray.from_arrays(fields, names, mask=missing)


def without_empty_structs(table: pa.Table) -> pa.Table:
    """Objects without keys as maps to JSON."""
    for place, field in enumerate(table.schema):
        if "struct<>" in str(field.type):
            column = _with_maps(table.column(place).combine_chunks())
            table = table.set_column(place, field.name, column)
    return table


def _with_maps(array: pa.Array) -> pa.Array:
    missing = array.is_null() if array.null_count else None
    if pa.types.is_list(array.type):
        return pa.ListArray.from_arrays(array.offsets, _with_maps(array.values), mask=missing)
    if not pa.types.is_struct(array.type):
        return array
    names = [field.name for field in array.type]
    if names:
        fields = [_with_maps(array.field(place)) for place in range(len(names))]
        return pa.StructArray.from_arrays(fields, names, mask=missing)
    nothing = pa.array([], pa.string())
    offsets = pa.array([0] * (len(array) + 1), pa.int32())
    values = pa.ExtensionArray.from_storage(pa.json_(), nothing)
    return pa.MapArray.from_arrays(offsets, nothing, values, mask=missing)


def with_json_columns(table: pa.Table, structure: dict[str, _Structure]) -> pa.Table:
    """A table whose columns of texts are JSON where the structure of their names is that."""
    for place, name in enumerate(table.column_names):
        if type_of_texts(structure.get(name)) is not None:
            column = table.column(place).combine_chunks()
            table = table.set_column(place, name, with_json(column, structure[name]))
    return table
