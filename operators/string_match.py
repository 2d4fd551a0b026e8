"""Which strings contain given words, in main memory: numpy on views of their bytes, in pieces that stay in the cache."""

from __future__ import annotations

import numpy as np
import torch

from tqp.data.strings import Strings
from tqp.operators import string_scan
from tqp.operators.string_layout import cut, is_ordered, ordered, row_ends, rows_of_block
from tqp.operators.string_scan import Bytes, Mask, Positions, Search

#: Rows are searched at a time in which a word likely stands so often, between the least and the most bytes: what is
#: computed of the places stays in the cache, and there are few short operations.
_PLACES = 1 << 16
_LEAST_BYTES, _MOST_BYTES = 1 << 23, 1 << 26
#: Rows that do not lie in order are looked at in windows of twice their mean length, of so many bytes at least.
_MEAN_WIDTHS, _LEAST_WIDTH = 2, 16
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
    num_bytes = _PLACES / max(max(search.share for search in searches), _PLACES / _MOST_BYTES)
    step = rows_of_block(strings, max(int(num_bytes), _LEAST_BYTES))
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
    if not is_ordered(strings):
        return _first_in_windows(strings, search) >= 0
    span, low = _span(strings)
    if search.is_common(span.shape[0], strings.num_rows):
        return string_scan.matches_within(
            strings.data.numpy(), strings.starts.numpy(), row_ends(strings), search.word
        )
    hits = string_scan.find_all(span, search)
    hits += low
    rows, _ = _places_in_rows(strings, hits, len(search.word))
    result[rows] = True
    return result


def first_places(strings: Strings, search: Search) -> tuple[Positions, Positions]:
    """The rows that contain the word, ascending, and the offset of its first occurrence: both int64 [m]."""
    if strings.num_rows == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    starts = strings.starts.numpy()
    if not is_ordered(strings):
        places = _first_in_windows(strings, search)
        rows = np.flatnonzero(places >= 0)
        return rows, places.take(rows) - starts.take(rows)
    span, low = _span(strings)
    hits = string_scan.find_all(span, search)
    hits += low
    if hits.shape[0] >= strings.num_rows:
        # Few rows against the hits: look up each row's first hit. If it does not end in the row, no later one does.
        first = np.searchsorted(hits, starts)
        np.minimum(first, hits.shape[0] - 1, out=first)
        places = hits.take(first)
        rows = np.flatnonzero((places >= starts) & (places + len(search.word) <= row_ends(strings)))
        return rows, places.take(rows) - starts.take(rows)
    rows, places = _first_of_each(*_places_in_rows(strings, hits, len(search.word)))
    return rows, places - starts.take(rows)


def all_places(strings: Strings, search: Search) -> tuple[Positions, Positions]:
    """All occurrences of the word, overlapping ones too: rows and offsets in them, ascending, int64 [m].

    At least one row.
    """
    strings = ordered(strings)
    span, low = _span(strings)
    hits = string_scan.find_all(span, search)
    hits += low
    rows, places = _places_in_rows(strings, hits, len(search.word))
    return rows, places - strings.starts.numpy().take(rows)


def _first_in_windows(strings: Strings, search: Search) -> Positions:
    """Where in the bytes the word first stands in each row, which may lie anywhere; -1 without one: int64 [n].

    As many bytes of each row as most have are copied next to those of the other rows; longer ones have more of their
    bytes copied, for rows in which the word was not found.
    """
    word, data = search.word, strings.data
    found = np.full(strings.num_rows, -1)
    rows, low, stops = np.arange(strings.num_rows), strings.starts.numpy(), row_ends(strings)
    width = max(_MEAN_WIDTHS * int((stops - low).mean()), _LEAST_WIDTH)
    while True:
        fits = np.flatnonzero(low + len(word) <= stops)
        if fits.shape[0] < rows.shape[0]:
            rows, low, stops = rows.take(fits), low.take(fits), stops.take(fits)
        if rows.shape[0] == 0:
            return found
        # No wider than the longest row; wide enough for a word at every place but the last ones.
        width = min(max(min(width, int((stops - low).max())), 2 * len(word)), data.shape[0])
        inside = np.minimum(low, data.shape[0] - width)
        for first in range(0, rows.shape[0], step := max(string_scan.BLOCK // width, 1)):
            block = slice(first, first + step)
            hits = string_scan.find_all(string_scan.windows(data.numpy(), width, inside[block]), search)
            which = hits // width
            offsets = hits - which * width
            which += first
            places = inside.take(which) + offsets
            within = (places >= low.take(which)) & (places + len(word) <= stops.take(which))
            within &= offsets + len(word) <= width
            which, places = _first_of_each(which[within], places[within])
            found[rows.take(which)] = places
        low = inside + (width - len(word) + 1)
        low[found.take(rows) >= 0] = np.iinfo(np.int64).max >> 1  # done
        width *= 2


def _span(strings: Strings) -> tuple[Bytes, int]:
    """All the bytes of ordered rows, of which there is one at least, and the place of the first."""
    low, high = int(strings.starts[0]), int(strings.starts[-1]) + int(strings.lengths[-1])
    return strings.data.numpy()[low:high], low


def _places_in_rows(strings: Strings, hits: Positions, length: int) -> tuple[Positions, Positions]:
    """The row of ordered strings in which each hit lies and its place in the bytes; without those that leave their row."""
    starts, lengths = strings.starts.numpy(), strings.lengths.numpy()
    rows = string_scan.rows_of(starts, hits)
    inside = hits + length <= starts.take(rows) + lengths.take(rows)
    if not inside.all():
        rows, hits = rows[inside], hits[inside]
    return rows, hits


def _first_of_each(rows: Positions, places: Positions) -> tuple[Positions, Positions]:
    """Each row that is in `rows` (int64 [m], ascending) once, with the first of its places."""
    if rows.shape[0] == 0:
        return rows, places
    firsts = np.flatnonzero(rows[1:] != rows[:-1])
    firsts += 1
    firsts = np.concatenate([[0], firsts])
    return rows.take(firsts), places.take(firsts)


def _slices(strings: Strings, rows: Positions, offsets: Positions | None = None) -> Strings:
    """Rows by index, from `offsets` on."""
    starts, lengths = strings.starts.numpy().take(rows), strings.lengths.numpy().take(rows)
    if offsets is not None:
        starts += offsets
        lengths -= offsets.astype(np.int32)
    return Strings(torch.from_numpy(starts), torch.from_numpy(lengths), strings.data)
