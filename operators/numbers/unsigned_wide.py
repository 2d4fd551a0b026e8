"""UHUGEINT: arithmetic, bits, casts and text of unsigned integers of 128 bits.

A value is stored with its first bit turned (`tqp.core.unsigned_128`), so that wide integers compare, sort and join as unsigned ones do.
Here it is taken back into its words (`tqp.data.unsigned_words`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.data.strings import Strings
from tqp.data.unsigned_words import turned, words_of
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.numbers import wide, wide_divide
from tqp.operators.numbers.integers import shift_left_wide, shift_right_wide
from tqp.operators.strings.layout import from_list

_BITS = 128
_TWO_TO_64 = float(2**64)


def _ints(words: Tensor) -> list[int]:
    return [value & (2**_BITS - 1) for value in wide.to_ints(words)]


def _from_ints(values: Sequence[int], device: torch.device) -> Tensor:
    return wide.from_ints(
        [value - 2**_BITS if value >= 2 ** (_BITS - 1) else value for value in values], device
    )


def _less(a: Tensor, b: Tensor) -> Tensor:
    """Of 64-bit words as unsigned ones, bool [n]."""
    return (a ^ wide.SIGN_BIT) < (b ^ wide.SIGN_BIT)


def _is_zero(words: Tensor) -> Tensor:
    return (words[:, 0] | words[:, 1]) == 0


# ---- arithmetic ----


def _add(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of words, and where it leaves 128 bits."""
    low = a[:, 1] + b[:, 1]
    carry = _less(low, a[:, 1]).to(torch.int64)
    high = a[:, 0] + b[:, 0]
    carried = high + carry
    return torch.stack((carried, low), 1), _less(high, a[:, 0]) | _less(carried, high)


def _subtract(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The difference of words, and where it is below zero."""
    low = a[:, 1] - b[:, 1]
    borrow = _less(a[:, 1], b[:, 1])
    high = a[:, 0] - b[:, 0] - borrow.to(torch.int64)
    below = _less(a[:, 0], b[:, 0]) | ((a[:, 0] == b[:, 0]) & borrow)
    return torch.stack((high, low), 1), below


def _multiply(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The product of words, and where it leaves 128 bits: there the floating-point one is off by 2**128 at least."""
    product = wide.multiply_wrapping(a, b)
    estimate = to_float(a, torch.float64) * to_float(b, torch.float64)
    return product, (estimate - to_float(product, torch.float64)).abs() > 2.0**100


def _checked(compute: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]], operation: str) -> Overload:
    message = f"Overflow in {operation} of UINT128; cast the operands to DOUBLE"

    def function(a: Tensor, b: Tensor, *, validity: Tensor | None = None) -> Tensor:
        result, beyond = compute(words_of(a), words_of(b))
        wide.raise_where(beyond, message, validity)
        return turned(result)

    return lambda argument_types, result_type: Kernel(function, checks=True, accepts_wide=True)


def _negate(values: Tensor, *, validity: Tensor | None = None) -> Tensor:
    wide.raise_where(~_is_zero(words_of(values)), "Overflow in negation of UINT128", validity)
    return wide.widen(values)


def _division(part: int) -> Overload:
    """The quotient (part 0) or the remainder (part 1)."""

    def divide(a: Tensor, b: Tensor, *, validity: Tensor | None = None) -> Tensor:
        divisors = wide_divide.without_zeros(words_of(b), validity)
        return turned(wide_divide.divide_unsigned(words_of(a), divisors)[part])

    return lambda argument_types, result_type: Kernel(divide, checks=True, accepts_wide=True)


