"""Find a word in a buffer of bytes in main memory: NumPy's comparisons look at 16 or 32 bytes in one instruction.

Measured on 13 MB of English text, one core, in nanoseconds for each byte: here 0.2; `bytes.find` and `re` 1.0; Arrow's
`match_substring` 2.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tqp.operators.rows.selection import positions_by_words

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Bytes searched at a time: they and their mask stay in the last cache until the places at which a word may stand are
#: verified. Of these, bytes compared in one step: each comparison is long enough for another thread to take the interpreter
#: lock meanwhile, and what is read once is in a cache when the next chunk is looked for.
BLOCK, _STEP = 1 << 23, 1 << 21
#: Chunks in which words are looked for: of as many neighbouring ones as they have bytes, one lies on a multiple of that
#: size wherever the word stands. Short ones take fewer passes, long ones leave fewer places to verify.
_PAIR, _QUAD = 2, 4
#: Share of the places that a search for chunks or bytes should leave at most: a place costs 30 ns, a pass over a byte 0.03.
_FEW = 1 / 300
#: Where chunks cannot serve, bytes are compared everywhere until few places are left, or three bytes are.
_FEW_BYTES = 3
#: One place for so many rows is looked up by binary search.
_FEW_PLACES = 64
_SOME = 16
#: From so many places on, index_select copies what stands at them in two thirds of NumPy's time; but it is a dozen short
#: operations, each of which gives away the interpreter lock.
_MANY_PLACES = 1 << 15
#: The most bytes that are compared at once.
_WORD = 8
#: Bytes looked at to learn how common something is.
_SAMPLE = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Chunks:
    """Neighbouring distinct chunks of a word, as many as they have bytes."""

    size: int
    values: list[int]
    #: The values differ modulo this; entry v % modulus says how much before the chunk v the word starts (negative).
    modulus: int
    shifts: Positions


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """How to look for a word, chosen by a sample of the text."""

    word: bytes
    #: The chunks to look for; None where bytes are compared.
    chunks: Chunks | None
    #: Of the bytes that are compared everywhere.
    offsets: list[int]
    #: How often the rarest of the word's bytes stands in the sample.
    rarity: int
    #: How often the word stands in a byte of text.
    share: float

    def is_sure(self) -> bool:
        """Whether every byte of the word is compared in the first place."""
        return self.chunks is None and len(self.offsets) == len(self.word)

    def is_common(self, num_bytes: int, num_rows: int) -> bool:
        """Whether the word likely occurs more than twice a row."""
        return self.share * num_bytes > 2 * num_rows


def search_for(word: bytes, span: Bytes) -> Search:
    """How to look for the non-empty `word` in texts like `span`."""
    return _search_by_sample(word, _sample(span))


@lru_cache(maxsize=256)
def _search_by_sample(word: bytes, text: bytes) -> Search:
    """As `search_for`, by a sample of the text: the batches of a column share it."""
    counts = {byte: text.count(byte) for byte in set(word)}
    rare = _rare_chunks(word, text)
    chunks = None if rare is None else _chunks_from(word, *rare)
    offsets = [] if chunks is not None else _rare_bytes(word, counts, len(text))
    return Search(word, chunks, offsets, min(counts.values()), text.count(word) / max(len(text), 1))


def _chunks_from(word: bytes, size: int, first: int) -> Chunks:
    """The chunks of `size` bytes from the offset `first` on."""
    values = [int.from_bytes(chunk, "little") for chunk in _chunks(word, size)[first : first + size]]
    modulus = next(modulus for modulus in count(size) if len({value % modulus for value in values}) == size)
    shifts = np.zeros(modulus, np.int64)
    shifts[[value % modulus for value in values]] = -np.arange(first, first + size)
    return Chunks(size, values, modulus, shifts)


def find_all(span: Bytes, search: Search) -> Positions:
    """Where the word stands in `span`, overlapping occurrences too: ascending."""
    word = search.word
    step = BLOCK if search.chunks is not None else BLOCK >> 1  # a mask of bytes is as large as they are
    found = [np.empty(0, np.int64)]
    for start in range(0, span.shape[0] - len(word) + 1, step):
        block = span[start : start + step + len(word) - 1]
        places = find_likely(block, search)
        if not search.is_sure():
            kept = standing(block, word, places)
            places = places if kept.shape[0] == places.shape[0] else places.take(kept)
        if start:
            places += start
        found.append(places)
    return found[1] if len(found) == 2 else np.concatenate(found)


def find_likely(span: Bytes, search: Search) -> Positions:
    """Where the word may stand in `span`: ascending, among them all places at which it does, and likely few others.

    For bytes that stay in the cache with the masks made of them.
    """
    count = span.shape[0] - len(search.word) + 1
    if count <= 0:
        return np.empty(0, np.int64)
    if search.chunks is not None:
        return _find_by_chunks(span, search.word, search.chunks)
    wanted = [(offset, search.word[offset]) for offset in search.offsets]
    return positions_by_words(*_compare(span, count, wanted, np.logical_and))


def stands_at(span: Bytes, word: bytes, places: Positions, fits: Mask, ascending: bool = False) -> Mask:
    """Whether the non-empty `word` stands at each place (int64 [n]) at which it `fits` (bool [n]): bool [n].

    At one place at least, in a span that is not empty. Places, all of which may be known to ascend, may lie anywhere where
    it does not fit.
    """
    size = _chunk_size(word)
    if span.shape[0] < len(word):
        return np.zeros_like(fits)
    offset = len(word) - size
    last = span.shape[0] - len(word)
    low, high = (places[0], places[-1]) if ascending else (places.min(), places.max())
    if low < 0 or high > last:
        places = np.clip(places, 0, last)
    result: Mask = chunks_at(span[offset:], size, places) == int.from_bytes(word[offset:], "little")
    result &= fits
    if offset:
        rows = np.flatnonzero(result)
        kept = standing(span, word[:offset], places.take(rows))
        if kept.shape[0] < rows.shape[0]:
            result[:] = False
            result[rows.take(kept)] = True
    return result


def matches_within(span: Bytes, starts: Positions, ends: Positions, word: bytes) -> Mask:
    """Whether `word` stands in span[starts[i]:ends[i]]: bool [n]. The ranges ascend and are disjoint.

    For words so common that positions would be many: a step for each row, none for each occurrence.
    """
    result = np.zeros(starts.shape[0], np.bool_)
    first = 0
    while first < starts.shape[0]:
        low = starts[first]
        after = max(int(np.searchsorted(ends, low + (BLOCK >> 1), side="right")), first + 1)
        rows = slice(first, after)
        places, last = starts[rows] - low, ends[rows] - low
        found = np.zeros(last[-1] + 1, np.bool_)  # one more: an empty last row starts there
        count = max(int(last[-1]) - len(word) + 1, 0)
        matches, _ = _compare(span[low:], count, list(enumerate(word)), np.logical_and)
        found[: matches.shape[0]] = matches
        filled = last > places
        edges = (places, last) if filled.all() else (places[filled], last[filled])
        for shorter in range(1, len(word)):  # what starts too near to the end of its row is not in it
            found[np.maximum(edges[1] - shorter, edges[0])] = False
        if np.array_equal(places[1:], last[:-1]):
            within = np.logical_or.reduceat(found, places)
        else:  # what lies between the rows is reduced by itself
            within = np.logical_or.reduceat(found, np.column_stack((places, last)).ravel())[::2]
        # A range without bytes gives the byte after it.
        np.logical_and(within, filled, out=result[rows])
        first = after
    return result


def rows_of(starts: Positions, places: Positions) -> Positions:
    """The last row that starts at or before each place: int64 [m]. Both ascend, and no place is before the first start.

    Where places are many, the rows that start in each small block of bytes are counted first, one in sixteen of them: that
    leaves a few steps of binary search.
    """
    last = starts.shape[0] - 1
    if places.shape[0] * _FEW_PLACES < starts.shape[0]:
        nearest: Positions = np.searchsorted(starts, places, side="right") - 1
        return nearest
    low, some = starts[0], starts[::_SOME]
    shift = max(int(places[-1] - low) // some.shape[0], 1).bit_length()
    cells = (places - low) >> shift
    started = np.bincount((some - low) >> shift, minlength=int(cells[-1]) + 1)
    # The last of `some` that starts before the cell does, or the first; the row is less than `reach` rows further.
    before = np.cumsum(started)
    before -= started
    before -= 1
    np.maximum(before, 0, out=before)
    rows: Positions = before.take(cells)
    rows *= _SOME
    reach = (int(started.max()) + 1) * _SOME
    for step in (1 << power for power in reversed(range((reach - 1).bit_length()))):
        rows += (starts.take(rows + step, mode="clip") <= places) * step
    np.minimum(rows, last, out=rows)
    return rows


def _sample(span: Bytes) -> bytes:
    """Up to 4,096 bytes taken at four places across `span`, fewer of a short one: looking at them must not cost more."""
    quarter = span.shape[0] // 4
    size = min(_SAMPLE, max(span.shape[0] >> 5, _SAMPLE >> 4)) // 4
    return b"".join(span[part * quarter : part * quarter + size].tobytes() for part in range(4))


def _find_by_chunks(span: Bytes, word: bytes, chunks: Chunks) -> Positions:
    """Where `word` may stand: aligned chunks of the span equal one of the word's."""
    size = chunks.size
    skipped = -span.ctypes.data % size
    aligned = span[skipped : skipped + (span.shape[0] - skipped) // size * size].view(f"<u{size}")
    found = _compare(aligned, aligned.shape[0], [(0, value) for value in chunks.values], np.logical_or)
    places = positions_by_words(*found)
    shifts = chunks.shifts.take(aligned.take(places) % chunks.modulus)
    # The chunks are distinct neighbours, so these ascend as the chunks do.
    places *= size
    places += shifts
    if skipped:
        places += skipped
    last = span.shape[0] - len(word)
    if places.shape[0] and (places[0] < 0 or places[-1] > last):
        inside = np.searchsorted(places, (0, last + 1))
        places = places[inside[0] : inside[1]]
    return places


def _compare(
    values: npt.NDArray[np.unsignedinteger[Any]], count: int, wanted: list[tuple[int, int]], combine: np.ufunc
) -> tuple[Mask, Mask]:
    """Whether values[i + offset] == value for all or any of the wanted (offset, value): bool [count].

    And of each eight places whether there is one at which it is so: bool [count // 8].
    """
    result, filled = np.empty(count, np.bool_), np.empty(count >> 3, np.bool_)
    step = _STEP // values.itemsize
    other = np.empty(min(count, step) if len(wanted) > 1 else 0, np.bool_)
    for start in range(0, count, step):
        found = result[start : start + step]
        size = found.shape[0]
        for number, (offset, value) in enumerate(wanted):
            first = start + offset
            np.equal(values[first : first + size], value, out=other[:size] if number else found)
            if number:
                combine(found, other[:size], out=found)
        words = found[: size & ~7].view(np.int64)
        np.not_equal(words, 0, out=filled[start >> 3 : (start >> 3) + words.shape[0]])
    return result, filled


def _rare_chunks(word: bytes, text: bytes) -> tuple[int, int] | None:
    """Size and first offset of the neighbouring distinct chunks of `word` that are rarest in a sample `text`; None without.

    Pairs where they are rare enough.
    """
    for size in (_PAIR, _QUAD):
        chunks = _chunks(word, size)
        counts = [text.count(chunk) for chunk in chunks]
        sums = {
            first: sum(counts[first : first + size])
            for first in range(len(chunks) - size + 1)
            if len(set(chunks[first : first + size])) == size
        }
        rarest = min(sums, key=sums.__getitem__, default=None)
        if rarest is not None and (size == _QUAD or sums[rarest] <= _FEW * size * len(text)):
            return size, rarest
    return None


def _rare_bytes(word: bytes, counts: dict[int, int], size: int) -> list[int]:
    """Offsets of bytes of `word` that few places likely have all of: the rarest ones, by their counts in a sample of `size`."""
    offsets, share = [], 1.0
    for offset in sorted(range(len(word)), key=lambda offset: counts[word[offset]])[:_FEW_BYTES]:
        offsets.append(offset)
        share *= counts[word[offset]] / max(size, 1)
        if share < _FEW:
            break
    return offsets


def _chunks(word: bytes, size: int) -> list[bytes]:
    """The chunk at each offset of `word`."""
    return [word[offset : offset + size] for offset in range(len(word) - size + 1)]


def standing(span: Bytes, word: bytes, places: Positions) -> Positions:
    """Which of the places `word` stands at; it fits into `span` at all of them.

    Read up to eight bytes at a time, the last ones first: where strings have something in common it is their beginning.
    """
    size = _chunk_size(word)
    if (
        len(word) < _WORD
        and size < len(word)
        and places.shape[0]
        and places.max() + 2 * size <= span.shape[0]
    ):
        # In one step, with what follows the word: a look at bytes that lie apart costs more than all else.
        chunks = chunks_at(span, 2 * size, places)
        chunks &= chunks.dtype.type((1 << (8 * len(word))) - 1)
        return np.flatnonzero(chunks == int.from_bytes(word, "little"))
    rows = np.arange(places.shape[0])
    remaining = len(word)
    while remaining > 0 and rows.shape[0]:
        offset = max(remaining - size, 0)  # the last step may look at some bytes again
        wanted = int.from_bytes(word[offset : offset + size], "little")
        kept = np.flatnonzero(chunks_at(span[offset:], size, places) == wanted)
        if kept.shape[0] < rows.shape[0]:
            rows, places = rows.take(kept), places.take(kept)
        remaining = offset
    return rows


def _chunk_size(word: bytes) -> int:
    """How many bytes of `word` are compared at once."""
    return next(size for size in (_WORD, 4, 2, 1) if size <= len(word))


def chunks_at(span: Bytes, size: int, places: Positions) -> npt.NDArray[np.unsignedinteger[Any]]:
    """The `size` (1, 2, 4 or 8) bytes from each place on, as little-endian integers; they lie within `span`."""
    if size == 1:
        return span.take(places)
    return windows(span, size, places).view(f"<u{size}")


def windows(span: Bytes, width: int, places: Positions) -> Bytes:
    """The `width` bytes from each place on, one after the other; they lie within `span`."""
    # A view whose row i is the bytes from i on.
    count = span.shape[0] - width + 1
    if places.shape[0] < _MANY_PLACES:
        rows = np.ndarray((count,), f"V{width}", span, 0, (1,))
        return rows[places].view(np.uint8)
    rows_of_bytes = torch.from_numpy(span).as_strided((count, width), (1, 1))
    copied: Bytes = torch.index_select(rows_of_bytes, 0, torch.from_numpy(places)).view(-1).numpy()
    return copied
