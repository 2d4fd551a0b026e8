"""Thrift's compact protocol, in which Parquet files hold what they say of themselves."""

from __future__ import annotations

import struct
from typing import Any

#: Types of the protocol, by number.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12


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
        result, shift = 0, 0
        while True:
            byte = self.byte()
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
            shift += 7

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
        """To behind a struct."""
        previous = 0
        while (field := self.field(previous)) is not None:
            previous, kind = field
            self.skip(kind)

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
