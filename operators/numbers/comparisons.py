"""Equality and order of floats and intervals as DuckDB has them, on which all comparisons rest; `elementwise` has those of integers.

NaN equals NaN and is greater than every other number; -0.0 equals 0.0. An interval compares as months of 30 days and
days of 24 hours.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.core.time_limits import MICROSECONDS_PER_DAY
from tqp.operators.numbers import elementwise


def float_equal(a: Tensor, b: Tensor) -> Tensor:
    """bool [n]: a = b; two NaN are equal."""
    both_nan = elementwise.not_equal(a, a) & elementwise.not_equal(b, b)
    return elementwise.equal(a, b) | both_nan


def float_less(a: Tensor, b: Tensor) -> Tensor:
    """bool [n]: a < b; a NaN is less than nothing."""
    # not a >= b, but for a NaN on the left
    return elementwise.equal(a, a) > elementwise.greater_equal(a, b)


def interval_order(interval: Tensor) -> Tensor:
    """int64 [n, 2]: whole days, microseconds below a day; compares (row-wise, first word first) as intervals do."""
    days = interval[..., 0] * 30 + interval[..., 1]
    carried = elementwise.floor_divide(interval[..., 2], MICROSECONDS_PER_DAY)
    return torch.stack([days + carried, interval[..., 2] - carried * MICROSECONDS_PER_DAY], dim=-1)


def interval_less(a: Tensor, b: Tensor) -> Tensor:
    """bool [n]: a < b, of intervals int64 [n, 3]."""
    a, b = interval_order(a), interval_order(b)
    return (a[..., 0] < b[..., 0]) | ((a[..., 0] == b[..., 0]) & (a[..., 1] < b[..., 1]))


def interval_equal(a: Tensor, b: Tensor) -> Tensor:
    """bool [n]: a = b; a month equals 30 days."""
    return (interval_order(a) == interval_order(b)).all(dim=-1)
