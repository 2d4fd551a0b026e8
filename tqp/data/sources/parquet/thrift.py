"""Thrift's compact protocol, in which Parquet files hold what they say of themselves."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

#: Types of the protocol, by number.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_NUMBERS = (_I16, _I32, _I64)

#: A field of a struct: its number, its type, and its value as it is written.
Field = tuple[int, int, bytes]


class CompactReader:
    """Walks over bytes in Thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        """The next byte."""
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        """The next number, of any length."""
        data, at = self.data, self.at
        byte = data[at]
        result, shift = byte & 0x7F, 7
        while byte >= 0x80:
            at += 1
            byte = data[at]
            result |= (byte & 0x7F) << shift
            shift += 7
        self.at = at + 1
        return result

    def skip_varint(self) -> None:
        """To behind a number."""
        data, at = self.data, self.at
        while data[at] >= 0x80:
            at += 1
        self.at = at + 1

    def integer(self) -> int:
        """The next number with a sign."""
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
        if kind in _NUMBERS:
            self.skip_varint()
        elif kind == _BINARY:
            length = self.varint()
            self.at += length
        elif kind == _STRUCT:
            self.skip_struct()
        elif kind == _BYTE:
            self.at += 1
        elif kind == _DOUBLE:
            self.at += 8
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
        elif kind not in (_TRUE, _FALSE):
            raise ValueError(f"it has a value of type {kind}")

    def _skip_item(self, kind: int) -> None:
        self.skip(_BYTE if kind in (_TRUE, _FALSE) else kind)

    def skip_struct(self) -> None:
        """To behind a struct."""
        data = self.data
        while header := data[self.at]:
            self.at += 1
            if header < 16:
                self.skip_varint()
            kind = header & 0x0F
            if kind in _NUMBERS:
                at = self.at
                while data[at] >= 0x80:
                    at += 1
                self.at = at + 1
            elif kind not in (_TRUE, _FALSE):
                self.skip(kind)
        self.at += 1

    def fields(self) -> list[Field]:
        """The fields of a struct as they are written."""
        found = []
        previous = 0
        while (field := self.field(previous)) is not None:
            previous, kind = field
            start = self.at
            self.skip(kind)
            found.append((previous, kind, self.data[start : self.at]))
        return found

    def struct(self) -> dict[int, Any]:
        """The values of a struct by the numbers of its fields: structs as such, lists as lists, maps as lists of pairs."""
        found: dict[int, Any] = {}
        previous = 0
        while (field := self.field(previous)) is not None:
            previous, kind = field
            found[previous] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind)
        return found

    def _value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE):  # an item
            return self.byte() == _TRUE
        if kind == _BYTE:
            return struct.unpack("b", self._bytes(1))[0]
        if kind == _DOUBLE:
            return struct.unpack("<d", self._bytes(8))[0]
        if kind == _BINARY:
            return self._bytes(self.varint())
        if kind in (_LIST, _SET):
            size, of = self.items()
            return [self._value(of) for _ in range(size)]
        if kind == _MAP:
            size = self.varint()
            kinds = self.byte() if size else 0
            return [(self._value(kinds >> 4), self._value(kinds & 0x0F)) for _ in range(size)]
        return self.struct() if kind == _STRUCT else self.integer()

    def _bytes(self, length: int) -> bytes:
        if length > len(self.data) - self.at:
            raise ValueError("it ends too early")
        self.at += length
        return self.data[self.at - length : self.at]


def integer_value(written: bytes) -> int:
    """The number with a sign that a field holds."""
    return CompactReader(written).integer()


def struct_bytes(fields: Iterable[Field]) -> bytes:
    """A struct, written: fields in ascending order of their numbers, less than 16 from one to the next."""
    written, previous = bytearray(), 0
    for number, kind, value in fields:
        written.append((number - previous) << 4 | kind)
        written += value
        previous = number
    written.append(0)
    return bytes(written)


def small_integer_field(number: int, value: int) -> Field:
    """A field that holds a number of up to 32 bits."""
    return number, _I32, integer_bytes(value)


def integer_field(number: int, value: int) -> Field:
    """A field that holds a number of up to 64 bits."""
    return number, _I64, integer_bytes(value)


def flag_field(number: int, value: bool) -> Field:
    """A field that is true or false."""
    return number, _TRUE if value else _FALSE, b""


def binary_field(number: int, value: bytes) -> Field:
    """A field that holds text or bytes."""
    return number, _BINARY, binary_bytes(value)


def struct_field(number: int, fields: Iterable[Field]) -> Field:
    """A field that holds a struct."""
    return number, _STRUCT, struct_bytes(fields)


def list_of_integers(number: int, values: Sequence[int]) -> Field:
    """A field that holds a list of numbers of up to 32 bits."""
    return _list(number, _I32, list(map(integer_bytes, values)))


def list_of_texts(number: int, values: Sequence[bytes]) -> Field:
    """A field that holds a list of texts."""
    return _list(number, _BINARY, list(map(binary_bytes, values)))


def list_of_structs(number: int, values: Sequence[bytes]) -> Field:
    """A field that holds a list of structs, which are written already."""
    return _list(number, _STRUCT, values)


def _list(number: int, kind: int, items: Sequence[bytes]) -> Field:
    size = len(items)
    header = bytes([size << 4 | kind]) if size < 15 else bytes([0xF0 | kind]) + _varint(size)
    return number, _LIST, header + b"".join(items)


def integer_bytes(value: int) -> bytes:
    """A number with a sign, written."""
    return _varint(value << 1 if value >= 0 else ~(value << 1))


def binary_bytes(value: bytes) -> bytes:
    """Text or bytes, written."""
    return _varint(len(value)) + value


def _varint(value: int) -> bytes:
    """A number without a sign."""
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
