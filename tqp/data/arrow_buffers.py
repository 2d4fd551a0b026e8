"""Arrow memory as NumPy views and torch tensors, without copies; offsets and validity bitmaps are dealt with here.

What is returned shares memory with Arrow, which is immutable: nobody may write to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor
from torch.utils.dlpack import from_dlpack

BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]

#: A value of month_day_nano_interval.
INTERVAL_ITEM = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])

_ARROW_OF_TORCH: dict[torch.dtype, pa.DataType] = {
    torch.uint8: pa.uint8(),
    torch.int8: pa.int8(),
    torch.int16: pa.int16(),
    torch.int32: pa.int32(),
    torch.int64: pa.int64(),
    torch.float32: pa.float32(),
    torch.float64: pa.float64(),
}


def values_view(array: pa.Array, dtype: DTypeLike, items_per_row: int = 1) -> AnyArray:
    """The data buffer of a fixed-width array: [n], or [n, items_per_row] where a row is several items. Read-only."""
    dtype = np.dtype(dtype)
    count = len(array) * items_per_row
    buffer = array.buffers()[1] if count else None
    if buffer is None:
        view = np.zeros(count, dtype)
    else:
        start = array.offset * items_per_row * dtype.itemsize
        view = np.frombuffer(buffer, dtype, count=count, offset=start)
    return view if items_per_row == 1 else view.reshape(-1, items_per_row)


def unpack_bits(buffer: pa.Buffer, offset: int, count: int) -> BoolArray:
    """Bits offset .. offset + count of a little-endian bitmap as bool [count], freshly allocated."""
    first = offset // 8
    packed = np.frombuffer(buffer, np.uint8)[first : (offset + count + 7) // 8]
    bits = np.unpackbits(packed, bitorder="little")
    return bits[offset - 8 * first : offset - 8 * first + count].view(np.bool_)


def validity_of(array: pa.Array) -> BoolArray | None:
    """bool [n], True = valid, or None where the array has no NULL."""
    if array.null_count == 0:
        return None
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.bool_)
    return unpack_bits(array.buffers()[0], array.offset, len(array))


def pack_bits(bits: BoolArray | None) -> pa.Buffer | None:
    """The little-endian bitmap of bool [n]; None stays None, which Arrow reads as no NULL."""
    return None if bits is None else pa.py_buffer(np.packbits(bits, bitorder="little"))


def tensor_of(array: AnyArray | None) -> Tensor | None:
    """The same memory as a tensor; None stays None."""
    return None if array is None else torch.from_numpy(array)


def borrow(buffer: pa.Buffer | None, dtype: torch.dtype, offset: int, count: int) -> Tensor:
    """`count` items from item `offset` of the buffer as a tensor over the same memory (copied if it is misaligned).

    DLPack rather than `torch.from_numpy`, which warns of read-only memory; the tensor keeps the buffer alive.
    """
    if count == 0 or buffer is None:
        return torch.zeros(count, dtype=dtype)
    if (buffer.address + offset * dtype.itemsize) % dtype.itemsize:
        return torch.frombuffer(bytearray(buffer), dtype=dtype, count=count, offset=offset * dtype.itemsize)
    shared = pa.Array.from_buffers(_ARROW_OF_TORCH[dtype], count, [None, buffer], 0, offset)
    return from_dlpack(shared)
