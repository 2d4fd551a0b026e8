"""Runs of equal neighbours in a sorted or clustered column, and reductions over them that need no scatter."""

from __future__ import annotations

from typing import Generic

import numpy as np
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.memory.arrays import NUMPY_DTYPES, Array, Values, as_array, converted, running_sums
from tqp.operators.rows.selection import row_indices, take

_INT32_MAX = 2**31 - 1
#: Rows of a run from which on numpy adds each run by itself in a third of the time of running sums.
ROWS_REDUCED = 8


class Runs(Generic[Values]):
    """The runs of integer keys [n]; `bounds` int64 [g + 1]: the first row of each, and n.

    Keys are a tensor or an array, and so is everything else here then.
    """

    __slots__ = ("_ids", "_lengths", "_starts", "bounds")

    def __init__(self, keys: Values) -> None:
        self._starts: Values = _starts(keys)
        self.bounds: Values = row_indices(self._starts)
        self._ids: Values | None = None
        self._lengths: Values | None = None

    @property
    def first_rows(self) -> Values:
        """int64 [g]."""
        return self.bounds[:-1]

    @property
    def count(self) -> int:
        return int(self.bounds.shape[0]) - 1

    def ids(self) -> Values:
        """int64 [n]: the number of each row's run."""
        if self._ids is None:
            self._ids = sums_before(self._starts[:-1])[1:]
            self._ids -= 1
        return self._ids

    def lengths(self) -> Values:
        """int64 [g]: the rows of each run."""
        if self._lengths is None:
            self._lengths = self.bounds[1:] - self.bounds[:-1]
        return self._lengths

    def sums(self, values: Values, value_range: tuple[int, int]) -> Values:
        """int64 [g]: the sum of each run of integers or booleans [n] in a range.

        Of short runs it is the difference of two running sums: right even where these leave their width, if each run's sum fits.
        """
        if isinstance(values, np.ndarray) and self.count * ROWS_REDUCED <= values.shape[0] > 0:
            found: Array = np.add.reduceat(values, as_array(self.first_rows), dtype=np.int64)
            return found
        largest = max(-value_range[0], value_range[1])
        narrow = largest * values.shape[0] <= _INT32_MAX or largest * int(self.lengths().max()) <= _INT32_MAX
        totals = take(sums_before(values, torch.int32 if narrow else torch.int64), self.bounds)
        return converted(totals[1:] - totals[:-1], torch.int64)


def _starts(keys: Values) -> Values:
    """bool [n + 1]: does a run begin with the row? True behind the last one."""
    num_rows = keys.shape[0]
    if isinstance(keys, np.ndarray):
        array = np.empty(num_rows + 1, np.bool_)
        array[0] = array[num_rows] = True
        np.not_equal(keys[1:], keys[:-1], out=array[1:num_rows])
        return array
    if is_host(keys):  # a third of the time of torch
        return torch.from_numpy(_starts(keys.numpy()))
    starts = torch.ones(num_rows + 1, dtype=torch.bool, device=keys.device)
    if num_rows > 1:
        torch.ne(keys[1:], keys[:-1], out=starts[1:num_rows])
    return starts


def sums_before(values: Values, dtype: torch.dtype = torch.int64) -> Values:
    """[n + 1]: the sums of the first 0, 1, ..., n values."""
    if isinstance(values, np.ndarray):
        array: Array = np.empty(values.shape[0] + 1, NUMPY_DTYPES[dtype])
        array[0] = 0
        running_sums(values, array.dtype, out=array[1:])
        return array
    if is_host(values):
        return torch.from_numpy(sums_before(values.numpy(), dtype))
    sums: Tensor = torch.empty(values.shape[0] + 1, dtype=dtype, device=values.device)
    sums[0] = 0
    torch.cumsum(values, 0, dtype=dtype, out=sums[1:])
    return sums
