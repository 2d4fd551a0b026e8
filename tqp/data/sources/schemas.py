"""Several files or tables as one: which column of each is which, by name, and what has to be cast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tqp.core.arguments import unique_names
from tqp.core.errors import ExecutionError
from tqp.core.keywords import lower_ascii
from tqp.data.arrow_types import field_type

#: The position of a column in a file, and the type it is cast to, or None where it has the type already.
Conversion = tuple[int, pa.DataType | None]


def conversions(
    file: str, schema: pa.Schema, first_file: str, expected: pa.Schema, *, casts: bool = False
) -> list[Conversion]:
    """For each expected column, those of the first file, where a further file has it.

    The order of columns and further columns do not matter; integers may differ in width, as floats may. `casts`: whether other
    kinds are cast as SQL does. Raises ExecutionError for a column that is missing or of another kind.
    """
    places = {lower_ascii(name): position for position, name in enumerate(unique_names(schema.names))}
    found: list[Conversion] = []
    for name, field in zip(unique_names(expected.names), expected, strict=True):
        position = places.get(lower_ascii(name))
        if position is None:
            raise ExecutionError(
                f'cannot read {file}: it has no column "{name}", which {first_file} has; its columns are'
                f" {', '.join(schema.names)}"
            )
        other = schema.field(position)
        if other.type == field.type:
            found.append((position, None))
        elif _are_alike(other.type, field.type):
            found.append((position, field.type))
        elif field_type(other, name) == field_type(field, name):
            found.append((position, None))
        elif casts and _can_cast(other.type, field.type):
            found.append((position, field.type))
        else:
            raise ExecutionError(
                f'cannot read {file}: its column "{name}" is {other.type}, but {field.type} in {first_file}'
            )
    return found


def _are_alike(left: pa.DataType, right: pa.DataType) -> bool:
    both = (left, right)
    return all(map(pa.types.is_integer, both)) or all(map(pa.types.is_floating, both))


#: What values are cast from, by what they are cast to, where that is as SQL casts them: texts are not read, and decimals are
#: neither made of floats nor floats of decimals.
_CASTS: Mapping[str, tuple[str, ...]] = {
    "integer": ("floating", "decimal", "boolean"),
    "floating": ("integer",),
    "decimal": ("integer", "decimal"),
    "date": ("timestamp",),
    "timestamp": ("date", "timestamp"),
    "string": ("integer", "boolean", "date"),
}


_UNITS = ("s", "ms", "us", "ns")


def _can_cast(source: pa.DataType, target: pa.DataType) -> bool:
    if any(pa.types.is_timestamp(each) and each.tz is not None for each in (source, target)):
        return False
    return any(
        _is(kind, target) and any(_is(each, source) for each in sources) for kind, sources in _CASTS.items()
    )


def _is(kind: str, arrow_type: pa.DataType) -> bool:
    return bool(getattr(pa.types, f"is_{kind}")(arrow_type))


def cast_like(file: str, name: str, values: Any, arrow_type: pa.DataType) -> Any:
    """An array or chunked array of a further file in the type that the first has; ExecutionError where it does not hold them.

    Fractions are rounded: those of floats half to even, those of decimals half away from zero.
    """
    to_number = pa.types.is_integer(arrow_type) or pa.types.is_decimal(arrow_type)
    try:
        if pa.types.is_floating(values.type) and to_number:
            values = pc.round(values, round_mode="half_to_even")
        elif pa.types.is_decimal(values.type) and to_number:
            scale = arrow_type.scale if pa.types.is_decimal(arrow_type) else 0
            values = values.cast(pa.decimal128(38, values.type.scale))  # rounded, it may have a digit more
            values = pc.round(values, scale, round_mode="half_towards_infinity")
        elif pa.types.is_decimal(arrow_type):
            values = values.cast(
                pa.decimal128(38, arrow_type.scale)
            )  # whatever digits the type of the integers has
        loses = pa.types.is_floating(arrow_type) or pa.types.is_date(arrow_type)
        return values.cast(arrow_type, safe=not loses)
    except pa.ArrowException as error:
        raise ExecutionError(
            f'cannot read column "{name}" of {file} as {arrow_type}, the type it has in the first file: {error}'
        ) from error


def concatenated(files: Sequence[str], tables: Sequence[pa.Table], *, casts: bool) -> pa.Table:
    """The rows of all tables, with the columns of the first; see `conversions`."""
    first = tables[0]
    parts = []
    for file, table in zip(files, tables, strict=True):
        columns = []
        for field, (position, cast_to) in zip(
            first.schema, conversions(file, table.schema, files[0], first.schema, casts=casts), strict=True
        ):
            column = table.column(position)
            same = cast_to is None and column.type == field.type
            columns.append(column if same else cast_like(file, field.name, column, field.type))
        parts.append(pa.Table.from_arrays(columns, schema=first.schema))
    return pa.concat_tables(parts)


def _common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type that holds the values of both; the left one where none does."""
    if pa.types.is_timestamp(left) and pa.types.is_timestamp(right):
        return max(left, right, key=lambda each: _UNITS.index(each.unit))
    for one, other in ((left, right), (right, left)):
        is_wider = any(_is(kind, other) for kind in ("string", "timestamp", "floating"))
        if is_wider and _can_cast(one, other):
            return other
        if _is("integer", one) and _is("decimal", other):
            digits = len(str(2 ** (one.bit_width - pa.types.is_signed_integer(one))))
            return pa.decimal128(min(38, max(other.precision, digits + other.scale)), other.scale)
    schemas = [pa.schema([pa.field("", each)]) for each in (left, right)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return left


def with_all_columns(files: Sequence[str], tables: Sequence[pa.Table], *, casts: bool) -> list[pa.Table]:
    """The tables, each with the columns of all: those that it lacks are NULL. Their order is that in which they are met first.

    `casts`: whether columns of one name get a type that holds the values of all.
    """
    types: dict[str, pa.Field] = {}
    for table in tables:
        for field in table.schema:
            known = types.setdefault(lower_ascii(field.name), field)
            if casts or pa.types.is_null(known.type):
                types[lower_ascii(field.name)] = known.with_type(_common_type(known.type, field.type))
    found = []
    for file, table in zip(files, tables, strict=True):
        places = {lower_ascii(name): place for place, name in enumerate(table.column_names)}
        columns = []
        for key, field in types.items():
            if key not in places or pa.types.is_null(table.column(places[key]).type):
                columns.append(pa.nulls(table.num_rows, field.type))
                continue
            column = table.column(places[key])
            is_cast = _are_alike(column.type, field.type) or (casts and _can_cast(column.type, field.type))
            columns.append(cast_like(file, field.name, column, field.type) if is_cast else column)
        found.append(pa.Table.from_arrays(columns, names=[field.name for field in types.values()]))
    return found
