"""Keys that turn out to lie close together, as bins of a DOUBLE do: small codes, though no facts of their column tell their range."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from tqp.operators.memory.arrays import Array

#: Keys between the least and the greatest at most: a table of their numbers stays in the second cache.
_MOST_KEYS = 65_536
#: Rows that tell whether it is worth a try.
_FIRST_ROWS = 1024
#: How many steps, of which keys are multiples, a unit may have.
_STEPS = (1, 2, 4, 5, 8, 10, 20, 50, 100, 1000)


def steps_of_unit(keys: Tensor) -> int | None:
    """Of how many steps of a unit the first keys [n], integers or floats on the host, are multiples that lie close together; None: of none."""
    first = keys[:_FIRST_ROWS]
    steps = _STEPS if keys.is_floating_point() else (1,)
    return next((each for each in steps if close_codes(first, each) is not None), None)


def close_codes(keys: Tensor, steps: int) -> tuple[Tensor, Tensor] | None:
    """(codes int32 [n], keys by code [span]) of keys [n]; None of no keys, where one is no multiple of a step, or they lie far apart.

    Nor are there codes where -0.0 is among the keys, which is another group's name than 0.0.
    """
    if not keys.shape[0]:
        return None
    values: Array = keys.numpy()
    if keys.is_floating_point():
        return _codes_of_floats(values, values.dtype.type(steps))
    low, high = int(values.min()), int(values.max())
    if high - low >= _MOST_KEYS:
        return None
    codes = np.subtract(values, low, dtype=np.int64).astype(np.int32)
    return torch.from_numpy(codes), torch.arange(low, high + 1, dtype=keys.dtype)


def _codes_of_floats(keys: Array, steps: Any) -> tuple[Tensor, Tensor] | None:
    with np.errstate(all="ignore"):  # infinity and NaN are no multiples, or far away
        numbers: Array = keys * steps
        np.rint(numbers, out=numbers)
        if not (numbers / steps == keys).all():
            return None
        low, high = numbers.min(), numbers.max()
        if not high - low < _MOST_KEYS or (low <= 0 <= high and np.signbit(keys[numbers == 0]).any()):
            return None
        numbers -= low
    by_code = (np.arange(int(high - low) + 1, dtype=keys.dtype) + low) / steps
    return torch.from_numpy(numbers.astype(np.int32)), torch.from_numpy(by_code)
