"""Some rows of columns, by their numbers: of Arrow arrays that are yet to be encoded, and of encoded columns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from tqp.core.schema import Statistics
from tqp.data.arrow_buffers import AnyArray
from tqp.data.column import Column
from tqp.data.encoding.column_facts import integer_statistics
from tqp.data.encoding.string_views import take_rows
from tqp.data.encoding.string_words import is_text
from tqp.data.nested import take, tensors_in
from tqp.data.sharing import share
from tqp.data.strings import Strings

#: Rows that are put together in one array: with fewer, what is done with each array takes longer than what is done with its rows.
_PIECE = 131_072


def can_be_taken(arrow_type: pa.DataType) -> bool:
    """Whether some rows of such an array take less to be read than all: not where it is nested, wrapped or made of runs."""
    if pa.types.is_dictionary(arrow_type):
        return can_be_taken(arrow_type.value_type)
    return is_text(arrow_type) or pa.types.is_primitive(arrow_type) or pa.types.is_decimal(arrow_type)


def rows_of_chunks(chunks: Sequence[pa.Array], rows: AnyArray) -> list[pa.Array] | None:
    """The given rows (int64, ascending) of what all arrays hold together, in arrays of many rows; None if they cannot be taken."""
    if not all(can_be_taken(chunk.type) for chunk in chunks):
        return None
    firsts = np.cumsum([0, *map(len, chunks)])
    places = np.searchsorted(rows, firsts).tolist()
    pieces: list[list[tuple[pa.Array, AnyArray]]] = [[]]
    left = _PIECE
    for chunk, first, (start, stop) in zip(chunks, firsts.tolist(), itertools.pairwise(places), strict=False):
        while start < stop:
            size = min(left, stop - start)
            pieces[-1].append((chunk, rows[start : start + size] - first))
            start, left = start + size, left - size
            if not left:
                pieces.append([])
                left = _PIECE
    return share(_taken, [piece for piece in pieces if piece])


def _taken(piece: Sequence[tuple[pa.Array, AnyArray]]) -> pa.Array:
    arrays = [take_rows(*part) for part in piece]
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def rows_of_column(column: Column, rows: AnyArray) -> Column:
    """The given rows (int64, ascending) of an encoded column, on its device; a dictionary stays as it is."""
    values, validity = (
        None if each is None else _rows(each, rows) for each in (column.values, column.validity)
    )
    pool: Any = column.pool
    if pool is not None and values is None:
        pool = Strings(_rows(pool.starts, rows), _rows(pool.lengths, rows), pool.data)
    nested: Any = None
    if column.nested is not None:
        nested = take(column.nested, torch.from_numpy(rows).to(tensors_in(column.nested)[0].device))
    return Column(
        column.data_type,
        len(rows),
        values,
        validity,
        pool,
        column.pool_is_dictionary,
        column.pool_is_sorted,
        *_statistics(column, values, validity),
        nested,
    )


def _rows(values: Tensor, rows: AnyArray) -> Tensor:
    """By NumPy, on the calling thread alone: torch would wake threads of its own."""
    return torch.from_numpy(values.cpu().numpy().take(rows, axis=0)).to(values.device)


def _statistics(column: Column, values: Tensor | None, validity: Tensor | None) -> Statistics:
    """What is known of some rows of a column: of integers by themselves, else what is of all rows, which holds for some, too.

    Values under NULL lie between the bounds of all rows, but need not between those of some.
    """
    if values is None or validity is not None or len(values) == 0 or values.dim() > 1:
        return column.facts, column.estimates
    if not column.data_type.is_integer_like:
        return column.facts, column.estimates
    array = values.cpu().numpy()
    return integer_statistics(array, None, int(array.min()), int(array.max()))
