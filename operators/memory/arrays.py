"""Tensors on the CPU as numpy arrays over the same memory, and back.

Kernels that say so take and give either. A tensor takes a microsecond to make and to drop, and the interpreter lock is
given away and taken again four times with it; views of arrays leave the lock alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tqp.data.backend import is_host

Array = npt.NDArray[Any]
#: Tensors or arrays, the same for all arguments and the result.
Values = TypeVar("Values", Tensor, Array)

NUMPY_DTYPES: dict[torch.dtype, np.dtype[Any]] = {
    torch.bool: np.dtype(np.bool_),
    torch.uint8: np.dtype(np.uint8),
    torch.int8: np.dtype(np.int8),
    torch.int16: np.dtype(np.int16),
    torch.int32: np.dtype(np.int32),
    torch.int64: np.dtype(np.int64),
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
}
#: The inverse.
TORCH_DTYPES = {array_dtype: dtype for dtype, array_dtype in NUMPY_DTYPES.items()}


def narrowest(value_range: tuple[int, int]) -> torch.dtype | None:
    """The narrowest integer dtype that holds the range, or None where 64 bits do not."""
    for dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
        limits = torch.iinfo(dtype)
        if limits.min <= value_range[0] and value_range[1] <= limits.max:
            return dtype
    return None


def as_array(item: Any) -> Any:
    """A tensor, or each one in a tuple or list, as an array; anything else as it is."""
    if item is None or type(item) is np.ndarray:
        return item
    if isinstance(item, Tensor):
        return item.numpy()
    return _mapped(as_array, item)


def as_tensor(item: Any) -> Any:
    """The inverse of `as_array`."""
    if isinstance(item, np.ndarray):
        return torch.from_numpy(item)
    if isinstance(item, np.generic):  # what numpy makes of arrays without a dimension
        return torch.from_numpy(np.asarray(item))
    return _mapped(as_tensor, item)


def _mapped(function: Callable[[Any], Any], item: Any) -> Any:
    """A tuple or list with the function's results of its items; torch.fx has lists of a class of its own."""
    if type(item) is tuple:
        return tuple(map(function, item))
    return list(map(function, item)) if isinstance(item, list) else item


def host_form(values: Tensor) -> Any:
    """As an array where it is in main memory, else as it is."""
    return values.numpy() if is_host(values) else values


def in_form_of(model: Values, tensor: Tensor) -> Values:
    """A tensor that is kept, as an array where `model` is one."""
    return tensor.numpy() if isinstance(model, np.ndarray) else tensor


def converted(values: Values, dtype: torch.dtype) -> Values:
    """As `Tensor.to`, of a tensor or an array: the same one where it has the dtype."""
    if not isinstance(values, np.ndarray):
        return values.to(dtype)
    wanted = NUMPY_DTYPES[dtype]
    if values.dtype == wanted:
        return values
    if values.dtype.kind == "f":  # of floats that no integer holds, each library makes its own
        result: Array = torch.from_numpy(values).to(dtype).numpy()
        return result
    return values.astype(wanted)


#: From so many values on torch's running sum is worth its call: it adds up in a register, one value a cycle, where numpy reads
#: each sum back from memory (0.3 ns a value against 2).
_MANY_SUMS = 2048


def running_sums(values: Array, dtype: npt.DTypeLike, out: Array | None = None) -> Array:
    """np.cumsum, but without the interpreter lock, which that keeps where it converts. `out` may be the values themselves."""
    values = values.astype(dtype, copy=False)
    if values.shape[0] < _MANY_SUMS:
        return np.cumsum(values, dtype=dtype, out=out)
    sums = np.empty(values.shape, dtype) if out is None else out
    torch.cumsum(torch.from_numpy(values), 0, dtype=TORCH_DTYPES[sums.dtype], out=torch.from_numpy(sums))
    return sums
