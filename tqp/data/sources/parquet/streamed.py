"""A table of Parquet files whose columns of numbers are decoded batch by batch, by the workers that compute on them.

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
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import torch

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.schema import NO_FACTS, ColumnFacts
from tqp.data.arrow_buffers import AnyArray, BoolArray, validity_of, values_view
from tqp.data.batches import Rows, Streamed, StreamedColumn
from tqp.data.column import Column
from tqp.data.encoding.columns import reporting
from tqp.data.encoding.integers import Bounds, narrow, narrowest
from tqp.data.sources.base import Source
from tqp.data.sources.file_identity import ReadAgainError

Found = TypeVar("Found")


class RowGroups:
    """The chunks of one column by row groups; those asked for last are kept: where a batch ends within one, the next needs it, too."""

    def __init__(self, num_rows: Sequence[int], read: Callable[[int], list[pa.Array]], most: int) -> None:
        """`num_rows`: of each group; `read`: gives the chunks of one by its number; `most`: how many groups are kept."""
        *self._firsts, self.num_rows = itertools.accumulate(num_rows, initial=0)
        self._read, self._most = read, most
        self._recent: collections.OrderedDict[int, _Group] = collections.OrderedDict()
        self._lock = threading.Lock()

    def pieces(self, start: int, stop: int) -> Iterable[tuple[int, pa.Array]]:
        """What holds rows [start, stop), in order: a part of a chunk, and where it begins behind `start`."""
        number = bisect.bisect_right(self._firsts, start) - 1
        while number < len(self._firsts) and self._firsts[number] < stop:
            at = self._firsts[number]
            for chunk in self._chunks(number):
                first, last = max(start, at), min(stop, at + len(chunk))
                if first < last:
                    yield first - start, chunk.slice(first - at, last - first)
                at += len(chunk)
            number += 1

    def _chunks(self, number: int) -> list[pa.Array]:
        with self._lock:
            group = self._recent.setdefault(number, _Group())
            self._recent.move_to_end(number)
            while len(self._recent) > self._most:
                self._recent.popitem(last=False)
        with group.lock:
            if group.chunks is None:
                group.chunks = self._read(number)
            return group.chunks


class _Group:
    __slots__ = ("chunks", "lock")

    def __init__(self) -> None:
        self.chunks: list[pa.Array] | None = None
        self.lock = threading.Lock()


class NumberColumn(StreamedColumn):
    """A column of integers, decimals, times or floats."""

    def __init__(
        self, name: str, data_type: DataType, groups: RowGroups, bounds: Bounds | None, nullable: bool
    ) -> None:
        """`bounds`: what the values lie between, None of floats; `nullable`: whether there may be NULLs: by what the footers say."""
        super().__init__()
        self._name, self._data_type, self._groups, self._bounds = name, data_type, groups, bounds
        self._nullable = nullable
        if bounds is not None:
            self._dtype: np.dtype[np.generic] = np.dtype(narrowest(*bounds))
        else:
            self._dtype = np.dtype(np.float32 if data_type.kind is TypeKind.FLOAT else np.float64)

    def placeholder(self) -> Column:
        """What is known of the column, over tensors without memory."""
        dtype = torch.from_numpy(np.empty(0, self._dtype)).dtype
        size = self._groups.num_rows
        values = torch.empty(size, dtype=dtype, device="meta")
        validity = torch.empty(size, dtype=torch.bool, device="meta") if self._nullable else None
        facts = NO_FACTS if self._bounds is None else ColumnFacts(*self._bounds)
        return Column(self._data_type, size, values, validity, facts=facts)

    def stored(self) -> tuple[Streamed, Streamed | None]:
        """Its values and its validity, in the place of tensors."""
        return Streamed(self), Streamed(self, is_validity=True) if self._nullable else None

    def read(self, start: int, stop: int) -> Rows:
        """Raises ReadAgainError where the footers were wrong."""
        values: AnyArray = np.empty(stop - start, self._dtype)
        validity: BoolArray | None = np.ones(stop - start, np.bool_) if self._nullable else None
        with reporting(self._name):
            for first, piece in self._groups.pieces(start, stop):
                rows = slice(first, first + len(piece))
                valid = validity_of(piece)
                self._put(piece, values[rows])
                if valid is None:
                    continue
                if validity is None:
                    raise self._unexpected()
                validity[rows] = valid
                values[rows][~valid] = 0 if self._bounds is None else self._bounds[0]
        return values, validity

    def _put(self, piece: pa.Array, into: AnyArray) -> None:
        if self._bounds is None:
            into[:] = values_view(piece, self._dtype)
            return
        found, (least, most) = narrow(self._name, piece, self._data_type, into), self._bounds
        if found is not None and not (least <= found[0] and found[1] <= most):
            raise self._unexpected()

    def _unexpected(self) -> ReadAgainError:
        return ReadAgainError(f'column "{self._name}" holds what the statistics of its file rule out')


class StreamedTable(Source):
    """`table`, with these columns streamed; the others are its own. It serves one program, which reads each row once."""

    def __init__(self, table: Source, streamed: Mapping[str, NumberColumn]) -> None:
        super().__init__(table.name, table.column_names, table.device, hidden_names=table.hidden_names)
        self.num_rows, self.files = table.num_rows, table.files
        self._table, self._streamed = table, streamed

    def stored(self, name: str) -> tuple[Any, Any]:
        column = self._streamed.get(name)
        return self._table.stored(name) if column is None else column.stored()

    def dictionary_encode(self, name: str) -> None:
        if name not in self._streamed:
            self._table.dictionary_encode(name)

    def dictionary_size(self, name: str) -> int | None:
        return None if name in self._streamed else self._table.dictionary_size(name)

    def derived(self, name: str, kind: type[Found], make: Callable[[Column], Found]) -> Found:
        assert name not in self._streamed, "nothing is kept of a column that is streamed"
        return self._table.derived(name, kind, make)

    def _type_at(self, position: int) -> DataType:
        return self._table.column_type(self._all_names[position])

    def _encode(self, position: int) -> Column:
        name = self._all_names[position]
        column = self._streamed.get(name)
        return self._table.column(name) if column is None else column.placeholder()
