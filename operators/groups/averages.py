"""avg of integers and decimals, from the exact sum: rounded as DuckDB rounds, once or in two steps."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.core.time_limits import DAYS_PER_MONTH, MICROSECONDS_PER_DAY
from tqp.data.backend import is_host
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.numbers import arithmetic, float_pairs, wide

#: 10 to this many places times a number of rows is an int64.
_SMALL_SCALE = 6
#: Below it, an odd part of a divisor has quotients that are no closer than a long double tells to the middle of two float64.
_SHORT_DIVISOR = 2**11
#: Integers up to here are float64 themselves.
_FLOAT_INTEGERS = 2**53
#: C's `long double` is the one of x86, with 64 bits of mantissa; on Arm it is another, on other devices there is none.
_HAS_EXTENDED_FLOATS = np.finfo(np.longdouble).nmant == 63


def average(totals: Tensor, counts: Tensor, scale: int) -> Tensor:
    """totals / (counts * 10**scale), float64 [n]; a NaN where the count is 0.

    `totals`: int64 [n], or [n, 2] of 128 bits. `counts`: int64 [n]. The division is one of x86's `long double`, as in
    DuckDB, which rounds the last bit of many a large sum otherwise than float64 would: on every machine and device.
    """
    if not (is_host(totals) and _HAS_EXTENDED_FLOATS):
        return _by_pairs(totals, counts, scale)
    if wide.is_wide(totals):
        return torch.from_numpy(_by_long_doubles(_long_double(totals.numpy()), counts.numpy(), scale))
    return torch.from_numpy(_of_arrays(totals.numpy(), counts.numpy(), scale))


def _of_arrays(totals: np.ndarray, counts: np.ndarray, scale: int) -> np.ndarray:
    """`average` of int64 [n]. A long double takes three times as long, so groups of few rows go without where that gives the same bits.

    A quotient by 2**k * d, with d odd, that is not in the middle of two float64 is off it by at least one part in 2 * d of
    their distance. Rounded to 64 bits first, it moves by one part in 2**12, and so not onto the middle if d < 2**11.
    """
    most = (_SHORT_DIVISOR - 1) // 5**scale
    is_long = (counts > most) | (totals > _FLOAT_INTEGERS) | (totals < -_FLOAT_INTEGERS)
    rows = np.flatnonzero(is_long)
    if 2 * rows.shape[0] > totals.shape[0]:
        return _by_long_doubles(totals, counts, scale)
    with np.errstate(all="ignore"):
        result: np.ndarray = totals / (counts * 10**scale if most else counts)
    if rows.shape[0]:
        result[rows] = _by_long_doubles(totals[rows], counts[rows], scale)
    return result


def _by_long_doubles(dividends: np.ndarray, counts: np.ndarray, scale: int) -> np.ndarray:
    """`average` of int64 or long doubles [n]."""
    result = np.empty(dividends.shape[0], dtype=np.float64)
    if scale <= _SMALL_SCALE:
        divisors = counts * 10**scale
    else:
        divisors = counts * np.longdouble(float(10**scale))
    with np.errstate(all="ignore"):
        np.divide(dividends, divisors, out=result, dtype=np.longdouble, casting="unsafe")
    return result


def _by_pairs(totals: Tensor, counts: Tensor, scale: int) -> Tensor:
    """`average` without `long double`, with the same bits."""
    if scale <= _SMALL_SCALE:
        divisors = float_pairs.from_integers(counts * 10**scale)
    else:
        divisors = float_pairs.times(counts, float(10**scale))
    return float_pairs.quotient(float_pairs.from_integers(totals), divisors)


def average_of_float_sum(totals: Tensor, counts: Tensor, scale: int) -> Tensor:
    """As `average`, of sums that are made float64 before they are divided: what DuckDB makes of `sum(x) / count(x)`."""
    if scale == 0 and not wide.is_wide(totals) and not _are_floats(totals):
        totals = wide.from_narrow(totals)  # a HUGEINT beyond 2**53 is rounded as such
    floats: Tensor = arithmetic.scaled_to_float(totals, scale) / counts.to(torch.float64)
    return floats


def _are_floats(totals: Tensor) -> bool:
    """Is it known at no cost that all are float64 themselves?"""
    if not is_host(totals):
        return False
    low, high = arithmetic.value_range(totals)
    return low >= -_FLOAT_INTEGERS and high <= _FLOAT_INTEGERS


def average_instant(totals: Tensor, counts: Tensor) -> Tensor:
    """totals / counts as whole numbers, int64 [n], rounded as DuckDB does: to the nearest above zero, else towards zero.

    `totals`: int64 [n], or [n, 2] of 128 bits. `counts`: int64 [n]. No average is beyond 64 bits; 0 where the count is 0.
    """
    counts = counts.clamp(min=1)
    if wide.is_wide(totals):
        # The guess is off by what float64 drops. The rest is small again, so 64 bits that overflow hold it.
        guess = (wide.to_float64(totals) / counts).clamp(-_LARGEST_FLOAT, _LARGEST_FLOAT).to(torch.int64)
        rest = totals[:, 1] - guess * counts
    else:
        guess, rest = torch.zeros_like(totals), totals
    quotients = torch.div(rest, counts, rounding_mode="floor")
    remainders = rest - quotients * counts
    quotients = guess + quotients
    rounds_up = torch.where(quotients < 0, remainders > 0, remainders > counts - remainders)
    return quotients + rounds_up


def average_interval(months: Tensor, days: Tensor, microseconds: Tensor, counts: Tensor) -> Tensor:
    """The average of intervals of these sums, int64 [n, 3]; anything where the count is 0.

    Of the sums int64 [n], or [n, 2] of 128 bits. `counts`: int64 [n]. What months leave goes to the days, a
    month having 30, what days leave to the microseconds, and what these leave is added whole, as DuckDB does. Raises
    ExecutionError for microseconds beyond 64 bits.
    """
    months, days, microseconds = (
        wide.to_narrow(sums, "Overflow in the sum of INTERVALs") if wide.is_wide(sums) else sums
        for sums in (months, days, microseconds)
    )
    counts = counts.clamp(min=1)
    (whole_months, months), (whole_days, days), (clock, rest) = (
        (torch.div(total, counts, rounding_mode="trunc"), torch.fmod(total, counts))
        for total in (months, days, microseconds)
    )
    months = months * DAYS_PER_MONTH
    days = (days + torch.fmod(months, counts)) * MICROSECONDS_PER_DAY
    whole_days = whole_days + torch.div(months, counts, rounding_mode="trunc")
    return torch.stack(
        [whole_months, whole_days, clock + rest + torch.div(days, counts, rounding_mode="trunc")], 1
    )


#: The largest float64 that is an int64.
_LARGEST_FLOAT = float(2**63 - 2**10)


def _long_double(values: np.ndarray) -> np.ndarray:
    """128-bit integers [n, 2] as long doubles: each half by itself, except close below zero."""
    high, low = values[:, 0], np.ascontiguousarray(values[:, 1])
    whole = low.view(np.uint64).astype(np.longdouble) + high.astype(np.longdouble) * np.longdouble(2.0**64)
    below_zero = -(~low).view(np.uint64).astype(np.longdouble) - 1
    return np.where(high == -1, below_zero, whole)


def _resolve_average(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
    scale = argument_types[0].scale if argument_types[0].is_decimal else 0
    return Kernel(lambda totals, counts: average(totals, counts, scale), accepts_wide=True)


AVERAGE_KERNELS: dict[str, Overload] = {"average": _resolve_average}
