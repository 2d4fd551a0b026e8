"""128 bits without a sign in tensors: UUID and UHUGEINT are stored as integers with a sign that sort alike, their first bit turned."""

from __future__ import annotations

import torch
from torch import Tensor

_FIRST_BIT = -(2**63)


def words_of(stored: Tensor) -> Tensor:
    """The words, int64 [n, 2] of which both hold unsigned bits, of stored values: [n, 2], or [n] or 0-d of 64 bits at most."""
    if stored.dim() < 2:
        low = stored.to(torch.int64).reshape(-1)
        stored = torch.stack((low >> 63, low), 1)
    return turned(stored)


def turned(words: Tensor) -> Tensor:
    """Words with the first bit turned, int64 [n, 2]: from stored values to unsigned words, and back."""
    return torch.stack((words[:, 0] ^ _FIRST_BIT, words[:, 1]), 1)
