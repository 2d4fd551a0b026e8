"""JSON: an object for each row, on lines of their own or as the elements of an array."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tqp.core.datatypes import DOUBLE, TypeKind, holds_json
from tqp.core.errors import UnsupportedError
from tqp.core.json.values import parse_json
from tqp.core.json.values import write_json as as_json
from tqp.data.column import Column, Table
from tqp.data.results.to_python import python_values
from tqp.writing.replaced_files import stream_beside
from tqp.writing.texts import NO_FORMATS, TimeFormats, beside, blocks, bytes_of, text_array

_CONTROL = "[\x00-\x1f]"
#: Control characters that have a short form, and what replaces them.
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}


def write_json(
    tables: Iterable[Table],
    path: str,
    array: bool = False,
    compression: str | None = None,
    formats: TimeFormats = NO_FORMATS,
) -> int:
    """Writes the rows of tables with the same columns to a file: newline-delimited objects, or with `array` one array of them.

    Says how many they are. Numbers keep all their digits; NaN and infinities stand without quotes, as in DuckDB. Raises
    ExecutionError that names the file if it cannot be written.
    """
    num_rows = 0
    with stream_beside(path, compression) as stream:
        if array:
            stream.write(b"[\n\t")
        for block in blocks(tables):
            if array:
                stream.write(bytes_of(_elements(block, formats, is_first=not num_rows)))
            else:
                stream.write(bytes_of(beside(_objects(block, formats), "\n")))
            num_rows += block.num_rows
        if array:
            stream.write(b"\n]\n")
    return num_rows


def _objects(block: Table, formats: TimeFormats) -> pa.LargeStringArray:
    parts: list[pa.LargeStringArray | str] = []
    for place, (name, column) in enumerate(zip(block.names, block.columns, strict=True)):
        parts.append(("," if place else "{") + json.dumps(name, ensure_ascii=False) + ":")
        parts.append(_values(column, formats))
    return beside(*parts, "}")


def _elements(block: Table, formats: TimeFormats, is_first: bool) -> pa.LargeStringArray:
    """The objects, each with what stands before it in an array."""
    before = pa.array(
        ["" if is_first and not row else ",\n\t" for row in range(block.num_rows)], pa.large_string()
    )
    return beside(before, _objects(block, formats))


def _values(column: Column, formats: TimeFormats) -> pa.LargeStringArray:
    data_type = column.data_type
    if data_type.kind is TypeKind.FLOAT:  # JSON's numbers have 64 bits
        assert column.values is not None
        column = Column(DOUBLE, column.num_rows, column.values.double(), column.validity)
    if data_type.is_json:
        texts = (None if text is None else as_json(parse_json(text)) for text in python_values(column))
        return pc.fill_null(pa.array(texts, pa.large_string()), "null")
    if holds_json(data_type):
        raise UnsupportedError(f"{data_type} in a JSON file is not supported; cast it to VARCHAR")
    if data_type.is_nested:
        values = map(_nested, python_values(column, tagged=True))
        return pa.array(["null" if value is None else value for value in values], pa.large_string())
    texts = text_array(column, formats)
    if data_type.is_float:
        for text, word in (("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")):
            texts = pc.if_else(pc.equal(texts, text), pa.scalar(word, pa.large_string()), texts)
    elif not (data_type.is_numeric or data_type.kind in (TypeKind.BOOLEAN, TypeKind.ARRAY)):
        texts = _quoted(texts)
    return pc.fill_null(texts, "null")


def _nested(value: Any) -> str | None:
    """A list, struct, map or union; numbers and texts in it as they are, everything else as text."""
    if value is None:
        return None
    return json.dumps(_with_text_keys(value), ensure_ascii=False, separators=(",", ":"), default=str)


def _with_text_keys(value: Any) -> Any:
    """The value with keys of maps that JSON takes: dates and decimals as text."""
    if isinstance(value, dict):
        return {
            key if isinstance(key, str | int | float) else str(key): _with_text_keys(each)
            for key, each in value.items()
        }
    return [_with_text_keys(each) for each in value] if isinstance(value, list | tuple) else value


def _quoted(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    texts = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    has_control = pc.match_substring_regex(texts, _CONTROL)
    if pc.any(has_control).as_py():
        for character, short in _SHORT.items():
            texts = pc.replace_substring(texts, character, short)
        for code in range(32):
            if chr(code) not in _SHORT:
                texts = pc.replace_substring(texts, chr(code), f"\\u{code:04x}")
    return beside('"', texts, '"')
