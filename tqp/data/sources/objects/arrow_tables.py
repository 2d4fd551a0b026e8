"""Arrow tables as registered tables."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Collection, Iterable, Sequence

import pyarrow as pa
import torch

from tqp.core.datatypes import DataType
from tqp.data.arrow_buffers import AnyArray
from tqp.data.arrow_types import field_type, type_of_values
from tqp.data.column import Column
from tqp.data.encoding.chosen_rows import rows_of_chunks
from tqp.data.encoding.columns import encode_column
from tqp.data.sources.base import EncodedColumns, Source
from tqp.data.sources.streamed import is_plain_text, texts_streamed


class ArrowSource(Source):
    """A `pa.Table`. Its encoded columns are remembered for as long as `owner`, the object registered, lives.

    Without an owner the table is this source's alone, and a column's Arrow form is let go once it is encoded.
    """

    reads_rows = True

    def __init__(
        self,
        name: str,
        table: pa.Table,
        device: torch.device,
        owner: object | None = None,
        num_hidden: int = 0,
    ) -> None:
        """`num_hidden`: how many columns at the end of the table `*` does not stand for."""
        encoded = None if owner is None else _remembered(owner, device, table.num_columns)
        names = table.column_names
        num_visible = len(names) - num_hidden
        super().__init__(name, names[:num_visible], device, encoded, names[num_visible:])
        self.num_rows = table.num_rows
        self._schema = table.schema
        self._columns: list[pa.ChunkedArray | None] = table.columns
        self._owner = owner  # kept alive, or another object could take its id while this source is in use

    def _type_at(self, position: int) -> DataType:
        data_type = field_type(self._schema.field(position), self._all_names[position])
        values = self._columns[position]
        if values is None:  # it is encoded just now
            return self.column(self._all_names[position]).data_type
        is_dictionary = pa.types.is_dictionary(values.type)
        return type_of_values(values, self._all_names[position]) if is_dictionary else data_type

    def _encode(self, position: int) -> Column:
        column = encode_column(self._all_names[position], self._columns[position], self.device)
        if self._owner is None:
            self._columns[position] = None
        return column

    def streamed(self, names: Iterable[str], texts: Collection[str], num_bytes: int) -> Source | None:
        return texts_streamed(self, texts, num_bytes)

    def plain_texts(self, name: str) -> Sequence[pa.Array] | None:
        position = self._position(name)
        values = self._columns[position]
        if values is None or not is_plain_text(values.type, self._type_at(position)):
            return None
        chunks: list[pa.Array] = values.chunks
        return chunks

    def chunks_of_rows(self, position: int, rows: AnyArray) -> list[pa.Array] | None:
        values = self._columns[position]
        return None if values is None else rows_of_chunks(values.chunks, rows)


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
