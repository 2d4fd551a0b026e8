"""The distinct values of a column, numbered: what a dictionary is to strings, for integers far apart and strings that are many."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from tqp.data.arrow_buffers import AnyArray
from tqp.data.column import Column
from tqp.data.encoding.integers import narrowest
from tqp.data.sharing import WORTH_SHARING, share
from tqp.data.string_buffers import string_array

#: Pieces of a column that are numbered by themselves, before what they hold is numbered together: each value is in most of
#: them, so that more pieces take longer.
_PIECES = 2
#: Bytes of text at most: while it is numbered, its distinct values are in memory twice more ...
_MOST_TEXT = 1 << 31
#: ... and bytes of a row in the mean at least: shorter strings are packed into integers and grouped several times while they
#: would be numbered once.
_LEAST_MEAN = 32


@dataclass(frozen=True, slots=True)
class NumberedValues:
    """Row i of a column holds the value `values[numbers[i]]`.

    `values`: [k], of integers the distinct ones, ascending, in the column's dtype; of strings the number of a row, int32 or
    int64, that holds each. `numbers`: [n], as narrow as k allows.
    """

    values: Tensor
    numbers: Tensor

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.numbers.nbytes


def is_worth_numbering(column: Column) -> bool:
    """Is there memory for it, and does grouping by its values take about as long?"""
    if column.pool is None:
        return True
    return _LEAST_MEAN * column.num_rows <= column.pool.data.shape[0] <= _MOST_TEXT


def number_values(column: Column) -> NumberedValues:
    """Of a column of integers of up to 64 bits; or, in main memory, of strings each of which is a row of the pool.

    What stands under NULL is numbered like any other value.
    """
    if column.values is not None and not column.values.is_cpu:
        distinct, numbers = torch.unique(column.values, return_inverse=True)
        return NumberedValues(distinct, numbers.to(torch.int32))
    num_pieces = _PIECES if column.num_rows >= WORTH_SHARING else 1
    bounds = [column.num_rows * number // num_pieces for number in range(num_pieces + 1)]
    pieces = share(partial(_distinct_values, column), list(itertools.pairwise(bounds)))
    dictionaries = [dictionary for dictionary, _ in pieces]
    if column.pool is None:
        values, places = _in_order(dictionaries)
    else:
        places = _together(dictionaries)
        values = _rows_of_values(places, [indices for _, indices in pieces], bounds)
    result = np.empty(column.num_rows, narrowest(0, max(0, len(values) - 1)))

    def write(piece: int) -> None:
        part = result[bounds[piece] : bounds[piece + 1]]
        np.take(places[piece].astype(result.dtype), pieces[piece][1], out=part, mode="clip")

    share(write, range(num_pieces))
    return NumberedValues(torch.from_numpy(values), torch.from_numpy(result))


def _distinct_values(column: Column, bounds: tuple[int, int]) -> tuple[pa.Array, AnyArray]:
    """The values of some rows, each once, in the order in which they come, and for each row the place of its own."""
    rows = slice(*bounds)
    if column.pool is None:
        assert column.values is not None
        array = pa.array(column.values[rows].numpy())
    else:
        pool = column.pool._replace(starts=column.pool.starts[rows], lengths=column.pool.lengths[rows])
        part = replace(column, num_rows=pool.num_rows, pool=pool, validity=None)
        array = string_array(part, None).cast(pa.large_binary())
    encoded = array.dictionary_encode()
    return encoded.dictionary, encoded.indices.to_numpy()


def _in_order(pieces: Sequence[pa.Array]) -> tuple[AnyArray, list[AnyArray]]:
    """The distinct integers of all pieces, ascending, and where each value of each piece is among them."""
    values = np.concatenate([piece.to_numpy() for piece in pieces])
    order = np.argsort(values)
    ordered = values[order]
    is_first = np.ones(len(values), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    places = np.empty(len(values), np.int64)
    places[order] = np.cumsum(is_first) - 1
    return ordered[is_first], _by_piece(places, pieces)


def _together(pieces: Sequence[pa.Array]) -> list[AnyArray]:
    """Where each string of each piece is among the distinct ones of all pieces."""
    return _by_piece(pa.concat_arrays(pieces).dictionary_encode().indices.to_numpy(), pieces)


def _rows_of_values(
    places: Sequence[AnyArray], indices: Sequence[AnyArray], bounds: Sequence[int]
) -> AnyArray:
    """For each distinct value a row that holds it; `indices`: the place in its piece of each row's value."""
    num_values = 1 + max((int(piece.max()) for piece in places if len(piece)), default=-1)
    rows = np.empty(num_values, np.int32 if bounds[-1] < 2**31 else np.int64)
    for piece, found, first in zip(places, indices, bounds, strict=False):
        rows[piece[found]] = np.arange(first, first + len(found), dtype=rows.dtype)
    return rows


def _by_piece(places: AnyArray, pieces: Sequence[pa.Array]) -> list[AnyArray]:
    return np.split(places, np.cumsum([len(piece) for piece in pieces[:-1]]))
