"""Division by one number, to the same last digit on every device."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from tqp.data.backend import divides_by_reciprocals


def divide_by(values: Tensor, divisor: float | Tensor) -> Tensor:
    """Floats [n] / one number, or one for each on their device, rounded once.

    On a GPU torch multiplies by the reciprocal of a number that the host holds, which rounds twice: 9999 / 10.0 is
    999.9000000000001. A divisor on the device is divided by.
    """
    if not isinstance(divisor, Tensor) and divides_by_reciprocals(values):
        divisor = _number_on(values.device, divisor, values.dtype)
    return values / divisor


@lru_cache(maxsize=1024)
def _number_on(device: torch.device, number: float, dtype: torch.dtype) -> Tensor:
    with torch.inference_mode(False):  # gradients may keep it
        return torch.full((), number, dtype=dtype, device=device)
