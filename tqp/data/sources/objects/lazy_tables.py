"""Lazy frames and datasets among the caller's variables: read once for a query, of the columns that it names."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import torch

from tqp.core.datatypes import DataType
from tqp.core.errors import BindError, Error, ExecutionError
from tqp.data.arrow_types import type_of_values
from tqp.data.column import Column
from tqp.data.encoding.columns import encode_column
from tqp.data.sources.base import Source
from tqp.data.sources.objects.frames import is_from, table_of_polars

#: Gives some columns, by their names, in their order.
ReadColumns = Callable[[Sequence[str]], pa.Table]


def consume(name: str, read: Callable[[], Any]) -> Any:
    """`read()`, with what it raises as a BindError that names the table."""
    try:
        return read()
    except Error:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        raise BindError(f'table "{name}" cannot be read: {reason}') from error


class LazyTable(Source):
    """What `read` gives of the columns that are asked for first, all of them if their number of rows is asked for before.

    For one query: what is read of it later may be of another state of what it is read from.
    """

    def __init__(self, name: str, empty: pa.Table, read: ReadColumns, device: torch.device) -> None:
        """`empty`: its columns, without rows."""
        super().__init__(name, empty.column_names, device)
        self._empty, self._read, self._lock = empty, read, threading.Lock()
        self._columns: dict[int, pa.ChunkedArray] = {}
        self._num_rows: int | None = None

    @property
    def num_rows(self) -> int:  # type: ignore[override]
        """Exact."""
        if self._num_rows is None:
            self._fetch(range(len(self.column_names)))
        assert self._num_rows is not None
        return self._num_rows

    def encode(self, names: Iterable[str]) -> None:
        wanted = list(dict.fromkeys(names))
        self._fetch([self._position(name) for name in wanted] or [0])  # of one, to count its rows
        super().encode(wanted)

    def _type_at(self, position: int) -> DataType:
        return type_of_values(self._empty.column(position), self.column_names[position])

    def _encode(self, position: int) -> Column:
        self._fetch([position])
        return encode_column(self.column_names[position], self._columns[position], self.device)

    def _fetch(self, positions: Iterable[int]) -> None:
        """Read those of the columns that are not there yet. Raises BindError naming the table if that fails."""
        with self._lock:
            missing = [position for position in positions if position not in self._columns]
            if not missing:
                return
            names = [self._empty.column_names[position] for position in missing]
            table = consume(self.name, lambda: self._read(names))
            if self._num_rows not in (None, table.num_rows):
                raise ExecutionError(f'table "{self.name}" changed while it was read; run the query again')
            self._num_rows = table.num_rows
            self._columns.update(zip(missing, table.columns, strict=True))


def lazy_table(name: str, data: Any, device: torch.device) -> LazyTable | None:
    """The source for a Polars lazy frame or an Arrow dataset whose columns can be read by their names; None for anything else."""
    if is_from(data, "polars", "LazyFrame"):
        frame = data.limit(0).collect()
        if any(dtype.base_type().__name__ == "Object" for dtype in frame.dtypes):
            return None  # whose type the values tell
        return LazyTable(
            name,
            table_of_polars(name, frame),
            lambda names: table_of_polars(name, data.select(list(names)).collect()),
            device,
        )
    if is_from(data, "pyarrow", "Dataset") and len(set(data.schema.names)) == len(data.schema.names):
        return LazyTable(
            name, data.schema.empty_table(), lambda names: data.to_table(columns=list(names)), device
        )
    return None
