"""Comparisons, integer arithmetic and choices, value by value: numpy's loops on the host, torch's on other devices.

On the CPU numpy compares with vector instructions and torch does not (0.03 to 0.13 ns a row against 0.5), nor does
torch multiply 64-bit integers with them (0.24 against 0.84) or choose by a mask (see docs/performance.md). A numpy
array and a CPU tensor share their memory. Arithmetic of floats, casts and `&`, `|`, `~` on two masks are as fast in torch and
stay torch's own, where no arrays are passed on (see `operators/call_operations.py`).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.asked_gradients import asked_only
from tqp.operators.memory.arrays import NUMPY_DTYPES, Values, as_array, as_tensor
from tqp.operators.numbers.float_pairs import two_product
from tqp.operators.operation import Operation

#: Rows of a block, whose values of 8 bytes a core's second cache holds on the way from one step to the next.
_BLOCK_ROWS = 131_072

Number = int | float | bool
Operand = Tensor | Number
Mask = TypeVar("Mask", Tensor, npt.NDArray[np.bool_])


class _Compare(Protocol):
    def __call__(self, a: Values, b: Values | Number) -> Values: ...


class _Calculate(Protocol):
    def __call__(self, a: Operand, b: Operand) -> Tensor: ...


class _Divide(Protocol):
    def __call__(self, a: Tensor, b: Tensor) -> Tensor: ...


class _OfFloats(Protocol):
    def __call__(self, values: Tensor) -> Tensor: ...


def _comparison(name: str, device: Callable[..., Any], host: np.ufunc) -> _Compare:
    return Operation(name, device, host, is_mask=True, can_fuse=True)


def _calculation(name: str, device: Callable[..., Any], host: np.ufunc) -> _Calculate:
    on_arrays = functools.partial(calculate_arrays, host)
    return Operation(name, device, on_arrays, is_row_by_row=True, can_fuse=True)


def calculate_arrays(function: Callable[..., Any], a: Any, b: Any) -> Any:
    """A function of two integers, by array or one number, in the wider of two arrays' dtypes."""
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray) or a.dtype == b.dtype:
        return function(a, b)
    # a cast of its own is faster than numpy's in pieces
    if a.itemsize < b.itemsize:
        a = out = a.astype(b.dtype)
    else:
        b = out = b.astype(a.dtype)
    return function(a, b, out=out if a.shape == b.shape else None)


#: bool [n] of two columns, or a column and a number: bools, integers and floats with IEEE's NaN; dtypes may differ in width.
equal = _comparison("equal", operator.eq, np.equal)
not_equal = _comparison("not_equal", operator.ne, np.not_equal)
#: Of bools, b AND NOT a.
less = _comparison("less", operator.lt, np.less)
#: Of bools, b OR NOT a.
less_equal = _comparison("less_equal", operator.le, np.less_equal)
#: Of bools, a AND NOT b.
greater = _comparison("greater", operator.gt, np.greater)
#: Of bools, a OR NOT b.
greater_equal = _comparison("greater_equal", operator.ge, np.greater_equal)

#: Of integers, in the wider of the two dtypes; a Python integer must fit into the tensor's. They wrap.
add = _calculation("add", operator.add, np.add)
subtract = _calculation("subtract", operator.sub, np.subtract)
multiply = _calculation("multiply", operator.mul, np.multiply)


def floor_divide(values: Values, divisor: int) -> Values:
    """Integers / a positive divisor, rounded down; in the values' dtype, int64 where that cannot hold the divisor.

    Takes an array too, of a dtype that holds the divisor.
    """
    if isinstance(values, np.ndarray):
        return np.floor_divide(values, divisor)
    values = _holding(values, divisor)
    if not is_host(values):
        return torch.div(values, divisor, rounding_mode="floor")
    array = values.numpy()  # by one number numpy divides with multiplications, torch with divisions
    return torch.from_numpy(np.floor_divide(array, divisor, out=np.empty_like(array)))


def truncate_divide(values: Tensor, divisor: int) -> Tensor:
    """As `floor_divide`, rounded toward zero."""
    values = _holding(values, divisor)
    if not is_host(values):
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
    if not is_host(values) or base > 1 << 31:
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


