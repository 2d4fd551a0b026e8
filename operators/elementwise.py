"""Comparisons, integer arithmetic and choices, value by value: numpy's loops on the CPU, torch's on other devices.

On the CPU numpy compares with vector instructions and torch does not (0.03 to 0.13 ns a row against 0.5), nor does
torch multiply 64-bit integers with them (0.24 against 0.84) or choose by a mask (see docs/performance.md). A numpy
array and a CPU tensor share their memory. While torch.compile traces, the torch half is taken, which it can fuse.
Arithmetic of floats, casts and `&`, `|`, `~` on two masks are as fast in torch and stay torch's own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Operand = Tensor | int | float | bool
Mask = TypeVar("Mask", Tensor, npt.NDArray[np.bool_])


def equal(a: Tensor, b: Operand) -> Tensor:
    """bool [n]: a = b. These six take bools, integers and floats with IEEE's NaN; dtypes may differ in width."""
    return _compare(np.equal, torch.eq, a, b)


def not_equal(a: Tensor, b: Operand) -> Tensor:
    """bool [n]: a <> b."""
    return _compare(np.not_equal, torch.ne, a, b)


def less(a: Tensor, b: Operand) -> Tensor:
    """bool [n]: a < b; of bools, b AND NOT a."""
    return _compare(np.less, torch.lt, a, b)


def less_equal(a: Tensor, b: Operand) -> Tensor:
    """bool [n]: a <= b; of bools, b OR NOT a."""
    return _compare(np.less_equal, torch.le, a, b)


def greater(a: Tensor, b: Operand) -> Tensor:
    """bool [n]: a > b; of bools, a AND NOT b."""
    return _compare(np.greater, torch.gt, a, b)


def greater_equal(a: Tensor, b: Operand) -> Tensor:
    """bool [n]: a >= b; of bools, a OR NOT b."""
    return _compare(np.greater_equal, torch.ge, a, b)


def add(a: Operand, b: Operand) -> Tensor:
    """a + b of integers, in the wider of the two dtypes; a Python integer must fit into the tensor's. Wraps."""
    return _calculate(np.add, torch.add, a, b)


def subtract(a: Operand, b: Operand) -> Tensor:
    """a - b of integers, as `add`."""
    return _calculate(np.subtract, torch.sub, a, b)


def multiply(a: Operand, b: Operand) -> Tensor:
    """a * b of integers, as `add`."""
    return _calculate(np.multiply, torch.mul, a, b)


def floor_divide(values: Tensor, divisor: int) -> Tensor:
    """Integers / a positive divisor, rounded down; in the values' dtype, int64 where that cannot hold the divisor."""
    values = _holding(values, divisor)
    if not _on_host(values):
        return torch.div(values, divisor, rounding_mode="floor")
    array = values.numpy()  # by one number numpy divides with multiplications, torch with divisions
    return torch.from_numpy(np.floor_divide(array, divisor, out=np.empty_like(array)))


def truncate_divide(values: Tensor, divisor: int) -> Tensor:
    """As `floor_divide`, rounded toward zero."""
    values = _holding(values, divisor)
    if not _on_host(values):
        return torch.div(values, divisor, rounding_mode="trunc")
    array = values.numpy()
    if array.size and array.min() >= 0:
        return floor_divide(values, divisor)
    quotient = np.right_shift(array, array.itemsize * 8 - 1, out=np.empty_like(array))
    quotient &= divisor - 1  # what rounds negative values up
    quotient += array
    return torch.from_numpy(np.floor_divide(quotient, divisor, out=quotient))


def floor_remainder(values: Tensor, divisor: int) -> Tensor:
    """Integers minus the divisor times their `floor_divide`: 0 to divisor - 1."""
    return _remainder(values, floor_divide(values, divisor), divisor)


def truncate_remainder(values: Tensor, divisor: int) -> Tensor:
    """Integers minus the divisor times their `truncate_divide`: with the sign of the value."""
    return _remainder(values, truncate_divide(values, divisor), divisor)


def square_root(values: Tensor) -> Tensor:
    """The root of floats, NaN of negative ones. numpy takes two thirds of torch's time for it."""
    return _of_floats(np.sqrt, torch.sqrt, values)


def exponential(values: Tensor) -> Tensor:
    """e to the power of floats. numpy takes half of torch's time for it, and a third for the logarithms."""
    return _of_floats(np.exp, torch.exp, values)


def natural_logarithm(values: Tensor) -> Tensor:
    """Of floats: -infinity of zero, NaN of negative ones."""
    return _of_floats(np.log, torch.log, values)


def binary_logarithm(values: Tensor) -> Tensor:
    """As `natural_logarithm`, to base 2."""
    return _of_floats(np.log2, torch.log2, values)


def decimal_logarithm(values: Tensor) -> Tensor:
    """As `natural_logarithm`, to base 10."""
    return _of_floats(np.log10, torch.log10, values)


def all_of(masks: Sequence[Mask]) -> Mask:
    """bool [n]: the AND of two or more masks, tensors or arrays; two at a time would write a new one each time."""
    result = masks[0] & masks[1]
    for mask in masks[2:]:
        result &= mask
    return result


def any_of(masks: Sequence[Mask]) -> Mask:
    """bool [n]: the OR of two or more masks, tensors or arrays."""
    result = masks[0] | masks[1]
    for mask in masks[2:]:
        result |= mask
    return result


def keep_where(values: Tensor, condition: Tensor) -> Tensor:
    """The values ([n], of any dtype) where the condition (bool [n]) is true, and 0 elsewhere."""
    return put_where(None, condition, values, values.dtype)


