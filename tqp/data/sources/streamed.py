"""Tables of which columns are read batch by batch, by the workers that compute on them: numbers and text of Parquet files, and text
that lies in memory as Arrow has it, of which nothing is then made but slices.

A first query that reads all rows once spends more on filling fresh memory with columns than on computing: of 20 million rows
of five columns, 460 MB. What planning has to know of values (their bounds, whether there are NULLs) is taken from what the
files' footers say, and shown to hold of each batch as it is read; where it does not, the query is run again on whole columns.
"""

from __future__ import annotations

import bisect
import collections
import itertools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, overload

import numpy as np
import pyarrow as pa
import torch

from tqp.core.datatypes import BLOB, VARCHAR, DataType, TypeKind
from tqp.core.schema import NO_FACTS, ColumnFacts
from tqp.data.arrow_buffers import AnyArray, BoolArray, borrow, validity_of, values_view
from tqp.data.batches import Rows, Streamed, StreamedColumn
from tqp.data.column import Column
from tqp.data.encoding.columns import reporting
from tqp.data.encoding.integers import Bounds, joined_validity, narrow, narrowest, stored_values
from tqp.data.encoding.string_views import as_binary
from tqp.data.encoding.strings import check_text
from tqp.data.encoding.zones import Zones, zones_of_parts
from tqp.data.sources.base import Source
from tqp.data.sources.file_identity import ReadAgainError
from tqp.data.string_buffers import strings_of

Found = TypeVar("Found")

#: How many times as long it takes to encode a byte of text as one of a number.
TEXT_COST = 32
#: Rows of text in memory that are sliced together.
_TEXT_ROWS = 262_144


class Parts:
    """The rows of a streamed table in parts, each of some row groups of one file, which are decoded column by column.

    The parts asked for last are kept: several batches, or workers, may want the rows of one.
    """

    def __init__(self, num_rows: Sequence[int], most: int) -> None:
        """`num_rows`: of each part; `most`: how many are kept."""
        *self._firsts, self.num_rows = itertools.accumulate(num_rows, initial=0)
        self.sizes = num_rows
        self._most = most
        self._readers: list[Callable[[int], list[pa.Array]]] = []
        #: The columns that somebody wants rows of.
        self._wanted: set[int] = set()
        self._recent: collections.OrderedDict[int, list[_Chunks]] = collections.OrderedDict()
        self._lock = threading.Lock()

    @property
    def ends(self) -> Sequence[int]:
        """The rows before which one part ends and another begins."""
        return self._firsts[1:]

    def add_column(self, read: Callable[[int], list[pa.Array]]) -> int:
        """`read`: gives the chunks of one part by its number. Returns the number of the column."""
        self._readers.append(read)
        return len(self._readers) - 1

    def want(self, column: int) -> None:
        """Say that rows of the column will be asked for."""
        self._wanted.add(column)

    def pieces(self, column: int, start: int, stop: int) -> Iterable[tuple[int, pa.Array]]:
        """What holds rows [start, stop), in order: a part of a chunk, and where it begins behind `start`."""
        number = max(0, bisect.bisect_right(self._firsts, start) - 1)
        while number < len(self._firsts) and self._firsts[number] < stop:
            at = self._firsts[number]
            for chunk in self._chunks(column, number):
                first, last = max(start, at), min(stop, at + len(chunk))
                if first < last:
                    yield first - start, chunk.slice(first - at, last - first)
                at += len(chunk)
            number += 1

    def _chunks(self, column: int, number: int) -> list[pa.Array]:
        with self._lock:
            part = self._recent.get(number)
            if part is None:
                part = self._recent[number] = [_Chunks(partial(read, number)) for read in self._readers]
            self._recent.move_to_end(number)
            while len(self._recent) > self._most:
                self._recent.popitem(last=False)
        chunks = part[column].get(wait=False)
        if chunks is not None:
            return chunks
        for other in self._wanted:  # rather than wait for another worker, do what would be next
            part[other].get(wait=False)
        return part[column].get()


class _Chunks:
    """Those of one column in one part, which are read once."""

    __slots__ = ("_chunks", "_lock", "_read")

    def __init__(self, read: Callable[[], list[pa.Array]]) -> None:
        self._read, self._lock = read, threading.Lock()
        self._chunks: list[pa.Array] | None = None

    @overload
    def get(self) -> list[pa.Array]: ...
    @overload
    def get(self, wait: bool) -> list[pa.Array] | None: ...
    def get(self, wait: bool = True) -> list[pa.Array] | None:
        """`wait`: if another thread is reading them; None if not."""
        if self._chunks is None and self._lock.acquire(blocking=wait):
            try:
                if self._chunks is None:
                    self._chunks = self._read()
            finally:
                self._lock.release()
        return self._chunks


