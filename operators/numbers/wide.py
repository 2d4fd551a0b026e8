"""128-bit integers ("wide"): int64 [n, 2] holding the signed high half and the low half as unsigned bits.

HUGEINT, UBIGINT and decimals beyond 18 digits use this form when 64 bits do not hold their values. Two's complement,
so halves add and multiply modulo 2**64 and only carries and overflow need care. A literal is [1, 2] and broadcasts.
Division lives in `tqp.operators.numbers.wide_divide`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.data.backend import is_host
from tqp.operators.numbers.logic import any_true

#: The sign bit. XOR with it turns unsigned order into signed order.
SIGN_BIT = -(2**63)
LOW_32 = 0xFFFFFFFF
MINIMUM = -(2**127)
MAXIMUM = 2**127 - 1
_TWO_TO_64 = float(2**64)
#: Up to so many values, Python's integers cost less than the dozens of tensors of a 128-bit operation.
_FEW_VALUES = 16


def is_wide(values: Tensor) -> bool:
    """True for the [n, 2] form; narrow integers are 0-d or [n]."""
    return values.dim() == 2


def widen(values: Tensor) -> Tensor:
    """Wide form of narrow or wide values: int64 [n, 2] ([1, 2] for a 0-d literal)."""
    return values if is_wide(values) else from_narrow(values)


def from_narrow(values: Tensor) -> Tensor:
    """Sign-extend integers of any width, [n] or 0-d, to int64 [n, 2] or [1, 2]."""
    low = values.to(torch.int64)
    if low.dim() == 0:
        low = low.reshape(1)
    return torch.stack((low >> 63, low), dim=1)


def from_unsigned(values: Tensor) -> Tensor:
    """Read int64 [n] as unsigned 64-bit numbers: int64 [n, 2]."""
    return torch.stack((torch.zeros_like(values), values), dim=1)


def from_ints(values: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
    """Python integers within 128 bits to int64 [n, 2]."""
    halves = [(value >> 64, ((value & (2**64 - 1)) ^ 2**63) - 2**63) for value in values]
    return torch.tensor(halves, dtype=torch.int64, device=device).reshape(len(halves), 2)


def are_few(values: Tensor) -> bool:
    """Are they so few, and in main memory, that Python's integers cost less than tensors?"""
    return is_host(values) and values.numel() <= _FEW_VALUES


def to_ints(values: Tensor) -> list[int]:
    """Exact Python integers of int64 [n, 2]; copies to the host."""
    return [(high << 64) | (low & (2**64 - 1)) for high, low in values.tolist()]


def to_narrow(
    values: Tensor, message: str = "Value does not fit into 64 bits", validity: Tensor | None = None
) -> Tensor:
    """The low halves, int64 [n]; raises ExecutionError if a valid row needs more than 64 bits."""
    low = values[:, 1]
    raise_where((low >> 63) != values[:, 0], message, validity)
    return low.contiguous()


def low_halves(values: Tensor) -> Tensor:
    """int64 [n]: the values where they fit 64 bits, anything elsewhere."""
    return values[:, 1].contiguous()


def fits_narrow(values: Tensor) -> Tensor:
    """bool [n]: which rows fit into 64 bits."""
    return (values[:, 1] >> 63) == values[:, 0]


def raise_where(bad: Tensor, message: str, validity: Tensor | None = None) -> None:
    """Raise ExecutionError(message) if a valid row (or any row, without validity) is bad."""
    if any_true(bad) and (validity is None or any_true(bad & validity)):
        raise ExecutionError(message)


def add(
    a: Tensor, b: Tensor, validity: Tensor | None = None, message: str = "Overflow in addition of INT128"
) -> Tensor:
    """a + b, int64 [n, 2]; raises ExecutionError beyond 128 bits."""
    low = a[:, 1] + b[:, 1]
    carry = (low ^ SIGN_BIT) < (a[:, 1] ^ SIGN_BIT)
    high = a[:, 0] + b[:, 0] + carry
    # Two operands of one sign and a result of the other.
    raise_where(((a[:, 0] ^ high) & (b[:, 0] ^ high)) < 0, message, validity)
    return torch.stack((high, low), dim=1)


