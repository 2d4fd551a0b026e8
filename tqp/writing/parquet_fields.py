"""FIELD_IDS: the numbers by which other readers know the columns of a Parquet file, and what is in them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

from tqp.core.errors import BindError
from tqp.core.keywords import lower_ascii

#: What columns are numbered by: names in lower case, each with a number or such a mapping of what is in it; "auto" numbers all.
FieldIds = Mapping[str, Any] | Literal["auto"]

#: The key of the number of a column that has others in it.
_OWN = "__duckdb_field_id"
_METADATA = "PARQUET:field_id"


def field_ids(said: Any, names: Sequence[str]) -> FieldIds:
    """What the option says. Raises BindError for what names no column or gives a number twice."""
    if isinstance(said, str) and lower_ascii(said) == "auto":
        return "auto"
    if not isinstance(said, Mapping):
        raise BindError(f"FIELD_IDS is auto, or a struct such as {{a: 1, b: {{{_OWN}: 2, of_b: 3}}}}")
    lowered = [lower_ascii(name) for name in names]
    missing = next((name for name in said if lower_ascii(name) not in lowered), None)
    if missing is not None:
        raise BindError(f'FIELD_IDS: there is no column "{missing}"')
    numbers = list(_numbers(said))
    if len(set(numbers)) < len(numbers):
        raise BindError("FIELD_IDS gives the same number twice")
    return _lowered(said)


def _numbers(said: Mapping[str, Any]) -> Iterator[int]:
    for name, value in said.items():
        if isinstance(value, Mapping):
            yield from _numbers(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            yield value
        else:
            raise BindError(f"FIELD_IDS: the number of {name} is an integer, not {value!r}")


def _lowered(said: Mapping[str, Any]) -> dict[str, Any]:
    return {
        lower_ascii(name): _lowered(value) if isinstance(value, Mapping) else value
        for name, value in said.items()
    }


def numbered(schema: pa.Schema, ids: FieldIds) -> pa.Schema:
    """The schema with these numbers."""
    if not ids:
        return schema
    counted = itertools.count()
    return pa.schema([_numbered(field, ids, counted) for field in schema])


def _numbered(field: pa.Field, ids: FieldIds, counted: Iterator[int]) -> pa.Field:
    """A field with its number, and what is in it with theirs: depth first."""
    inside: FieldIds = "auto"
    number: int | None
    if ids == "auto":
        number = next(counted)
    else:
        said = ids.get(lower_ascii(field.name))
        inside = said if isinstance(said, Mapping) else {}
        number = inside.get(_OWN) if isinstance(said, Mapping) else said
    field = field.with_type(_type_of_numbered(field.type, inside, counted))
    return field if number is None else field.with_metadata({_METADATA: str(number)})


def _type_of_numbered(kind: pa.DataType, ids: FieldIds, counted: Iterator[int]) -> pa.DataType:
    def child(field: pa.Field, name: str = "") -> pa.Field:
        return _numbered(field.with_name(name or field.name), ids, counted)

    if pa.types.is_struct(kind):
        return pa.struct([child(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(child(kind.key_field, "key"), child(kind.item_field, "value"))
    if pa.types.is_list(kind):
        return pa.list_(child(kind.value_field, "element"))
    if pa.types.is_large_list(kind):
        return pa.large_list(child(kind.value_field, "element"))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(child(kind.value_field, "element"), kind.list_size)
    return kind
