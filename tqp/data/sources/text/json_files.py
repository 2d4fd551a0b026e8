"""JSON files as Arrow tables: an object for each row, one after the other or in an array; or other values, in one column."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from tqp.core.errors import BindError, UnsupportedError
from tqp.core.json.values import parse_json, write_json
from tqp.core.keywords import lower_ascii
from tqp.core.read_options import NO_OPTIONS, ReadOptions
from tqp.data.arrow_types import HUGEINT_ARRAY
from tqp.data.sources.file_identity import reading
from tqp.data.sources.file_systems import content_of
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

#: Integers of which some are greater than 2**63 - 1.
HUGE = pa.decimal128(38, 0)


@dataclass(frozen=True, slots=True)
class JsonFile:
    """What a file holds: `lines` are its objects, one after the other, and `table` what Arrow makes of these.

    Both are None where objects differ in the types of a key, where there are other values, and where the options ask for more.
    """

    path: str
    text: str
    lines: bytes | None = None
    table: pa.Table | None = None


def read_json(file: str, options: ReadOptions = NO_OPTIONS) -> JsonFile:
    """The whole file, decompressed if its name says so. Raises ValueError for malformed text."""
    content = content_of(file).removeprefix(b"\xef\xbb\xbf").strip()
    if options.json_form == "array" and content and not content.startswith(b"["):
        raise ValueError("it is no array")
    lines = _lines(content, options)
    if lines is not None:
        try:
            return JsonFile(file, "", lines, parsed_as_text(lines) if lines else pa.table({}))
        except pa.ArrowInvalid as error:
            if "changed from" not in str(error) and not (options.ignore_errors and content.startswith(b"{")):
                raise
    return JsonFile(file, content.decode())


def _lines(content: bytes, options: ReadOptions) -> bytes | None:
    """The objects of a file, one after the other; None where there is more, or more to be done."""
    if not content:
        return b""
    if options.json_records is False or options.json_depth >= 0:
        return None
    if content.startswith(b"{"):
        return content
    if not content.startswith(b"[") or options.json_form not in (None, "array"):
        return None
    try:
        rows = json.loads(content)
    except ValueError:
        return None
    is_plain = rows and all(isinstance(row, dict) for row in rows)
    return "\n".join(map(json.dumps, rows)).encode() if is_plain else None


def as_tables(files: Sequence[JsonFile], options: ReadOptions = NO_OPTIONS) -> list[pa.Table]:
    """A table for each file, with the keys of all. Where some objects lack a key it is NULL, where its values are of several types
    it is JSON, and so is what lies deeper than the options say. Texts stay texts.
    """
    tables = [file.table for file in files if file.table is not None]
    if len(tables) == len(files):
        if not any(table.num_columns for table in tables):
            return [_empty()] * len(tables)
        try:
            common = common_schema([table.schema for table in tables])
        except ValueError:
            pass  # a key has values of several types
        else:
            alike = [
                file.table if file.table.schema == common else _parsed_as(file.lines or b"", common)
                for file in files
                if file.table is not None
            ]
            return [_with_hugeints(without_empty_structs(table)) for table in alike]
    return _of_any_structure(files, options)


def common_schema(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """The fields of all, each of the type that `common_type` finds."""
    types: dict[str, pa.DataType] = {}
    for field in itertools.chain(*schemas):
        types[field.name] = common_type(types.get(field.name, pa.null()), field.type)
    return pa.schema(list(types.items()))


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type that Arrow finds for values of which some are of one type, and some of another. Raises ValueError if there is none."""
    if pa.types.is_null(left) or left == right:
        return right
    if pa.types.is_null(right):
        return left
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        fields = {field.name: field.type for field in left}
        for field in right:
            fields[field.name] = common_type(fields.get(field.name, pa.null()), field.type)
        return pa.struct(list(fields.items()))
    if pa.types.is_list(left) and pa.types.is_list(right):
        return pa.list_(common_type(left.value_type, right.value_type))
    for wider in (pa.float64(), HUGE):
        if wider in (left, right) and {left, right} <= {wider, HUGE, pa.int64()}:
            return wider
    raise ValueError(f"a key has values of the types {left} and {right}")


