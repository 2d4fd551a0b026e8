"""Rows of string arrays as two 64-bit integers each, as Arrow's view layout has them: a string of up to 12 bytes, or where it lies.

Views are such rows already. Those of the layout with offsets are made, some rows at a time, by whoever reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tqp.data.arrow_buffers import AnyArray, BoolArray, validity_of, values_view

#: Rows that one thread takes at a time.
PIECE = 131_072
#: Bytes that lie in the words, those of a longer string that do, and bytes of what is read of the others at a time.
INLINE, PREFIX, WORD = 12, 4, 8


def _bits(first: int, most: int) -> AnyArray:
    """By the length of a string, up to one more than words hold: the bits that its bytes from `first` on take, of `most` bytes."""
    sizes = [min(max(length - first, 0), most) for length in range(INLINE + 2)]
    return np.array([(1 << 8 * size) - 1 for size in sizes], np.uint64).view(np.int64)


_ALL_BITS, _FIRST_BITS, _OTHER_BITS = _bits(0, WORD), _bits(0, PREFIX), _bits(PREFIX, WORD)


class Piece(NamedTuple):
    """Some rows of a chunk; `first` is the number of the first one in the column."""

    #: Each int64 [n]: the length, and behind it the first four bytes; the bytes from the fifth on, or a buffer and a place in it.
    word0: AnyArray
    word1: AnyArray
    validity: BoolArray | None
    buffers: Sequence[pa.Buffer | AnyArray]  # bytes of long strings
    first: int

    def lengths(self) -> AnyArray:
        """In bytes, 0 for NULL; int32 [n], a copy."""
        lengths = self.word0.astype(np.int32)
        if self.validity is not None:
            lengths *= self.validity
        return lengths

    def views(self, rows: AnyArray) -> AnyArray:
        """Some of the rows in the view layout, int64 [k, 2]."""
        return np.stack([self.word0[rows], self.word1[rows]], axis=1)


def is_view(arrow_type: pa.DataType) -> bool:
    """Whether strings or bytes are held as views."""
    return bool(pa.types.is_string_view(arrow_type) or pa.types.is_binary_view(arrow_type))


def is_text(arrow_type: pa.DataType) -> bool:
    """Whether values are strings or bytes, as views or with offsets."""
    return is_view(arrow_type) or any(test(arrow_type) for test in _WITH_OFFSETS)


_WITH_OFFSETS = (
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_large_string,
    pa.types.is_large_binary,
)


def pieces_of_views(chunks: Sequence[pa.Array]) -> list[Piece]:
    """All rows of chunks in the view layout."""
    return [read() for read in unread_pieces(chunks) or ()]


def unread_pieces(chunks: Sequence[pa.Array]) -> list[Callable[[], Piece]] | None:
    """All rows, as functions that make pieces of them; None if a chunk is neither views nor of bytes with offsets."""
    found: list[Callable[[], Piece]] = []
    first = 0
    for chunk in chunks:
        if is_view(chunk.type):
            found.extend(_read_views(chunk, first))
        elif chunk.type in _OFFSETS:
            found.extend(_read_offsets(chunk, first))
        else:
            return None
        first += len(chunk)
    return found


def _read_views(chunk: pa.Array, first: int) -> list[Callable[[], Piece]]:
    views, validity, buffers = values_view(chunk, np.int64, 2), validity_of(chunk), chunk.buffers()[2:]

    def reader(start: int) -> Callable[[], Piece]:
        rows = slice(start, start + PIECE)
        valid = None if validity is None else validity[rows]
        return lambda: Piece(views[rows, 0], views[rows, 1], valid, buffers, first + start)

    return [reader(start) for start in range(0, len(chunk), PIECE)]


_OFFSETS = {
    pa.string(): np.int32,
    pa.binary(): np.int32,
    pa.large_string(): np.int64,
    pa.large_binary(): np.int64,
}


def _read_offsets(chunk: pa.Array, first: int) -> list[Callable[[], Piece]]:
    dtype = np.dtype(_OFFSETS[chunk.type])
    _, all_offsets, data = chunk.buffers()
    offsets = np.frombuffer(all_offsets, dtype, len(chunk) + 1, chunk.offset * dtype.itemsize)
    data = np.frombuffer(b"" if data is None else data, np.uint8)
    validity = validity_of(chunk)

    def reader(start: int) -> Callable[[], Piece]:
        stop = min(start + PIECE, len(chunk))
        valid = None if validity is None else validity[start:stop]
        return lambda: _piece_of_offsets(offsets[start : stop + 1], data, valid, first + start)

    return [reader(start) for start in range(0, len(chunk), PIECE)]


def _piece_of_offsets(offsets: AnyArray, data: AnyArray, validity: BoolArray | None, first: int) -> Piece:
    begin, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    data = data[begin : begin + size + INLINE]
    if len(data) < size + INLINE:  # whole words are read at the last string's bytes, too
        data = np.concatenate([data, np.zeros(size + INLINE - len(data), np.uint8)])
    words = words_at_any_byte(data)
    lengths = np.diff(offsets).astype(np.int64, copy=False)
    longest = int(lengths.max())
    if longest == lengths.min():
        word0, word1 = _words_of_one_length(words, longest, len(lengths))
    else:
        starts = offsets[:-1].astype(np.int64)
        starts -= begin
        word0, word1 = _words(words, starts, lengths, longest)
    word0 <<= 32
    word0 |= lengths
    return Piece(word0, word1, validity, [data], first)


def _words_of_one_length(words: AnyArray, length: int, count: int) -> tuple[AnyArray, AnyArray]:
    """The first bytes of strings that lie one after the other, and their second words."""
    if length == 0:
        return np.zeros(count, np.int64), np.zeros(count, np.int64)
    every = slice(0, (count - 1) * length + 1, length)
    known = min(length, INLINE + 1)
    word0 = words[every] & _FIRST_BITS[known]
    if length <= PREFIX:
        return word0, np.zeros(count, np.int64)
    if length <= INLINE:
        return word0, words[PREFIX:][every] & _OTHER_BITS[known]
    return word0, np.arange(0, count * length, length) << 32


def _words(words: AnyArray, starts: AnyArray, lengths: AnyArray, longest: int) -> tuple[AnyArray, AnyArray]:
    """As `_words_of_one_length`, of strings of different lengths."""
    word0 = words[starts]  # `take` would copy the overlapping words first
    if longest <= WORD:  # there is all of each string
        word0 &= _ALL_BITS.take(lengths)
        return word0, (word0.view(np.uint64) >> np.uint64(32)).view(np.int64)
    known = lengths if longest <= INLINE else np.minimum(lengths, INLINE + 1)
    word0 &= _FIRST_BITS.take(known)
    word1 = words[PREFIX:][starts]
    word1 &= _OTHER_BITS.take(known)
    if longest > INLINE:
        long = np.flatnonzero(lengths > INLINE)
        word1[long] = starts[long] << 32
    return word0, word1


class LongStrings:
    """Strings of more than 12 bytes, which lie in buffers, read eight bytes at a time."""

    def __init__(self, buffers: Sequence[pa.Buffer | AnyArray], word1: AnyArray) -> None:
        """`word1`: the second words of their rows; not none."""
        self._numbers, self._starts = word1 & 0xFFFFFFFF, word1 >> 32
        low = int(self._numbers.min())
        used = np.flatnonzero(np.bincount(self._numbers - low)) + low
        self._words = {number: words_at_any_byte(buffers[number]) for number in used.tolist()}
        self._ascend = bool((self._numbers[1:] >= self._numbers[:-1]).all())

    def words(self, which: AnyArray | slice, at: AnyArray | int) -> AnyArray:
        """The eight bytes of some of the strings, in ascending order, from byte `at` on, little-endian: int64 [k]."""
        places = self._starts[which] + at
        if len(self._words) == 1:
            [words] = self._words.values()
            only: AnyArray = words[places]
            return only
        numbers, found = self._numbers[which], np.empty(len(places), np.int64)
        if self._ascend:  # as they do where each row was put down behind the one before
            first = 0
            for number, words in self._words.items():
                stop = int(np.searchsorted(numbers, number, side="right"))
                found[first:stop] = words[places[first:stop]]
                first = stop
            return found
        for number, words in self._words.items():
            rows = np.flatnonzero(numbers == number)
            found[rows] = words[places[rows]]
        return found


def words_at_any_byte(buffer: pa.Buffer | AnyArray) -> AnyArray:
    """The eight bytes from each byte of a buffer on, a view: a piece may read any part of buffers much larger than it."""
    size = buffer.size
    return np.ndarray((size - WORD + 1,), "<i8", buffer=buffer, strides=(1,))
