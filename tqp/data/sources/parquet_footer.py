"""Parquet footers in which decimals that are stored as integers are these integers, so that readers hand them out as they lie.

A reader makes 128-bit decimals of them, which takes twice the time and memory. What a footer says of a column is that it is
of a physical type and, beside that, that its values are decimals: without the second, the first is read.
"""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

_MAGIC = b"PAR1"
#: Bytes behind the footer: its length and the magic number.
_TAIL = 8
#: Types of Thrift's compact protocol, by number.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
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


class _Reader:
    """Walks over bytes in Thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        result, shift = 0, 0
        while True:
            byte = self.byte()
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
            shift += 7

    def integer(self) -> int:
        encoded = self.varint()
        return (encoded >> 1) ^ -(encoded & 1)

    def field(self, previous: int) -> tuple[int, int] | None:
        """The number and type of the next field of a struct; None at its end."""
        header = self.byte()
        if header == 0:
            return None
        return previous + (header >> 4) if header >> 4 else self.integer(), header & 0x0F

    def items(self) -> tuple[int, int]:
        """How many items a list or set has, and of which type."""
        header = self.byte()
        return header >> 4 if header >> 4 < 15 else self.varint(), header & 0x0F

    def skip(self, kind: int) -> None:
        """To behind a value of a struct's field."""
        if kind in (_TRUE, _FALSE):
            return
        if kind == _BYTE:
            self.at += 1
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            length = self.varint()
            self.at += length
        elif kind in (_LIST, _SET):
            size, of = self.items()
            for _ in range(size):
                self._skip_item(of)
        elif kind == _MAP:
            size = self.varint()
            kinds = self.byte() if size else 0
            for _ in range(size):
                self._skip_item(kinds >> 4)
                self._skip_item(kinds & 0x0F)
        elif kind == _STRUCT:
            self.skip_struct()
        else:
            self.varint()

    def _skip_item(self, kind: int) -> None:
        self.skip(_BYTE if kind in (_TRUE, _FALSE) else kind)

    def skip_struct(self) -> None:
        previous = 0
        while (field := self.field(previous)) is not None:
            previous, kind = field
            self.skip(kind)


def _without_decimals(footer: bytes) -> bytes:
    reader = _Reader(footer)
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


def _plain_element(reader: _Reader) -> bytes:
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