def _of_any_structure(files: Sequence[JsonFile], options: ReadOptions) -> list[pa.Table]:
    """Values that need not be objects, nor of one structure."""
    values = [_values_of(file, options) for file in files]
    if not any(values):
        return [_empty()] * len(files)
    try:
        rows, are_values = records_of(list(itertools.chain(*values)), options.json_records)
    except ValueError as error:
        raise BindError(f"{files[0].path}: {error}") from None
    depth = options.json_depth
    if not depth:
        rows, are_values = [((ONLY, value),) for value in itertools.chain(*values)], False
    structure = structure_of(rows, depth if are_values or depth < 0 else depth + 1)
    for name in structure:
        if lower_ascii(name) in (options.text_columns or ()) and type_of_texts(structure[name]) is not None:
            structure[name] = MIXED  # what it is cast to says more than what differs in it
    types = [(name, type_of_texts(each)) for name, each in structure.items()]
    said = pa.schema([(name, each) for name, each in types if each is not None])
    lines = [write_json(as_texts(row, structure)) for row in rows]
    try:
        table = parsed_as_text("\n".join(lines).encode(), said).select(list(structure))
    except pa.ArrowInvalid as error:
        raise UnsupportedError(f"{files[0].path}: {error}") from None
    table = _with_hugeints(with_json_columns(without_empty_structs(table), structure))
    ends = list(itertools.accumulate(map(len, values)))
    return [table.slice(end - len(each), len(each)) for end, each in zip(ends, values, strict=True)]


def _values_of(file: JsonFile, options: ReadOptions) -> list[Any]:
    """Raises ExecutionError for malformed text."""
    text = file.text or (file.lines or b"").decode()
    with reading(file.path):
        return list(map(parse_json, texts_of_values(text, options.json_form, options.ignore_errors)))


def _empty() -> pa.Table:
    return pa.table({ONLY: pa.ExtensionArray.from_storage(pa.json_(), pa.array([], pa.string()))})


def parsed_as_text(content: bytes, said: pa.Schema | None = None) -> pa.Table:
    """Objects as a table with all texts as such; `said` has the types of some of its columns, or what is known of them."""
    table = parsed(content, _parsing(said or pa.schema([])))
    changed = [
        field.with_type(found)
        for field, column in zip(table.schema, table.columns, strict=True)
        if (found := _without_times(field.type)) != field.type
    ]
    huge = [
        field.with_type(HUGE)
        for field, column in zip(table.schema, table.columns, strict=True)
        if _may_be_huge(column)
    ]
    order = table.column_names
    for fields in (changed + huge, changed) if huge else (changed,) if changed else ():
        names = {field.name for field in fields}
        schema = [*(each for each in said or () if each.name not in names), *fields]
        try:
            found = parsed(content, _parsing(pa.schema(schema))).select(order)
            if fields is changed or all(pc.max(found[each.name]).as_py() < 2**64 for each in huge):
                return found
        except pa.ArrowInvalid:
            if fields is changed:
                raise
    return table


def _without_times(arrow_type: pa.DataType) -> pa.DataType:
    """The type with text for what Arrow takes for timestamps, which are not all of those that DuckDB reads."""
    if pa.types.is_timestamp(arrow_type):
        return pa.string()
    if pa.types.is_list(arrow_type):
        return pa.list_(_without_times(arrow_type.value_type))
    if pa.types.is_struct(arrow_type):
        return pa.struct([field.with_type(_without_times(field.type)) for field in arrow_type])
    return arrow_type


def _may_be_huge(column: pa.ChunkedArray) -> bool:
    """Whether numbers that Arrow has rounded may have been integers, some of them greater than those of 64 bits with a sign."""
    if not pa.types.is_floating(column.type):
        return False
    extremes = pc.min_max(column).as_py()
    return (
        extremes["max"] is not None
        and 2.0**63 <= extremes["max"] <= 2.0**64
        and extremes["min"] >= -(2.0**63)
    )


def _with_hugeints(table: pa.Table) -> pa.Table:
    for place, field in enumerate(table.schema):
        if field.type == HUGE:
            chunks = [
                pa.ExtensionArray.from_storage(HUGEINT_ARRAY, each) for each in table.column(place).chunks
            ]
            table = table.set_column(place, field.name, pa.chunked_array(chunks, HUGEINT_ARRAY))
    return table


def _parsed_as(content: bytes, schema: pa.Schema) -> pa.Table:
    return parsed(content, _parsing(schema)) if content else schema.empty_table()


def _parsing(schema: pa.Schema) -> pa_json.ParseOptions:
    return pa_json.ParseOptions(explicit_schema=schema, newlines_in_values=True)


def parsed(content: bytes, parsing: pa_json.ParseOptions) -> pa.Table:
    """Objects as rows, of which all tell the types. Raises ArrowInvalid for what are no objects with values of one type each."""
    blocks = pa_json.ReadOptions(block_size=max(1 << 20, min(len(content) + 1, 1 << 30)))
    return pa_json.read_json(pa.BufferReader(content), read_options=blocks, parse_options=parsing)
