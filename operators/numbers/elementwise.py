"""Comparisons, integer arithmetic and choices, value by value: numpy's loops on the CPU, torch's on other devices.

On the CPU numpy compares with vector instructions and torch does not (0.03 to 0.13 ns a row against 0.5), nor does
torch multiply 64-bit integers with them (0.24 against 0.84) or choose by a mask (see docs/performance.md). A numpy
array and a CPU tensor share their memory. While torch.compile traces, the torch half is taken, which it can fuse.
Arithmetic of floats, casts and `&`, `|`, `~` on two masks are as fast in torch and stay torch's own, where no arrays are
passed on (see `array_forms`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.memory.arrays import NUMPY_DTYPES, Array, Values, as_array, as_tensor

#: Rows of a block, whose values of 8 bytes a core's second cache holds on the way from one step to the next.
_BLOCK_ROWS = 131_072

Number = int | float | bool
Operand = Tensor | Number
Mask = TypeVar("Mask", Tensor, npt.NDArray[np.bool_])


def equal(a: Values, b: Values | Number) -> Values:
    """bool [n]: a = b. These six take bools, integers and floats with IEEE's NaN; dtypes may differ in width; tensors or arrays."""
    return _compare(np.equal, torch.eq, a, b)


def not_equal(a: Values, b: Values | Number) -> Values:
    """bool [n]: a <> b."""
    return _compare(np.not_equal, torch.ne, a, b)


def less(a: Values, b: Values | Number) -> Values:
    """bool [n]: a < b; of bools, b AND NOT a."""
    return _compare(np.less, torch.lt, a, b)


def less_equal(a: Values, b: Values | Number) -> Values:
    """bool [n]: a <= b; of bools, b OR NOT a."""
    return _compare(np.less_equal, torch.le, a, b)


def greater(a: Values, b: Values | Number) -> Values:
    """bool [n]: a > b; of bools, a AND NOT b."""
    return _compare(np.greater, torch.gt, a, b)


def greater_equal(a: Values, b: Values | Number) -> Values:
    """bool [n]: a >= b; of bools, a OR NOT b."""
    return _compare(np.greater_equal, torch.ge, a, b)


#: The six comparisons.
COMPARISONS: frozenset[Callable[..., Any]] = frozenset(
    {equal, not_equal, less, less_equal, greater, greater_equal}
)


def add(a: Operand, b: Operand) -> Tensor:
    """a + b of integers, in the wider of the two dtypes; a Python integer must fit into the tensor's. Wraps."""
    return _calculate(np.add, torch.add, a, b)


def subtract(a: Operand, b: Operand) -> Tensor:
    """a - b of integers, as `add`."""
    return _calculate(np.subtract, torch.sub, a, b)


def multiply(a: Operand, b: Operand) -> Tensor:
    """a * b of integers, as `add`."""
    return _calculate(np.multiply, torch.mul, a, b)


def floor_divide(values: Values, divisor: int) -> Values:
    """Integers / a positive divisor, rounded down; in the values' dtype, int64 where that cannot hold the divisor.

    Takes an array too, of a dtype that holds the divisor.
    """
    if isinstance(values, np.ndarray):
        return np.floor_divide(values, divisor)
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


