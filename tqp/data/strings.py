"""`Strings`: a vector of byte slices, the form in which strings live in tensors.

Kernels over them live in `tqp.operators.strings`.
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


class OrderedStrings(Strings):
    """Strings known to lie in row order without overlapping, as those of a column do; spared the look whether they do.

    `_replace` keeps the type: it must not make rows longer or move them.
    """

    __slots__ = ()
