"""Copy short strings one after the other, in main memory, without a call for each of them.

A piece is copied by one window of a fixed width. What the window has too much is overwritten by the next piece, as
NumPy writes in the order of the indices: 3 ns a piece and 8 with all that it takes, where Arrow's copies take 8 to 20.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from tqp.core.memory import reserve
from tqp.data.strings import Strings
from tqp.operators.memory import allocation
from tqp.operators.memory.arrays import Array, running_sums
from tqp.operators.strings.scan import windows

#: Pieces up to so long are copied by windows, whose widths are multiples of a word.
WIDEST = 128
_WORD = 8


def join_short(parts: Sequence[Strings], num_rows: int) -> Strings | None:
    """Row by row the strings of all parts, one after the other; None where one of them is longer than WIDEST.

    Parts of one row are repeated. On the CPU; at least two rows, of which each part has all or one.
    """
    longest = [int(part.lengths.numpy().max()) for part in parts]
    if max(longest) > WIDEST:
        return None
    lengths = np.empty((num_rows, len(parts)), np.int32)
    for place, part in enumerate(parts):
        lengths[:, place] = part.lengths.numpy()
    places = running_sums(lengths.reshape(-1), np.int64)
    total = int(places[-1])
    places -= lengths.reshape(-1)
    places = places.reshape(lengths.shape)
    reserve(total)
    data = allocation.empty((total + WIDEST,), torch.uint8, parts[0].data.device)
    varying = [place for place, part in enumerate(parts) if part.num_rows > 1]
    of_varying = places if len(varying) == len(parts) else places[:, varying]
    _write_windows([parts[place] for place in varying], of_varying, data.numpy())
    for place, part in enumerate(parts):
        if part.num_rows == 1 and longest[place]:
            # No byte more than the string has, so that nothing has to be written behind it.
            text = _windows(part, longest[place])
            np.ndarray((total,), text.dtype, data.numpy(), 0, (1,))[places[:, place]] = text
    starts, of_rows = places[:, 0].copy(), lengths[:, 0].copy()
    for place in range(1, len(parts)):  # NumPy's sum over few columns takes several times as long
        of_rows += lengths[:, place]
    return Strings(torch.from_numpy(starts), torch.from_numpy(of_rows), data[:total])


def _write_windows(parts: Sequence[Strings], places: Array, data: Array) -> None:
    """The strings of each row, with what follows them, to their places (int64 [n, parts]) in ascending order."""
    if not parts:
        return
    widths = [max(-(-int(part.lengths.numpy().max()) // _WORD), 1) * _WORD for part in parts]
    pieces = np.empty(places.shape, f"V{max(widths)}")
    read: dict[int, Array] = {}  # by part, which may be there several times
    for column, (part, width) in enumerate(zip(parts, widths, strict=True)):
        # The first bytes of the windows; whatever stands behind them is overwritten.
        first = np.ndarray((len(pieces),), f"V{width}", pieces.data, column * max(widths), pieces.strides[:1])
        if id(part) not in read:
            read[id(part)] = _windows(part, width)
        first[:] = read[id(part)]
    # A view whose row i is the bytes from i on.
    target = np.ndarray((data.shape[0] - max(widths) + 1,), pieces.dtype, data, 0, (1,))
    target[places.reshape(-1)] = pieces.reshape(-1)


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
