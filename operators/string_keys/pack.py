"""Strings as integers: all bits in which the rows differ, if 63 hold them. Sorting and grouping such strings then is
sorting and grouping integers. "Customer#000012345" has nine digits that differ in their low four bits: 36 bits.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.memory import allocation
from tqp.operators.strings.layout import cut, take
from tqp.operators.strings.words import (
    BLOCK,
    LONGEST_LEADING,
    WORD,
    any_ends_in_nul,
    big_endian,
    lacks_nul,
    leading_words,
    words,
)

_BITS = 63
_NARROW_BITS = 32
_ALL_BITS = (1 << 64) - 1
_SAMPLE_ROWS = 512
#: Words of which each bit may become a number of its own.
_FEW_WORDS = 1 << 12


def pack(strings: Strings) -> Tensor | None:
    """int64 [n], not negative, that compare as the rows do byte by byte; None if no such 63 bits are found."""
    num_rows = strings.num_rows
    if num_rows == 0:
        return torch.zeros_like(strings.starts)
    packer = packer_of(strings)
    if packer is None:
        return None
    step = BLOCK if is_host(strings.starts) else num_rows
    for start in range(0, num_rows, step):
        block = cut(strings, start, start + step)
        if not packer.add(leading_words(block, packer.num_bytes), block.lengths):
            return None
    return packer.codes()


class Packing(NamedTuple):
    """What bits of rows their codes hold. Words are unsigned integers whose most significant byte is the first one."""

    #: Of each word the bits in which rows differ: at most 63.
    masks: tuple[int, ...]
    #: The words of one of the rows.
    first: tuple[int, ...]
    #: Do codes that do not fit 32 bits hold the bits between those, too, if 63 bits are enough? These are fewer steps.
    with_holes: bool

    @property
    def held(self) -> tuple[int, ...]:
        """Of each word the bits that the codes hold, one after the other."""
        if self.with_holes and _num_bits(self.masks) > _NARROW_BITS:
            filled = tuple((1 << bits.bit_length()) - (bits & -bits) for bits in self.masks)
            if _num_bits(filled) <= _BITS:
                return filled
        return self.masks

    def joined(self, other: Packing) -> Packing | None:
        """One that holds the rows of both; None if they differ in more bits."""
        pairs = itertools.zip_longest(self.masks, other.masks, self.first, other.first, fillvalue=0)
        masks = tuple(mine | others | (first ^ last) for mine, others, first, last in pairs)
        return self._replace(masks=masks) if _num_bits(masks) <= _BITS else None


def repack(codes: Tensor, packing: Packing, wider: Packing) -> Tensor:
    """Codes (int64 [n]) of rows in one packing, as another one that holds them has them."""
    if packing.held == wider.held:
        return codes
    left, result = _num_bits(packing.held), torch.zeros_like(codes)
    for held, bits, first in itertools.zip_longest(packing.held, wider.held, packing.first, fillvalue=0):
        word = torch.full_like(codes, signed(first & ~held))
        for shift, width in _runs_of_ones(held):
            left -= width
            word |= ((codes >> left) & ((1 << width) - 1)) << shift
        append_bits(result, word, bits)
    return result


class Packer:
    """Packs rows block by block: those that it met first are packed anew if later ones differ from them in more bits."""

    def __init__(self, packing: Packing, num_rows: int, may_end_in_nul: bool, device: torch.device) -> None:
        self.packing, self.may_end_in_nul = packing, may_end_in_nul
        self.num_bytes = len(packing.masks) * WORD
        self._codes = allocation.empty((num_rows,), torch.int64, device)
        self._blocks: list[tuple[int, Packing]] = []  # where each ends, and how it is packed

    def add(self, leading: Sequence[Tensor], lengths: Tensor) -> bool:
        """The next rows, their `num_bytes` leading bytes as `leading_words` has them. Whether all still fit 63 bits."""
        if self.may_end_in_nul and any_ends_in_nul(leading, lengths):
            return False  # looks like another row
        found = [big_endian(word) for word in leading]
        masks = tuple(
            mask | differing_bits(word, first)
            for mask, word, first in zip(self.packing.masks, found, self.packing.first, strict=True)
        )
        if _num_bits(masks) > _BITS:
            return False
        if masks != self.packing.masks:
            self.packing = self.packing._replace(masks=masks)
        start = self._blocks[-1][0] if self._blocks else 0
        end = start + lengths.shape[0]
        part = self._codes[start:end].zero_()
        for word, bits in zip(found, self.packing.held, strict=True):
            append_bits(part, word, bits)
        self._blocks.append((end, self.packing))
        return True

    def codes(self) -> Tensor:
        """Of all rows, as `packing` says: int64 [n]."""
        start = 0
        for end, packing in self._blocks:
            if packing.held != self.packing.held:
                self._codes[start:end] = repack(self._codes[start:end], packing, self.packing)
            start = end
        return self._codes


def packer_of(strings: Strings, with_holes: bool = False) -> Packer | None:
    """For these rows, at least one; None if it is plain that they do not fit. Codes `with_holes` fit those of other rows.

    Without, they tell apart no rows but these.
    """
    num_rows, device = strings.num_rows, strings.starts.device
    shortest, longest = torch.stack(strings.lengths.aminmax()).tolist()
    if longest > LONGEST_LEADING:
        return None
    sample = take(strings, torch.arange(0, num_rows, -(-num_rows // _SAMPLE_ROWS), device=device))
    found = [big_endian(word) for word in leading_words(sample, -(-longest // WORD) * WORD)]
    first = tuple(int(word[0]) & _ALL_BITS for word in found)
    masks = tuple(differing_bits(word, value) for word, value in zip(found, first, strict=True))
    if _num_bits(masks) > _BITS:
        return None
    # zero bytes at the end look like another row, of other rows if not of these
    may_end_in_nul = (with_holes or shortest < longest) and not lacks_nul(strings)
    return Packer(Packing(masks, first, with_holes), num_rows, may_end_in_nul, device)


def _num_bits(masks: Iterable[int]) -> int:
    return sum(bits.bit_count() for bits in masks)


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
        append_bits(codes, big_endian(word), bits)
    return codes


def _words(strings: Strings, count: int) -> Iterable[Tensor]:
    """The first `count` words of each row: int64 [n] each."""
    if count * WORD <= LONGEST_LEADING:
        return leading_words(strings, count * WORD)
    return (words(strings, position * WORD) for position in range(count))


def append_bits(codes: Tensor, word: Tensor, bits: int) -> None:
    """Shift `codes` (int64 [n]) to the left, and in come those of the word's bits that `bits` names."""
    if not bits:
        return
    runs, moves = _runs_of_ones(bits), _moves(bits)
    if len(runs) <= len(moves):
        for shift, width in runs:
            run = word >> shift if shift else word
            codes.bitwise_left_shift_(width).bitwise_or_(run & ((1 << width) - 1))
        return
    word = word & signed(bits)
    for shift, moving in moves:
        moved = word & signed(moving)
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


def signed(bits: int) -> int:
    """The low 64 bits as a signed integer."""
    bits &= _ALL_BITS
    return bits - (bits >> 63 << 64)


def differing_bits(word: Tensor, first: Tensor | int) -> int:
    """The bits in which any row differs from `first` (int64 [1], or its bits), as an unsigned integer."""
    difference = word ^ (signed(first) if isinstance(first, int) else first)
    if is_host(word):
        found = int(np.bitwise_or.reduce(difference.numpy()))
    else:
        bits = torch.arange(64, device=word.device)
        present = ((_or_of_halves(difference).unsqueeze(1) >> bits) & 1).amax(0)
        found = sum(int(bit) << position for position, bit in enumerate(present.tolist()))
    return found & ((1 << 64) - 1)


def _or_of_halves(words: Tensor) -> Tensor:
    """A few words (int64) with the bits that any of `words` (int64 [n]) has: torch has no reduction by OR.

    The middle one of an odd number is in both halves, which changes no bit.
    """
    while (num_words := words.shape[0]) > _FEW_WORDS:
        half = (num_words + 1) // 2
        words = words[:half] | words[num_words - half :]
    return words


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
