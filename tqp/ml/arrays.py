"""Arrays of an estimator as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor


def doubles(values: Any) -> Tensor:
    """float64, a copy."""
    return torch.from_numpy(np.array(values, dtype=np.float64))


def plain(values: Any) -> list[Any]:
    """The values as Python's."""
    return [value.tolist() if hasattr(value, "tolist") else value for value in values]


def dense(values: Any) -> Any:
    """A sparse matrix as an array; an array as it is."""
    return values.toarray() if hasattr(values, "toarray") else values
