"""Dictionary encoding of columns stored otherwise: of integers that lie far apart, of floats, and of strings that are many."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from tqp.data.column import Column
from tqp.data.encoding.integers import narrowest
from tqp.data.sharing import WORTH_SHARING, share
from tqp.data.string_buffers import string_array

#: Pieces of a column that are encoded by themselves, before their dictionaries are unified: each value is in most of
#: them, so that more pieces take longer.
_PIECES = 2
#: Bytes of text at most: while it is encoded, its distinct values are in memory twice more ...
_MOST_TEXT = 1 << 31
#: ... and bytes of a row in the mean at least: shorter strings are packed into integers and grouped several times while they
#: would be encoded once.
_LEAST_MEAN = 32


@dataclass(frozen=True, slots=True)
class ValueDictionary:
    """Row i of a column holds the value `values[codes[i]]`.

    `values`: [k], of numbers the distinct ones, ascending, in the column's dtype, NaN last; of strings the number of a row, int32 or
    int64, that holds each. There are none of floats among which are 0.0 and -0.0: they are equal, and each group has its own. `codes`: [n], as narrow as k allows.
    """

    KEPT: ClassVar[str] = "dictionary"

    values: Tensor
    codes: Tensor

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.codes.nbytes


def is_worth_encoding(column: Column) -> bool:
    """Is there memory for it, and does grouping by its values take about as long?"""
    if column.pool is None:
        return True
    return _LEAST_MEAN * column.num_rows <= column.pool.data.shape[0] <= _MOST_TEXT


def make_value_dictionary(column: Column) -> ValueDictionary:
    """Of a column of integers of up to 64 bits; or, in main memory, of floats, or of strings each of which is a row of the pool.

    What stands under NULL is encoded like any other value.
    """
    if column.values is not None and not column.values.is_cpu:
        distinct, codes = torch.unique(column.values, return_inverse=True)
        return ValueDictionary(distinct, codes.to(torch.int32))
    num_pieces = _PIECES if column.num_rows >= WORTH_SHARING else 1
    bounds = [column.num_rows * number // num_pieces for number in range(num_pieces + 1)]
    pieces = share(partial(_encoded, column), list(itertools.pairwise(bounds)))
    chunks = pa.chunked_array(pieces).unify_dictionaries().chunks
    found = [chunk.indices.to_numpy() for chunk in chunks]
    distinct, codes = chunks[0].dictionary, None
    if column.pool is None:
        given = distinct.to_numpy()
        zeros = np.signbit(given[given == 0]) if given.dtype.kind == "f" else np.empty(0, np.bool_)
        if zeros.any() and not zeros.all():
            return ValueDictionary(torch.empty(0), torch.empty(0))
        values, codes = np.unique(given, return_inverse=True)
    else:  # a row that holds each
        values = np.empty(len(distinct), np.int32 if column.num_rows < 2**31 else np.int64)
        for indices, (first, end) in zip(found, itertools.pairwise(bounds), strict=True):
            values[indices] = np.arange(first, end, dtype=values.dtype)
    result = np.empty(column.num_rows, narrowest(0, max(0, len(values) - 1)))

    def write(piece: int) -> None:
        part = result[bounds[piece] : bounds[piece + 1]]
        if codes is None:
            part[:] = found[piece]
        else:
            np.take(codes.astype(result.dtype), found[piece], out=part, mode="clip")

    share(write, range(num_pieces))
    return ValueDictionary(torch.from_numpy(values), torch.from_numpy(result))


def _encoded(column: Column, bounds: tuple[int, int]) -> pa.DictionaryArray:
    """The values of some rows."""
    part = replace(column.cut(*bounds), validity=None)
    if part.pool is not None:
        return string_array(part).cast(pa.large_binary()).dictionary_encode()
    assert part.values is not None
    return pa.array(part.values.numpy()).dictionary_encode()
