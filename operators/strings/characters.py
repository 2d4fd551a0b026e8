"""Characters (UTF-8 code points) against bytes: counting them, and cutting strings by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.rows.runs import sums_before
from tqp.operators.rows.selection import row_indices
from tqp.operators.strings.layout import compact, extent, from_arrow, ordered, to_arrow, total_length
from tqp.operators.strings.words import words

#: How much more than the strings themselves may be scanned in place of compacting them, which costs more a byte.
_SLACK = 64
#: No row has more bytes.
_LONGEST = torch.iinfo(torch.int32).max


def is_ascii(strings: Strings) -> bool:
    """Whether every character is one byte."""
    data = strings.data
    # Where the strings lie costs more to find out than to look at so many bytes.
    if data.shape[0] <= _SLACK * strings.num_rows and _all_ascii(data):
        return True
    low, high = extent(strings)
    total = total_length(strings)
    if total == 0 or (high - low <= _SLACK * total and _all_ascii(data[low:high])):
        return True
    return _all_ascii(compact(strings).data)


def _all_ascii(data: Tensor) -> bool:
    if is_host(data):
        return bool(data.shape[0] == 0 or data.numpy().max() < 0x80)
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
        at_end = characters >= self.counts
        lead = (self.first + characters).clamp_(max=max(self.leads.shape[0] - 1, 0))
        offsets = torch.index_select(self.leads, 0, lead) - self.strings.starts
        return torch.where(at_end, self.strings.lengths.to(torch.int64), offsets)


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

    No bytes are moved when all are ASCII and neither is negative.
    """
    if start < 0 or stop is None or stop < 0 or not is_ascii(strings):
        # Arrow takes numbers of 64 bits, and no row is as long as 32 of them hold.
        stop = None if stop is None else min(stop, _LONGEST)
        cut = pc.utf8_slice_codeunits(to_arrow(strings), max(start, -_LONGEST), stop)
        return from_arrow(cut)
    last = strings.lengths.clamp(max=min(stop, _LONGEST))
    if start == 0:
        return Strings(strings.starts, last, strings.data)
    first = strings.lengths.clamp(max=min(start, _LONGEST))
    return Strings(strings.starts + first, last - first, strings.data)


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
