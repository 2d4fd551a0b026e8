"""Arrow tables and pandas data frames as registered tables."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import pyarrow as pa
import torch

from tqp.core.datatypes import DataType
from tqp.core.errors import BindError
from tqp.data.arrow_types import data_type_of, field_type
from tqp.data.column import Column
from tqp.data.encode import encode_column
from tqp.data.source_base import EncodedColumns, Source


class ArrowSource(Source):
    """A `pa.Table`. Its encoded columns are remembered for as long as `owner`, the object registered, lives.

    Without an owner the table is this source's alone, and a column's Arrow form is let go once it is encoded.
    """

    def __init__(self, name: str, table: pa.Table, device: torch.device, owner: object | None = None) -> None:
        encoded = None if owner is None else _remembered(owner, device, table.num_columns)
        super().__init__(name, table.column_names, device, encoded)
        self._num_rows: int = table.num_rows
        self._schema = table.schema
        self._columns: list[pa.ChunkedArray | None] = table.columns
        self._owner = owner  # kept alive, or another object could take its id while this source is in use

    @property
    def num_rows(self) -> int:
        return self._num_rows

    def _type_at(self, position: int) -> DataType:
        return field_type(self._schema.field(position), self.column_names[position])

    def _encode(self, position: int) -> Column:
        column = encode_column(self.column_names[position], self._columns[position], self.device)
        if self._owner is None:
            self._columns[position] = None
        return column


class PandasSource(Source):
    """A pandas data frame; each column goes through Arrow when first touched, without the index.

    As in DuckDB, NaN in a pandas column is NULL.
    """

    def __init__(self, name: str, frame: Any, device: torch.device) -> None:
        super().__init__(name, frame.columns, device)
        self._frame = frame.copy(deep=False)  # columns added or dropped later do not matter
        self._arrow: dict[int, pa.Array | pa.ChunkedArray] = {}
        self._arrow_lock = threading.Lock()

    @property
    def num_rows(self) -> int:
        return len(self._frame)

    def _type_at(self, position: int) -> DataType:
        series = self._frame.iloc[:, position]
        if series.dtype == object:  # the type shows in the values only
            return data_type_of(self._convert(position).type, self.column_names[position])
        return data_type_of(self._to_arrow(series.iloc[:0], position).type, self.column_names[position])

    def _encode(self, position: int) -> Column:
        column = encode_column(self.column_names[position], self._convert(position), self.device)
        with self._arrow_lock:
            self._arrow.pop(position, None)
        return column

    def _convert(self, position: int) -> pa.Array | pa.ChunkedArray:
        with self._arrow_lock:
            if position not in self._arrow:
                self._arrow[position] = self._to_arrow(self._frame.iloc[:, position], position)
            return self._arrow[position]

    def _to_arrow(self, series: Any, position: int) -> pa.Array | pa.ChunkedArray:
        try:
            return pa.array(series, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise BindError(
                f'column "{self.column_names[position]}" of table "{self.name}" cannot be read: {error}; give it values'
                " of one type, for example with .astype(str)"
            ) from error


_memory: dict[tuple[int, torch.device], EncodedColumns] = {}
_memory_lock = threading.Lock()


def _remembered(owner: object, device: torch.device, num_columns: int) -> EncodedColumns:
    """The encoded columns of an immutable object, forgotten when it dies (they do not keep it alive)."""
    key = (id(owner), device)
    with _memory_lock:
        encoded = _memory.get(key)
        if encoded is None:
            encoded = _memory[key] = EncodedColumns(num_columns)
            weakref.finalize(owner, _memory.pop, key, None).atexit = False
        return encoded
