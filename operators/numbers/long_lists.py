"""IN over long lists of numbers other than integers of 64 bits, in time that grows little with the list."""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.operators.numbers.comparisons import interval_order


def floats_in(values: Tensor, wanted: Tensor) -> Tensor:
    """bool [n]: which of float [n] equal one of float [m]; NaN equals NaN, -0.0 equals 0.0."""
    found = torch.isin(values, wanted)  # where no NaN is found
    return found | (values.isnan() & wanted.isnan().any())


def wide_in(values: Tensor, wanted: Tensor) -> Tensor:
    """bool [n]: which rows of int64 [n, 2] are rows of int64 [m, 2], m > 0: 128-bit integers, or other pairs."""
    numbers = [
        _places(values[:, word].contiguous(), wanted[:, word].contiguous()) for word in range(wanted.shape[1])
    ]
    (high, high_wanted, _), (low, low_wanted, count) = numbers
    both = (high >= 0) & (low >= 0)
    return torch.isin(high * count + low, high_wanted * count + low_wanted) & both


def intervals_in(values: Tensor, wanted: Tensor) -> Tensor:
    """bool [n]: which intervals int64 [n, 3] equal one of int64 [m, 3], m > 0."""
    return wide_in(interval_order(values), interval_order(wanted))


def _places(values: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor, int]:
    """Both as places among the distinct wanted, -1 of a value that is none of them; and how many these are."""
    distinct = torch.unique(wanted)
    places = torch.searchsorted(distinct, values).clamp_(max=distinct.numel() - 1)
    places[distinct[places] != values] = -1
    return places, torch.searchsorted(distinct, wanted), distinct.numel()