def of_floats(
    name: str,
    device: Callable[..., Any],
    host: Callable[..., Any],
    *,
    gradient: Callable[..., Any] | None = None,
    can_fuse: bool = False,
) -> Operation:
    """A function of floats that numpy computes as torch does, bit by bit, or that is numpy's on the host anyway."""
    on_arrays = functools.partial(calculate_floats, host, device)
    return Operation(
        name,
        device,
        on_arrays,
        gradient=gradient,
        can_fuse=can_fuse,
        only_of_arrays=True,
        takes_out=isinstance(host, np.ufunc),
    )


def calculate_floats(
    on_host: Callable[..., Any],
    elsewhere: Callable[..., Tensor],
    *values: Any,
    out: npt.NDArray[Any] | None = None,
) -> Any:
    """A function of arrays and numbers through numpy where they are floats of one dtype, else through torch.

    `out`: one of the arrays, which is written to where the result is of its shape: what is computed of it lies in the caches.
    """
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    if not arrays or arrays[0].dtype.kind != "f" or any(array.dtype != arrays[0].dtype for array in arrays):
        return as_array(elsewhere(*map(as_tensor, values)))
    with np.errstate(all="ignore"):
        if out is None or not all(_leaves(value, out) for value in values):
            return on_host(*values)
        return on_host(*values, out=out)


def _leaves(value: Any, out: npt.NDArray[Any]) -> bool:
    """Has a result of floats like `out` its dtype and shape, as far as this operand goes?"""
    if isinstance(value, np.ndarray):
        return bool(value.dtype == out.dtype) and value.shape == out.shape
    return isinstance(value, int | float) and not isinstance(value, np.generic)


def _function_of_floats(name: str, device: Callable[..., Tensor], host: np.ufunc) -> _OfFloats:
    """numpy's where it has a vector loop: it takes half of torch's time for `exp`, and a third for logarithms."""
    gradient = asked_only(device)
    if not has_vector_loop(host.__name__):
        return Operation(name, device, gradient=gradient)
    return of_floats(name, device, host, gradient=gradient)


@functools.cache
def has_vector_loop(name: str) -> bool:
    """Has numpy a loop for float64 with instructions that this processor has and not every one? Without, torch is quicker."""
    loops = np.lib.introspect.opt_func_info(func_name=f"^{name}$").get(name, {})
    return "baseline" not in loops.get("dd", {}).get("current", "baseline")


#: IEEE's: infinity or NaN for a divisor of zero.
divide: _Divide = of_floats("divide", torch.true_divide, np.divide, gradient=asked_only(torch.true_divide))
absolute: _OfFloats = of_floats("absolute", torch.abs, np.abs, gradient=asked_only(torch.abs))


def _nearest_root(values: Tensor) -> Tensor:
    """The float nearest to the root: torch's (MKL's) is the one beside it on some processors, for one value in a hundred."""
    if values.dtype != torch.float64:
        return torch.sqrt(values.to(torch.float64)).to(values.dtype)
    root = torch.sqrt(values)
    square, lost = two_product(root, root)
    nearer = root + ((values - square) - lost) / (2 * root)
    # Beyond these the digits that the square loses are no floats, or steps to them are infinite.
    return torch.where((values > _SQUARES[0]) & (values < _SQUARES[1]), nearer, root)


_SQUARES = 1e-280, 1e300

#: NaN of negative floats.
square_root: _OfFloats = of_floats("square_root", _nearest_root, np.sqrt, gradient=asked_only(torch.sqrt))
exponential = _function_of_floats("exponential", torch.exp, np.exp)


def _logarithm(name: str, device: Callable[..., Tensor], host: np.ufunc) -> _OfFloats:
    """-infinity of zero; of negative floats a NaN without a sign, whatever the processor makes: texts are ordered by that."""

    def by_torch(values: Tensor) -> Tensor:
        return torch.where(values < 0, torch.nan, device(values))

    def of_arrays(values: Any) -> Any:
        is_negative = values < 0
        return np.where(is_negative, np.nan, host(values)) if is_negative.any() else host(values)

    gradient = asked_only(by_torch)
    if not has_vector_loop(host.__name__):
        return Operation(name, by_torch, gradient=gradient)
    return of_floats(name, by_torch, of_arrays, gradient=gradient)


natural_logarithm = _logarithm("natural_logarithm", torch.log, np.log)
binary_logarithm = _logarithm("binary_logarithm", torch.log2, np.log2)
decimal_logarithm = _logarithm("decimal_logarithm", torch.log10, np.log10)


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


def keep_where_by_torch(values: Tensor, condition: Tensor) -> Tensor:
    """As `keep_where`, on any device."""
    return torch.where(condition, values, torch.zeros((), dtype=values.dtype, device=values.device))


