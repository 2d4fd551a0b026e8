"""Strings on tensors: `Strings`, a vector of byte slices, and how to cut, take and join such vectors.

Kernels over them live in `string_compare`, `string_search`, `string_transform`, `string_hash`.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Strings(NamedTuple):
    """n strings (UTF-8 for VARCHAR, anything for BLOB) as slices of one byte buffer.

    Slices may overlap, repeat and stand in any order, so that taking rows, cutting batches and SUBSTRING move no
    bytes (the representation of TQEx, SIGMOD 2025). All tensors are on one device.
    """

    starts: Tensor  # int64 [n], offsets into `data`
    lengths: Tensor  # int32 [n], in bytes; 0 in rows that are NULL
    data: Tensor  # uint8 [total]

    @property
    def num_rows(self) -> int:
        return self.starts.shape[0]
