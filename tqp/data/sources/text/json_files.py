"""JSON files as Arrow tables: an object for each row, one after the other or in an array; or other values, in one column."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.json as pa_json

from tqp.core.errors import BindError, UnsupportedError
from tqp.core.json.values import parse_json, write_json
from tqp.core.keywords import lower_ascii
from tqp.core.read_options import NO_OPTIONS, ReadOptions
from tqp.data.sources.file_systems import content_of
from tqp.data.sources.text.csv_types import conversions, typed_column
from tqp.data.sources.text.json_structures import (
    MIXED,
    ONLY,
    as_texts,
    records_of,
    structure_of,
    type_of_texts,
    with_json_columns,
    without_empty_structs,
)
from tqp.data.sources.text.json_values import texts_of_values


def read_json(file: str, options: ReadOptions = NO_OPTIONS) -> pa.Table:
    """The whole file, decompressed if its name says so. Keys that some objects lack are NULL there, those whose values are of
    several types are JSON, and so is what lies deeper than the options say.

    Texts that all are dates or timestamps become these. Raises ValueError for malformed text.
    """
    content = content_of(file).removeprefix(b"\xef\xbb\xbf").strip()
    if not content:
        return _empty()
    if options.json_form == "array" and not content.startswith(b"["):
        raise ValueError("it is no array")
    is_plain = options.json_records is not False and options.json_depth < 0
    if is_plain and content.startswith(b"{"):
        try:
            return _read(content, None, options)
        except pa.ArrowInvalid as error:
            if "changed from" not in str(error) and not options.ignore_errors:
                raise
    elif is_plain and content.startswith(b"[") and options.json_form in (None, "array"):
        rows = _objects_of_array(content)
        if rows:
            try:
                return _read("\n".join(map(json.dumps, rows)).encode(), None, options)
            except pa.ArrowInvalid as error:
                if "changed from" not in str(error):
                    raise
    return _of_any_structure(file, content.decode(), options)


def _objects_of_array(content: bytes) -> list[Any] | None:
    """The elements, if the file is one array of objects."""
    try:
        rows = json.loads(content)
    except ValueError:
        return None
    return rows if all(isinstance(row, dict) for row in rows) else None


def _of_any_structure(file: str, text: str, options: ReadOptions) -> pa.Table:
    """Values that need not be objects, nor of one structure."""
    values = [parse_json(each) for each in texts_of_values(text, options.json_form, options.ignore_errors)]
    if not values:
        return _empty()
    try:
        rows, are_values = records_of(values, options.json_records)
    except ValueError as error:
        raise BindError(f"{file}: {error}") from None
    depth = options.json_depth
    if not depth:
        rows, are_values = [((ONLY, value),) for value in values], False
    structure = structure_of(rows, depth if are_values or depth < 0 else depth + 1)
    for name in structure:
        if lower_ascii(name) in (options.text_columns or ()) and type_of_texts(structure[name]) is not None:
            structure[name] = MIXED  # what it is cast to says more than what differs in it
    types = [(name, type_of_texts(each)) for name, each in structure.items()]
    schema = pa.schema([(name, each) for name, each in types if each is not None])
    lines = "\n".join(write_json(as_texts(row, structure)) for row in rows)
    try:
        table = _read(lines.encode(), schema, options)
    except pa.ArrowInvalid as error:
        raise UnsupportedError(f"{file}: {error}") from None
    return with_json_columns(table.select(list(structure)), structure)


def _empty() -> pa.Table:
    return pa.table({ONLY: pa.ExtensionArray.from_storage(pa.json_(), pa.array([], pa.string()))})


def _read(content: bytes, schema: pa.Schema | None, options: ReadOptions) -> pa.Table:
    """The table; `schema` has the types of some of its columns, or what is known of them."""
    said = schema or pa.schema([])
    table = parsed(content, _parsing(said))
    times = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
    order = table.column_names
    if times:
        texts = pa.schema([*said, *((name, pa.string()) for name in times)])
        table = parsed(content, _parsing(texts)).select(order)
    has_formats = options.date_format is not None or options.timestamp_format is not None
    for place, field in enumerate(table.schema):
        if (
            pa.types.is_string(field.type)
            and field.name not in said.names
            and (field.name in times or has_formats)
        ):
            column = _times(table.column(place), field.name, field.name in times, options)
            table = table.set_column(place, field.name, column)
    return without_empty_structs(table)


def _parsing(schema: pa.Schema) -> pa_json.ParseOptions:
    return pa_json.ParseOptions(explicit_schema=schema, newlines_in_values=True)


def _times(column: pa.ChunkedArray, name: str, are_plain: bool, options: ReadOptions) -> pa.ChunkedArray:
    """Dates and timestamps of texts that all are, in the formats that are said, or else, where they are `plain`, in the usual ones."""
    if options.text_columns is not None and lower_ascii(name) in options.text_columns:
        return column
    is_date, is_timestamp = options.date_format is not None, options.timestamp_format is not None
    found = typed_column(column, conversions(name, options)[: is_date + is_timestamp])
    if pa.types.is_string(found.type) and are_plain:
        plain = typed_column(column)
        if not (
            pa.types.is_date(plain.type) and is_date or pa.types.is_timestamp(plain.type) and is_timestamp
        ):
            return plain
    return found


def parsed(content: bytes, parsing: pa_json.ParseOptions) -> pa.Table:
    """Objects as rows, of which all tell the types. Raises ArrowInvalid for what are no objects with values of one type each."""
    blocks = pa_json.ReadOptions(block_size=max(1 << 20, min(len(content) + 1, 1 << 30)))
    return pa_json.read_json(pa.BufferReader(content), read_options=blocks, parse_options=parsing)