def keep_where_array(values: Any, condition: Any) -> Any:
    """As `keep_where`, of arrays."""
    ones = _all_ones(condition, values.itemsize)
    np.bitwise_and(ones, values.view(ones.dtype), out=ones)
    return ones.view(values.dtype)


def put_where_by_torch(
    others: Tensor | None, condition: Tensor, value: Operand, dtype: torch.dtype
) -> Tensor:
    """As `put_where`, on any device."""
    return choose_by_torch(condition, value, 0 if others is None else others, dtype)


def put_where_array(others: Any, condition: Any, value: Any, dtype: torch.dtype) -> Any:
    """As `put_where`, of arrays."""
    chosen = _all_ones(condition, dtype.itemsize)
    np.bitwise_and(chosen, _bits(value, dtype), out=chosen)
    if others is not None:
        np.bitwise_or(chosen, _bits(others, dtype), out=chosen)
    return chosen.view(NUMPY_DTYPES[dtype])


def choose_by_torch(condition: Tensor, value: Operand, otherwise: Operand, dtype: torch.dtype) -> Tensor:
    """As `choose`, on any device."""
    device = condition.device
    value, otherwise = (torch.as_tensor(each, dtype=dtype, device=device) for each in (value, otherwise))
    return torch.where(condition, value, otherwise)


def choose_array(condition: Any, value: Any, otherwise: Any, dtype: torch.dtype) -> Any:
    """As `choose`, of arrays."""
    # Selecting by the bits works for every dtype, whatever the bits mean, and numpy has vector loops for each step;
    # np.where, like torch.where, takes five times as long.
    chosen, other = _bits(value, dtype), _bits(otherwise, dtype)
    select = _all_ones(condition, dtype.itemsize)
    np.bitwise_and(select, chosen ^ other, out=select)
    np.bitwise_xor(select, other, out=select)
    return select.view(NUMPY_DTYPES[dtype])


class _KeepWhere(Protocol):
    def __call__(self, values: Tensor, condition: Tensor) -> Tensor: ...


class _PutWhere(Protocol):
    def __call__(
        self, others: Tensor | None, condition: Tensor, value: Operand, dtype: torch.dtype
    ) -> Tensor: ...


class _Choose(Protocol):
    def __call__(
        self, condition: Tensor, value: Operand, otherwise: Operand, dtype: torch.dtype
    ) -> Tensor: ...


#: The values ([n], of any dtype) where the condition (bool [n]) is true, and 0 elsewhere.
keep_where: _KeepWhere = Operation("keep_where", keep_where_by_torch, keep_where_array, can_fuse=True)
#: `value` where the condition (bool [n], no NULLs) is true, elsewhere `others`; the result has `dtype`. `others` (None: all
#: zero) must have zeros where the condition is true, as a choice among several values has that is made of one after the
#: other. Tensors have that dtype already and are [n], or one value; a number must fit into it.
put_where: _PutWhere = Operation(
    "put_where", put_where_by_torch, put_where_array, gradient=put_where_by_torch, can_fuse=True
)
#: Per row `value` where the condition (bool [n], no NULLs) is true, else `otherwise`; the result has `dtype`. Tensors have
#: that dtype already and are [n], or [1] for one value; Python numbers must fit into it.
choose: _Choose = Operation("choose", choose_by_torch, choose_array, gradient=choose_by_torch, can_fuse=True)


def _remainder(values: Tensor, quotient: Tensor, divisor: int) -> Tensor:
    if not is_host(values):
        return values - quotient * divisor
    rest = quotient.numpy()  # nobody else has it
    np.multiply(rest, divisor, out=rest)
    np.subtract(values.numpy(), rest, out=rest)
    return quotient


def _holding(values: Tensor, number: int) -> Tensor:
    return values if number <= torch.iinfo(values.dtype).max else values.to(torch.int64)


def _all_ones(condition: Any, width: int) -> Any:
    """Integers [n] of so many bytes: all bits one where the condition is true, zero elsewhere."""
    # negated before they are widened, as bytes are the fastest to run through
    return np.negative(condition.view(np.int8)).astype(_BITS[width], copy=False)


_BITS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def _bits(value: Any, dtype: torch.dtype) -> Any:
    """The bits of an array or a number as integers of the same width."""
    integer = _BITS[dtype.itemsize]
    if isinstance(value, np.ndarray):
        return value.view(integer)
    return np.array([value], NUMPY_DTYPES[dtype]).view(integer)
