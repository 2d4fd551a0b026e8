"""Division of 128-bit integers: by a Python integer (decimal scales) and by columns."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.numbers import elementwise, wide
from tqp.operators.numbers.logic import any_true

#: The largest power of ten below 2**31: remainders times 2**32 then stay inside int64.
_STEP = 10**9

#: A quotient of floats times this is never too large, and so many of them leave less than twice the divisor: the first is
#: short by 2**-49 of 2**128 and 1, the next ones by as much of the rest.
_BELOW_ONE = 1 - 2.0**-50
_ROUNDS = 3

_OVERFLOW = "Overflow in division of INT128"


def rescale(
    a: Tensor,
    from_scale: int,
    to_scale: int,
    message: str = "Overflow in a cast to DECIMAL",
    validity: Tensor | None = None,
) -> Tensor:
    """Scaled integers int64 [n, 2] with another scale; half away from zero when digits are dropped.

    Raises ExecutionError(message) if the result is beyond 128 bits.
    """
    if to_scale > from_scale:
        factor = wide.from_ints([10 ** (to_scale - from_scale)], a.device)
        return wide.multiply(a, factor, validity, message)
    return divide_by_int(a, 10 ** (from_scale - to_scale), round_half_away=True)


def divide_by_int(a: Tensor, divisor: int, round_half_away: bool) -> Tensor:
    """a / divisor for a positive Python divisor: int64 [n, 2], rounded half away from zero, or truncated."""
    if divisor == 1:
        return a
    unsigned = wide.magnitude(a)
    if round_half_away:
        # At most 2**127 + 2**126: the unsigned sum cannot wrap. An odd divisor has no ties, so its half may round down.
        unsigned = wide.add_wrapping(unsigned, wide.from_ints([divisor // 2], a.device))
    while divisor > _STEP and divisor % _STEP == 0:  # truncation composes: x / (p * q) is (x / p) / q
        unsigned, _ = _divide_by_digits(unsigned, _STEP)
        divisor //= _STEP
    unsigned, _ = divide_unsigned(unsigned, wide.from_ints([divisor], a.device))
    return wide.with_sign_of(unsigned, a)


def integer_divide(a: Tensor, b: Tensor, validity: Tensor | None = None) -> Tensor:
    """a / b truncated toward zero, int64 [n, 2]; raises ExecutionError for a zero or beyond 128 bits."""
    b = without_zeros(b, validity)
    quotient, _ = divide_unsigned(wide.magnitude(a), wide.magnitude(b))
    signs = a ^ b
    # Of magnitudes only 2**127 has a high half below zero: as a negative number it fits.
    wide.raise_where((quotient[:, 0] < 0) & (signs[:, 0] >= 0), _OVERFLOW, validity)
    return wide.with_sign_of(quotient, signs)


def modulo(a: Tensor, b: Tensor, validity: Tensor | None = None) -> Tensor:
    """The remainder with the sign of a, int64 [n, 2]; raises ExecutionError for a zero."""
    b = without_zeros(b, validity)
    # 0, but DuckDB takes it for the quotient, which overflows.
    wide.raise_where(wide.is_minimum(a) & ((b[:, 0] & b[:, 1]) == -1), _OVERFLOW, validity)
    _, remainder = divide_unsigned(wide.magnitude(a), wide.magnitude(b))
    return wide.with_sign_of(remainder, a)


def without_zeros(divisors: Tensor, validity: Tensor | None) -> Tensor:
    """With 1 in place of the zeros of rows that do not count; raises for others."""
    zero = (divisors[:, 0] | divisors[:, 1]) == 0
    wide.raise_where(zero, "Division by zero; guard the divisor with nullif(divisor, 0)", validity)
    return torch.stack((divisors[:, 0], divisors[:, 1] + zero), dim=1)


def divide_unsigned(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Quotient and remainder of unsigned 128 bits, int64 [n, 2] each, either of them perhaps one for all rows; no divisor is 0."""
    if not any_true(a[:, 0] | b[:, 0]):
        quotient, remainder = _divide_halves(a[:, 1], b[:, 1])
        return wide.from_unsigned(quotient), wide.from_unsigned(remainder)
    if b.shape[0] == 1 and is_host(b) and 0 < (divisor := wide.to_ints(b)[0]) < 2**31:
        return _divide_by_digits(a, divisor)
    divisors = _to_float(b)
    quotient, remainder = torch.zeros_like(a), a
    for _ in range(_ROUNDS):
        part = _from_float(torch.trunc(_to_float(remainder) / divisors * _BELOW_ONE))
        quotient = wide.add_wrapping(quotient, part)
        remainder = wide.subtract_wrapping(remainder, wide.multiply_wrapping(part, b))
    more = ~_less(remainder, b)
    quotient = wide.add_wrapping(quotient, wide.from_narrow(more))
    return quotient, torch.where(more.unsqueeze(1), wide.subtract_wrapping(remainder, b), remainder)


def _divide_halves(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Quotient and remainder of int64 [n] read as unsigned."""
    if is_host(a) and is_host(b):
        dividends, divisors = a.numpy().view(np.uint64), b.numpy().view(np.uint64)
        whole = np.floor_divide(dividends, divisors[0] if len(divisors) == 1 else divisors).view(np.int64)
        quotient = torch.from_numpy(whole)
        return quotient, a - quotient * b
    # Half of a fits the signed division; twice its quotient is short of the whole one by 1 at most. So is 0, for b from 2**63 on.
    half = (a >> 1) & (2**63 - 1)
    quotient = torch.where(b < 0, 0, torch.div(half, b.clamp(min=1), rounding_mode="trunc") << 1)
    remainder = a - quotient * b
    more = (remainder ^ wide.SIGN_BIT) >= (b ^ wide.SIGN_BIT)
    return quotient + more, torch.where(more, remainder - b, remainder)


def _divide_by_digits(a: Tensor, divisor: int) -> tuple[Tensor, Tensor]:
    """Long division of unsigned 128 bits by 0 < divisor < 2**31, in 32-bit digits: quotient and remainder, int64 [n, 2]."""
    high, low = a[:, 0], a[:, 1]
    digits = ((high >> 32) & wide.LOW_32, high & wide.LOW_32, (low >> 32) & wide.LOW_32, low & wide.LOW_32)
    remainder = torch.zeros_like(high)
    quotients = []
    for digit in digits:
        current = (remainder << 32) | digit
        quotient = elementwise.truncate_divide(current, divisor)
        remainder = current - quotient * divisor
        quotients.append(quotient)
    halves = (quotients[0] << 32) | quotients[1], (quotients[2] << 32) | quotients[3]
    return torch.stack(halves, dim=1), wide.from_unsigned(remainder)


def _to_float(a: Tensor) -> Tensor:
    """Unsigned 128 bits as float64 [n]."""
    return wide.unsigned_to_float(a[:, 1]) + wide.unsigned_to_float(a[:, 0]) * 2.0**64


def _from_float(values: Tensor) -> Tensor:
    """Integral float64 [n] from 0 to below 2**128 as unsigned 128 bits."""
    high = torch.floor(values * 2.0**-64)
    return torch.stack((wide.unsigned_bits(high), wide.unsigned_bits(values - high * 2.0**64)), dim=1)


def _less(a: Tensor, b: Tensor) -> Tensor:
    """bool [n], of unsigned 128 bits."""
    sign = torch.tensor([wide.SIGN_BIT, 0], device=a.device)
    return wide.less(a ^ sign, b ^ sign)