def subtract(
    a: Tensor, b: Tensor, validity: Tensor | None = None, message: str = "Overflow in subtraction of INT128"
) -> Tensor:
    """a - b, int64 [n, 2]; raises ExecutionError beyond 128 bits."""
    low = a[:, 1] - b[:, 1]
    borrow = (a[:, 1] ^ SIGN_BIT) < (b[:, 1] ^ SIGN_BIT)
    high = a[:, 0] - b[:, 0] - borrow.to(torch.int64)
    raise_where(((a[:, 0] ^ b[:, 0]) & (a[:, 0] ^ high)) < 0, message, validity)
    return torch.stack((high, low), dim=1)


def absolute(a: Tensor, validity: Tensor | None = None, message: str = "Overflow on abs of INT128") -> Tensor:
    """|a|, int64 [n, 2]; raises ExecutionError for -(2**127)."""
    raise_where(is_minimum(a), message, validity)
    return magnitude(a)


def magnitude(a: Tensor) -> Tensor:
    """|a| as unsigned 128 bits: right for every input, -(2**127) included."""
    return torch.where((a[:, 0] < 0).unsqueeze(1), _negate_wrapping(a), a)


def with_sign_of(unsigned: Tensor, a: Tensor) -> Tensor:
    """-unsigned where a is negative, else unsigned."""
    return torch.where((a[:, 0] < 0).unsqueeze(1), _negate_wrapping(unsigned), unsigned)


def sign(a: Tensor) -> Tensor:
    """-1, 0 or 1 as int64 [n]."""
    positive = ((a[:, 0] | a[:, 1]) != 0) & (a[:, 0] >= 0)
    return positive.to(torch.int64) + (a[:, 0] >> 63)


def multiply(
    a: Tensor,
    b: Tensor,
    validity: Tensor | None = None,
    message: str = "Overflow in multiplication of INT128",
) -> Tensor:
    """a * b, int64 [n, 2], of operands narrow or wide; raises ExecutionError beyond 128 bits.

    -(2**127) counts as beyond, unless an operand is that number: DuckDB multiplies magnitudes.
    """
    if not is_wide(a) and not is_wide(b):
        return multiply_narrow(a, b)
    a, b = widen(a), widen(b)
    product = multiply_wrapping(a, b)
    # The product is right modulo 2**128. A wrapped one is off by at least 2**128 from the floating-point estimate,
    # whose error stays below 2**78 while the true product fits.
    estimate = to_float64(a) * to_float64(b)
    bad = (estimate - to_float64(product)).abs() > 2.0**100
    bad = bad | (is_minimum(product) & ~is_minimum(a) & ~is_minimum(b))
    raise_where(bad, message, validity)
    return product


def multiply_wrapping(a: Tensor, b: Tensor) -> Tensor:
    """a * b modulo 2**128, int64 [n, 2], of signed or unsigned operands."""
    high = _multiply_high_unsigned(a[:, 1], b[:, 1]) + a[:, 0] * b[:, 1] + a[:, 1] * b[:, 0]
    return torch.stack((high, a[:, 1] * b[:, 1]), dim=1)


def is_minimum(a: Tensor) -> Tensor:
    """bool [n]: -(2**127)."""
    return (a[:, 0] == SIGN_BIT) & (a[:, 1] == 0)


def multiply_narrow(a: Tensor, b: Tensor) -> Tensor:
    """The exact 128-bit product of integers of any width: int64 [n, 2]."""
    if are_few(a) and are_few(b):
        left, right = a.reshape(-1).tolist(), b.reshape(-1).tolist()
        if len(left) == 1:  # a literal, perhaps
            left *= len(right)
        elif len(right) == 1:
            right *= len(left)
        return from_ints([x * y for x, y in zip(left, right, strict=True)])
    a, b = a.to(torch.int64), b.to(torch.int64)
    if a.dim() == 0 and b.dim() == 0:
        a = a.reshape(1)
    a_low, b_low, a_high, b_high = a & LOW_32, b & LOW_32, a >> 32, b >> 32
    cross_a, cross_b = a_low * b_high, a_high * b_low
    middle = ((a_low * b_low >> 32) & LOW_32) + (cross_a & LOW_32) + (cross_b & LOW_32)
    high = a_high * b_high + (cross_a >> 32) + (cross_b >> 32) + (middle >> 32)
    return torch.stack((high, a * b), dim=1)


