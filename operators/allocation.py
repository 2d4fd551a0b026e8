"""Large tensors on the CPU in huge pages, which numpy asks for and torch does not.

The first touch of fresh memory in 4 KiB pages costs some 8 ns for each 8 bytes, several times what is computed there:
a position table of 6 million int32 takes 80 ms from `torch.full` and 0.7 ms from here (see docs/performance.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

#: From this size on, in bytes, numpy asks for huge pages.
_LARGE = 4 << 20

_NUMPY_DTYPES = {
    torch.bool: np.bool_,
    torch.uint8: np.uint8,
    torch.int8: np.int8,
    torch.int16: np.int16,
    torch.int32: np.int32,
    torch.int64: np.int64,
    torch.float32: np.float32,
    torch.float64: np.float64,
}


def empty(shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """An uninitialised tensor."""
    if device.type == "cpu" and int(np.prod(shape)) * dtype.itemsize >= _LARGE:
        return torch.from_numpy(np.empty(tuple(shape), _NUMPY_DTYPES[dtype]))
    return torch.empty(tuple(shape), dtype=dtype, device=device)


def full(size: int, value: float | bool, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A tensor [size] of one value."""
    return empty((size,), dtype, device).fill_(value)


def zeros(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A tensor [size] of zeros."""
    if device.type == "cpu" and size * dtype.itemsize >= _LARGE:
        return torch.from_numpy(np.zeros(size, _NUMPY_DTYPES[dtype]))
    return torch.zeros(size, dtype=dtype, device=device)


def concatenate(parts: Sequence[Tensor]) -> Tensor:
    """`torch.cat` along the first dimension, of tensors of one dtype."""
    if len(parts) == 1:
        return parts[0]
    rows = sum(part.shape[0] for part in parts)
    if parts[0].device.type != "cpu" or any(part.dtype != parts[0].dtype for part in parts):
        return torch.cat(list(parts))
    return torch.cat(list(parts), out=empty((rows, *parts[0].shape[1:]), parts[0].dtype, parts[0].device))
