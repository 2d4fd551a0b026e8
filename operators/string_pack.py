"""Strings as integers: all bits in which the rows differ, if 63 hold them. Sorting and grouping such strings then is
sorting and grouping integers. "Customer#000012345" has nine digits that differ in their low four bits: 36 bits.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators import allocation
from tqp.operators.string_layout import cut, take
from tqp.operators.string_words import BLOCK, WORD, words

_BITS = 63
#: Longer rows are not looked at: they would hardly fit.
_LONGEST = 64
_SAMPLE_ROWS = 512


def pack(strings: Strings) -> Tensor | None:
    """int64 [n], not negative, that compare as the rows do byte by byte; None if no such 63 bits are found."""
    num_rows = strings.num_rows
    if num_rows == 0:
        return torch.zeros_like(strings.starts)
    shortest, longest = (int(extreme) for extreme in strings.lengths.aminmax())
    if longest > _LONGEST:
        return None
    count = -(-longest // WORD)
    if num_rows > 8 * _SAMPLE_ROWS:
        step = num_rows // _SAMPLE_ROWS
        sample = take(strings, torch.arange(0, num_rows, step, device=strings.starts.device))
        if _packed(sample, count, shortest == longest) is None:
            return None
    return _packed(strings, count, shortest == longest)


def _packed(strings: Strings, count: int, same_length: bool) -> Tensor | None:
    num_rows, device = strings.num_rows, strings.starts.device
    on_host = device.type == "cpu"
    step = BLOCK if on_host else num_rows
    columns = [allocation.empty((num_rows,), torch.int64, device) for _ in range(count)]
    differing = [0] * count
    for start in range(0, num_rows, step):
        block = cut(strings, start, start + step)
        for position, column in enumerate(columns):
            word = _big_endian(words(block, position * WORD))
            if not same_length and _has_inner_nul(word, block.lengths, position * WORD):
                return None
            column[start : start + step] = word
            differing[position] |= _differing_bits(word, column[:1])
        if sum(bits.bit_count() for bits in differing) > _BITS:
            return None
    result = allocation.full(num_rows, 0, torch.int64, device)
    for start in range(0, num_rows, step):
        part = result[start : start + step]
        for column, bits in zip(columns, differing, strict=True):
            block_words = column[start : start + step]
            for shift, width in _runs(bits):
                run = block_words >> shift if shift else block_words
                part.bitwise_left_shift_(width).bitwise_or_(run & ((1 << width) - 1))
    return result


def _big_endian(word: Tensor) -> Tensor:
    """Words whose most significant byte is the first one of the string."""
    if word.device.type == "cpu":
        return torch.from_numpy(word.numpy().byteswap())
    return word.contiguous().view(torch.uint8).view(-1, WORD).flip(1).reshape(-1).view(torch.int64)


def _differing_bits(word: Tensor, first: Tensor) -> int:
    """The bits in which any row differs from `first`, as an unsigned integer."""
    difference = word ^ first
    if word.device.type == "cpu":
        found = int(np.bitwise_or.reduce(difference.numpy()))
    else:
        bits = torch.arange(64, device=word.device)
        present = ((difference.unsqueeze(1) >> bits) & 1).amax(0)
        found = sum(int(bit) << position for position, bit in enumerate(present.tolist()))
    return found & ((1 << 64) - 1)


def _has_inner_nul(word: Tensor, lengths: Tensor, offset: int) -> bool:
    """Whether a row has a zero byte in this word, which would look like its end."""
    num_bytes = word.shape[0] * WORD
    inside = int((lengths - offset).clamp_(0, WORD).sum(dtype=torch.int64))
    return int(torch.count_nonzero(word.view(torch.uint8))) < inside <= num_bytes


def _runs(bits: int) -> list[tuple[int, int]]:
    """(shift, width) of the runs of ones, the most significant first."""
    found = []
    position = 0
    while bits >> position:
        position += ((bits >> position) & -(bits >> position)).bit_length() - 1
        width = (~(bits >> position) & ((bits >> position) + 1)).bit_length() - 1
        found.append((position, width))
        position += width
    return found[::-1]
