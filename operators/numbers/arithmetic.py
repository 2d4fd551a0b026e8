"""Checked 64-bit integer arithmetic: +, -, *, unary -, and decimal rescaling, for values that may overflow.

The runtime calls these where value ranges do not prove that a result fits; where they do, it uses torch's operators.
Each check first looks at the smallest and largest value, which costs a fraction of the operation itself, and only
then, if those do not settle it, at every row.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.data.backend import is_host
from tqp.data.division import divide_by
from tqp.operators.numbers import elementwise, wide
from tqp.operators.numbers.logic import any_true

Operand = Tensor | int
Bounds = tuple[int, int]

_INT64_BOUNDS = (-(2**63), 2**63 - 1)
_REMEDY = "; cast an operand to a wider type"


def add_checked(
    a: Operand, b: Operand, bounds: Bounds, type_name: str, validity: Tensor | None = None
) -> Tensor:
    """a + b as int64 [n]; raises ExecutionError if a valid row leaves `bounds` (inclusive, within 64 bits)."""
    return _checked("addition", operator.add, a, b, bounds, type_name, validity)


def subtract_checked(
    a: Operand, b: Operand, bounds: Bounds, type_name: str, validity: Tensor | None = None
) -> Tensor:
    """a - b as int64 [n]; raises ExecutionError if a valid row leaves `bounds`."""
    return _checked("subtraction", operator.sub, a, b, bounds, type_name, validity)


def multiply_checked(
    a: Operand, b: Operand, bounds: Bounds, type_name: str, validity: Tensor | None = None
) -> Tensor:
    """a * b as int64 [n]; raises ExecutionError if a valid row leaves `bounds`."""
    return _checked("multiplication", operator.mul, a, b, bounds, type_name, validity)


_SYMBOLS = {"addition": "+", "subtraction": "-", "multiplication": "*"}


def _checked(
    noun: str, calculate: Callable[[Any, Any], Any], a: Operand, b: Operand, bounds: Bounds, type_name: str,
    validity: Tensor | None,
) -> Tensor:  # fmt: skip
    result = calculate(_as_operand(a), _as_operand(b))
    corners = [calculate(x, y) for x in value_range(a) for y in value_range(b)]
    low, high = min(corners), max(corners)
    if not _inside(low, high, bounds):
        bad = _outside(result, bounds)
        if not _inside(low, high, _INT64_BOUNDS):
            # The result is right modulo 2**64: a wrapped one is off by at least that from the estimate in floating
            # point, whose error is below 2**12 where the true one fits.
            estimate = calculate(_as_float(a), _as_float(b))
            bad = bad | (abs(estimate - _as_float(result)) > 2.0**32)
        if any_true(bad):
            _raise_overflow(noun, _SYMBOLS[noun], type_name, a, b, bad, validity)
            # rows that do not count may be looked up all the same
            return torch.where(bad, 0, _as_tensor(result))
    return _as_tensor(result)


def check_bounds(values: Tensor, bounds: Bounds, message: str, validity: Tensor | None = None) -> Tensor:
    """`values`, 0 where they lie outside `bounds`; raises ExecutionError(message) if a valid row does."""
    bad = outside_bounds(values, bounds)
    if bad is None:
        return values
    wide.raise_where(bad, message, validity)
    return torch.where(bad if values.dim() == 1 else bad[:, None], 0, values)


def outside_bounds(values: Tensor, bounds: Bounds) -> Tensor | None:
    """bool [n]: rows of integers, narrow or wide, outside `bounds` (inclusive), or None if there is none."""
    if wide.is_wide(values):
        bad = wide.outside_bounds(values, *bounds)
        return bad if any_true(bad) else None
    return None if _inside(*value_range(values), bounds) else _outside(values, bounds)


def rescale(values: Tensor, from_scale: int, to_scale: int) -> Tensor:
    """Scaled integers with another scale, int64 [n]; half away from zero when digits are dropped, as DuckDB rounds.

    Raising the scale wraps where the result leaves 64 bits: check first.
    """
    values = values.to(torch.int64)
    if to_scale == from_scale:
        return values
    if to_scale > from_scale:
        raised: Tensor = values * 10 ** (to_scale - from_scale)
        return raised
    return divide_half_away(values, 10 ** (from_scale - to_scale))


def divide_half_away(values: Tensor, divisor: int) -> Tensor:
    """values / divisor (positive), rounded half away from zero: int64 [n]. Never wraps."""
    if divisor > 2**63 - 1:
        # At most 0.92 in magnitude; a half or more rounds to one.
        threshold = -(-divisor // 2)
        if threshold > 2**63 - 1:
            return torch.zeros_like(values, dtype=torch.int64)
        return (values >= threshold).to(torch.int64) - (values <= -threshold).to(torch.int64)
    values = values.to(torch.int64)
    half = -(-divisor // 2)  # |remainder| >= half rounds away
    low, high = value_range(values)
    if -(2**63) + half <= low and high < 2**63 - half:  # the half can be added without wrapping
        offset = divisor // 2
        if low >= 0:
            return elementwise.floor_divide(values + offset, divisor)
        return elementwise.truncate_divide(values + ((values >> 63) | 1) * offset, divisor)
    quotient = elementwise.truncate_divide(values, divisor)
    remainder = values - quotient * divisor
    return quotient + (remainder >= half).to(torch.int64) - (remainder <= -half).to(torch.int64)


def scaled_to_float(values: Tensor, scale: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Scaled integers [n] or [n, 2] as float64 or float32 [n], rounded as DuckDB casts integers and decimals.

    A decimal becomes the nearest double. Where its digits and the power of ten are doubles themselves, one division
    gives that; the others, beyond 2**53 or 22 places, are divided as Python integers, which round correctly too.
    """
    if scale == 0:
        return wide.to_float(values, dtype) if wide.is_wide(values) else values.to(dtype)
    if wide.are_few(values):
        ints = wide.to_ints(values) if wide.is_wide(values) else values.reshape(-1).tolist()
        quotients = torch.tensor([number / 10**scale for number in ints], dtype=torch.float64)
        return quotients.reshape(values.shape[:1]).to(dtype)
    doubles = wide.to_float64(values) if wide.is_wide(values) else values.to(torch.float64)
    result = divide_by(doubles, float(10**scale))
    inexact = _beyond_float64(values) if scale <= _EXACT_POWER else torch.ones_like(result, dtype=torch.bool)
    if inexact is not None and any_true(inexact):
        rows = inexact.reshape(-1).nonzero().reshape(-1)
        power = 10**scale
        exact = [value / power for value in wide.to_ints(torch.index_select(wide.widen(values), 0, rows))]
        shape = result.shape
        result = result.reshape(-1).index_put(
            (rows,), torch.tensor(exact, dtype=torch.float64, device=values.device)
        )
        result = result.reshape(shape)
    return result.to(dtype)


