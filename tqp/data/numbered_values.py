"""The distinct values of an integer column, numbered in their order: what a dictionary is to a column of strings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from tqp.data.arrow_buffers import AnyArray
from tqp.data.column import Column
from tqp.data.encode_integers import narrowest
from tqp.data.sharing import WORTH_SHARING, share

#: Pieces of a column that are numbered by themselves. The values of each are put in order together: few pieces, or they
#: would hold the same values many times.
_PIECES = 4


@dataclass(frozen=True, slots=True)
class NumberedValues:
    """Row i of a column holds `values[numbers[i]]`.

    `values`: [k], ascending and distinct, in the column's dtype; `numbers`: [n], as narrow as k allows.
    """

    values: Tensor
    numbers: Tensor

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.numbers.nbytes


def number_values(column: Column) -> NumberedValues:
    """Of a column of integers of up to 64 bits. What stands under NULL is numbered like any other value."""
    values = column.values
    assert values is not None and values.dim() == 1
    if not values.is_cpu:
        distinct, numbers = torch.unique(values, return_inverse=True)
        return NumberedValues(distinct, numbers.to(torch.int32))
    pieces = np.array_split(values.numpy(), _PIECES if len(values) >= WORTH_SHARING else 1)
    numbered = share(_distinct_values, pieces)
    distinct_array, ranks = _ranked([found for found, _ in numbered])
    result = np.empty(len(values), narrowest(0, max(0, len(distinct_array) - 1)))
    parts = np.split(result, np.cumsum([len(piece) for piece in pieces[:-1]]))

    def write(number: int) -> None:
        np.take(ranks[number].astype(result.dtype), numbered[number][1], out=parts[number], mode="clip")

    share(write, range(len(pieces)))
    return NumberedValues(torch.from_numpy(distinct_array), torch.from_numpy(result))


def _distinct_values(piece: AnyArray) -> tuple[AnyArray, AnyArray]:
    """The values of a piece, each once, and for each row the place of its own."""
    encoded = pa.array(piece).dictionary_encode()
    return encoded.dictionary.to_numpy(), encoded.indices.to_numpy()


def _ranked(pieces: Sequence[AnyArray]) -> tuple[AnyArray, list[AnyArray]]:
    """The distinct values of all pieces, ascending, and where each value of each piece is among them."""
    values = np.concatenate(pieces)
    order = np.argsort(values)
    ordered = values[order]
    is_first = np.ones(len(values), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    ranks = np.empty(len(values), np.int64)
    ranks[order] = np.cumsum(is_first) - 1
    return ordered[is_first], np.split(ranks, np.cumsum([len(piece) for piece in pieces[:-1]]))