def put_where(others: Tensor | None, condition: Tensor, value: Operand, dtype: torch.dtype) -> Tensor:
    """`value` where the condition (bool [n], no NULLs) is true, elsewhere `others`; the result has `dtype`.

    `others` (None: all zero) must have zeros where the condition is true, as a choice among several values has that is
    made of one after the other. Tensors have that dtype already and are [n], or one value; a number must fit into it.
    """
    if not _on_host(condition):
        device = condition.device
        others = torch.zeros((), dtype=dtype, device=device) if others is None else others
        return torch.where(condition, torch.as_tensor(value, dtype=dtype, device=device), others)
    others_array = None if others is None else others.numpy()
    given = value.numpy() if isinstance(value, Tensor) else value
    return torch.from_numpy(put_where_array(others_array, condition.numpy(), given, dtype))


def put_where_array(others: Any, condition: Any, value: Any, dtype: torch.dtype) -> Any:
    """As `put_where`, of arrays."""
    chosen = _all_ones(condition, dtype)
    np.bitwise_and(chosen, _bits(value, dtype), out=chosen)
    if others is not None:
        np.bitwise_or(chosen, _bits(others, dtype), out=chosen)
    return chosen.view(_NUMPY_DTYPES.get(dtype, chosen.dtype))


def choose(condition: Tensor, value: Operand, otherwise: Operand, dtype: torch.dtype) -> Tensor:
    """Per row `value` where the condition (bool [n], no NULLs) is true, else `otherwise`; the result has `dtype`.

    Tensors have that dtype already and are [n], or [1] for one value; Python numbers must fit into it.
    """
    if not _on_host(condition):
        device = condition.device
        return torch.where(
            condition, torch.as_tensor(value, dtype=dtype, device=device),
            torch.as_tensor(otherwise, dtype=dtype, device=device),
        )  # fmt: skip
    # Selecting by the bits works for every dtype, whatever the bits mean, and numpy has vector loops for each step;
    # np.where, like torch.where, takes five times as long.
    chosen, other = (
        _bits(item.numpy() if isinstance(item, Tensor) else item, dtype) for item in (value, otherwise)
    )
    select = _all_ones(condition.numpy(), dtype)
    np.bitwise_and(select, chosen ^ other, out=select)
    np.bitwise_xor(select, other, out=select)
    return torch.from_numpy(select).view(dtype)


def _remainder(values: Tensor, quotient: Tensor, divisor: int) -> Tensor:
    if not _on_host(values):
        return values - quotient * divisor
    rest = quotient.numpy()  # nobody else has it
    np.multiply(rest, divisor, out=rest)
    np.subtract(values.numpy(), rest, out=rest)
    return quotient


def _holding(values: Tensor, number: int) -> Tensor:
    return values if number <= torch.iinfo(values.dtype).max else values.to(torch.int64)


def _compare(on_host: Callable[..., Any], elsewhere: Callable[..., Tensor], a: Tensor, b: Operand) -> Tensor:
    if _on_host(a):
        return torch.from_numpy(on_host(a.numpy(), b.numpy() if isinstance(b, Tensor) else b))
    return elsewhere(a, b)


def _calculate(
    on_host: Callable[..., Any], elsewhere: Callable[..., Tensor], a: Operand, b: Operand
) -> Tensor:
    if not isinstance(a, Tensor):
        assert isinstance(b, Tensor)
        return torch.from_numpy(on_host(a, b.numpy())) if _on_host(b) else elsewhere(torch.tensor(a), b)
    if not _on_host(a):
        return elsewhere(a, b)
    if not isinstance(b, Tensor):
        return torch.from_numpy(on_host(a.numpy(), b))
    left, right = a.numpy(), b.numpy()
    out = None
    if left.itemsize < right.itemsize:  # a cast of its own is faster than numpy's in pieces
        left = out = left.astype(right.dtype)
    elif right.itemsize < left.itemsize:
        right = out = right.astype(left.dtype)
    if left.shape != right.shape:
        out = None
    return torch.from_numpy(on_host(left, right, out=out))


def _all_ones(condition: Any, dtype: torch.dtype) -> Any:
    """Integers [n] as wide as `dtype`: all bits one where the condition is true, zero elsewhere."""
    # negated before they are widened: both numpy and torch run through bytes fastest, and torch widens them fastest
    ones = torch.from_numpy(np.negative(condition.view(np.int8)))
    return ones.to(_INTEGERS[dtype.itemsize]).numpy()


_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_BITS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
_NUMPY_DTYPES = {
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.bool: np.bool_,
    torch.uint8: np.uint8,
}


def _bits(value: Any, dtype: torch.dtype) -> Any:
    """The bits of an array or a number as integers of the same width."""
    integer = _BITS[dtype.itemsize]
    if isinstance(value, np.ndarray):
        return value.view(integer)
    return np.array([value], _NUMPY_DTYPES.get(dtype, integer)).view(integer)


def _of_floats(on_host: np.ufunc, elsewhere: Callable[[Tensor], Tensor], values: Tensor) -> Tensor:
    if not (_on_host(values) and _has_vector_loop(on_host.__name__)):
        return elsewhere(values)
    array = values.numpy()
    with np.errstate(all="ignore"):
        return torch.from_numpy(on_host(array, out=np.empty_like(array)))


@functools.cache
def _has_vector_loop(name: str) -> bool:
    """Has numpy a loop for float64 with instructions that this processor has and not every one? Without, torch is quicker."""
    if name == "sqrt":
        return True
    loops = np.lib.introspect.opt_func_info(func_name=f"^{name}$").get(name, {})
    return "baseline" not in loops.get("dd", {}).get("current", "baseline")


def _on_host(values: Tensor) -> bool:
    return values.is_cpu and not torch.compiler.is_compiling()
