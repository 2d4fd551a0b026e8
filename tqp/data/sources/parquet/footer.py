"""Parquet footers in which decimals that are stored as integers are these integers, so that readers hand them out as they lie.

A reader makes 128-bit decimals of them, which takes twice the time and memory. What a footer says of a column is that it is
of a physical type and, beside that, that its values are decimals: without the second, the first is read.
"""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from tqp.data.sources.parquet.thrift import CompactReader

_MAGIC = b"PAR1"
#: Bytes behind the footer: its length and the magic number.
_TAIL = 8
#: Fields of FileMetaData and SchemaElement in parquet.thrift, and of the union LogicalType.
_SCHEMA = 2
_TYPE, _CONVERTED_TYPE, _SCALE, _PRECISION, _LOGICAL_TYPE = 1, 6, 7, 8, 10
_LOGICAL_DECIMAL = 5
#: Values of the enumerations Type and ConvertedType.
_INT32, _INT64 = 1, 2
_DECIMAL = 5


def with_stored_integers(metadata: pq.FileMetaData) -> pq.FileMetaData:
    """The same metadata, in which columns of decimals with the physical type INT32 or INT64 are integers."""
    written = io.BytesIO()
    metadata.write_metadata_file(written)
    footer = written.getvalue()[len(_MAGIC) : -_TAIL]
    changed = _without_decimals(footer)
    return pq.read_metadata(pa.BufferReader(_MAGIC + changed + len(changed).to_bytes(4, "little") + _MAGIC))


def _without_decimals(footer: bytes) -> bytes:
    reader = CompactReader(footer)
    previous = 0
    while (field := reader.field(previous)) is not None:
        previous, kind = field
        if previous != _SCHEMA:
            reader.skip(kind)
            continue
        size, _ = reader.items()
        start = reader.at
        elements = b"".join([_plain_element(reader) for _ in range(size)])
        return footer[:start] + elements + footer[reader.at :]
    raise ValueError("a Parquet footer without a schema")


def _plain_element(reader: CompactReader) -> bytes:
    """The next SchemaElement, without what makes integers decimals."""
    start, previous = reader.at, 0
    values: list[tuple[int, int, bytes]] = []
    physical, is_decimal = None, False
    while (field := reader.field(previous)) is not None:
        previous, kind = field
        first = reader.at
        if previous == _TYPE:
            physical = reader.integer()
        elif previous == _CONVERTED_TYPE:
            is_decimal |= reader.integer() == _DECIMAL
        elif previous == _LOGICAL_TYPE:
            chosen = reader.field(0)
            is_decimal |= chosen is not None and chosen[0] == _LOGICAL_DECIMAL
            reader.at = first
            reader.skip(kind)
        else:
            reader.skip(kind)
        values.append((previous, kind, reader.data[first : reader.at]))
    if not is_decimal or physical not in (_INT32, _INT64):
        return reader.data[start : reader.at]
    kept = [each for each in values if each[0] not in (_CONVERTED_TYPE, _SCALE, _PRECISION, _LOGICAL_TYPE)]
    result, previous = bytearray(), 0
    for number, kind, value in kept:  # ascending by less than 16: the newest of the format has eleven
        result += bytes([(number - previous) << 4 | kind]) + value
        previous = number
    return bytes(result) + b"\0"
