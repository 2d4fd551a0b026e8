"""Values that come several times in a row."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tqp.data.backend import is_host

#: Rows from which on, and up to so many a value, values whose counts vary come by `_by_steps`.
_MANY_ROWS, _FEW_EACH = 16_384, 16
_SAMPLE = 256


def repeated(values: Tensor, counts: Tensor, total: int | None = None) -> Tensor:
    """[total, ...]: values[0] counts[0] times, then values[1] counts[1] times, and so on; values [n, ...], counts [n].

    `total`: the sum of the counts, which is read from the device where it is not given. On the host numpy does it: torch wakes
    all threads of the caller for any number of rows, for which it waits 20 ms on a busy machine, and copies value by value.
    """
    if not is_host(values):
        return values.repeat_interleave(counts, 0, output_size=total)
    if values.dtype is torch.int64 and values.dim() == 1 and counts.shape[0] > _MANY_ROWS // _FEW_EACH:
        total = int(counts.numpy().sum()) if total is None else total
        if _MANY_ROWS <= total <= _FEW_EACH * values.shape[0] and _vary(counts):
            return _by_steps(values, counts, total)
    return torch.from_numpy(np.repeat(values.numpy(), counts.numpy(), axis=0))


def _vary(counts: Tensor) -> bool:
    """Whether counts are such that a processor mispredicts where many of the values end."""
    sample = counts.numpy()[:: -(-counts.shape[0] // _SAMPLE)]
    return bool(4 * np.count_nonzero(sample[1:] != sample[:-1]) > sample.shape[0])


def _by_steps(values: Tensor, counts: Tensor, total: int) -> Tensor:
    """As `repeated`, by a running sum of the steps from each row to the next: numpy.repeat keeps the interpreter lock."""
    steps = torch.zeros(total + 1, dtype=torch.int64)
    to_value = values.clone()
    to_value[1:] -= values[:-1]
    steps.scatter_add_(0, torch.cumsum(counts, 0) - counts, to_value)  # those to values with no row add up
    return torch.cumsum(steps[:total], 0, out=steps[:total])


def numbers_of(counts: Tensor, total: int | None = None) -> Tensor:
    """int64 [total]: 0 counts[0] times, then 1 counts[1] times, and so on."""
    return repeated(torch.arange(counts.shape[0], device=counts.device), counts, total)
