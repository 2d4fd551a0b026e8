"""Strings as integers: all bits in which the rows differ, if 63 hold them. Sorting and grouping such strings then is
sorting and grouping integers. "Customer#000012345" has nine digits that differ in their low four bits: 36 bits.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators import allocation
from tqp.operators.string_layout import cut, take
from tqp.operators.string_words import BLOCK, LONGEST_LEADING, WORD, any_ends_in_nul, leading_words, words

_BITS = 63
_SAMPLE_ROWS = 512


def pack(strings: Strings) -> Tensor | None:
    """int64 [n], not negative, that compare as the rows do byte by byte; None if no such 63 bits are found."""
    num_rows = strings.num_rows
    if num_rows == 0:
        return torch.zeros_like(strings.starts)
    shortest, longest = (int(extreme) for extreme in strings.lengths.aminmax())
    if longest > LONGEST_LEADING:
        return None
    count = -(-longest // WORD)
    if num_rows > BLOCK:
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
        found = leading_words(block, count * WORD)
        if not same_length and any_ends_in_nul(found, block.lengths):
            return None  # looks like another row
        for position, word in enumerate(found):
            columns[position][start : start + step] = big_endian(word)
            differing[position] |= differing_bits(
                columns[position][start : start + step], columns[position][:1]
            )
        if sum(bits.bit_count() for bits in differing) > _BITS:
            return None
    result = allocation.full(num_rows, 0, torch.int64, device)
    for start in range(0, num_rows, step):
        part = result[start : start + step]
        for column, bits in zip(columns, differing, strict=True):
            append_bits(part, column[start : start + step], bits)
    return result


def word_masks(strings: Strings, first: Strings, room: int | None, count: int | None = None) -> list[int]:
    """For each word, from the first on, the bits in which any row differs from the one row `first`.

    As many words as it takes to differ in more than `room` bits, or `count`.
    """
    count = count or max(1, -(-int(strings.lengths.max()) // WORD))
    masks: list[int] = []
    for word, value in zip(_words(strings, count), _words(first, count), strict=True):
        masks.append(differing_bits(big_endian(word), big_endian(value)))
        if room is not None and sum(bits.bit_count() for bits in masks) > room:
            break
    return masks


def leading_bytes(masks: Sequence[int], room: int) -> tuple[list[int], int]:
    """The masks of the first bytes, as many as differ in at most `room` bits; and how many bytes these are."""
    kept: list[int] = []
    for bits in masks:
        for num_bytes in range(WORD, -1, -1):
            cut_off = 8 * (WORD - num_bytes)
            leading = bits >> cut_off << cut_off
            if leading.bit_count() <= room:
                break
        kept.append(leading)
        room -= leading.bit_count()
        if num_bytes < WORD:
            return kept, len(kept) * WORD - WORD + num_bytes
    return kept, len(kept) * WORD


def pack_bits(strings: Strings, masks: Sequence[int]) -> Tensor:
    """int64 [n]: the bits of the first words that the masks name, one after the other; at most 63."""
    codes = torch.zeros_like(strings.starts)
    for word, bits in zip(_words(strings, len(masks)), masks, strict=True):
        if bits:
            append_bits(codes, big_endian(word), bits)
    return codes


def _words(strings: Strings, count: int) -> Iterable[Tensor]:
    """The first `count` words of each row: int64 [n] each."""
    if count * WORD <= LONGEST_LEADING:
        return leading_words(strings, count * WORD)
    return (words(strings, position * WORD) for position in range(count))


def append_bits(codes: Tensor, word: Tensor, bits: int) -> None:
    """Shift `codes` (int64 [n]) to the left, and in come those of the word's bits that `bits` names."""
    runs, moves = _runs_of_ones(bits), _moves(bits)
    if len(runs) <= len(moves):
        for shift, width in runs:
            run = word >> shift if shift else word
            codes.bitwise_left_shift_(width).bitwise_or_(run & ((1 << width) - 1))
        return
    word = word & _signed(bits)
    for shift, moving in moves:
        moved = word & _signed(moving)
        word ^= moved
        moved >>= shift
        if moving >> 63:
            moved &= (1 << 64 - shift) - 1
        word |= moved
    codes.bitwise_left_shift_(bits.bit_count()).bitwise_or_(word)


@functools.lru_cache(maxsize=256)
def _moves(bits: int) -> tuple[tuple[int, int], ...]:
    """(shift, bits) of steps that bring the named bits together at the low end: in each, some move to the right.

    A bit moves by the number of the zeros below it: by 1 where that is odd, then by 2, by 4, and so on.
    """
    steps = []
    places = {place: place for place in range(64) if bits >> place & 1}  # where each is now
    zeros = {place: place - number for number, place in enumerate(places)}
    for shift in (1, 2, 4, 8, 16, 32):
        moving = [place for place in places if zeros[place] & shift]
        if moving:
            steps.append((shift, sum(1 << places[place] for place in moving)))
            for place in moving:
                places[place] -= shift
    return tuple(steps)


def _signed(bits: int) -> int:
    return bits - (bits >> 63 << 64)


def big_endian(word: Tensor) -> Tensor:
    """Words whose most significant byte is the first one of the string."""
    if word.device.type == "cpu":
        return torch.from_numpy(word.numpy().byteswap())
    return word.contiguous().view(torch.uint8).view(-1, WORD).flip(1).reshape(-1).view(torch.int64)


def differing_bits(word: Tensor, first: Tensor) -> int:
    """The bits in which any row differs from `first`, as an unsigned integer."""
    difference = word ^ first
    if word.device.type == "cpu":
        found = int(np.bitwise_or.reduce(difference.numpy()))
    else:
        bits = torch.arange(64, device=word.device)
        present = ((difference.unsqueeze(1) >> bits) & 1).amax(0)
        found = sum(int(bit) << position for position, bit in enumerate(present.tolist()))
    return found & ((1 << 64) - 1)


def _runs_of_ones(bits: int) -> list[tuple[int, int]]:
    """(shift, width) of the runs of ones, the most significant first."""
    found = []
    position = 0
    while bits >> position:
        position += ((bits >> position) & -(bits >> position)).bit_length() - 1
        width = (~(bits >> position) & ((bits >> position) + 1)).bit_length() - 1
        found.append((position, width))
        position += width
    return found[::-1]
