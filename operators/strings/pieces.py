"""Copy short strings one after the other, in main memory, without a call for each of them.

A piece is copied by one window of a fixed width, and what the window has too much is overwritten by the next piece. Rows are
put together in slots, one part after the other in all of them, and then copied next to each other by windows as well, as
NumPy writes in the order of the indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import torch

from tqp.core.memory import reserve
from tqp.data.strings import Strings
from tqp.operators.memory import allocation
from tqp.operators.memory.arrays import Array, running_sums
from tqp.operators.strings.layout import broadcast
from tqp.operators.strings.scan import windows

#: Rows that may be longer are not put together in slots.
WIDEST = 256
_WORD = 8


def join_short(parts: Sequence[Strings], num_rows: int) -> Strings | None:
    """Row by row the strings of all parts, one after the other; None where that may be longer than WIDEST.

    Parts of one row are repeated. On the CPU; at least two rows, of which each part has all or one.
    """
    longest = [int(part.lengths.numpy().max()) for part in parts]
    # As far as the window of any part reaches that stands behind the longest rows of those before.
    reach = [end - most + _whole_words(most) for end, most in zip(accumulate(longest), longest, strict=True)]
    width = max(_whole_words(max(reach)), _WORD)
    if width > WIDEST:
        return None
    reserve(num_rows * width)
    slots = _windows(broadcast(parts[0], num_rows), width)
    lengths, places = np.zeros(num_rows, np.int32), np.arange(0, num_rows * width, width)
    read: dict[int, Array] = {}  # by part, which may be there several times
    for place, (part, most) in enumerate(zip(parts, longest, strict=True)):
        if place and most:
            if id(part) not in read:
                read[id(part)] = _windows(part, _whole_words(most))
            _put(read[id(part)], slots.view(np.uint8), places)
        places += part.lengths.numpy()
        lengths += part.lengths.numpy()
    starts = running_sums(lengths, np.int64)
    total = int(starts[-1])
    starts -= lengths
    reserve(total)
    data = allocation.empty((total + width,), torch.uint8, parts[0].data.device)
    _put(slots, data.numpy(), starts)
    return Strings(torch.from_numpy(starts), torch.from_numpy(lengths), data[:total])


def _whole_words(size: int) -> int:
    """The size in bytes, rounded up to words."""
    return -(-size // _WORD) * _WORD


def _put(pieces: Array, data: Array, places: Array) -> None:
    """Each piece (void [n]) to its place in `data` (uint8), in this order; one piece to all places."""
    # A view whose row i is the bytes from i on.
    count = data.shape[0] - pieces.dtype.itemsize + 1
    np.ndarray((count,), pieces.dtype, data, 0, (1,))[places] = pieces


def _windows(strings: Strings, width: int) -> Array:
    """The `width` bytes from each row's start on, whatever follows the row; zeros where the buffer ends: void [n]."""
    span, starts = strings.data.numpy(), strings.starts.numpy()
    if span.shape[0] < width:
        span = np.concatenate([span, np.zeros(width, np.uint8)])
    last = span.shape[0] - width
    if int(starts.max()) <= last:
        return windows(span, width, starts).view(f"V{width}")
    found = windows(span, width, np.minimum(starts, last)).view(f"V{width}")
    late = (starts > last).nonzero()[0]
    tail = np.zeros(2 * width, np.uint8)
    tail[:width] = span[last:]
    found[late] = np.ndarray((width + 1,), found.dtype, tail, 0, (1,))[starts[late] - last]
    return found
