"""Tables that statements made: versions of one are tables of their own, which share what did not change.

INSERT adds a part to each column; UPDATE and DELETE take rows of the changed columns. Parts hold what tensors hold, over the same
memory where they can, and become one encoded column when a query first reads it. A version lives as long as somebody refers to it:
the catalog, a query that runs, a compiled program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import torch

from tqp.core.arguments import unique_names
from tqp.core.datatypes import BIGINT, DataType
from tqp.core.definitions import ColumnDefinition, TableDefinition
from tqp.core.names import MAIN, ObjectName
from tqp.data.column import Column, Table
from tqp.data.encoding.columns import encode_chunks
from tqp.data.encoding.stored_columns import (
    Chunk,
    encode_stored,
    nulls_stored,
    storage_array,
    take_stored,
)
from tqp.data.sources.base import Source
from tqp.data.sources.streamed import is_plain_text, texts_streamed

#: What tells the rows of a version apart: their places in it.
ROW_ID = "rowid"

Rows = np.ndarray[tuple[int], np.dtype[np.int64]]


class StoredTable(Source):
    """One version of a table. It never changes; the methods that change it give the next version.

    `chunks`: the rows of each column, one part after the other. A column is encoded when a query first reads it.
    """

    def __init__(
        self,
        definition: TableDefinition,
        chunks: Sequence[Sequence[Chunk]],
        num_rows: int,
        device: torch.device,
        hidden: Mapping[str, Column] | None = None,
    ) -> None:
        """`hidden`: columns that `*` does not stand for, by default the places of the rows."""
        hidden_names = [ROW_ID] if hidden is None else list(hidden)
        hidden_names = [name for name in hidden_names if not definition.has_column(name)]
        super().__init__(definition.name, definition.names, device, hidden_names=hidden_names)
        self.definition, self.num_rows = definition, num_rows
        self.has_generated = bool(definition.generated)
        self._chunks = [tuple(each) for each in chunks]
        self._hidden = hidden or {}

    @property
    def place(self) -> ObjectName:
        """What a catalog keeps it under."""
        return self.definition.place

    @staticmethod
    def empty(definition: TableDefinition, device: torch.device) -> StoredTable:
        """The first version."""
        return StoredTable(definition, [()] * len(definition.columns), 0, device)

    def with_rows(self, rows: Table) -> StoredTable:
        """The version with these rows, whose columns are of its types, behind its own."""
        if rows.num_rows == 0:
            return self
        chunks = [
            (*known, storage_array(name, column)) if self.num_rows else (storage_array(name, column),)
            for known, name, column in zip(self._chunks, self.column_names, rows.columns, strict=True)
        ]
        return self._version(chunks, self.num_rows + rows.num_rows)

    def with_kept(self, rows: Rows) -> StoredTable:
        """The version with only these rows."""
        chunks = [
            (take_stored(name, known, rows),)
            for name, known in zip(self.column_names, self._chunks, strict=True)
        ]
        return self._version(chunks, len(rows))

    def chunk(self, place: int, values: Column, rows: Rows) -> Chunk:
        """The given rows of what is to stand in the column at a place."""
        name = self.column_names[place]
        return take_stored(name, [storage_array(name, values)], rows)

    def with_values(self, rows: Rows, values: Mapping[int, Chunk]) -> StoredTable:
        """The version with other values of these rows in some columns, given by their places."""
        chunks = list(self._chunks)
        places = np.arange(self.num_rows)
        places[rows] = self.num_rows + np.arange(len(rows))
        for place, chunk in values.items():
            chunks[place] = (take_stored(self.column_names[place], (*self._chunks[place], chunk), places),)
        return self._version(chunks, self.num_rows)

    def defined(self, definition: TableDefinition) -> StoredTable:
        """The same rows under another definition, whose columns are of the same types."""
        return StoredTable(definition, self._chunks, self.num_rows, self.device)

    def with_column(self, definition: TableDefinition, place: int, column: Column | None) -> StoredTable:
        """With these values, or NULLs, at a place where there was another column or, at the end, none."""
        name, data_type = definition.names[place], definition.columns[place].data_type
        if column is None:
            chunk = nulls_stored(name, self.num_rows, data_type, self.device)
        else:
            chunk = storage_array(name, column)
        chunks = [*self._chunks[:place], (chunk,), *self._chunks[place + 1 :]]
        return StoredTable(definition, chunks, self.num_rows, self.device)

    def without_column(self, definition: TableDefinition, place: int) -> StoredTable:
        """Without the column at a place."""
        chunks = [*self._chunks[:place], *self._chunks[place + 1 :]]
        return StoredTable(definition, chunks, self.num_rows, self.device)

    def with_hidden(self, hidden: Mapping[str, Column]) -> StoredTable:
        """The same rows with these hidden columns in place of others, but for those whose names columns have."""
        return StoredTable(self.definition, self._chunks, self.num_rows, self.device, hidden)

    def streamed(self, names: Iterable[str], texts: Collection[str], num_bytes: int) -> Source | None:
        return texts_streamed(self, texts, num_bytes)

    def plain_texts(self, name: str) -> Sequence[pa.Array] | None:
        position = self._position(name)
        chunks = self._chunks[position] if position < len(self._chunks) else ()
        data_type = self._type_at(position)
        arrays = [
            each for each in chunks if isinstance(each, pa.Array) and is_plain_text(each.type, data_type)
        ]
        return arrays if len(arrays) == len(chunks) else None

    def _version(self, chunks: Sequence[Sequence[Chunk]], num_rows: int) -> StoredTable:
        return StoredTable(self.definition, chunks, num_rows, self.device)

    def _type_at(self, position: int) -> DataType:
        columns = self.definition.columns
        if position < len(columns):
            return columns[position].data_type
        hidden = self._hidden.get(self._all_names[position])
        return BIGINT if hidden is None else hidden.data_type

    def _encode(self, position: int) -> Column:
        name, data_type = self._all_names[position], self._type_at(position)
        if name in self._hidden and position >= len(self._chunks):
            return self._hidden[name]
        if position == len(self._chunks):
            return encode_chunks(name, [pa.array(np.arange(self.num_rows))], data_type, self.device)
        column = encode_stored(name, self._chunks[position], data_type, self.device)
        self._chunks[position] = (column,)  # the next versions go on from here
        return column


def table_of_rows(
    name: str,
    names: Sequence[str],
    types: Sequence[DataType],
    rows: Table,
    device: torch.device,
    *,
    temporary: bool = False,
    schema: str = MAIN,
) -> StoredTable:
    """The table that a query's result makes; names that come again get numbers."""
    columns = tuple(map(ColumnDefinition, unique_names(names), types))
    definition = TableDefinition(name, columns, temporary=temporary, schema=schema)
    return StoredTable.empty(definition, device).with_rows(rows)
