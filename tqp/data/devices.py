"""Moving columns between devices, and what memory they take."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from tqp.core.errors import BindError
from tqp.data.column import Column

#: Devices of torch on which no query can run as it should.
_LACKING = {"mps": "Metal has no 64-bit floats, and a DOUBLE is one; use the CPU of the same computer"}


def parse_device(device: str | torch.device | None) -> torch.device:
    """The torch device of a name such as "cpu", "cuda" or "cuda:1"; None is the CPU. Raises BindError if unusable."""
    try:
        parsed = torch.device("cpu" if device is None else device)
        if parsed.type in _LACKING:
            raise BindError(f"device {device!r} cannot be used: {_LACKING[parsed.type]}")
        return torch.empty(0, device=parsed).device  # with the number of the one that is meant
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise BindError(f"device {device!r} cannot be used: {reason}") from error


def column_to(column: Column, device: torch.device) -> Column:
    """The column with all its tensors on `device`; itself if they are there already."""
    if all(tensor.device == device for tensor in column_tensors(column)):
        return column
    pool = column.pool
    return dataclasses.replace(
        column,
        values=None if column.values is None else column.values.to(device),
        validity=None if column.validity is None else column.validity.to(device),
        pool=None if pool is None else type(pool)(*(tensor.to(device) for tensor in pool)),
    )


def column_tensors(column: Column) -> list[Tensor]:
    """Every tensor the column consists of."""
    pool = () if column.pool is None else tuple(column.pool)
    return [tensor for tensor in (column.values, column.validity, *pool) if tensor is not None]


def column_bytes(column: Column) -> int:
    """Memory taken by the column's tensors, and by the texts of an ENUM; a view counts as what it shows."""
    tensors = sum(tensor.numel() * tensor.element_size() for tensor in column_tensors(column))
    return tensors + column.data_type.categories.nbytes