def equal(a: Tensor, b: Tensor) -> Tensor:
    """bool [n]."""
    return (a[:, 0] == b[:, 0]) & (a[:, 1] == b[:, 1])


def less(a: Tensor, b: Tensor) -> Tensor:
    """bool [n]."""
    low_less = (a[:, 1] ^ SIGN_BIT) < (b[:, 1] ^ SIGN_BIT)
    return (a[:, 0] < b[:, 0]) | ((a[:, 0] == b[:, 0]) & low_less)


def order_keys(a: Tensor) -> tuple[Tensor, Tensor]:
    """Two int64 [n] keys whose signed lexicographic order is the order of the values."""
    return a[:, 0].contiguous(), a[:, 1] ^ SIGN_BIT


def outside_bounds(a: Tensor, low: int, high: int) -> Tensor:
    """bool [n]: which values lie outside [low, high]."""
    outside = torch.zeros(a.shape[0], dtype=torch.bool, device=a.device)
    if low > MINIMUM:
        outside = outside | less(a, from_ints([low], a.device))
    if high < MAXIMUM:
        outside = outside | less(from_ints([high], a.device), a)
    return outside


def to_float64(a: Tensor) -> Tensor:
    """float64 [n], rounded as DuckDB rounds HUGEINT: each half by itself, except close below zero."""
    return to_float(a, torch.float64)


def to_float(a: Tensor, dtype: torch.dtype) -> Tensor:
    """float64 or float32 [n], rounded as `to_float64` says."""
    high, low = a[:, 0], a[:, 1]
    whole = unsigned_to_float(low, dtype) + high.to(dtype) * _TWO_TO_64
    below_zero = -unsigned_to_float(~low, dtype) - 1
    return torch.where(high == -1, below_zero, whole)


