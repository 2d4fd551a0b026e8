"""Dictionary encoding of columns stored otherwise: of integers that lie far apart, and of floats."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from tqp.data.column import Column
from tqp.data.encoding.integers import narrowest
from tqp.data.sharing import WORTH_SHARING, share

#: Pieces of a column that are encoded by themselves, before their dictionaries are unified: each value is in most of
#: them, so that more pieces take longer.
_PIECES = 2


@dataclass(frozen=True, slots=True)
class ValueDictionary:
    """Row i of a column holds the value `values[codes[i]]`.

    `values`: [k], the distinct ones, ascending, in the column's dtype, NaN last. There are none of floats among which are 0.0 and
    -0.0: they are equal, and each group has its own. `codes`: [n], as narrow as k allows.
    """

    KEPT: ClassVar[str] = "dictionary"

    values: Tensor
    codes: Tensor

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.codes.nbytes


def make_value_dictionary(column: Column) -> ValueDictionary:
    """Of a column of integers of up to 64 bits; or, in main memory, of floats. What stands under NULL is encoded like any other value."""
    assert column.values is not None
    if not column.values.is_cpu:
        distinct, codes = torch.unique(column.values, return_inverse=True)
        return ValueDictionary(distinct, codes.to(torch.int32))
    num_pieces = _PIECES if column.num_rows >= WORTH_SHARING else 1
    bounds = [column.num_rows * number // num_pieces for number in range(num_pieces + 1)]
    pieces = share(partial(_encoded, column), list(itertools.pairwise(bounds)))
    chunks = pa.chunked_array(pieces).unify_dictionaries().chunks
    found = [chunk.indices.to_numpy() for chunk in chunks]
    given = chunks[0].dictionary.to_numpy()
    zeros = np.signbit(given[given == 0]) if given.dtype.kind == "f" else np.empty(0, np.bool_)
    if zeros.any() and not zeros.all():
        return ValueDictionary(torch.empty(0), torch.empty(0))
    values, codes = np.unique(given, return_inverse=True)
    result = np.empty(column.num_rows, narrowest(0, max(0, len(values) - 1)))

    def write(piece: int) -> None:
        part = result[bounds[piece] : bounds[piece + 1]]
        np.take(codes.astype(result.dtype), found[piece], out=part, mode="clip")

    share(write, range(num_pieces))
    return ValueDictionary(torch.from_numpy(values), torch.from_numpy(result))


def _encoded(column: Column, bounds: tuple[int, int]) -> pa.DictionaryArray:
    """The values of some rows."""
    assert column.values is not None
    return pa.array(column.values[slice(*bounds)].numpy()).dictionary_encode()
