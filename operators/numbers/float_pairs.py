"""Pairs of float64, on any device: quotients as C's 80-bit `long double` of x86 gives them, and products that lose no digit.

A pair (high, low) stands for high + low, where low is at most half a unit in the last place of high. Sums and products of
pairs are exact by Knuth's and Dekker's algorithms (T. J. Dekker, "A floating-point technique for extending the available
precision", Numerische Mathematik 18, 1971). An extended float keeps 64 bits: 11 more than float64.
"""

from __future__ import annotations

import torch
from torch import Tensor

Pair = tuple[Tensor, Tensor]

#: Cuts a float64 in two halves whose products are exact.
_SPLITTER = 2.0**27 + 1
_EXTRA_BITS = 11
#: Bits of the lower half that no more than break a tie where the upper one has 40 bits: what is left fits into a pair.
_STICKY_BITS = 20


def from_integers(values: Tensor) -> Pair:
    """int64 [n], or [n, 2] of 128 bits, as pairs of float64 [n]; beyond 64 bits rounded as an extended float is."""
    if values.dim() == 1:
        return two_sum((values >> 32).double() * 2.0**32, (values & 0xFFFFFFFF).double())
    high, low = values[:, 0], values[:, 1]
    few = low & ((1 << _STICKY_BITS) - 1)
    cut = (low - few) | ((few != 0).to(torch.int64) << (_STICKY_BITS - 1))
    low = torch.where((high >= -(1 << 40)) & (high < (1 << 40)), low, cut)
    lower = two_sum(((low >> 32) & 0xFFFFFFFF).double() * 2.0**32, (low & 0xFFFFFFFF).double())
    upper = two_sum((high >> 32).double() * 2.0**96, (high & 0xFFFFFFFF).double() * 2.0**64)
    first, rest = two_sum(upper[0], lower[0])
    return _rounded(two_sum(first, rest + (upper[1] + lower[1])))


def times(counts: Tensor, factor: float) -> Pair:
    """counts * factor, rounded as an extended float is; `counts`: int64 [n] below 2**53."""
    numbers = counts.double()
    return _rounded(two_product(numbers, torch.full_like(numbers, factor)))


def quotient(dividend: Pair, divisor: Pair) -> Tensor:
    """dividend / divisor, float64 [n]: rounded to an extended float, and that to float64. A NaN for 0 / 0."""
    first = dividend[0] / divisor[0]
    product, error = two_product(first, divisor[0])
    rest = ((dividend[0] - product) - error) + (dividend[1] - first * divisor[1])
    high, low = _rounded(two_sum(first, rest / divisor[0]))
    # A low part of half a unit is a tie between two floats: the even one is taken.
    _, exponent = torch.frexp(high)
    half = torch.ldexp(torch.ones_like(high), exponent - 54)
    is_odd = (high.view(torch.int64) & 1) == 1
    away = torch.nextafter(high, torch.copysign(torch.full_like(high, torch.inf), low))
    return torch.where((low.abs() == half) & is_odd, away, high)


def multiply_add(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """a * b + c, float64 [n], as a fused multiply-add gives it: what is lost of the product is added to the sum."""
    product, lost = two_product(a, b)
    total, rest = two_sum(product, c)
    # A factor beyond 2**996 has no halves, and its product no digit behind the point.
    total = total + torch.nan_to_num(lost + rest, nan=0.0)
    is_last = (
        torch.isinf(c) & torch.isfinite(a) & torch.isfinite(b)
    )  # the product is finite before it is rounded
    return torch.where(is_last, c, total)


def _rounded(pair: Pair) -> Pair:
    """The nearest extended float, ties to even."""
    high, low = pair
    mantissa, exponent = torch.frexp(high)
    # Below a power of two floats lie twice as close.
    closer = ((mantissa.abs() == 0.5) & (low * high < 0)).to(exponent.dtype)
    unit = torch.ldexp(torch.ones_like(high), exponent - 53 - _EXTRA_BITS - closer)
    return two_sum(high, torch.round(low / unit) * unit)


def two_sum(a: Tensor, b: Tensor) -> Pair:
    """a + b, and what rounding it lost."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def two_product(a: Tensor, b: Tensor) -> Pair:
    """a * b, and what rounding it lost; of factors below 2**996."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: Tensor) -> Pair:
    scaled = a * _SPLITTER
    high = scaled - (scaled - a)
    return high, a - high
