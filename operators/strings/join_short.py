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

from tqp.core.process.memory_budget import reserve
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
    pieces = _with_constants_before(parts)
    longest = [len(before) + int(part.lengths.numpy().max()) for before, part in pieces]
    # As far as the window of any piece reaches that stands behind the longest rows of those before.
    reach = [end - most + _whole_words(most) for end, most in zip(accumulate(longest), longest, strict=True)]
    width = max(_whole_words(max(reach)), _WORD)
    if width > WIDEST:
        return None
    reserve(num_rows * width)
    lengths, places = np.zeros(num_rows, np.int32), np.arange(0, num_rows * width, width)
    read: dict[tuple[bytes, int], Array] = {}  # by piece, which may be there several times
    slots = np.zeros(0, np.uint8)
    for number, ((before, part), most) in enumerate(zip(pieces, longest, strict=True)):
        if number == 0:
            slots = _windows(broadcast(part, num_rows), width, before)
        elif most:
            key = before, id(part)
            if key not in read:
                read[key] = _windows(part, _whole_words(most), before)
            _put(read[key], slots.view(np.uint8), places)
        sizes = part.lengths.numpy()
        if before:
            sizes = sizes + len(before)
        places += sizes
        lengths += sizes
    starts = running_sums(lengths, np.int64)
    total = int(starts[-1])
    starts -= lengths
    reserve(total)
    data = allocation.empty((total + width,), torch.uint8, parts[0].data.device)
    _put(slots, data.numpy(), starts)
    return Strings(torch.from_numpy(starts), torch.from_numpy(lengths), data[:total])


def _with_constants_before(parts: Sequence[Strings]) -> list[tuple[bytes, Strings]]:
    """The parts of many rows, each with what the parts of one row before it say; the last may be of one row.

    A constant written over the start of all windows costs a third of one put to its own place in each row.
    """
    pieces: list[tuple[bytes, Strings]] = []
    before = b""
    for part in parts[:-1]:
        if part.num_rows > 1:
            pieces.append((before, part))
            before = b""
        else:
            start, size = int(part.starts), int(part.lengths)
            before += part.data[start : start + size].numpy().tobytes()
    return [*pieces, (before, parts[-1])]


def _whole_words(size: int) -> int:
    """The size in bytes, rounded up to words."""
    return -(-size // _WORD) * _WORD


def _put(pieces: Array, data: Array, places: Array) -> None:
    """Each piece (void [n]) to its place in `data` (uint8), in this order; one piece to all places."""
    # A view whose row i is the bytes from i on.
    count = data.shape[0] - pieces.dtype.itemsize + 1
    np.ndarray((count,), pieces.dtype, data, 0, (1,))[places] = pieces


def _windows(strings: Strings, width: int, before: bytes = b"") -> Array:
    """`before`, and the bytes from each row's start on, whatever follows the row, `width` together: void [n].

    Zeros where the buffer ends.
    """
    span, starts = strings.data.numpy(), strings.starts.numpy()
    if before:
        starts = starts - len(before)
    low, high = (int(starts.min()), int(starts.max())) if len(starts) else (0, 0)
    if span.shape[0] < width:
        span = np.concatenate([span, np.zeros(width, np.uint8)])
    last = span.shape[0] - width
    if low >= 0 and high <= last:
        found = windows(span, width, starts).view(f"V{width}")
    else:
        found = windows(span, width, np.clip(starts, 0, last)).view(f"V{width}")
        edges = np.zeros(
            4 * width, np.uint8
        )  # the buffer's first bytes with zeros before them, its last with zeros behind
        edges[width : 2 * width], edges[2 * width : 3 * width] = span[:width], span[last:]
        for rows, shift in (
            ((starts < 0).nonzero()[0], width),
            ((starts > last).nonzero()[0], 2 * width - last),
        ):
            found[rows] = np.ndarray((3 * width + 1,), found.dtype, edges, 0, (1,))[starts[rows] + shift]
    if before:
        np.ndarray(found.shape, f"V{len(before)}", found, 0, (width,)).fill(np.void(before))
    return found
