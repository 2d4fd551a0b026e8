"""Which strings contain given words, in main memory: numpy on views of their bytes, in pieces that stay in the cache."""

from __future__ import annotations

import numpy as np
import torch

from tqp.data.strings import Strings
from tqp.operators.rows.runs import Runs
from tqp.operators.strings import scan as string_scan
from tqp.operators.strings.layout import cut, extent, is_ordered, row_ends, rows_of_block
from tqp.operators.strings.scan import Bytes, Mask, Positions, Search

#: Rows are searched at a time in which a word likely stands so often, between the least and the most bytes: what is
#: computed of the places stays in the cache, and there are few short operations.
_PLACES = 1 << 16
_LEAST_BYTES, _MOST_BYTES = 1 << 23, 1 << 26
#: Rows that do not lie in order are looked at in windows of twice their mean length, of so many bytes at least.
_MEAN_WIDTHS, _LEAST_WIDTH = 2, 16
#: Words are followed from one to the next without asking for rows where no row is this many times as long as they are in
#: the mean.
_MUCH_LONGER = 3
#: And where the first word has likely at most so many occurrences for each row.
_FEW_HITS = 0.3
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
    if rarest == 0 and len(words) > 1 and is_ordered(strings):
        longest = int(strings.lengths.numpy().max())
        if _can_follow(strings, searches[0], longest):
            result[_followed(strings, searches, longest)] = True
            return result
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
    return string_scan.search_for(word, strings.data.numpy())


def _can_follow(strings: Strings, search: Search, longest: int) -> bool:
    """Whether `_followed` is the way to look for words, `search` for the first of them, in ordered rows of up to `longest`
    bytes: these are alike in length, and a part of them has the word."""
    span, _ = _span(strings)
    few = search.share * span.shape[0] <= _FEW_HITS * strings.num_rows
    return few and bool(longest * strings.num_rows <= _MUCH_LONGER * span.shape[0])


def _followed(strings: Strings, searches: list[Search], longest: int) -> Positions:
    """Rows of ordered strings that have the words one after the other: int64 [m], some more than once.

    Every occurrence of the first word is followed to the next words, as far as the `longest` row reaches. Only what has all
    of them is given its row, and must end in it.
    """
    data, starts = strings.data.numpy(), strings.starts.numpy()
    span, low = _span(strings)
    first, last = searches[0].word, searches[-1]
    found_firsts, found_ends = [], []
    for start in range(0, max(span.shape[0] - len(first) + 1, 1), string_scan.BLOCK):
        block = span[start : start + string_scan.BLOCK + len(first) - 1]
        firsts = string_scan.find_likely(block, searches[0])
        firsts += low + start
        ends, passed = firsts + len(first), len(first)
        for search in searches[1:]:
            which, places = _in_windows(data, ends, longest - passed, search)
            if search is not last:
                which, places = _first_of_each(which, places)
            firsts, ends = firsts.take(which), places + len(search.word)
            passed += len(search.word)
        kept = string_scan.standing(data, first, firsts)
        found_firsts.append(firsts.take(kept))
        found_ends.append(ends.take(kept))
    firsts, ends = np.concatenate(found_firsts), np.concatenate(found_ends)
    rows = string_scan.rows_of(starts, firsts)
    inside = ends <= starts.take(rows) + strings.lengths.numpy().take(rows)
    return rows.take(np.flatnonzero(inside))


def _contains_word(strings: Strings, search: Search) -> Mask:
    """Whether the word occurs in each row: bool [n]."""
    result = np.zeros(strings.num_rows, np.bool_)
    if strings.num_rows == 0:
        return result
    if not is_ordered(strings):
        return _first_in_windows(strings, search) >= 0
    span, _ = _span(strings)
    if search.is_common(span.shape[0], strings.num_rows):
        return string_scan.matches_within(
            strings.data.numpy(), strings.starts.numpy(), row_ends(strings), search.word
        )
    rows, _ = _places_in_rows(strings, all_places(strings, search), len(search.word))
    result[rows] = True
    return result


