"""JSON files as Arrow tables: an object for each row, one after the other or in an array."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.json as pa_json

from tqp.core.errors import UnsupportedError
from tqp.data.sources.file_systems import content_of
from tqp.data.sources.text.csv_types import typed_column


def read_json(file: str) -> pa.Table:
    """The whole file, decompressed if its name says so. Keys that some objects lack are NULL there.

    Texts that all are dates or timestamps become these. Raises ValueError for a file without objects, UnsupportedError
    for keys whose values have several types.
    """
    content = content_of(file).removeprefix(b"\xef\xbb\xbf").strip()
    if content.startswith(b"["):
        rows = json.loads(content)
        if not all(isinstance(row, dict) for row in rows):
            raise UnsupportedError(f"{file}: an array of anything but objects is not supported")
        content = "\n".join(json.dumps(row) for row in rows).encode()
    if not content:
        raise ValueError("the file holds no objects, so it has no columns")
    table = _read(file, content, None)
    times = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
    if not times:
        return table
    order = table.column_names
    table = _read(file, content, pa.schema([(name, pa.string()) for name in times])).select(order)
    for name in times:
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, typed_column(table.column(place)))
    return table


def _read(file: str, content: bytes, schema: pa.Schema | None) -> pa.Table:
    """The table; `schema` has the types of some of its columns."""
    parsing = pa_json.ParseOptions(explicit_schema=schema, newlines_in_values=True)
    try:
        return parsed(content, parsing)
    except pa.ArrowInvalid as error:
        if "changed from" in str(error):
            raise UnsupportedError(
                f"{file}: values of several types under one key (the type JSON) are not supported: {error}"
            ) from None
        raise


def parsed(content: bytes, parsing: pa_json.ParseOptions) -> pa.Table:
    """Objects as rows, of which all tell the types. Raises ArrowInvalid for what are no objects with values of one type each."""
    blocks = pa_json.ReadOptions(block_size=max(1 << 20, min(len(content) + 1, 1 << 30)))
    return pa_json.read_json(pa.BufferReader(content), read_options=blocks, parse_options=parsing)