class _ColumnOfParts(StreamedColumn):
    """A column whose batches are cut of parts, each read as Arrow arrays."""

    def __init__(
        self,
        name: str,
        data_type: DataType,
        parts: Parts,
        read: Callable[[int], list[pa.Array]],
        nullable: bool,
    ) -> None:
        """`read`: gives the chunks of one of the parts by its number; `nullable`: whether there may be NULLs."""
        super().__init__()
        self._name, self._data_type, self._nullable = name, data_type, nullable
        self._parts, self._number = parts, parts.add_column(read)

    def stored(self) -> tuple[Streamed, Streamed | None]:
        """Its values and its validity, in the place of what batches are cut of."""
        self._parts.want(self._number)
        return Streamed(self), Streamed(self, is_validity=True) if self._nullable else None

    @property
    def ends(self) -> Sequence[int]:
        return self._parts.ends

    def _placeholder(self, values: torch.Tensor | None, facts: ColumnFacts) -> Column:
        """What is known of the column, over tensors without memory."""
        size = self._parts.num_rows
        validity = torch.empty(size, dtype=torch.bool, device="meta") if self._nullable else None
        return Column(self._data_type, size, values, validity, facts=facts)

    def _pieces(self, start: int, stop: int) -> list[tuple[int, pa.Array]]:
        return list(self._parts.pieces(self._number, start, stop))


class NumberColumn(_ColumnOfParts):
    """A column of integers, decimals, times or floats."""

    def __init__(
        self,
        name: str,
        data_type: DataType,
        parts: Parts,
        read: Callable[[int], list[pa.Array]],
        bounds: Bounds | None,
        nullable: bool,
        part_bounds: Sequence[Bounds | None] = (),
    ) -> None:
        """`bounds`: what the values lie between, None of floats; `part_bounds`: those of each part, None without values: by what the
        footers say.
        """
        super().__init__(name, data_type, parts, read, nullable)
        self._bounds, self._part_bounds = bounds, part_bounds
        if bounds is not None:
            self._dtype: np.dtype[np.generic] = narrowest(*bounds)
        else:
            self._dtype = np.dtype(np.float32 if data_type.kind is TypeKind.FLOAT else np.float64)
        self._tensor_dtype = torch.from_numpy(np.empty(0, self._dtype)).dtype

    def placeholder(self) -> Column:
        """What is known of the column, over tensors without memory."""
        values = torch.empty(self._parts.num_rows, dtype=self._tensor_dtype, device="meta")
        return self._placeholder(values, NO_FACTS if self._bounds is None else ColumnFacts(*self._bounds))

    def zones(self) -> Zones:
        """Those of integers."""
        return zones_of_parts(self._parts.sizes, self._part_bounds)

    def read(self, start: int, stop: int) -> Rows:
        """Raises ReadAgainError where the footers were wrong."""
        pieces = self._pieces(start, stop)
        with reporting(self._name):
            view = self._view(pieces[0][1]) if len(pieces) == 1 else None
            return self._joined(pieces, stop - start) if view is None else (view, None)

    def _view(self, piece: pa.Array) -> AnyArray | None:
        """The values of a piece as they are, where that is what they are to be."""
        if self._nullable or piece.null_count:
            return None
        if self._bounds is None:
            return borrow(piece.buffers()[1], self._tensor_dtype, piece.offset, len(piece)).numpy()
        stored = stored_values([piece])
        if stored is None or stored.dtype != self._tensor_dtype:
            return None
        self._check(narrow(self._name, piece, self._data_type, None))
        return stored.numpy()

    def _joined(self, pieces: Iterable[tuple[int, pa.Array]], num_rows: int) -> Rows:
        values: AnyArray = np.empty(num_rows, self._dtype)
        validity: BoolArray | None = np.ones(num_rows, np.bool_) if self._nullable else None
        for first, piece in pieces:
            rows = slice(first, first + len(piece))
            valid = validity_of(piece)
            if self._bounds is None:
                values[rows] = values_view(piece, self._dtype)
            else:
                self._check(narrow(self._name, piece, self._data_type, values[rows]))
            if valid is None:
                continue
            if validity is None:
                raise unexpected(self._name)
            validity[rows] = valid
            values[rows][~valid] = 0 if self._bounds is None else self._bounds[0]
        return values, validity

    def _check(self, found: Bounds | None) -> None:
        """Raises ReadAgainError where values are beyond what the footers say."""
        least, most = self._bounds or (0, 0)
        if found is not None and not (least <= found[0] and found[1] <= most):
            raise unexpected(self._name)


