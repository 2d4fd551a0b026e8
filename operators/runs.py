"""Runs of equal neighbours in a sorted or clustered column, and reductions over them that need no scatter."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tqp.operators.arrays import running_sums
from tqp.operators.elementwise import subtract
from tqp.operators.rows import row_indices, take

_INT32_MAX = 2**31 - 1


class Runs:
    """The runs of integer keys [n]; `bounds` int64 [g + 1]: the first row of each, and n."""

    __slots__ = ("_ids", "_lengths", "_starts", "bounds")

    def __init__(self, keys: Tensor) -> None:
        num_rows = keys.shape[0]
        starts = torch.ones(num_rows + 1, dtype=torch.bool, device=keys.device)
        if keys.is_cpu:  # with vector instructions, which torch does not use here
            array = keys.numpy()
            np.not_equal(array[1:], array[:-1], out=starts.numpy()[1:num_rows])
        elif num_rows > 1:
            torch.ne(keys[1:], keys[:-1], out=starts[1:num_rows])
        self._starts = starts
        self.bounds = row_indices(starts)
        self._ids: Tensor | None = None
        self._lengths: Tensor | None = None

    @property
    def first_rows(self) -> Tensor:
        """int64 [g]."""
        return self.bounds[:-1]

    @property
    def count(self) -> int:
        return self.bounds.shape[0] - 1

    def ids(self) -> Tensor:
        """int64 [n]: the number of each row's run."""
        if self._ids is None:
            self._ids = self._starts[:-1].cumsum(0).sub_(1)
        return self._ids

    def lengths(self) -> Tensor:
        """int64 [g]: the rows of each run."""
        if self._lengths is None:
            self._lengths = subtract(self.bounds[1:], self.bounds[:-1])
        return self._lengths

    def sums(self, values: Tensor, value_range: tuple[int, int]) -> Tensor:
        """int64 [g]: the sum of each run of integers or booleans [n] in a range.

        It is the difference of two running sums: right even where these leave their width, if each run's sum fits.
        """
        if self.count == 0:
            return torch.zeros(0, dtype=torch.int64, device=values.device)
        largest = max(-value_range[0], value_range[1])
        narrow = largest * values.shape[0] <= _INT32_MAX or largest * int(self.lengths().max()) <= _INT32_MAX
        totals = take(_running_sums(values, torch.int32 if narrow else torch.int64), self.bounds)
        return subtract(totals[1:], totals[:-1]).to(torch.int64)


def _running_sums(values: Tensor, dtype: torch.dtype) -> Tensor:
    """[n + 1]: the sums of the first 0, 1, ..., n values."""
    sums = torch.empty(values.shape[0] + 1, dtype=dtype, device=values.device)
    sums[0] = 0
    if values.is_cpu:
        result = sums.numpy()
        running_sums(values.numpy(), result.dtype, out=result[1:])
    else:
        torch.cumsum(values, 0, dtype=dtype, out=sums[1:])
    return sums
