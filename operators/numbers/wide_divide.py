"""Division of 128-bit integers: by a Python integer (decimal scales) and by columns."""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.operators.numbers import wide

#: The largest power of ten below 2**31: remainders times 2**32 then stay inside int64.
_STEP = 10**9


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
        unsigned = _add_unsigned(unsigned, wide.from_ints([divisor // 2], a.device))
    while divisor > _STEP and divisor % _STEP == 0:  # truncation composes: x / (p * q) is (x / p) / q
        unsigned = _divide_unsigned(unsigned, _STEP)
        divisor //= _STEP
    if divisor >= 2**31:
        quotients = [(value & (2**128 - 1)) // divisor for value in wide.to_ints(unsigned)]
        unsigned = wide.from_ints([_signed(value) for value in quotients], a.device)
    else:
        unsigned = _divide_unsigned(unsigned, divisor)
    return wide.with_sign_of(unsigned, a)


def integer_divide(a: Tensor, b: Tensor, validity: Tensor | None = None) -> Tensor:
    """a / b truncated toward zero, int64 [n, 2]; raises ExecutionError for a zero or beyond 128 bits.

    Works on the host with Python integers: exact, slow, and rare.
    """
    pairs = _host_pairs(a, b, validity)
    quotients = [0 if y == 0 else _sign(x) * _sign(y) * (abs(x) // abs(y)) for x, y in pairs]
    if any(quotient > wide.MAXIMUM for quotient in quotients):
        raise ExecutionError("Overflow in division of INT128")
    return wide.from_ints(quotients, a.device)


def modulo(a: Tensor, b: Tensor, validity: Tensor | None = None) -> Tensor:
    """The remainder with the sign of a, int64 [n, 2]; raises ExecutionError for a zero. On the host, as above."""
    pairs = _host_pairs(a, b, validity)
    if (wide.MINIMUM, -1) in pairs:  # 0, but DuckDB takes it for the quotient, which overflows
        raise ExecutionError("Overflow in division of INT128")
    return wide.from_ints([0 if y == 0 else _sign(x) * (abs(x) % abs(y)) for x, y in pairs], a.device)


def _host_pairs(a: Tensor, b: Tensor, validity: Tensor | None) -> list[tuple[int, int]]:
    """Python integers of both operands; divisors of rows that do not count become 0."""
    zero = (b[:, 0] | b[:, 1]) == 0
    wide.raise_where(zero, "Division by zero; guard the divisor with nullif(divisor, 0)", validity)
    a, b = torch.broadcast_tensors(a, b)  # type: ignore[no-untyped-call]
    valid = [True] * a.shape[0] if validity is None else validity.expand(a.shape[0]).tolist()
    divisors = [y if counts else 0 for y, counts in zip(wide.to_ints(b), valid, strict=True)]
    return list(zip(wide.to_ints(a), divisors, strict=True))


def _divide_unsigned(a: Tensor, divisor: int) -> Tensor:
    """Long division of unsigned 128 bits by 0 < divisor < 2**31, in 32-bit digits, truncated: int64 [n, 2]."""
    high, low = a[:, 0], a[:, 1]
    digits = ((high >> 32) & wide.LOW_32, high & wide.LOW_32, (low >> 32) & wide.LOW_32, low & wide.LOW_32)
    remainder = torch.zeros_like(high)
    quotients = []
    for digit in digits:
        current = (remainder << 32) | digit
        quotient = torch.div(current, divisor, rounding_mode="trunc")
        remainder = current - quotient * divisor
        quotients.append(quotient)
    return torch.stack(((quotients[0] << 32) | quotients[1], (quotients[2] << 32) | quotients[3]), dim=1)


def _add_unsigned(a: Tensor, b: Tensor) -> Tensor:
    low = a[:, 1] + b[:, 1]
    carry = (low ^ wide.SIGN_BIT) < (a[:, 1] ^ wide.SIGN_BIT)
    return torch.stack((a[:, 0] + b[:, 0] + carry, low), dim=1)


def _signed(value: int) -> int:
    """An unsigned 128-bit number as the signed one of the same bits."""
    return (value ^ 2**127) - 2**127


def _sign(value: int) -> int:
    return -1 if value < 0 else 1
