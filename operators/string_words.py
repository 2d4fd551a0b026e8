"""Read strings eight bytes at a time: the step on which comparison, hashing and ranking are built."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from tqp.data.strings import Strings

WORD = 8

#: Entry k keeps the first k bytes of a little-endian word.
_KEEP = torch.tensor([(1 << (8 * k)) - 1 for k in range(8)] + [-1], dtype=torch.int64)


def words(strings: Strings, offset: int, count: int = 1) -> Tensor:
    """Bytes offset .. offset + 8 * count of each row as little-endian words, zero past the row's end.

    int64 [n] when count is 1, else int64 [n, count].
    """
    if count > 1:
        return _wide_words(strings, offset, count)
    data = (
        strings.data
        if strings.data.shape[0] >= WORD
        else pad(strings.data, (0, WORD - strings.data.shape[0]))
    )
    last = data.shape[0] - WORD
    starts = strings.starts + offset if offset else strings.starts
    # A strided view whose row i is the eight bytes from i on: index_select then copies one word a row.
    windows = data.as_strided((last + 1, WORD), (1, 1))
    near_end = starts.device.type != "cpu" or (starts.numel() > 0 and int(starts.max()) > last)
    if near_end:
        inside = starts.clamp(max=last)
        result = torch.index_select(windows, 0, inside).view(torch.int64).view(-1)
        result = result >> ((starts - inside) * 8).clamp_(max=63)
    else:
        result = torch.index_select(windows, 0, starts).view(torch.int64).view(-1)
    remaining = (strings.lengths - offset).clamp_(0, WORD)
    return result & torch.index_select(_KEEP.to(starts.device), 0, remaining)


def _wide_words(strings: Strings, offset: int, count: int) -> Tensor:
    column = torch.arange(offset, offset + WORD * count, device=strings.starts.device)
    present = column < strings.lengths[:, None]
    position = (strings.starts[:, None] + column).mul_(present)
    gathered = torch.index_select(strings.data, 0, position.view(-1)) if strings.data.shape[0] else None
    if gathered is None:
        return torch.zeros((strings.num_rows, count), dtype=torch.int64, device=column.device)
    return (gathered.view(position.shape) * present).view(torch.int64)


def order_key(word: Tensor) -> Tensor:
    """Signed integers that compare as the words' bytes do: int64 [n] -> int64 [n]."""
    if word.device.type == "cpu":
        swapped = torch.from_numpy(word.numpy().byteswap())
    else:
        swapped = word.contiguous().view(torch.uint8).view(-1, WORD).flip(1).reshape(-1).view(torch.int64)
    return swapped ^ torch.iinfo(torch.int64).min


def step_width(offset: int) -> int:
    """How many words to read at once at `offset`: one for the first 64 bytes, then as many as were read already."""
    return 1 if offset < 64 else offset // WORD
