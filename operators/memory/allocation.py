"""Large tensors on the CPU: in huge pages, which numpy asks for and torch does not, and from memory that was used before.

The first touch of fresh memory in 4 KiB pages costs some 8 ns for each 8 bytes, several times what is computed there:
a position table of 6 million int32 takes 80 ms from `torch.full` and 0.7 ms from here. Blocks too large for the C
library's heap would go back to the operating system with every query; they are kept here instead: filling 240 MB takes
10 ms then, not 25 (see docs/performance.md). What is large is asked of the query's memory budget first.
"""

from __future__ import annotations

import collections
import math
import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tqp.core.process.memory_budget import reserve
from tqp.operators.memory.arrays import NUMPY_DTYPES

#: From this size on, in bytes, numpy asks for huge pages.
_LARGE = 4 << 20
#: From this size on, in bytes, blocks are kept: the C library gives them back whatever it is told.
_KEPT = 32 << 20
#: Kept blocks come in multiples of this many bytes, so that queries over the same tables find them again.
_STEP = 2 << 20
#: Bytes that one of several workers writes before it takes the next.
_WRITTEN_AT_ONCE = 8 << 20

#: Calls the function with each item, maybe on several threads, and returns what it returns, in order.
Map = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


def one_by_one(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """A `Map` on this thread alone."""
    return [function(item) for item in items]


class BlockPool:
    """Freed blocks by size. Taking and giving back are single steps of deques, as a block may be freed at any moment."""

    def __init__(self, limit: int) -> None:
        self.limit = limit  # bytes kept at most
        self._blocks: collections.defaultdict[int, collections.deque[np.ndarray]] = collections.defaultdict(
            collections.deque
        )

    def take(self, size: int, dtype: npt.DTypeLike) -> tuple[np.ndarray, bool]:
        """An array of `size` elements, uninitialised, and whether its memory is fresh."""
        wanted = size * np.dtype(dtype).itemsize
        capacity = -(-wanted // _STEP) * _STEP
        try:
            block, fresh = self._blocks[capacity].pop(), False
        except IndexError:
            reserve(capacity)
            block, fresh = np.zeros(capacity, np.uint8), True
        array: np.ndarray = block[:wanted].view(dtype)
        weakref.finalize(array, self._give_back, block).atexit = False
        return array, fresh

    def kept(self) -> int:
        """Bytes waiting for their next use."""
        return sum(capacity * len(blocks) for capacity, blocks in list(self._blocks.items()))

    def clear(self) -> None:
        """Keep none of the blocks that are waiting."""
        for blocks in list(self._blocks.values()):
            blocks.clear()

    def _give_back(self, block: np.ndarray) -> None:
        if self.kept() + len(block) <= self.limit:
            self._blocks[len(block)].append(block)


def _default_limit() -> int:
    try:
        return min(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 16, 1 << 30)
    except (AttributeError, ValueError, OSError):  # not on every platform
        return 1 << 30


_pool = BlockPool(_default_limit())


def forget_kept_blocks() -> None:
    """Free the memory of blocks that nobody uses."""
    _pool.clear()


def empty(shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """An uninitialised tensor."""
    elements = math.prod(shape)
    size = elements * dtype.itemsize
    if device.type != "cpu" or size < _LARGE:
        return torch.empty(tuple(shape), dtype=dtype, device=device)
    if size < _KEPT:
        reserve(size)
        return torch.from_numpy(np.empty(tuple(shape), NUMPY_DTYPES[dtype]))
    return torch.from_numpy(_pool.take(elements, NUMPY_DTYPES[dtype])[0]).view(tuple(shape))


def full(size: int, value: float | bool, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A tensor [size] of one value."""
    return empty((size,), dtype, device).fill_(value)


def zeros(size: int, dtype: torch.dtype, device: torch.device, workers: Map | None = None) -> Tensor:
    """A tensor [size] of zeros; many are written by all workers."""
    if device.type != "cpu" or size * dtype.itemsize < _LARGE:
        return torch.zeros(size, dtype=dtype, device=device)
    if size * dtype.itemsize < _KEPT:
        reserve(size * dtype.itemsize)
        return torch.from_numpy(np.zeros(size, NUMPY_DTYPES[dtype]))
    array, fresh = _pool.take(size, NUMPY_DTYPES[dtype])
    tensor = torch.from_numpy(array)
    if fresh:
        return tensor
    if workers is None:
        return tensor.zero_()
    workers(torch.Tensor.zero_, torch.split(tensor, _WRITTEN_AT_ONCE // dtype.itemsize))
    return tensor


def concatenate(parts: Sequence[Tensor], workers: Map | None = None) -> Tensor:
    """`torch.cat` along the first dimension, of tensors of one dtype. Of neighbours in memory, a view: not to be changed.

    Many bytes are copied by all workers.
    """
    if len(parts) == 1:
        return parts[0]
    rows = sum(part.shape[0] for part in parts)
    has_gradient = any(part.requires_grad for part in parts)
    if _are_neighbours(parts) and not has_gradient:
        return parts[0].as_strided((rows, *parts[0].shape[1:]), parts[0].stride())
    if has_gradient or parts[0].device.type != "cpu" or any(part.dtype != parts[0].dtype for part in parts):
        return torch.cat(list(parts))
    joined = empty((rows, *parts[0].shape[1:]), parts[0].dtype, parts[0].device)
    if workers is None or joined.nbytes < _WRITTEN_AT_ONCE:
        return torch.cat(list(parts), out=joined)
    places = torch.split(joined, [part.shape[0] for part in parts])
    workers(lambda pair: pair[0].copy_(pair[1]), list(zip(places, parts, strict=True)))
    return joined


def _are_neighbours(parts: Sequence[Tensor]) -> bool:
    """Whether each part begins where the one before it ends, as batches of one column do."""
    first, storage = parts[0], parts[0].untyped_storage()
    begin, place = storage.data_ptr(), first.storage_offset()
    for part in parts:
        if (
            part.untyped_storage().data_ptr() != begin
            or part.storage_offset() != place
            or not part.is_contiguous()
            or part.dtype != first.dtype
            or part.shape[1:] != first.shape[1:]
        ):
            return False
        place += part.numel()
    # The first part may know of no more than its own memory, as a tensor that was made of an array does.
    return place * first.itemsize <= storage.nbytes()