class TextColumn(_ColumnOfParts):
    """A column of VARCHAR or BLOB, of which batches are Strings over Arrow's bytes."""

    def placeholder(self) -> Column:
        """What is known of the column, without values."""
        return self._placeholder(None, NO_FACTS)

    def read(self, start: int, stop: int) -> Rows:
        """Raises ReadAgainError where the footers were wrong, ExecutionError where text is not UTF-8."""
        chunks = [as_binary(piece) for _, piece in self._pieces(start, stop)]
        validity = joined_validity(chunks)
        if validity is not None and not self._nullable:
            raise unexpected(self._name)
        with reporting(self._name):
            strings = strings_of(self._name, chunks, validity)
            check_text(self._name, strings, self._data_type)
        if validity is None and self._nullable:
            validity = np.ones(stop - start, np.bool_)
        return strings, validity


def unexpected(name: str) -> ReadAgainError:
    """That the footers were wrong about a column."""
    return ReadAgainError(f'column "{name}" holds what the statistics of its file rule out')


class StreamedTable(Source):
    """`table`, with these columns streamed; the others are its own. It serves one program, which reads each row once."""

    is_streamed = True

    def __init__(self, table: Source, streamed: Mapping[str, NumberColumn | TextColumn]) -> None:
        super().__init__(table.name, table.column_names, table.device, hidden_names=table.hidden_names)
        self.num_rows, self.files = table.num_rows, table.files
        self._table, self._streamed = table, streamed

    def stored(self, name: str) -> tuple[Any, Any]:
        column = self._streamed.get(name)
        return self._table.stored(name) if column is None else column.stored()

    def dictionary_encode(self, name: str) -> bool:
        return name not in self._streamed and self._table.dictionary_encode(name)

    def dictionary_size(self, name: str) -> int | None:
        return None if name in self._streamed else self._table.dictionary_size(name)

    def zones(self, name: str) -> Zones:
        column = self._streamed.get(name)
        return column.zones() if isinstance(column, NumberColumn) else self._table.zones(name)

    def derived(self, name: str, kind: type[Found], make: Callable[[Column], Found]) -> Found:
        assert name not in self._streamed, "nothing is kept of a column that is streamed"
        return self._table.derived(name, kind, make)

    def _type_at(self, position: int) -> DataType:
        return self._table.column_type(self._all_names[position])

    def _encode(self, position: int) -> Column:
        name = self._all_names[position]
        column = self._streamed.get(name)
        return self._table.column(name) if column is None else column.placeholder()


def texts_streamed(table: Source, names: Iterable[str], num_bytes: int) -> StreamedTable | None:
    """See `streamed`: the table, in memory, with those of these columns streamed that are plain texts."""
    found = {name: table.plain_texts(name) for name in names if not table.is_encoded(name)}
    texts = {name: chunks for name, chunks in found.items() if chunks}
    size = sum(chunk.nbytes for chunks in texts.values() for chunk in chunks)
    if not texts or TEXT_COST * size < num_bytes or not table.note_streamed(texts):
        return None
    starts = range(0, table.num_rows, _TEXT_ROWS)
    parts = Parts([min(_TEXT_ROWS, table.num_rows - start) for start in starts], len(starts))

    def column(name: str, chunks: Sequence[pa.Array]) -> TextColumn:
        values = pa.chunked_array(chunks)

        def read(number: int) -> list[pa.Array]:
            found: list[pa.Array] = values.slice(starts[number], _TEXT_ROWS).chunks
            return found

        return TextColumn(name, table.column_type(name), parts, read, values.null_count > 0)

    return StreamedTable(table, {name: column(name, chunks) for name, chunks in texts.items()})


def is_plain_text(arrow_type: pa.DataType, data_type: DataType) -> bool:
    """Whether values are slices of bytes, as they are: BITs are not, and JSON is looked at when it is read."""
    if data_type not in (VARCHAR, BLOB):
        return False
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(kind(arrow_type) for kind in kinds)
