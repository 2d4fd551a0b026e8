"""Look-up tables over the domain of a column: all entries of a dictionary, or all integers of a narrow range."""

from __future__ import annotations

import torch
from torch import Tensor


def look_up(table: Tensor, codes: Tensor, low: int = 0, nullable: bool = False) -> Tensor:
    """`table[codes - low]` for integer codes [n] of any width; `table` is [domain] or [domain, k].

    `nullable`: some codes stand under NULL and may be anything. An empty table gives zeros: all its codes are such.
    """
    if low:
        codes = codes.to(torch.int64 if codes.dtype == torch.int64 else torch.int32) - low
    elif codes.dtype not in (torch.int32, torch.int64):
        codes = codes.to(torch.int32)
    if table.shape[0] == 0:
        return table.new_zeros((codes.shape[0], *table.shape[1:]))
    if nullable:
        codes = codes.clamp(0, table.shape[0] - 1)
    return torch.index_select(table, 0, codes)


def domain_values(low: int, high: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Every integer from `low` to `high`, both included."""
    return torch.arange(low, high + 1, device=device).to(dtype)
