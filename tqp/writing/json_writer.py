"""JSON: an object for each row, on lines of their own or as the elements of an array."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from tqp.core.datatypes import DOUBLE, FLOAT, TypeKind
from tqp.core.json.values import DIGITS_OF_DOUBLE, parse_json, write_float
from tqp.core.json.values import write_json as as_json
from tqp.data.column import Column, Table, elements_in_order, entries_in_order, fields_of
from tqp.data.nested import Structs
from tqp.data.results.to_python import member_values, python_values
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

    Says how many they are. Numbers are those of to_json(); NaN and infinities stand without quotes, as in DuckDB. Raises
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
        parts += ["," if place else "{", _key(name), _values(column, formats)]
    return beside(*parts, "}")


def _elements(block: Table, formats: TimeFormats, is_first: bool) -> pa.LargeStringArray:
    """The objects, each with what stands before it in an array."""
    before = pa.array(
        ["" if is_first and not row else ",\n\t" for row in range(block.num_rows)], pa.large_string()
    )
    return beside(before, _objects(block, formats))


def _values(column: Column, formats: TimeFormats) -> pa.LargeStringArray:
    """Each value as JSON, NULL as null."""
    data_type, values = column.data_type, column.values
    if data_type.kind is TypeKind.FLOAT or (data_type.is_decimal and data_type.precision <= DIGITS_OF_DOUBLE):
        assert values is not None
        doubles = values.double() / 10.0**data_type.scale if data_type.is_decimal else values.double()
        column = Column(DOUBLE, column.num_rows, doubles, column.validity)
    if column.data_type.is_float:
        texts = _floats(column)
    elif data_type.is_json:
        texts = pa.array(
            (None if text is None else as_json(parse_json(text)) for text in python_values(column)),
            pa.large_string(),
        )
    elif data_type.is_nested or data_type.is_vector:
        valid = None if column.validity is None else pa.array(column.host_validity)
        texts = _nested(column, formats)
        texts = texts if valid is None else pc.if_else(valid, texts, None)
    else:
        texts = text_array(column, formats)
        if not (data_type.is_numeric or data_type.kind is TypeKind.BOOLEAN):
            texts = _quoted(texts)
    return pc.fill_null(texts, "null")


def _floats(column: Column) -> pa.LargeStringArray:
    """Floats as JSON; what has an exponent, or is no number, is written otherwise than as text."""
    texts = text_array(column)
    is_other = pc.fill_null(pc.match_substring_regex(texts, "[en]"), False)
    if pc.any(is_other).as_py():
        assert column.values is not None
        rows = torch.from_numpy(is_other.to_numpy(zero_copy_only=False)).to(column.values.device)
        written = pa.array(map(write_float, column.values[rows].tolist()), pa.large_string())
        texts = pc.replace_with_mask(texts, is_other, written)
    return texts


def _nested(column: Column, formats: TimeFormats) -> pa.LargeStringArray:
    """Lists, structs, maps and unions that are there, as JSON; others as anything."""
    data_type = column.data_type
    if data_type.is_union:
        texts = member_values(
            column, lambda name, member: beside(f"{{{_key(name)}", _values(member, formats), "}").to_pylist()
        )
        return pa.array(texts, pa.large_string())
    if isinstance(column.nested, Structs):
        parts: list[pa.LargeStringArray | str] = []
        for name, field in zip(data_type.names, fields_of(column), strict=True):
            parts += ["," if parts else "", _key(name) if name else "", _values(field, formats)]
        return beside(*("[", *parts, "]") if data_type.is_tuple else ("{", *parts, "}"))
    if data_type.kind is TypeKind.MAP:
        keys, values, lengths = entries_in_order(column)
        return _joined(
            beside(_quoted(text_array(keys, formats)), ":", _values(values, formats)), lengths, "{}"
        )
    if data_type.is_vector:
        assert column.values is not None
        elements = Column(FLOAT, column.values.numel(), column.values.reshape(-1))
        lengths = torch.full((column.num_rows,), data_type.size)
    else:
        elements, lengths = elements_in_order(column)
    return _joined(_values(elements, formats), lengths, "[]")


def _key(name: str) -> str:
    return json.dumps(name, ensure_ascii=False) + ":"


def _joined(texts: pa.LargeStringArray, lengths: Tensor, around: str) -> pa.LargeStringArray:
    """The first so many texts, then so many of the next, and so on, with commas between."""
    ends = np.concatenate([[0], np.cumsum(lengths.numpy())])
    is_later = np.ones(len(texts), bool)
    is_later[ends[:-1][ends[:-1] < len(texts)]] = False
    joined = beside(pc.if_else(pa.array(is_later), pa.scalar(",", pa.large_string()), ""), texts)
    offsets = np.frombuffer(joined.buffers()[1], np.int64, len(texts) + 1)[ends]
    lists = pa.LargeStringArray.from_buffers(len(lengths), pa.py_buffer(offsets), joined.buffers()[2])
    return beside(around[0], lists, around[1])


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
