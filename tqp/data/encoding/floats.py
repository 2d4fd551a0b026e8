"""Columns of floats: the pieces of one are put together by whoever reads them, each while it is in the processor's cache."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import torch

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.schema import ColumnEstimates, ColumnFacts
from tqp.data.arrow_buffers import AnyArray, BoolArray, borrow, tensor_of, validity_of, values_view
from tqp.data.column import Column
from tqp.data.encoding.column_facts import estimate_distinct
from tqp.data.encoding.integers import joined_parts
from tqp.data.sharing import WORTH_SHARING, share


class FloatPieces:
    """Collects the pieces of a column in any order, from several threads."""

    def __init__(self, data_type: DataType, num_rows: int) -> None:
        self._data_type = data_type
        self._values: AnyArray = np.empty(num_rows, _dtype_of(data_type))
        self._validities: list[tuple[slice, BoolArray | None]] = []

    def put(self, first: int, chunk: pa.Array) -> None:
        """Add the values from row `first` on; 0 stands for NULL."""
        rows = slice(first, first + len(chunk))
        self._values[rows] = values_view(chunk, self._values.dtype)
        valid = validity_of(chunk)
        if valid is not None:
            self._values[rows][~valid] = 0
        # Appending is one step for other threads.
        self._validities.append((rows, valid))

    def column(self) -> Column:
        """The whole column on the CPU; all pieces were put."""
        validity = joined_parts(self._validities, len(self._values))
        return _column(self._data_type, self._values, validity)


def encode_floats(chunks: Sequence[pa.Array], data_type: DataType) -> Column:
    """The column of all chunks: over the memory of a single one without NULLs, which it shares."""
    if len(chunks) == 1 and not chunks[0].null_count:
        [chunk] = chunks
        dtype = torch.float32 if data_type.kind is TypeKind.FLOAT else torch.float64
        return _column(data_type, borrow(chunk.buffers()[1], dtype, chunk.offset, len(chunk)).numpy(), None)
    *firsts, num_rows = itertools.accumulate(map(len, chunks), initial=0)
    pieces = FloatPieces(data_type, num_rows)

    def put(piece: tuple[int, pa.Array]) -> None:
        pieces.put(*piece)

    placed = list(zip(firsts, chunks, strict=True))
    if num_rows >= WORTH_SHARING:
        share(put, placed)
    else:
        for piece in placed:
            put(piece)
    return pieces.column()


def _dtype_of(data_type: DataType) -> type[np.float32 | np.float64]:
    return np.float32 if data_type.kind is TypeKind.FLOAT else np.float64


def _column(data_type: DataType, values: AnyArray, validity: BoolArray | None) -> Column:
    is_null = not len(values) or (validity is not None and not validity.any())
    return Column(
        data_type,
        len(values),
        tensor_of(values),
        tensor_of(validity),
        facts=ColumnFacts(is_null=is_null),
        estimates=ColumnEstimates(estimate_distinct(values, validity)),
    )
