"""Strings in Arrow's view layout: a row is two 64-bit integers that hold a string of up to 12 bytes, or tell where it lies.

Codes of few distinct values come of a table that is asked by a hash without collisions: some 4 ns a row against 20 of a
general hash table. Long strings, which writers put down one after the other, are copied by runs of rows, not row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from tqp.data.arrow_buffers import AnyArray, BoolArray, pack_bits, validity_of, values_view
from tqp.data.encoding.integers import narrowest
from tqp.data.sharing import share
from tqp.data.strings import OrderedStrings

#: Rows that one thread takes at a time.
_PIECE = 131_072
#: Bytes that lie in a view, those of a longer string that do, and bytes of what is read of the others at a time.
_INLINE, _PREFIX, _WORD = 12, 4, 8
#: Bytes of a value that gets a code at most: of one beyond 12, each eight bytes of each row are looked up.
_LONGEST = 60
_MOST_VALUES = 1_000
_MOST_LEARNED = 8
#: Rows of a run of strings that lie one after the other, at least in the mean.
_SHORTEST_RUN = 32
_MIX = np.uint64(0x9E3779B97F4A7C15)


class _Piece(NamedTuple):
    """Some rows of a chunk; `first` is the number of the first one in the column."""

    views: AnyArray  # int64 [n, 2]
    validity: BoolArray | None
    buffers: Sequence[pa.Buffer]  # bytes of long strings
    first: int

    def lengths(self) -> AnyArray:
        """In bytes, 0 for NULL; int32 [n], a copy."""
        lengths = np.ascontiguousarray(self.views.view(np.int32)[:, 0])
        if self.validity is not None:
            lengths *= self.validity
        return lengths


class _LongStrings:
    """Strings of more than 12 bytes, which lie in buffers, read eight bytes at a time."""

    def __init__(self, buffers: Sequence[pa.Buffer], word1: AnyArray) -> None:
        """`word1`: the second words of their views; not none."""
        self._numbers, self._starts = word1 & 0xFFFFFFFF, word1 >> 32
        low = int(self._numbers.min())
        used = np.flatnonzero(np.bincount(self._numbers - low)) + low
        self._words = {number: _words_at_any_byte(buffers[number]) for number in used.tolist()}
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


def _words_at_any_byte(buffer: pa.Buffer) -> AnyArray:
    """The eight bytes from each byte of a buffer on, a view: a piece may read any part of buffers much larger than it."""
    return np.ndarray((buffer.size - _WORD + 1,), "<i8", buffer=buffer, strides=(1,))


def _pieces(chunks: Sequence[pa.Array]) -> list[_Piece]:
    pieces, first = [], 0
    for chunk in chunks:
        views, validity, buffers = values_view(chunk, np.int64, 2), validity_of(chunk), chunk.buffers()[2:]
        for start in range(0, len(chunk), _PIECE):
            rows = slice(start, start + _PIECE)
            valid = None if validity is None else validity[rows]
            pieces.append(_Piece(views[rows], valid, buffers, first + start))
        first += len(chunk)
    return pieces


def encode_views(
    chunks: Sequence[pa.Array], sample: pa.Array, limit: int
) -> tuple[AnyArray, pa.Array] | None:
    """Codes of all rows, and the values that they are places among: large_binary, ascending; any code for NULL.

    `sample`: some of the values, large_binary, distinct, no NULL. None if the chunks are not in the view layout, or values are
    too long, more than `limit`, or too often not in the sample.
    """
    if not all(is_view(chunk.type) for chunk in chunks):
        return None
    num_rows = sum(len(chunk) for chunk in chunks)
    known = _Values.of(sample.take(pc.array_sort_indices(sample)))
    codes, left = np.empty(num_rows, np.int8), _pieces(chunks)
    for _ in range(_MOST_LEARNED):
        if known is None or len(known.values) > limit:
            return None
        codes = codes.astype(narrowest(0, len(known.values) - 1), copy=False)
        missing = share(known.look_up_into(codes), left)
        left = [piece for piece, rows in zip(left, missing, strict=True) if rows is not None]
        if not left:
            return _ascending(codes, known.values)
        known = known.with_more(
            _rows_of(left, [rows for rows in missing if rows is not None], chunks[0].type)
        )
    return None


def strings_of_views(chunks: Sequence[pa.Array]) -> OrderedStrings | None:
    """All rows, NULL rows with length 0.

    None if the chunks are not in the view layout, or many strings are short or do not lie one after the other.
    """
    if not chunks or not all(is_view(chunk.type) for chunk in chunks):
        return None
    pieces = _pieces(chunks)
    lengths = np.empty(sum(len(chunk) for chunk in chunks), np.int32)

    def runs(piece: _Piece) -> list[AnyArray] | None:
        part = lengths[piece.first : piece.first + len(piece.views)]
        part[:] = piece.lengths()
        return _runs(piece, part)

    found = share(runs, pieces)
    if any(each is None for each in found):
        return None
    ends = np.cumsum(lengths, dtype=np.int64)
    data = np.empty(int(ends[-1]), np.uint8)

    def copy(copied: tuple[_Piece, list[AnyArray] | None]) -> None:
        piece, parts = copied
        stop = int(ends[piece.first + len(piece.views) - 1])
        start = stop - sum(map(len, parts or ()))
        if parts:
            np.concatenate(parts, out=data[start:stop])

    share(copy, list(zip(pieces, found, strict=True)))
    ends -= lengths
    return OrderedStrings(torch.from_numpy(ends), torch.from_numpy(lengths), torch.from_numpy(data))


def _runs(piece: _Piece, lengths: AnyArray) -> list[AnyArray] | None:
    """The bytes of all rows as slices of the buffers; None if they would be many."""
    places = piece.views.view(np.int32)[:, 2:]
    if not lengths.all():
        rows = np.flatnonzero(lengths)
        places, lengths = places[rows], lengths[rows]
    if len(lengths) == 0:
        return []
    if lengths.min() <= _INLINE:
        return None
    numbers, starts = np.ascontiguousarray(places[:, 0]), np.ascontiguousarray(places[:, 1])
    stops = starts + lengths
    apart = starts[1:] != stops[:-1]
    apart |= numbers[1:] != numbers[:-1]
    last = np.append(np.flatnonzero(apart), len(lengths) - 1)
    if len(last) > len(lengths) // _SHORTEST_RUN + len(piece.buffers):
        return None
    first = np.concatenate([[0], last[:-1] + 1])
    cuts = zip(numbers[first].tolist(), starts[first].tolist(), stops[last].tolist(), strict=True)
    return [np.frombuffer(piece.buffers[number], np.uint8)[start:stop] for number, start, stop in cuts]


def is_view(arrow_type: pa.DataType) -> bool:
    """Whether strings or bytes are held as views."""
    return bool(pa.types.is_string_view(arrow_type) or pa.types.is_binary_view(arrow_type))


def as_binary(array: pa.Array) -> pa.Array:
    """The same bytes as large_binary, which sorts by bytes and never overflows."""
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    return array.cast(pa.large_binary())


def take_rows(array: pa.Array, rows: AnyArray) -> pa.Array:
    """`array.take`, which Arrow lacks for views."""
    if not is_view(array.type):
        return array.take(pa.array(rows))
    views, validity = values_view(array, np.int64, 2)[rows], validity_of(array)
    return _view_array(views, None if validity is None else validity[rows], array.buffers()[2:], array.type)


def _view_array(
    views: AnyArray, validity: BoolArray | None, buffers: Sequence[pa.Buffer], arrow_type: pa.DataType
) -> pa.Array:
    all_buffers = [pack_bits(validity), pa.py_buffer(np.ascontiguousarray(views)), *buffers]
    return pa.Array.from_buffers(arrow_type, len(views), all_buffers)


def _rows_of(pieces: Sequence[_Piece], rows: Sequence[AnyArray], arrow_type: pa.DataType) -> pa.Array:
    """Distinct values of valid rows of the pieces, large_binary."""
    taken = [
        as_binary(_view_array(piece.views[each], None, piece.buffers, arrow_type)).unique()
        for piece, each in zip(pieces, rows, strict=True)
    ]
    return pa.concat_arrays(taken).unique()


def _ascending(codes: AnyArray, values: pa.Array) -> tuple[AnyArray, pa.Array]:
    """The same rows, with the values in order."""
    order = pc.array_sort_indices(values).to_numpy()
    if np.all(order[1:] > order[:-1]):
        return codes, values
    rank = np.empty(len(order), codes.dtype)
    rank[order] = np.arange(len(order))
    for start in range(0, len(codes), _PIECE):
        part = codes[start : start + _PIECE]
        part[:] = rank.take(part)
    return codes, values.take(pa.array(order))


class _Values:
    """Distinct values and a table that finds them. A row is held against the value with its hash by all its bytes.

    Those of a long string beyond the first four are its last eight, as in a view of a string of 12 bytes, and the words
    between, `middle`.
    """

    def __init__(self, values: pa.Array) -> None:
        self.values = values
        longest = pc.max(pc.binary_length(values)).as_py()
        self._middle = [np.zeros(len(values), np.int64) for _ in range(_INLINE, longest, _WORD)]
        [piece] = _pieces([values.cast(pa.binary_view())])
        self._word0, self._word1, rows, words = self._words(piece)
        for middle, (which, word) in zip(self._middle, words, strict=True):
            middle[rows[which]] = word
        self._same_word1 = bool((self._word1 == self._word1[0]).all())

    @staticmethod
    def of(values: pa.Array) -> _Values | None:
        """None if they are too many, too long, or no hash without collisions is found."""
        if not 0 < len(values) <= _MOST_VALUES or pc.max(pc.binary_length(values)).as_py() > _LONGEST:
            return None
        made = _Values(values)
        return made if made._find_hash() else None

    def with_more(self, values: pa.Array) -> _Values | None:
        """With new values behind the others, whose codes stay; None as `of`, or if one is not new."""
        joined = pa.concat_arrays([self.values, values])
        return None if pc.count_distinct(joined).as_py() < len(joined) else _Values.of(joined)

    def look_up_into(self, codes: AnyArray) -> Callable[[_Piece], AnyArray | None]:
        """A function that puts codes of a piece's rows into `codes`; it gives the rows that no value is known of, or None."""

        def look_up(piece: _Piece) -> AnyArray | None:
            word0, word1, rows, words = self._words(piece)
            code = self._table.take(self._hash(word0, word1))
            codes[piece.first : piece.first + len(code)] = code
            found: BoolArray = self._word0.take(code) == word0
            found &= (self._word1[0] if self._same_word1 else self._word1.take(code)) == word1
            for middle, (which, word) in zip(self._middle, words, strict=True):
                selected = rows[which]
                found[selected] &= middle.take(code.take(selected)) == word
            if piece.validity is not None:
                found |= ~piece.validity
            return None if found.all() else np.flatnonzero(~found)

        return look_up

    def _words(
        self, piece: _Piece
    ) -> tuple[AnyArray, AnyArray, AnyArray, Iterator[tuple[AnyArray | slice, AnyArray]]]:
        """Two words of each row, the long rows, and for each word between them which of these have it, and what it is."""
        word0, word1 = piece.views[:, 0], piece.views[:, 1]
        if not self._middle:  # a long row differs from all values by its length
            return word0, word1, _NO_ROWS, iter(())
        lengths = piece.lengths()
        rows = np.flatnonzero(lengths > _INLINE)
        if len(rows) == 0:
            return word0, word1, rows, iter([(slice(None), rows)] * len(self._middle))
        lengths = lengths.take(rows)
        word1 = word1.copy()
        strings = _LongStrings(piece.buffers, word1.take(rows))

        def between() -> Iterator[tuple[AnyArray | slice, AnyArray]]:
            for number in range(len(self._middle)):
                at = _PREFIX + _WORD * number
                which = slice(None) if number == 0 else np.flatnonzero(lengths > at + _WORD)
                yield which, strings.words(which, at)

        word1[rows] = strings.words(slice(None), lengths - _WORD)
        return word0, word1, rows, between()

    def _find_hash(self) -> bool:
        """Looks for a multiplier, of as few words as tell the values apart, and makes the table."""
        numbers = np.arange(len(self.values))
        chance = np.random.default_rng(0)
        for self._mix in _MIXES:
            bits = max(2 * len(numbers).bit_length() - 2, 6)  # a collision or two are expected
            for attempt in range(12):
                self._multiplier = np.uint64(chance.integers(1, 1 << 63)) * np.uint64(2) + np.uint64(1)
                self._shift = np.uint64(64 - bits - attempt // 3)
                places = self._hash(self._word0, self._word1)
                self._table = np.zeros(1 << (bits + attempt // 3), np.int64)
                self._table[places] = numbers
                if np.array_equal(self._table[places], numbers):
                    return True
        return False

    def _hash(self, word0: AnyArray, word1: AnyArray) -> AnyArray:
        mixed = self._mix(word0, word1) * self._multiplier
        mixed >>= self._shift
        return mixed.view(np.int64)


_NO_ROWS = np.empty(0, np.int64)


def _both(word0: AnyArray, word1: AnyArray) -> AnyArray:
    mixed = word0.view(np.uint64) ^ (word1.view(np.uint64) * _MIX)
    mixed ^= mixed >> np.uint64(29)
    return mixed


#: What a hash is made of, the quickest first: the first word, the second, either, or both.
_MIXES: tuple[Callable[[AnyArray, AnyArray], AnyArray], ...] = (
    lambda word0, word1: word0.view(np.uint64),
    lambda word0, word1: word1.view(np.uint64),
    lambda word0, word1: (word0 ^ word1).view(np.uint64),
    _both,
)
