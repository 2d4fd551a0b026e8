"""Arrays of an estimator as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor


def doubles(values: Any) -> Tensor:
    """float64, a copy; of a sparse matrix with its zeros."""
    array = values.toarray() if hasattr(values, "toarray") else values
    return torch.from_numpy(np.array(array, dtype=np.float64))


def plain(values: Any) -> list[Any]:
    """The values as Python's."""
    return [value.tolist() if hasattr(value, "tolist") else value for value in values]