def all_places(strings: Strings, search: Search) -> Positions:
    """Where the word stands in the bytes of ordered rows, of which there is one at least, and across rows: int64 [m], ascending."""
    span, low = _span(strings)
    hits = string_scan.find_all(span, search)
    hits += low
    return hits


def first_places(strings: Strings, search: Search) -> tuple[Positions, Positions]:
    """The rows that contain the word, ascending, and the offset of its first occurrence: both int64 [m]."""
    if strings.num_rows == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    starts = strings.starts.numpy()
    if not is_ordered(strings):
        places = _first_in_windows(strings, search)
        rows = np.flatnonzero(places >= 0)
        return rows, places.take(rows) - starts.take(rows)
    hits = all_places(strings, search)
    if hits.shape[0] >= strings.num_rows:
        # Few rows against the hits: look up each row's first hit. If it does not end in the row, no later one does.
        first = np.searchsorted(hits, starts)
        np.minimum(first, hits.shape[0] - 1, out=first)
        places = hits.take(first)
        rows = np.flatnonzero((places >= starts) & (places + len(search.word) <= row_ends(strings)))
        return rows, places.take(rows) - starts.take(rows)
    rows, places = _first_of_each(*_places_in_rows(strings, hits, len(search.word)))
    return rows, places - starts.take(rows)


def _first_in_windows(strings: Strings, search: Search) -> Positions:
    """Where in the bytes the word first stands in each row, which may lie anywhere; -1 without one: int64 [n].

    As many bytes of each row as most have are copied next to those of the other rows; longer ones have more of their
    bytes copied, for rows in which the word was not found.
    """
    word, data = search.word, strings.data.numpy()
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
        longest = int((stops - low).max())
        width = min(max(min(width, longest), 2 * len(word)), data.shape[0])
        which, places = _in_windows(data, low, width, search)
        within = np.flatnonzero(places + len(word) <= stops.take(which))
        which, places = _first_of_each(which.take(within), places.take(within))
        found[rows.take(which)] = places
        if width >= longest:
            return found
        low = low + (width - len(word) + 1)
        low[which] = np.iinfo(np.int64).max >> 1  # done
        width *= 2


def _in_windows(data: Bytes, low: Positions, width: int, search: Search) -> tuple[Positions, Positions]:
    """Where the word stands in the `width` bytes from each place `low` on (int64 [n], in any order): which, and the place.

    Both int64 [m], ascending by `which`, then by place. The bytes are copied next to each other; those past the end of the
    data count as if they were not there.
    """
    width = min(width, data.shape[0])
    if width < len(search.word) or low.shape[0] == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    last = data.shape[0] - width
    late = low.max() > last
    inside = np.minimum(low, last) if late else low
    found = []
    for first in range(0, low.shape[0], step := max(string_scan.BLOCK // width, 1)):
        block = inside[first : first + step]
        places = string_scan.find_all(string_scan.windows(data, width, block), search)
        which = places // width
        places -= which * width
        kept = np.flatnonzero(places <= width - len(search.word))  # not across two windows
        if kept.shape[0] < places.shape[0]:
            which, places = which.take(kept), places.take(kept)
        places += block.take(which)
        if first:
            which += first
        found.append((which, places))
    which, places = found[0] if len(found) == 1 else map(np.concatenate, zip(*found, strict=True))
    if late:
        kept = np.flatnonzero(places >= low.take(which))
        which, places = which.take(kept), places.take(kept)
    return which, places


def _span(strings: Strings) -> tuple[Bytes, int]:
    """All the bytes of ordered rows, of which there is one at least, and the place of the first."""
    low, high = extent(strings)
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
    firsts = Runs(rows).first_rows
    return rows.take(firsts), places.take(firsts)


def _slices(strings: Strings, rows: Positions, offsets: Positions | None = None) -> Strings:
    """Rows by index, from `offsets` on."""
    starts, lengths = strings.starts.numpy().take(rows), strings.lengths.numpy().take(rows)
    if offsets is not None:
        starts += offsets
        lengths -= offsets.astype(np.int32)
    return Strings(torch.from_numpy(starts), torch.from_numpy(lengths), strings.data)
