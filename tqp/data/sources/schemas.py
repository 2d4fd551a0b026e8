"""Several files or tables as one: which column of each is which, by name, and what has to be cast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tqp.core.arguments import unique_names
from tqp.core.errors import ExecutionError
from tqp.core.keywords import lower_ascii
from tqp.data.arrow_types import field_type

#: The position of a column in a file, and the type it is cast to, or None where it has the type already.
Conversion = tuple[int, pa.DataType | None]


def conversions(file: str, schema: pa.Schema, first_file: str, expected: pa.Schema) -> list[Conversion]:
    """For each expected column, those of the first file, where a further file has it.

    The order of columns and further columns do not matter; integers may differ in width, as floats may.
    Raises ExecutionError for a column that is missing or of another kind.
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
        else:
            raise ExecutionError(
                f'cannot read {file}: its column "{name}" is {other.type}, but {field.type} in {first_file}'
            )
    return found


def _are_alike(left: pa.DataType, right: pa.DataType) -> bool:
    both = (left, right)
    return all(map(pa.types.is_integer, both)) or all(map(pa.types.is_floating, both))


def cast_like(file: str, name: str, values: Any, arrow_type: pa.DataType) -> Any:
    """An array or chunked array of a further file in the type that the first has; ExecutionError where that loses values."""
    try:
        return values.cast(arrow_type)
    except pa.ArrowException as error:
        raise ExecutionError(
            f'cannot read column "{name}" of {file} as {arrow_type}, the type it has in the first file: {error}'
        ) from error


def concatenated(files: Sequence[str], tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of all tables, with the columns of the first; see `conversions`."""
    first = tables[0]
    parts = []
    for file, table in zip(files, tables, strict=True):
        columns = []
        for field, (position, cast_to) in zip(
            first.schema, conversions(file, table.schema, files[0], first.schema), strict=True
        ):
            column = table.column(position)
            same = cast_to is None and column.type == field.type
            columns.append(column if same else cast_like(file, field.name, column, field.type))
        parts.append(pa.Table.from_arrays(columns, schema=first.schema))
    return pa.concat_tables(parts)


def with_all_columns(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """The tables, each with the columns of all: those that it lacks are NULL. Their order is that in which they are met first."""
    types: dict[str, pa.Field] = {}
    for table in tables:
        for field in table.schema:
            known = types.setdefault(lower_ascii(field.name), field)
            if pa.types.is_null(known.type):
                types[lower_ascii(field.name)] = field.with_name(known.name)
    found = []
    for table in tables:
        places = {lower_ascii(name): place for place, name in enumerate(table.column_names)}
        columns = [
            table.column(places[key]) if key in places else pa.nulls(table.num_rows, field.type)
            for key, field in types.items()
        ]
        found.append(pa.Table.from_arrays(columns, names=[field.name for field in types.values()]))
    return found