def narrow_digits(values: Tensor, unit: int, base: int) -> Tensor | None:
    """floor(values / unit) modulo base, both positive, of int64 [n] values: the hour of seconds by 3,600 and 24.

    In the narrowest dtype [n], block by block; None where a quotient is not in [0, 2^31), and on other devices.
    """
    if not _on_host(values) or base > 1 << 31:
        return None
    # without a sign they are divided in two thirds of the time; negative values are large ones
    array = values.numpy().view(np.uint64)
    result = np.empty(array.shape, np.min_scalar_type(1 - base))
    for start in range(0, array.shape[0], _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        block = array[rows]
        if block.max() >= unit << 31:
            return None
        digit = (block // unit).astype(np.uint32)
        higher = digit // base
        higher *= base
        digit -= higher
        result[rows] = digit
    return torch.from_numpy(result)


def square_root(values: Tensor) -> Tensor:
    """The root of floats, NaN of negative ones. numpy's is the nearest float, as torch's (MKL's) is not on every processor."""
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


def keep_where_array(values: Any, condition: Any) -> Any:
    """As `keep_where`, of arrays."""
    ones = np.negative(condition.view(np.int8)).astype(_BITS[values.itemsize], copy=False)
    np.bitwise_and(ones, values.view(ones.dtype), out=ones)
    return ones.view(values.dtype)


def put_where(others: Tensor | None, condition: Tensor, value: Operand, dtype: torch.dtype) -> Tensor:
    """`value` where the condition (bool [n], no NULLs) is true, elsewhere `others`; the result has `dtype`.

    `others` (None: all zero) must have zeros where the condition is true, as a choice among several values has that is
    made of one after the other. Tensors have that dtype already and are [n], or one value; a number must fit into it.
    """
    if not _on_host(condition):
        device = condition.device
        others = torch.zeros((), dtype=dtype, device=device) if others is None else others
        return torch.where(condition, torch.as_tensor(value, dtype=dtype, device=device), others)
    arrays = as_array(others), as_array(condition), as_array(value)
    return torch.from_numpy(put_where_array(*arrays, dtype))


def put_where_array(others: Any, condition: Any, value: Any, dtype: torch.dtype) -> Any:
    """As `put_where`, of arrays."""
    chosen = _all_ones(condition, dtype)
    np.bitwise_and(chosen, _bits(value, dtype), out=chosen)
    if others is not None:
        np.bitwise_or(chosen, _bits(others, dtype), out=chosen)
    return chosen.view(NUMPY_DTYPES[dtype])


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
    arrays = as_array(condition), as_array(value), as_array(otherwise)
    return torch.from_numpy(choose_array(*arrays, dtype))


def choose_array(condition: Any, value: Any, otherwise: Any, dtype: torch.dtype) -> Any:
    """As `choose`, of arrays."""
    # Selecting by the bits works for every dtype, whatever the bits mean, and numpy has vector loops for each step;
    # np.where, like torch.where, takes five times as long.
    chosen, other = _bits(value, dtype), _bits(otherwise, dtype)
    select = _all_ones(condition, dtype)
    np.bitwise_and(select, chosen ^ other, out=select)
    np.bitwise_xor(select, other, out=select)
    return select.view(NUMPY_DTYPES[dtype])


def _remainder(values: Tensor, quotient: Tensor, divisor: int) -> Tensor:
    if not _on_host(values):
        return values - quotient * divisor
    rest = quotient.numpy()  # nobody else has it
    np.multiply(rest, divisor, out=rest)
    np.subtract(values.numpy(), rest, out=rest)
    return quotient


def _holding(values: Tensor, number: int) -> Tensor:
    return values if number <= torch.iinfo(values.dtype).max else values.to(torch.int64)


def _compare(
    on_host: Callable[..., Array], elsewhere: Callable[..., Tensor], a: Values, b: Values | Number
) -> Values:
    if isinstance(a, np.ndarray):
        return on_host(a, b)
    if _on_host(a):
        return torch.from_numpy(on_host(a.numpy(), as_array(b)))
    return elsewhere(a, b)


def _calculate(
    on_host: Callable[..., Any], elsewhere: Callable[..., Tensor], a: Operand, b: Operand
) -> Tensor:
    model = a if isinstance(a, Tensor) else b
    assert isinstance(model, Tensor)
    if _on_host(model):
        return torch.from_numpy(calculate_arrays(on_host, as_array(a), as_array(b)))
    return elsewhere(a if isinstance(a, Tensor) else torch.tensor(a), b)


def calculate_arrays(function: Callable[..., Any], a: Any, b: Any, out: Array | None = None) -> Any:
    """A function of two integers, by array or one number, in the wider of two arrays' dtypes; into `out` if it fits."""
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray) or a.dtype == b.dtype:
        return function(a, b, out=fitting(out, a, b))
    out = None  # a cast of its own is faster than numpy's in pieces
    if a.itemsize < b.itemsize:
        a = out = a.astype(b.dtype)
    else:
        b = out = b.astype(a.dtype)
    return function(a, b, out=out if a.shape == b.shape else None)


def calculate_floats(
    on_host: Callable[..., Any], elsewhere: Callable[..., Tensor], *values: Any, out: Array | None = None
) -> Any:
    """A function of arrays and numbers through numpy where they are floats of one dtype, else through torch; into `out` if it fits."""
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    if not arrays or arrays[0].dtype.kind != "f" or any(array.dtype != arrays[0].dtype for array in arrays):
        return as_array(elsewhere(*map(as_tensor, values)))
    return on_host(*values, out=fitting(out, *values))


def fitting(out: Any, *values: Any) -> Array | None:
    """`out`, if it has the shape and dtype of a calculation on arrays of one dtype, [n] or of one value, and Python's numbers."""
    if not isinstance(out, np.ndarray) or any(isinstance(value, np.generic) for value in values):
        return None
    model = max((value for value in values if isinstance(value, np.ndarray)), key=np.size, default=None)
    fits = model is not None and model.shape == out.shape and model.dtype == out.dtype
    return out if fits and out.dtype.kind in "if" else None


def _all_ones(condition: Any, dtype: torch.dtype) -> Any:
    """Integers [n] as wide as `dtype`: all bits one where the condition is true, zero elsewhere."""
    # negated before they are widened, as bytes are the fastest to run through
    return np.negative(condition.view(np.int8)).astype(_BITS[dtype.itemsize], copy=False)


_BITS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def _bits(value: Any, dtype: torch.dtype) -> Any:
    """The bits of an array or a number as integers of the same width."""
    integer = _BITS[dtype.itemsize]
    if isinstance(value, np.ndarray):
        return value.view(integer)
    return np.array([value], NUMPY_DTYPES[dtype]).view(integer)


def _of_floats(on_host: np.ufunc, elsewhere: Callable[[Tensor], Tensor], values: Tensor) -> Tensor:
    if not (_on_host(values) and has_vector_loop(on_host.__name__)):
        return elsewhere(values)
    array = values.numpy()
    with np.errstate(all="ignore"):
        return torch.from_numpy(on_host(array, out=np.empty_like(array)))


@functools.cache
def has_vector_loop(name: str) -> bool:
    """Has numpy a loop for float64 with instructions that this processor has and not every one? Without, torch is quicker."""
    if name == "sqrt":
        return True
    loops = np.lib.introspect.opt_func_info(func_name=f"^{name}$").get(name, {})
    return "baseline" not in loops.get("dd", {}).get("current", "baseline")


def _on_host(values: Tensor) -> bool:
    return is_host(values) and not torch.compiler.is_compiling()