#: The largest power of ten that is a float64.
_EXACT_POWER = 22


def _beyond_float64(values: Tensor) -> Tensor | None:
    """bool [n]: rows beyond 2**53 in magnitude; None if there is none."""
    if wide.is_wide(values):
        return wide.to_float64(wide.magnitude(values)) > 2.0**53
    return outside_bounds(values, (-(2**53), 2**53))


def value_range(values: Operand) -> Bounds:
    """Smallest and largest element (of NULL rows too); (0, 0) for none. Narrow CUDA types are not read back."""
    if isinstance(values, int):
        return values, values
    if values.numel() == 0:
        return 0, 0
    if not is_host(values) and values.dtype != torch.int64:
        limits = torch.iinfo(
            values.dtype
        )  # a bound good enough for most checks, without waiting for the device
        return limits.min, limits.max
    if is_host(values):
        array = values.numpy()
        return int(array.min()), int(array.max())
    low, high = torch.aminmax(values)
    return int(low), int(high)


def _inside(low: int, high: int, bounds: Bounds) -> bool:
    return bounds[0] <= low and high <= bounds[1]


def _outside(values: Operand, bounds: Bounds) -> Tensor:
    values = _as_tensor(values).to(torch.int64)  # a bound that a narrower dtype does not hold would wrap
    low, high = max(bounds[0], _INT64_BOUNDS[0]), min(bounds[1], _INT64_BOUNDS[1])
    return (values < low) | (values > high)


def _as_operand(values: Operand) -> Operand:
    return values if isinstance(values, int) else values.to(torch.int64)


def _as_tensor(values: Operand) -> Tensor:
    return values if isinstance(values, Tensor) else torch.tensor(values, dtype=torch.int64)


def _as_float(values: Operand) -> Tensor | float:
    return float(values) if isinstance(values, int) else values.to(torch.float64)


def _raise_overflow(
    noun: str, symbol: str, type_name: str, a: Operand, b: Operand, bad: Tensor, validity: Tensor | None
) -> None:
    if validity is not None:
        bad = bad & validity
    if not any_true(bad):
        return
    row = int(bad.reshape(-1).to(torch.uint8).argmax())
    raise ExecutionError(
        f"Overflow in {noun} of {type_name} ({_element(a, row)} {symbol} {_element(b, row)})" + _REMEDY
    )


def _element(values: Operand, row: int) -> int:
    if isinstance(values, int):
        return values
    flat = values.reshape(-1)
    return int(flat[row if flat.numel() > 1 else 0])