def unsigned_to_float(values: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
    """int64 [n] read as unsigned, correctly rounded to a float type."""
    # Halve with the lost bit kept sticky, so that doubling afterwards rounds once only.
    halved = (((values >> 1) & (2**63 - 1)) | (values & 1)).to(dtype) * 2
    return torch.where(values < 0, halved, values.to(dtype))


def from_float64(values: Tensor) -> Tensor:
    """Integral float64 [n] with |value| < 2**127 to int64 [n, 2], exactly; the caller rounds and checks the range."""
    # By magnitude, since a small negative number modulo 2**64 is no float64.
    unsigned = values.abs()
    high = torch.floor(unsigned / _TWO_TO_64)
    low = unsigned - high * _TWO_TO_64
    magnitudes = torch.stack((high.to(torch.int64), unsigned_bits(low)), dim=1)
    return torch.where((values < 0).unsqueeze(1), _negate_wrapping(magnitudes), magnitudes)


def unsigned_bits(values: Tensor) -> Tensor:
    """Integral float64 [n] from 0 to below 2**64 as int64 [n] with the bits of the unsigned integers."""
    upper_half = values >= 2.0**63
    return (values - upper_half * 2.0**63).to(torch.int64) ^ (upper_half.to(torch.int64) * SIGN_BIT)


def sum_by_group(values: Tensor, group_ids: Tensor, num_groups: int) -> Tensor:
    """Exact sums of integers [n] or int64 [n, 2] per group id (int64 [n]): int64 [num_groups, 2].

    Rows are split into 32-bit limbs, which cannot overflow in 2**31 rows, and carried at the end. Raises
    ExecutionError if a sum is beyond 128 bits.
    """

    def sums_of(summands: Tensor) -> Tensor:
        zeros = torch.zeros(num_groups, dtype=torch.int64, device=values.device)
        return zeros.scatter_add_(0, group_ids, summands.to(torch.int64))

    return _exact_sums(values, sums_of)


def sum_all(values: Tensor) -> Tensor:
    """The exact sum of integers [n] or int64 [n, 2]: int64 [1, 2]; raises as `sum_by_group`."""
    if values.dim() == 1 and values.dtype == torch.int64:
        # What the sums lack that wrap around is in that of the upper halves; those of the lower ones fit 64 bits.
        high = (values >> 32).sum().reshape(1)
        return from_limb_sums([values.sum().reshape(1) - (high << 32), high])
    return _exact_sums(values, lambda summands: summands.sum(dtype=torch.int64).reshape(1))


def _exact_sums(values: Tensor, sums_of: Callable[[Tensor], Tensor]) -> Tensor:
    if is_wide(values) and is_host(values) and bool((values[:, 0] == values[:, 1] >> 63).all()):
        values = values[:, 1]  # which all of them fit
    if _sum_fits_narrow(values):
        return from_narrow(sums_of(values))
    return from_limb_sums([sums_of(limb) for limb in limbs(values)])


def _sum_fits_narrow(values: Tensor) -> bool:
    """True if no sum of some of the integers can leave 64 bits."""
    if is_wide(values):
        return False
    if values.dtype != torch.int64 or values.shape[0] == 0:
        return True  # 2**31 rows of 32 bits
    low, high = torch.aminmax(values)
    return max(-int(low), int(high)) * values.shape[0] < 2**63


def limbs(values: Tensor) -> list[Tensor]:
    """32-bit limbs, lowest first, each int64 [n]; all but the last are non-negative."""
    if not is_wide(values):
        if values.dtype != torch.int64:
            return [values.to(torch.int64)]
        return [values & LOW_32, values >> 32]
    high, low = values[:, 0], values[:, 1]
    return [low & LOW_32, (low >> 32) & LOW_32, high & LOW_32, high >> 32]


def from_limb_sums(sums: list[Tensor]) -> Tensor:
    """Carry sums of limbs, lowest first, each of weight 2**32 times the one before: int64 [g, 2]."""
    if len(sums) == 1:
        return from_narrow(sums[0])
    if len(sums) == 2:
        carried = sums[1] + (sums[0] >> 32)
        return torch.stack((carried >> 32, (carried << 32) | (sums[0] & LOW_32)), dim=1)
    first, second, third, fourth = sums
    second = second + (first >> 32)
    third = third + (second >> 32)
    fourth = fourth + (third >> 32)
    raise_where((fourth << 32 >> 32) != fourth, "Overflow in sum: the result is beyond INT128")
    low = (first & LOW_32) | (second << 32)
    return torch.stack(((third & LOW_32) | (fourth << 32), low), dim=1)


def add_wrapping(a: Tensor, b: Tensor) -> Tensor:
    """a + b modulo 2**128, int64 [n, 2], of signed or unsigned operands."""
    low = a[:, 1] + b[:, 1]
    carry = (low ^ SIGN_BIT) < (a[:, 1] ^ SIGN_BIT)
    return torch.stack((a[:, 0] + b[:, 0] + carry, low), dim=1)


def subtract_wrapping(a: Tensor, b: Tensor) -> Tensor:
    """a - b modulo 2**128, int64 [n, 2], of signed or unsigned operands."""
    borrow = (a[:, 1] ^ SIGN_BIT) < (b[:, 1] ^ SIGN_BIT)
    return torch.stack((a[:, 0] - b[:, 0] - borrow.to(torch.int64), a[:, 1] - b[:, 1]), dim=1)


def _negate_wrapping(a: Tensor) -> Tensor:
    return torch.stack((~a[:, 0] + (a[:, 1] == 0), -a[:, 1]), dim=1)


def _multiply_high_unsigned(a: Tensor, b: Tensor) -> Tensor:
    """The high 64 bits of the 128-bit product of int64 [n] read as unsigned."""
    a_low, b_low = a & LOW_32, b & LOW_32
    a_high, b_high = (a >> 32) & LOW_32, (b >> 32) & LOW_32
    cross_a, cross_b = a_low * b_high, a_high * b_low
    middle = ((a_low * b_low >> 32) & LOW_32) + (cross_a & LOW_32) + (cross_b & LOW_32)
    high_of_crosses = ((cross_a >> 32) & LOW_32) + ((cross_b >> 32) & LOW_32)
    return a_high * b_high + high_of_crosses + (middle >> 32)
