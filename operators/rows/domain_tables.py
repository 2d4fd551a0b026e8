"""Look-up tables over the domain of a column: all entries of a dictionary, or all integers of a narrow range."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.memory.arrays import Array, Values
from tqp.operators.rows.selection import take, take_padded

#: Rows that are divided at once, so that quotients lie in the caches.
_BLOCK_ROWS = 1 << 14


def look_up(table: Values, codes: Values, low: int = 0, nullable: bool = False) -> Values:
    """`table[codes - low]` for integer codes [n] of any width; `table` is [domain] or [domain, k].

    `nullable`: some codes stand under NULL and may be anything. An empty table gives zeros: all its codes are such.
    """
    if isinstance(codes, np.ndarray):
        assert isinstance(table, np.ndarray)
        return _look_up_array(table, codes, low, nullable)
    if is_host(codes):
        return torch.from_numpy(_look_up_array(table.numpy(), codes.numpy(), low, nullable))
    if low:
        codes = codes.to(torch.int64 if codes.dtype == torch.int64 else torch.int32) - low
    elif codes.dtype not in (torch.int32, torch.int64):
        codes = codes.to(torch.int32)
    if table.shape[0] == 0:
        return table.new_zeros((codes.shape[0], *table.shape[1:]))
    if nullable:
        codes = codes.clamp(0, table.shape[0] - 1)
    return torch.index_select(table, 0, codes)


def _look_up_array(table: Array, codes: Array, low: int, nullable: bool) -> Array:
    if table.shape[0] == 0:
        return np.zeros((codes.shape[0], *table.shape[1:]), table.dtype)
    if low:
        # The places of codes that count are narrow where both are.
        is_narrow = codes.itemsize <= 4 and not nullable and abs(low) < 1 << 31
        codes = np.subtract(codes, low, dtype=np.int32 if is_narrow else np.int64)
    return take_padded(table, codes) if nullable else take(table, codes)


def unit_codes(values: Values, unit: int, low: int) -> Values:
    """floor(values / unit) - low of integers [n], as int32; what does not fit stands under NULL and becomes anything.

    They may be narrower than the unit: few values, all near 1970.
    """
    if isinstance(values, np.ndarray):
        return _unit_codes_of_array(values, unit, low)
    if is_host(values):
        return torch.from_numpy(_unit_codes_of_array(values.numpy(), unit, low))
    return (torch.div(values.to(torch.int64), unit, rounding_mode="floor") - low).to(torch.int32)


def _unit_codes_of_array(values: Array, unit: int, low: int) -> Array:
    codes = np.empty(values.shape, np.int32)
    for start in range(0, values.shape[0], _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        units = np.floor_divide(values[rows], unit, dtype=np.int64)
        np.subtract(units, low, out=codes[rows], casting="unsafe")
    return codes


def domain_values(low: int, high: int, unit: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Every multiple of `unit` from `low` to `high` times it, both included."""
    offsets = torch.arange(high - low + 1, device=device)  # `high + 1` may not fit 64 bits
    return offsets.add_(low).mul_(unit).to(dtype)
