"""Binary search of many keys among sorted ones, in an order that the caches like."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.numbers import elementwise
from tqp.operators.numbers.logic import all_true

_WORD_BITS = 63
#: From so many keys on both sides, searching for keys in about ascending order saves more cache misses than it costs.
MANY_KEYS = 4096


def nearly_ascending(keys: Tensor) -> Tensor | None:
    """Rows, int64 [n], in about the order of the keys; None where they are few, in order already, or not on the CPU."""
    num_rows = keys.shape[0]
    if not is_host(keys) or num_rows < MANY_KEYS or all_true(elementwise.less_equal(keys[:-1], keys[1:])):
        return None
    high = keys.numpy() >> 1  # whose differences fit a word
    high -= high.min()
    row_bits = (num_rows - 1).bit_length()
    high >>= max(0, int(high.max()).bit_length() + row_bits - _WORD_BITS)
    high <<= row_bits
    high |= np.arange(num_rows)
    high.sort()
    high &= (1 << row_bits) - 1
    return torch.from_numpy(high)


def first_places(ordered: Tensor, keys: Tensor, *, after_equal: bool) -> Tensor:
    """int32 [n]: how many of the `ordered` keys, int64 [m], are less than each key, int64 [n], or (`after_equal`) equal to it.

    Keys in about ascending order are found fastest; numpy goes on from where it found the one before.
    """
    if is_host(ordered):
        found = np.searchsorted(ordered.numpy(), keys.numpy(), "right" if after_equal else "left")
        return torch.from_numpy(found.astype(np.int32))
    return torch.searchsorted(ordered, keys, right=after_equal, out_int32=True)
