"""Find words in strings: prefixes, suffixes, occurrences and positions. LIKE patterns are built on it in `like`."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tqp.data.backend import has_core_caches, is_host_device
from tqp.data.strings import Strings
from tqp.operators.memory.arrays import Array
from tqp.operators.numbers import elementwise
from tqp.operators.rows.selection import row_indices
from tqp.operators.strings import match as string_match
from tqp.operators.strings.bit_words import Ranks, packed
from tqp.operators.strings.compare import equal
from tqp.operators.strings.layout import ordered, to_list
from tqp.operators.strings.words import stands_at


def starts_with_word(strings: Strings, word: bytes) -> Tensor:
    """Whether each row starts with `word`: bool [n]."""
    return stands_at(strings, strings.starts, word, elementwise.greater_equal(strings.lengths, len(word)))


def ends_with_word(strings: Strings, word: bytes) -> Tensor:
    """Whether each row ends with `word`: bool [n]."""
    places = elementwise.add(strings.starts, strings.lengths).sub_(len(word))
    return stands_at(strings, places, word, elementwise.greater_equal(strings.lengths, len(word)))


def first_occurrences(strings: Strings, word: bytes) -> tuple[Tensor, Tensor]:
    """Where `word` first occurs: the rows that contain it, ascending, and the offset in each; both int64 [m]."""
    device = strings.starts.device
    if not word or strings.num_rows == 0:
        return torch.arange(strings.num_rows, device=device), torch.zeros_like(strings.starts)
    if is_host_device(device):
        found, places = string_match.first_places(strings, string_match.search_for(strings, word))
        return torch.from_numpy(found), torch.from_numpy(places)
    strings = ordered(strings)
    hits = occurrences(strings, word)
    rows = torch.searchsorted(strings.starts, hits, right=True).sub_(1)
    offsets = hits - torch.index_select(strings.starts, 0, rows)
    inside = row_indices(offsets + len(word) <= torch.index_select(strings.lengths, 0, rows))
    rows = torch.index_select(rows, 0, inside)
    is_first = torch.ones_like(rows, dtype=torch.bool)
    torch.ne(rows[1:], rows[:-1], out=is_first[1:])
    kept = row_indices(is_first)
    return torch.index_select(rows, 0, kept), torch.index_select(
        offsets, 0, torch.index_select(inside, 0, kept)
    )


def occurrences(strings: Strings, word: bytes) -> Tensor:
    """Where the non-empty `word` stands in the bytes of ordered strings, overlapping ones and such across rows too.

    int64 [m], ascending.
    """
    if strings.num_rows == 0:
        return torch.zeros_like(strings.starts)
    if is_host_device(strings.starts.device):
        return torch.from_numpy(string_match.all_places(strings, string_match.search_for(strings, word)))
    return _scan(strings.data, *_extent(strings), word)


def number_before(places: Tensor, ends: Tensor) -> Tensor:
    """How many of the places, which ascend and are all different, lie before each end: int64 [n]. Fastest where the ends ascend too."""
    if not is_host_device(ends.device):
        return torch.searchsorted(places, ends)
    ascending, wanted = places.numpy(), ends.numpy()
    if len(wanted) < _MANY_ENDS or len(ascending) == 0 or not _are_close(ascending):
        return torch.from_numpy(np.searchsorted(ascending, wanted))  # a third of torch's time
    return torch.from_numpy(_marked_before(ascending, wanted))


#: From so many ends on, bytes are marked where places lie close together: a fifth of the time of binary searches.
_MANY_ENDS = 4096
#: Places are close together that take up so much of the bytes between them.
_CLOSE = 1 / 64


def _are_close(places: Array) -> bool:
    return len(places) > _CLOSE * int(places[-1] - places[0])


def _marked_before(places: Array, ends: Array) -> Array:
    """As `number_before`: a bit of words is 1 for each place, whole ones are counted by a running sum."""
    low = int(places[0])
    flags = np.zeros(int(places[-1]) - low + 1, np.bool_)
    flags[places - low] = True
    counts: Array = Ranks(packed(flags)).at(np.clip(ends - low, 0, flags.shape[0]))
    return counts


def _extent(strings: Strings) -> tuple[int, int]:
    """Where the first of the ordered rows begins and the last one ends, in one read; at least one row."""
    first, last = torch.stack([strings.starts[0], strings.starts[-1] + strings.lengths[-1]]).tolist()
    return first, last


#: So few bytes are compared one by one: that asks for fewer steps, each of which costs more than to read so many.
_FEW_BYTES = 1 << 20
#: Bytes that are searched at a time, so that what is computed of them stays in the caches.
_BLOCK = 1 << 20
_INTEGERS = {2: torch.int16, 4: torch.int32}


def _scan(data: Tensor, low: int, high: int, word: bytes) -> Tensor:
    """Where `word` stands in data[low:high]: int64 [m], ascending.

    Integers of k bytes, one next to the other, are looked at: wherever a word of 2k - 1 bytes or more begins, one of them lies
    within it, and begins at one of its first k bytes. So it is looked for by k integers, and compared where one of them is.
    """
    size = 4 if len(word) >= 7 else 2
    values = [int.from_bytes(word[at : at + size], "little", signed=True) for at in range(size)]
    if high - low < _FEW_BYTES or len(word) < 2 * size - 1 or len(set(values)) < size:
        return _scan_bytes(data[low:high], word).add_(low)
    before = (int(data.storage_offset()) + low) % size
    if before > low:  # integers cannot begin where the data does
        return _scan(data[low:high].clone(), 0, high - low, word).add_(low)
    first = low - before
    integers = data[first : high - (high - first) % size].view(_INTEGERS[size])
    step = _BLOCK // size if has_core_caches(data) else max(1, integers.shape[0])
    found = []
    for start in range(0, max(1, integers.shape[0]), step):
        block = integers[start : start + step]
        found.append(row_indices(elementwise.any_of([block == value for value in values])).add_(start))
    chosen = torch.cat(found) if len(found) > 1 else found[0]
    integer = torch.index_select(integers, 0, chosen)
    looked_for = torch.tensor(values, dtype=integers.dtype, device=data.device)
    places = chosen * size + first - (integer.unsqueeze(1) == looked_for).to(torch.uint8).argmax(1)
    inside = torch.arange(len(word), device=data.device)
    positions = (places.unsqueeze(1) + inside).clamp_(low, high - 1)  # bytes outside are none of the word
    bytes_there = torch.index_select(data, 0, positions.flatten()).view(-1, len(word))
    is_word = (bytes_there == torch.tensor(list(word), dtype=torch.uint8, device=data.device)).all(1)
    is_inside = (positions[:, -1] - positions[:, 0]) == len(word) - 1
    return torch.index_select(places, 0, row_indices(is_word & is_inside))


def _scan_bytes(span: Tensor, word: bytes) -> Tensor:
    """Positions of `word` in `span`: every byte compared everywhere."""
    count = span.shape[0] - len(word) + 1
    if count <= 0:
        return torch.empty(0, dtype=torch.int64, device=span.device)
    matches = span[:count] == word[0]
    for offset in range(1, len(word)):
        matches &= span[offset : offset + count] == word[offset]
    return row_indices(matches)


# Functions with the needle as an argument -----------------------------------------------------------------------------


def starts_with(strings: Strings, needle: Strings) -> Tensor:
    """starts_with(strings, needle): bool [n]. Either side may be one row."""
    return _stands_at_edge(strings, needle, at_end=False)


def ends_with(strings: Strings, needle: Strings) -> Tensor:
    """ends_with(strings, needle): bool [n]. Either side may be one row."""
    return _stands_at_edge(strings, needle, at_end=True)


def _stands_at_edge(strings: Strings, needle: Strings, at_end: bool) -> Tensor:
    fits = strings.lengths >= needle.lengths
    lengths = torch.minimum(strings.lengths, needle.lengths)
    starts = strings.starts + (strings.lengths - lengths) * at_end
    return equal(Strings(starts, lengths, strings.data), needle).logical_and_(fits)


def contains(strings: Strings, needle: Strings) -> Tensor:
    """contains(strings, needle): bool [n]. Either side may be one row."""
    return find(strings, needle) >= 0


def find(strings: Strings, needle: Strings) -> Tensor:
    """Byte offset of the first occurrence of `needle` in each row, -1 without one: int64 [n]."""
    device = strings.starts.device
    if needle.num_rows == 1:
        rows, offsets = first_occurrences(strings, to_list(needle)[0])
        return torch.full_like(strings.starts, -1).index_copy_(0, rows, offsets)
    haystacks, needles = to_list(strings), to_list(needle)
    if len(haystacks) == 1:
        haystacks *= len(needles)
    found = [haystack.find(word) for haystack, word in zip(haystacks, needles, strict=True)]
    return torch.tensor(found, dtype=torch.int64, device=device)
