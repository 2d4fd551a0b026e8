"""Small kernels about a batch as a whole: how many rows, their numbers, and one value for all of them."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators.strings import layout as string_layout


def count(rows: Tensor) -> int:
    """How many row indices there are."""
    return rows.shape[0]


def common_rows(counts: Iterable[int]) -> int:
    """The number of rows of arguments of which some, such as literals, may be one row."""
    return next((each for each in counts if each != 1), 1)


def row_numbers(first: int, num_rows: int, device: torch.device) -> Tensor:
    """int32 (int64 beyond 2^31) [num_rows]: first, first + 1, ..."""
    dtype = torch.int32 if first + num_rows < 2**31 else torch.int64
    return torch.arange(first, first + num_rows, dtype=dtype, device=device)


def repeat(values: Tensor, num_rows: int) -> Tensor:
    """One row [1, ...] as [num_rows, ...]."""
    return values.expand(num_rows, *values.shape[1:]).contiguous()


def every_row(values: Tensor, num_rows: int) -> Tensor:
    """One row [1, ...] as [num_rows, ...]: a view, whose rows share their memory."""
    return values.expand(num_rows, *values.shape[1:])


def all_or_none(condition: bool, num_rows: int, device: torch.device) -> Tensor:
    """bool [num_rows], all as the condition is: the validity of rows without a NULL, or of nothing else."""
    return torch.full((num_rows,), condition, dtype=torch.bool, device=device)


def none_if_rows(num_rows: int, device: torch.device) -> Tensor | None:
    """The validity bool [0] where there are no rows, so that a literal makes nothing fail; None, all count, otherwise."""
    return None if num_rows > 0 else torch.zeros(0, dtype=torch.bool, device=device)


def when_computed(validity: Tensor, values: object) -> Tensor:
    """`validity`, once `values` have been computed too: they may raise, and nobody else may ask for them."""
    return validity


def validity_or_true(validity: Tensor | None, num_rows: int, device: torch.device) -> Tensor:
    """A kernel's validity as a tensor, None meaning that all rows are valid; that of literals is the same for all rows."""
    if validity is None:
        return all_or_none(True, num_rows, device)
    return validity if validity.shape == (num_rows,) else validity.expand(num_rows)


def pool_rows(pool: Strings, codes: Tensor) -> Strings:
    """The entries of `pool` that codes [n] of any integer width name; empty strings from an empty pool."""
    if pool.num_rows == 0:
        empty = torch.zeros(codes.shape[0], dtype=torch.int64, device=codes.device)
        return Strings(empty, empty.to(torch.int32), pool.data)
    if codes.dtype not in (torch.int32, torch.int64):
        codes = codes.to(torch.int32)
    return string_layout.take(pool, codes)


def pool_range(pool: Strings, first: int, num_rows: int) -> Strings:
    """Entries first .. first + num_rows of `pool`, as views."""
    return string_layout.cut(pool, first, first + num_rows)