def _truncated(values: Tensor, digits: Tensor) -> Tensor:
    """Zeros in place of so many digits before the point, as many as `digits` is below zero; on the host, as divisions are."""
    numbers, places = _ints(words_of(values)), digits.reshape(-1).tolist()
    size = max(len(numbers), len(places))
    numbers, places = numbers * (size // len(numbers) or 1), places * (size // len(places) or 1)
    powers = (10 ** min(max(-place, 0), _BITS) for place in places)
    return turned(
        _from_ints(
            [number - number % power for number, power in zip(numbers, powers, strict=True)], values.device
        )
    )


# ---- bits ----


def _bitwise(function: Callable[[Tensor, Tensor], Tensor]) -> Overload:
    return lambda argument_types, result_type: Kernel(
        lambda a, b: turned(function(words_of(a), words_of(b))), accepts_wide=True
    )


def _counts(shift: Tensor) -> Tensor:
    """By how many bits to shift, 128 for more: int64 [n]."""
    words = words_of(shift)
    is_far = (words[:, 0] != 0) | (words[:, 1] < 0) | (words[:, 1] > _BITS)
    return torch.where(is_far, _BITS, words[:, 1])


def _shift_left(values: Tensor, shift: Tensor, *, validity: Tensor | None = None) -> Tensor:
    words, counts = words_of(values), _counts(shift)
    lost = (_shifted_right(words, _BITS - counts) != 0).any(1) & (counts > 0)
    wide.raise_where(lost, "Overflow in left shift of UINT128", validity)
    return turned(shift_left_wide(words, counts.clamp(max=_BITS - 1)) * (counts < _BITS).unsqueeze(1))


def _shift_right(values: Tensor, shift: Tensor) -> Tensor:
    return turned(_shifted_right(words_of(values), _counts(shift)))


def _shifted_right(words: Tensor, counts: Tensor) -> Tensor:
    """Unsigned words by 0 to 128 bits: what comes in at the top is zero."""
    counts = counts.reshape(-1)
    within = counts.clamp(max=_BITS - 1)
    moved = shift_right_wide(words, within)
    kept = shift_left_wide(torch.full_like(moved, -1), (_BITS - within).clamp(max=_BITS - 1))
    mask = torch.where((within > 0).unsqueeze(1), ~kept, -1)
    return torch.where((counts < _BITS).unsqueeze(1), moved & mask, 0)


# ---- casts and text ----


def to_float(words: Tensor, dtype: torch.dtype) -> Tensor:
    """float64 or float32 [n] of unsigned words, each half rounded by itself as DuckDB does."""
    high, low = (wide.unsigned_to_float(words[:, place], dtype) for place in range(2))
    return low + high * _TWO_TO_64


def _from_float(values: Tensor) -> tuple[Tensor, Tensor]:
    """Stored values of floats, rounded half to even, and the rows that are no UHUGEINT."""
    rounded = torch.round(values.to(torch.float64))
    failed = ~((rounded >= 0) & (rounded < 2.0**_BITS))
    rounded = torch.where(failed, 0.0, rounded)
    is_upper = rounded >= 2.0 ** (_BITS - 1)
    below = wide.from_float64(rounded - is_upper * 2.0 ** (_BITS - 1))
    return torch.stack(
        (torch.where(is_upper, below[:, 0], below[:, 0] ^ wide.SIGN_BIT), below[:, 1]), 1
    ), failed


Attempt = tuple[Tensor, Tensor | None]


def cast_from_unsigned(
    target: DataType, of_hugeint: Callable[[Tensor], Attempt] | None
) -> Callable[[Tensor], Attempt] | None:
    """What casts stored values to another type; `of_hugeint`: what casts a HUGEINT to it, as which most are cast."""
    if target.kind is TypeKind.UUID:  # whose first bit is turned, too
        return lambda values: (wide.widen(values), None)
    if target.kind is TypeKind.BOOLEAN:
        return lambda values: (~_is_zero(words_of(values)), None)
    if target.is_float:
        dtype = torch.float32 if target.kind is TypeKind.FLOAT else torch.float64
        return lambda values: (to_float(words_of(values), dtype), None)
    if of_hugeint is None:
        return None

    def cast(values: Tensor) -> Attempt:
        words = words_of(values)
        beyond = words[:, 0] < 0
        result, failed = of_hugeint(words * ~beyond.unsqueeze(1))
        return result, beyond if failed is None else failed | beyond

    return cast


def cast_to_unsigned(
    source: DataType, to_hugeint: Callable[[Tensor], Attempt] | None
) -> Callable[[Tensor], Attempt] | None:
    """What casts another type to stored values; `to_hugeint`: what casts it to a HUGEINT, by way of which most are cast."""
    if source.kind is TypeKind.UUID:
        return lambda values: (wide.widen(values), None)
    if source.is_float:
        return _from_float
    if to_hugeint is None:
        return None

    def cast(values: Tensor) -> Attempt:
        result, failed = to_hugeint(values)
        words = wide.widen(result)
        negative = words[:, 0] < 0
        return turned(words), negative if failed is None else failed | negative

    return cast


def format_unsigned(values: Tensor) -> Strings:
    """Decimal digits of stored values, [n] or [n, 2]."""
    return from_list([str(value) for value in _ints(words_of(values))], values.device)


def _sign(values: Tensor) -> Tensor:
    return (~_is_zero(words_of(values))).to(torch.int64)


def _kernel(function: Callable[..., Any]) -> Overload:
    return lambda argument_types, result_type: Kernel(function, accepts_wide=True)


UNSIGNED_WIDE_KERNELS: dict[str, Overload] = {
    "add_unsigned": _checked(_add, "addition"),
    "subtract_unsigned": _checked(_subtract, "subtraction"),
    "multiply_unsigned": _checked(_multiply, "multiplication"),
    "divide_unsigned": _division(0),
    "modulo_unsigned": _division(1),
    "negate_unsigned": lambda argument_types, result_type: Kernel(_negate, checks=True, accepts_wide=True),
    "magnitude_of_unsigned": _kernel(wide.widen),
    "sign_of_unsigned": _kernel(_sign),
    "trunc_unsigned": _kernel(_truncated),
    "and_unsigned": _bitwise(torch.bitwise_and),
    "or_unsigned": _bitwise(torch.bitwise_or),
    "xor_unsigned": _bitwise(torch.bitwise_xor),
    "not_unsigned": _kernel(lambda values: ~wide.widen(values)),
    "shift_left_unsigned": lambda argument_types, result_type: Kernel(
        _shift_left, checks=True, accepts_wide=True
    ),
    "shift_right_unsigned": _kernel(_shift_right),
}
