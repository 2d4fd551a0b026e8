"""Rows that grow at their end: each is copied about twice, however many times others come."""

from __future__ import annotations

from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators.memory import allocation

#: Rows that there is room for at first.
_LEAST_ROOM = 256


class GrowingTensor:
    """Rows [n, ...] of one dtype on one device, one after the other."""

    __slots__ = ("_room", "num_rows")

    def __init__(self) -> None:
        self._room: Tensor | None = None
        self.num_rows = 0

    def rows(self) -> Tensor:
        """All rows; something must have been appended. A view, which stays as it is when others come."""
        assert self._room is not None
        return self._room[: self.num_rows]

    def append(self, rows: Tensor) -> None:
        """Copies of the rows behind those that there are."""
        first, self.num_rows = self.num_rows, self.num_rows + rows.shape[0]
        if self._room is None or self.num_rows > self._room.shape[0]:
            shape = max(_LEAST_ROOM, 1 << max(self.num_rows - 1, 0).bit_length()), *rows.shape[1:]
            room = allocation.empty(shape, rows.dtype, rows.device)
            if self._room is not None:
                room[:first] = self._room[:first]
            self._room = room
        self._room[first : self.num_rows] = rows


class GrowingStrings:
    """Strings, one after the other, in a buffer of their own."""

    __slots__ = ("_bytes", "_lengths", "_starts")

    def __init__(self) -> None:
        self._starts, self._lengths, self._bytes = GrowingTensor(), GrowingTensor(), GrowingTensor()

    def rows(self) -> Strings:
        """As `GrowingTensor.rows`."""
        return Strings(self._starts.rows(), self._lengths.rows(), self._bytes.rows())

    def append(self, rows: Strings) -> None:
        """As `GrowingTensor.append`. The rows must lie one after the other, from the start of their buffer to its end."""
        self._starts.append(rows.starts + self._bytes.num_rows)
        self._lengths.append(rows.lengths)
        self._bytes.append(rows.data)
