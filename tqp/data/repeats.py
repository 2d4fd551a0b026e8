"""Values that come several times in a row."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tqp.data.backend import is_host


def repeated(values: Tensor, counts: Tensor, total: int | None = None) -> Tensor:
    """[total, ...]: values[0] counts[0] times, then values[1] counts[1] times, and so on; values [n, ...], counts [n].

    `total`: the sum of the counts, which is read from the device where it is not given. On the host numpy does it: torch wakes
    all threads of the caller for any number of rows, for which it waits 20 ms on a busy machine, and copies value by value.
    """
    if is_host(values):
        return torch.from_numpy(np.repeat(values.numpy(), counts.numpy(), axis=0))
    return values.repeat_interleave(counts, 0, output_size=total)


def numbers_of(counts: Tensor, total: int | None = None) -> Tensor:
    """int64 [total]: 0 counts[0] times, then 1 counts[1] times, and so on."""
    return repeated(torch.arange(counts.shape[0], device=counts.device), counts, total)
