"""Which strings contain given words, in main memory: numpy on views of their bytes, in pieces that stay in the cache."""

from __future__ import annotations

import numpy as np
import torch

from tqp.data.strings import Strings
from tqp.operators import string_scan
from tqp.operators.string_layout import cut, ordered, row_ends, rows_of_block
from tqp.operators.string_scan import Bytes, Mask, Positions, Search

#: Bytes of the rows that are searched at a time: what is computed of them stays in the cache.
_BLOCK = 1 << 23
#: A later word is looked for first if its rarest byte is this many times as rare as the first word's.
_MUCH_RARER = 8


def has_words(strings: Strings, words: list[bytes]) -> Mask:
    """Whether each row contains the non-empty words one after the other: bool [n]. At least one word."""
    result = np.zeros(strings.num_rows, np.bool_)
    if strings.num_rows == 0:
        return result
    searches = [search_for(strings, word) for word in words]
    rarest = min(range(len(words)), key=lambda number: searches[number].rarity)
    if searches[rarest].rarity * _MUCH_RARER >= searches[0].rarity:
        rarest = 0
    step = rows_of_block(strings, _BLOCK)
    for start in range(0, strings.num_rows, step):
        _mark(result[start : start + step], cut(strings, start, start + step), searches, rarest)
    return result


def _mark(result: Mask, strings: Strings, searches: list[Search], rarest: int) -> None:
    """Write into `result` (bool [n], all false) which rows have the words one after the other.

    Rows without the rarest one drop out first, unless that is the first; then the words in order, each as far left as it
    can be.
    """
    rows: Positions | None = None  # those that are left; None for all
    if rarest > 0:
        rows, _ = first_places(strings, searches[rarest])
        strings = _slices(strings, rows)
    for search in searches[:-1]:
        kept, places = first_places(strings, search)
        rows = kept if rows is None else rows.take(kept)
        strings = _slices(strings, kept, places + len(search.word))
    found = _contains_word(strings, searches[-1])
    if rows is None:
        result[:] = found
    else:
        result[rows[found]] = True


def search_for(strings: Strings, word: bytes) -> Search:
    """How to look for the non-empty `word` in `strings`."""
    if strings.num_rows == 0:
        return string_scan.search_for(word, np.empty(0, np.uint8))
    low = int(strings.starts[0])
    high = int(strings.starts[-1]) + int(strings.lengths[-1])
    data = strings.data.numpy()
    return string_scan.search_for(word, data[low:high] if low < high else data)


def _contains_word(strings: Strings, search: Search) -> Mask:
    """Whether the word occurs in each row: bool [n]."""
    result = np.zeros(strings.num_rows, np.bool_)
    if strings.num_rows == 0:
        return result
    strings = ordered(strings)
    starts, stops, low, span = _span(strings)
    if search.is_common(span.shape[0], strings.num_rows):
        return string_scan.matches_within(strings.data.numpy(), starts, stops, search.word)
    rows, _ = _places_in_rows(starts, stops, low, string_scan.find_all(span, search), len(search.word))
    result[rows] = True
    return result


def first_places(strings: Strings, search: Search) -> tuple[Positions, Positions]:
    """The rows that contain the word, ascending, and the offset of its first occurrence: both int64 [m]."""
    if strings.num_rows == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    strings = ordered(strings)
    starts, stops, low, span = _span(strings)
    hits = string_scan.find_all(span, search)
    if hits.shape[0] >= strings.num_rows:
        # Few rows against the hits: look up each row's first hit. If it does not end in the row, no later one does.
        hits += low
        first = np.searchsorted(hits, starts)
        np.minimum(first, hits.shape[0] - 1, out=first)
        places = hits.take(first)
        rows = np.flatnonzero((places >= starts) & (places + len(search.word) <= stops))
        return rows, places.take(rows) - starts.take(rows)
    rows, places = _places_in_rows(starts, stops, low, hits, len(search.word))
    if rows.shape[0]:
        firsts = np.flatnonzero(rows[1:] != rows[:-1])
        firsts += 1
        firsts = np.concatenate([[0], firsts])
        rows, places = rows.take(firsts), places.take(firsts)
    return rows, places - starts.take(rows)


def all_places(strings: Strings, search: Search) -> tuple[Positions, Positions]:
    """All occurrences of the word, overlapping ones too: rows and offsets in them, ascending, int64 [m].

    At least one row.
    """
    strings = ordered(strings)
    starts, stops, low, span = _span(strings)
    rows, places = _places_in_rows(starts, stops, low, string_scan.find_all(span, search), len(search.word))
    return rows, places - starts.take(rows)


def _span(strings: Strings) -> tuple[Positions, Positions, int, Bytes]:
    """Starts and ends of ordered rows, of which there is one at least, the first of their bytes, and all their bytes."""
    starts, stops = strings.starts.numpy(), row_ends(strings)
    low = int(starts[0])
    return starts, stops, low, strings.data.numpy()[low : int(stops[-1])]


def _places_in_rows(
    starts: Positions, ends: Positions, low: int, hits: Positions, length: int
) -> tuple[Positions, Positions]:
    """The row in which each hit, counted from `low`, lies and its place in the bytes; without those that leave their row."""
    hits += low
    rows = string_scan.rows_of(starts, hits)
    inside = hits + length <= ends.take(rows)
    if not inside.all():
        rows, hits = rows[inside], hits[inside]
    return rows, hits


def _slices(strings: Strings, rows: Positions, offsets: Positions | None = None) -> Strings:
    """Rows by index, from `offsets` on."""
    starts, lengths = strings.starts.numpy().take(rows), strings.lengths.numpy().take(rows)
    if offsets is not None:
        starts += offsets
        lengths -= offsets.astype(np.int32)
    return Strings(torch.from_numpy(starts), torch.from_numpy(lengths), strings.data)
