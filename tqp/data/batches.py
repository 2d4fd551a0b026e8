"""Columns that are read batch by batch, each by the worker that computes on it, and kept by nobody."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from tqp.data.arrow_buffers import AnyArray, BoolArray, tensor_of
from tqp.data.strings import Strings

#: Values [n] and validity [n] of some rows; None: all are valid.
Rows = tuple[AnyArray | Strings, BoolArray | None]


class StreamedColumn(ABC):
    """A column in main memory's place: whoever wants some of its rows reads them. Safe to use from several threads."""

    def __init__(self) -> None:
        self._last = threading.local()

    @abstractmethod
    def read(self, start: int, stop: int) -> Rows:
        """Rows [start, stop)."""

    @property
    def ends(self) -> Sequence[int]:
        """Rows, ascending, before which batches are best ended."""
        return ()

    def rows(self, start: int, stop: int) -> Rows:
        """As `read`: a thread that asks again for the rows that it asked for last, as for their validity, is given the same."""
        if getattr(self._last, "bounds", None) != (start, stop):
            self._last.bounds = self._last.rows = None
            self._last.rows = self.read(start, stop)
            self._last.bounds = start, stop
        rows: Rows = self._last.rows
        return rows


@dataclass(frozen=True, slots=True)
class Streamed:
    """The values of a column, or its validity, in the place of a tensor that batches are cut of: `streamed[start:stop]`."""

    column: StreamedColumn
    is_validity: bool = False
    as_arrays: bool = False

    def __getitem__(self, rows: slice) -> Tensor | AnyArray | Strings | None:
        part = self.column.rows(rows.start, rows.stop)[self.is_validity]
        if isinstance(part, Strings):
            return part
        return part if self.as_arrays else tensor_of(part)

    def arrays(self) -> Streamed:
        """The same, of which batches are cut as arrays."""
        return replace(self, as_arrays=True)
