"""The gamma function and its logarithm, for DOUBLE and FLOAT."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tqp.operators.numbers.float_pairs import Pair, two_product, two_sum

#: From here on Stirling's series, cut off behind the last of `_SERIES`, has all digits of a DOUBLE.
_FIRST = 14
#: B(2n) / (2n (2n - 1)) for n = 1, 2, ...: factors of 1 / x, 1 / x^3, ... in the logarithm (Abramowitz and Stegun, 6.1.40).
_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)

#: All that a DOUBLE holds.
_FACTORIALS = tuple(float(math.factorial(number)) for number in range(171))
#: gamma(x) is infinite from below here on, and 0 for -x.
_LAST = 190.0
#: 1 / x is gamma(x) in all digits of a DOUBLE below this.
_SMALLEST = 2.0**-60


def log_gamma(values: Tensor) -> Tensor:
    """The logarithm of the magnitude of the gamma function; infinite for whole numbers that are not positive."""
    return torch.where(values.isinf(), torch.inf, torch.lgamma(values))


def gamma(values: Tensor) -> Tensor:
    """The gamma function: NaN for negative whole numbers, infinite for zeros, the nearest DOUBLE for other whole numbers.

    Elsewhere it is off by a few units in the last place.
    """
    x = values.to(torch.float64)
    # gamma(x) gamma(1 - x) = pi / sin(pi x)
    mirrored, lost = two_sum(torch.ones_like(x), -x)
    below = x < 0.5
    first, second = _factors(torch.where(below, mirrored, x), torch.where(below, lost, 0.0))
    found = torch.where(below, math.pi / _sine_of_turns(x) / first / second, first * second)
    is_whole = x == x.floor()
    found = torch.where((x < 0) & is_whole, torch.nan, found)
    # gamma(x) is 1 / x, less Euler's constant, where x is small; an infinity has the sign of the zero.
    found = torch.where(x.abs() < _SMALLEST, x.reciprocal(), found)
    is_small = is_whole & (x >= 1) & (x <= len(_FACTORIALS))
    places = torch.where(is_small, x - 1, 0.0).to(torch.int64)
    factorials = torch.tensor(_FACTORIALS, dtype=torch.float64, device=x.device)
    found = torch.where(is_small, factorials[places], found)
    return found.to(values.dtype)


def _factors(x: Tensor, lost: Tensor) -> Pair:
    """Two factors of gamma(x + lost), where x is at least 0.5 and `lost` is what rounding x lost."""
    x = x.clamp(max=_LAST)
    # gamma(x) = gamma(x + n) / (x (x + 1) ... (x + n - 1)), with a divisor of twice as many digits
    high, low = torch.ones_like(x), torch.zeros_like(x)
    steps = torch.zeros_like(x)
    for step in range(_FIRST):
        is_small = x + step < _FIRST
        factor, rest = two_sum(x, torch.full_like(x, float(step)))
        product, error = two_product(high, factor)
        error = error + low * factor + high * (rest + lost)
        high, low = (torch.where(is_small, new, old) for new, old in ((product, high), (error, low)))
        steps = steps + is_small.to(x.dtype)
    y, rest = two_sum(x, steps)
    root = torch.pow(y, 0.5 * y - 0.25)  # its square might overflow
    square = (y * y).reciprocal()
    series = torch.zeros_like(y)
    for coefficient in reversed(_SERIES):
        series = series * square + coefficient
    slope = y.log() - 0.5 / y  # of the logarithm of gamma
    correction = torch.expm1(series / y + slope * (rest + lost)) - low / high
    first = math.sqrt(2 * math.pi) * (root * torch.exp(-y)) / high
    return first + first * correction, root


def _sine_of_turns(x: Tensor) -> Tensor:
    """sin(pi x), of multiples of 1/2 exactly."""
    turn = x - 2 * torch.round(x / 2)  # -1 to 1
    folded = torch.where(turn.abs() > 0.5, torch.copysign(1 - turn.abs(), turn), turn)
    return torch.sin(math.pi * folded)
