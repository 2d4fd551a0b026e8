"""Parquet footers that are made of others: with decimals as the integers that they are stored as, or of one column only.

A reader makes 128-bit decimals of integers that are decimals, which takes twice the time and memory. What a footer says of a
column is that it is of a physical type and, beside that, that its values are decimals: without the second, the first is read.
"""

from __future__ import annotations

import base64
import io
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from tqp.data.sources.parquet.thrift import (
    CompactReader,
    Field,
    binary_field,
    integer_field,
    integer_value,
    list_of_integers,
    list_of_structs,
    list_of_texts,
    small_integer_field,
    struct_bytes,
    struct_field,
)

MAGIC = b"PAR1"
#: Bytes behind the footer: its length and the magic number.
_TAIL = 8
#: Fields of FileMetaData and SchemaElement in parquet.thrift, and of the union LogicalType.
_SCHEMA = 2
_TYPE, _NUM_CHILDREN, _CONVERTED_TYPE, _SCALE, _PRECISION, _LOGICAL_TYPE = 1, 5, 6, 7, 8, 10
_LOGICAL_DECIMAL = 5
#: Values of the enumerations Type, ConvertedType, CompressionCodec and Encoding.
_INT32, _INT64 = 1, 2
_DECIMAL = 5
_UNCOMPRESSED = 0
_ENCODINGS = {"PLAIN": 0, "RLE": 3, "RLE_DICTIONARY": 8}
#: Where Arrow writes its own schema.
_ARROW_SCHEMA = b"ARROW:schema"


def with_stored_integers(metadata: pq.FileMetaData) -> pq.FileMetaData:
    """The same metadata, in which columns of decimals with the physical type INT32 or INT64 are integers."""
    footer = _footer(metadata)
    elements, start, stop = _schema(footer)
    changed = footer[:start] + b"".join(map(_without_decimal, elements)) + footer[stop:]
    return pq.read_metadata(pa.BufferReader(MAGIC + with_tail(changed)))


def leaf_elements(metadata: pq.FileMetaData) -> list[bytes]:
    """What the schema of a file says of each leaf column: a SchemaElement, written."""
    elements, *_ = _schema(_footer(metadata))
    return [each for each in elements if not _num_children(each)]


@dataclass(frozen=True, slots=True)
class Stored:
    """A column chunk in pages that are not compressed: its values and rows, where its pages begin, and their bytes."""

    num_values: int
    num_rows: int
    dictionary: int | None
    data: int
    size: int


def footer_of_column(element: bytes, field: pa.Field | None, path: str, chunks: Sequence[Stored]) -> bytes:
    """The footer of a file of nothing but one column, in one row group for each chunk.

    `element`: what the schema says of the column, which is not nested; `field`: what it is in Arrow; None: as the schema says.
    """
    physical = next(value for number, _, value in CompactReader(element).fields() if number == _TYPE)
    same = [
        small_integer_field(1, integer_value(physical)),
        list_of_integers(2, list(_ENCODINGS.values())),
        list_of_texts(3, [path.encode()]),
        small_integer_field(4, _UNCOMPRESSED),
    ]
    num_rows = sum(chunk.num_rows for chunk in chunks)
    root = struct_bytes([binary_field(4, b"schema"), small_integer_field(_NUM_CHILDREN, 1)])
    return with_tail(
        struct_bytes(
            [
                small_integer_field(1, 2),
                list_of_structs(_SCHEMA, [root, element]),
                integer_field(3, num_rows),
                list_of_structs(4, [_row_group(same, chunk) for chunk in chunks]),
                *([] if field is None else [list_of_structs(5, [_arrow_schema(field)])]),
            ]
        )
    )


def _row_group(same: Sequence[Field], chunk: Stored) -> bytes:
    """A RowGroup of one column, written; `same`: what is said of each of its chunks."""
    column = [
        *same,
        integer_field(5, chunk.num_values),
        integer_field(6, chunk.size),
        integer_field(7, chunk.size),
        integer_field(9, chunk.data),
        *([] if chunk.dictionary is None else [integer_field(11, chunk.dictionary)]),
    ]
    columns = list_of_structs(1, [struct_bytes([integer_field(2, chunk.data), struct_field(3, column)])])
    return struct_bytes([columns, integer_field(2, chunk.size), integer_field(3, chunk.num_rows)])


def _arrow_schema(field: pa.Field) -> bytes:
    written = base64.b64encode(pa.schema([field]).serialize())
    return struct_bytes([binary_field(1, _ARROW_SCHEMA), binary_field(2, written)])


def with_tail(footer: bytes) -> bytes:
    """What a file ends in."""
    return footer + len(footer).to_bytes(4, "little") + MAGIC


def _footer(metadata: pq.FileMetaData) -> bytes:
    """A FileMetaData, written."""
    written = io.BytesIO()
    metadata.write_metadata_file(written)
    return written.getvalue()[len(MAGIC) : -_TAIL]


def _schema(footer: bytes) -> tuple[Sequence[bytes], int, int]:
    """The SchemaElements of a footer, written, and where they begin and end."""
    reader = CompactReader(footer)
    previous = 0
    while (field := reader.field(previous)) is not None:
        previous, kind = field
        if previous != _SCHEMA:
            reader.skip(kind)
            continue
        size, _ = reader.items()
        bounds = [reader.at]
        for _ in range(size):
            reader.skip_struct()
            bounds.append(reader.at)
        elements = [footer[start:stop] for start, stop in itertools.pairwise(bounds)]
        return elements, bounds[0], bounds[-1]
    raise ValueError("a Parquet footer without a schema")


def _num_children(element: bytes) -> int:
    found = (
        integer_value(value)
        for number, _, value in CompactReader(element).fields()
        if number == _NUM_CHILDREN
    )
    return next(found, 0)


def _without_decimal(element: bytes) -> bytes:
    """A SchemaElement without what makes integers decimals."""
    fields = CompactReader(element).fields()
    values = {number: value for number, _, value in fields}
    physical = _TYPE in values and integer_value(values[_TYPE])
    logical = CompactReader(values[_LOGICAL_TYPE]).field(0) if _LOGICAL_TYPE in values else None
    is_decimal = (_CONVERTED_TYPE in values and integer_value(values[_CONVERTED_TYPE]) == _DECIMAL) or (
        logical is not None and logical[0] == _LOGICAL_DECIMAL
    )
    if not is_decimal or physical not in (_INT32, _INT64):
        return element
    said = (_CONVERTED_TYPE, _SCALE, _PRECISION, _LOGICAL_TYPE)
    return struct_bytes(each for each in fields if each[0] not in said)
