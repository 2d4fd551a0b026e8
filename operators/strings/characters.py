"""Characters (UTF-8 code points) against bytes: counting them, and cutting strings by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.rows.runs import sums_before
from tqp.operators.rows.selection import row_indices
from tqp.operators.strings.layout import compact, extent, from_arrow, ordered, take, to_arrow, total_length
from tqp.operators.strings.marked_bytes import (
    CERTAIN_BITS,
    ROWS_AT_ONCE,
    bits_from,
    lowest,
    packed_marks,
    without_lowest,
)
from tqp.operators.strings.words import words

#: How much more than the strings themselves may be scanned in place of compacting them, which costs more a byte.
_SLACK = 64
#: Texts with other letters mostly have one among so many bytes: the others need not be looked at.
_FIRST_BYTES = 4096
#: No row has more bytes.
_LONGEST = torch.iinfo(torch.int32).max
#: So many characters lie within as many bytes as bits of a word are certain.
_FEW_CHARACTERS = CERTAIN_BITS // 4
#: A buffer is searched for the starts of characters where it has at most so many times the bytes of its rows.
_LEAD_SLACK = 4


def is_ascii(strings: Strings) -> bool:
    """Whether every character is one byte; False also where only bytes between the rows say otherwise."""
    data = strings.data
    # Where the strings lie costs more to find out than to look at so many bytes.
    if data.shape[0] <= _SLACK * strings.num_rows and _all_ascii(data):
        return True
    low, high = extent(strings)
    total = total_length(strings)
    if total == 0 or (high - low <= _SLACK * total and _all_ascii(data[low:high])):
        return True
    # Other letters in a buffer that is mostly the rows' are likely theirs, which costs less to say than to find out.
    return high - low > 2 * total and _all_ascii(compact(strings).data)


def _all_ascii(data: Tensor) -> bool:
    if is_host(data):
        content = data.numpy()
        if content.shape[0] > _FIRST_BYTES and content[:_FIRST_BYTES].max() >= 0x80:
            return False
        return bool(content.shape[0] == 0 or content.max() < 0x80)
    return bool((data < 0x80).all())


def character_lengths(strings: Strings) -> Tensor:
    """Characters in each row: int64 [n]."""
    if is_ascii(strings):
        return strings.lengths.to(torch.int64)
    if is_host(strings.starts):
        return torch.from_numpy(np.array(pc.utf8_length(to_arrow(strings)), np.int64))
    return index_characters(strings).counts


class CharacterIndex(NamedTuple):
    """Where the characters of `strings` start."""

    strings: Strings
    leads: Tensor  # int64 [characters], offset into `data` of each character's first byte
    first: Tensor  # int64 [n], index into `leads` of the row's first character
    counts: Tensor  # int64 [n], characters in the row

    def byte_offsets(self, characters: Tensor) -> Tensor:
        """Byte offset in its row of character number `characters` (int64 [n], 0 up to the row's count): int64 [n]."""
        if not self.leads.shape[0]:
            return torch.zeros_like(characters)
        at_end = characters >= self.counts
        lead = (self.first + characters).clamp_(max=max(self.leads.shape[0] - 1, 0))
        offsets = torch.index_select(self.leads, 0, lead) - self.strings.starts
        return torch.where(at_end, self.strings.lengths.to(torch.int64), offsets)

    def of_rows(self, rows: Tensor) -> CharacterIndex:
        """The index of these rows (int64 [m])."""
        first, counts = (torch.index_select(each, 0, rows) for each in (self.first, self.counts))
        return self._replace(strings=take(self.strings, rows), first=first, counts=counts)


def index_characters(strings: Strings) -> CharacterIndex:
    """Find the characters of all rows."""
    strings = ordered(strings)
    low, high = extent(strings)
    # Bytes 10xxxxxx continue a character.
    is_lead = (strings.data[low:high] & 0xC0) != 0x80
    leads = row_indices(is_lead).add_(low)
    before = sums_before(is_lead)  # how many stand before each byte
    first = torch.index_select(before, 0, strings.starts - low)
    after = torch.index_select(before, 0, strings.starts + strings.lengths - low)
    return CharacterIndex(strings, leads, first, after - first)


#: From the rows' character counts to the characters where to start and stop.
Bounds = Callable[[Tensor], tuple[Tensor, Tensor]]


def slice_characters(strings: Strings, bounds: Bounds) -> Strings:
    """Characters start .. stop of each row, where `bounds(counts)` gives both, int64 [n] or 0-d, from 0.

    Both are cut to the row. No bytes are moved when all are ASCII.
    """
    if is_ascii(strings):
        counts = strings.lengths.to(torch.int64)
        first, last = inside(bounds(counts), counts)
    else:
        index = index_characters(strings)
        strings = index.strings
        first, last = inside(bounds(index.counts), index.counts)
        first, last = index.byte_offsets(first), index.byte_offsets(last)
    return Strings(strings.starts + first, (last - first).to(torch.int32), strings.data)


def slice_same_characters(strings: Strings, start: int, stop: int | None) -> Strings:
    """Characters start .. stop of each row (None: to the end), on the CPU; negative ones count from the end, as in Python.

    No bytes are moved when neither is negative, and all are ASCII or the characters are among the first few.
    """
    if strings.num_rows == 0:
        return strings
    is_forward = start >= 0 and stop is not None and stop >= 0
    if not is_forward or not is_ascii(strings):
        longest = int(strings.lengths.numpy().max())
        # Arrow takes numbers of 64 bits, and no row is as long as 32 of them hold.
        stop = None if stop is None else min(stop, _LONGEST)
        if stop is not None and is_forward and _are_first((start, stop), longest):
            return _slice_first_characters(strings, start, stop)
        cut = pc.utf8_slice_codeunits(to_arrow(strings), max(start, -_LONGEST), stop)
        return from_arrow(cut)
    assert stop is not None
    last = strings.lengths.clamp(max=min(stop, _LONGEST))
    if start == 0:
        return Strings(strings.starts, last, strings.data)
    first = strings.lengths.clamp(max=min(start, _LONGEST))
    return Strings(strings.starts + first, last - first, strings.data)


def _are_first(numbers: Sequence[int], longest: int) -> bool:
    """Whether each of the characters is one of the first few, or behind the end of all rows of at most `longest` bytes."""
    return all(number <= _FEW_CHARACTERS or number >= longest for number in numbers)


def _slice_first_characters(strings: Strings, start: int, stop: int) -> Strings:
    """As `slice_same_characters`, of those that `_are_first`. No bytes are moved."""
    low, high = extent(strings)
    if high - low > _LEAD_SLACK * total_length(strings):
        strings = compact(strings)
        low, high = extent(strings)
    numbers = sorted({number for number in (start, stop) if 0 < number <= _FEW_CHARACTERS})
    found = dict(zip(numbers, _bytes_of_first(strings, low, high, numbers), strict=True))
    first, last = (
        torch.zeros_like(strings.lengths) if number == 0 else found.get(number, strings.lengths)
        for number in (start, stop)
    )
    return Strings(strings.starts + first, (last - first).clamp_(min=0), strings.data)


def _bytes_of_first(strings: Strings, low: int, high: int, numbers: Sequence[int]) -> list[Tensor]:
    """For each of the numbers, ascending, how many bytes of each row its first so many characters take: int32 [n].

    A bit for each byte of the buffer, all of which lie from `low` to `high`, says whether a character starts there. The bits from
    the row's start on are a word, of which those of the characters to leave out are cleared: the next one stands behind them.
    """
    starts, lengths = strings.starts.numpy(), strings.lengths.numpy()
    is_lead = strings.data[low:high].numpy().view(np.int8) >= -64  # bytes 10xxxxxx continue a character
    leads = packed_marks(is_lead)
    found = [np.empty_like(lengths) for _ in numbers]
    for begin in range(0, len(starts), ROWS_AT_ONCE):
        rows = slice(begin, begin + ROWS_AT_ONCE)
        ahead = bits_from(leads, starts[rows] - low)
        cleared = 0
        for number, result in zip(numbers, found, strict=True):
            for _ in range(cleared, number):
                ahead = without_lowest(ahead)
            cleared = number
            np.minimum(lowest(ahead), lengths[rows], out=result[rows])
    return [torch.from_numpy(each) for each in found]


def inside(bounds: tuple[Tensor, Tensor], counts: Tensor) -> tuple[Tensor, Tensor]:
    """The bounds, cut to rows of so many characters, and none before the other."""
    start, stop = bounds
    first = torch.minimum(start.clamp(min=0), counts)
    return first, torch.maximum(torch.minimum(stop, counts), first)


def first_code_points(strings: Strings) -> Tensor:
    """The code point of each row's first character, 0 in empty rows: int64 [n]."""
    word = words(strings, 0)
    lead = word & 0xFF
    tail = [(word >> shift) & 0x3F for shift in (8, 16, 24)]
    two = ((lead & 0x1F) << 6) | tail[0]
    three = ((lead & 0x0F) << 12) | (tail[0] << 6) | tail[1]
    four = ((lead & 0x07) << 18) | (tail[0] << 12) | (tail[1] << 6) | tail[2]
    return torch.where(
        lead < 0x80, lead, torch.where(lead < 0xE0, two, torch.where(lead < 0xF0, three, four))
    )
