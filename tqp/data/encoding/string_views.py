"""Strings whose rows are read as two 64-bit integers (`string_words.py`): codes of few values, and the bytes of views.

Codes of few distinct values come of a table that is asked by a hash without collisions: some 4 ns a row against 20 of a
general hash table. Long strings, which writers put down one after the other, are copied by runs of rows, not row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from tqp.data.arrow_buffers import AnyArray, BoolArray, pack_bits, validity_of, values_view
from tqp.data.encoding.integers import narrowest
from tqp.data.encoding.string_words import (
    INLINE,
    PIECE,
    PREFIX,
    WORD,
    LongStrings,
    Piece,
    is_view,
    pieces_of_views,
    unread_pieces,
)
from tqp.data.sharing import share
from tqp.data.strings import OrderedStrings

#: Bytes of a value that gets a code at most: of one beyond 12, each eight bytes of each row are looked up.
_LONGEST = 60
_MOST_VALUES = 1_000
_MOST_LEARNED = 8
#: Rows of a run of strings that lie one after the other, at least in the mean.
_SHORTEST_RUN = 32
_MIX = np.uint64(0x9E3779B97F4A7C15)


def encode_few(chunks: Sequence[pa.Array], sample: pa.Array, limit: int) -> tuple[AnyArray, pa.Array] | None:
    """Codes of all rows, and the values that they are places among: large_binary, ascending; any code for NULL.

    `sample`: some of the values, large_binary, distinct, no NULL. None if values are too long, more than `limit`, or too often
    not in the sample.
    """
    left = unread_pieces(chunks)
    if left is None or (_has_offsets(chunks) and _longest(sample) > INLINE):
        return None
    num_rows = sum(len(chunk) for chunk in chunks)
    known = _Values.of(sample.take(pc.array_sort_indices(sample)))
    codes = np.empty(num_rows, np.int8)
    for _ in range(_MOST_LEARNED):
        if known is None or len(known.values) > limit:
            return None
        codes = codes.astype(narrowest(0, len(known.values) - 1), copy=False)
        missing = share(known.look_up_into(codes), left)
        left = [piece for piece, values in zip(left, missing, strict=True) if values is not None]
        if not left:
            return _ascending(codes, known.values)
        more = [values for values in missing if values is not None]
        known = known.with_more(pa.concat_arrays(more).unique())
    return None


def _has_offsets(chunks: Sequence[pa.Array]) -> bool:
    """Whether long strings have to be read at their places twice, which takes longer than Arrow's own dictionaries."""
    return not all(is_view(chunk.type) for chunk in chunks)


def _longest(values: pa.Array) -> int:
    return pc.max(pc.binary_length(values)).as_py() or 0


def strings_of_views(chunks: Sequence[pa.Array]) -> OrderedStrings | None:
    """All rows, NULL rows with length 0.

    None if the chunks are not in the view layout, or many strings are short or do not lie one after the other.
    """
    if not chunks or not all(is_view(chunk.type) for chunk in chunks):
        return None
    pieces = pieces_of_views(chunks)
    lengths = np.empty(sum(len(chunk) for chunk in chunks), np.int32)

    def runs(piece: Piece) -> list[AnyArray] | None:
        part = lengths[piece.first : piece.first + len(piece.word0)]
        part[:] = piece.lengths()
        return _runs(piece, part)

    found = share(runs, pieces)
    if any(each is None for each in found):
        return None
    ends = np.cumsum(lengths, dtype=np.int64)
    data = np.empty(int(ends[-1]), np.uint8)

    def copy(copied: tuple[Piece, list[AnyArray] | None]) -> None:
        piece, parts = copied
        stop = int(ends[piece.first + len(piece.word0) - 1])
        start = stop - sum(map(len, parts or ()))
        if parts:
            np.concatenate(parts, out=data[start:stop])

    share(copy, list(zip(pieces, found, strict=True)))
    ends -= lengths
    return OrderedStrings(torch.from_numpy(ends), torch.from_numpy(lengths), torch.from_numpy(data))


def _runs(piece: Piece, lengths: AnyArray) -> list[AnyArray] | None:
    """The bytes of all rows as slices of the buffers; None if they would be many."""
    places = piece.word1
    if not lengths.all():
        rows = np.flatnonzero(lengths)
        places, lengths = places[rows], lengths[rows]
    if len(lengths) == 0:
        return []
    if lengths.min() <= INLINE:
        return None
    numbers, starts = places.astype(np.int32), (places >> 32).astype(np.int32)
    stops = starts + lengths
    apart = starts[1:] != stops[:-1]
    apart |= numbers[1:] != numbers[:-1]
    last = np.append(np.flatnonzero(apart), len(lengths) - 1)
    if len(last) > len(lengths) // _SHORTEST_RUN + len(piece.buffers):
        return None
    first = np.concatenate([[0], last[:-1] + 1])
    cuts = zip(numbers[first].tolist(), starts[first].tolist(), stops[last].tolist(), strict=True)
    return [np.frombuffer(piece.buffers[number], np.uint8)[start:stop] for number, start, stop in cuts]


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


def _values_of(piece: Piece, rows: AnyArray) -> pa.Array:
    """Distinct values of valid rows of a piece, large_binary."""
    buffers = [buffer if isinstance(buffer, pa.Buffer) else pa.py_buffer(buffer) for buffer in piece.buffers]
    return as_binary(_view_array(piece.views(rows), None, buffers, pa.binary_view())).unique()


def _ascending(codes: AnyArray, values: pa.Array) -> tuple[AnyArray, pa.Array]:
    """The same rows, with the values in order."""
    order = pc.array_sort_indices(values).to_numpy()
    if np.all(order[1:] > order[:-1]):
        return codes, values
    rank = np.empty(len(order), codes.dtype)
    rank[order] = np.arange(len(order))
    for start in range(0, len(codes), PIECE):
        part = codes[start : start + PIECE]
        part[:] = rank.take(part)
    return codes, values.take(pa.array(order))


class _Values:
    """Distinct values and a table that finds them. A row is held against the value with its hash by all its bytes.

    Those of a long string beyond the first four are its last eight, as in a view of a string of 12 bytes, and the words
    between, `middle`.
    """

    def __init__(self, values: pa.Array) -> None:
        self.values = values
        longest = _longest(values)
        self._middle = [np.zeros(len(values), np.int64) for _ in range(INLINE, longest, WORD)]
        [piece] = pieces_of_views([values.cast(pa.binary_view())])
        self._word0, self._word1, rows, words = self._words(piece)
        for middle, (which, word) in zip(self._middle, words, strict=True):
            middle[rows[which]] = word
        self._same_word1 = bool((self._word1 == self._word1[0]).all())

    @staticmethod
    def of(values: pa.Array) -> _Values | None:
        """None if they are too many, too long, or no hash without collisions is found."""
        if not 0 < len(values) <= _MOST_VALUES or _longest(values) > _LONGEST:
            return None
        made = _Values(values)
        return made if made._find_hash() else None

    def with_more(self, values: pa.Array) -> _Values | None:
        """With new values behind the others, whose codes stay; None as `of`, or if one is not new."""
        joined = pa.concat_arrays([self.values, values])
        return None if pc.count_distinct(joined).as_py() < len(joined) else _Values.of(joined)

    def look_up_into(self, codes: AnyArray) -> Callable[[Callable[[], Piece]], pa.Array | None]:
        """A function that puts codes of a piece's rows into `codes`; it gives the values that are not known, or None."""

        def look_up(read: Callable[[], Piece]) -> pa.Array | None:
            piece = read()
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
            return None if found.all() else _values_of(piece, np.flatnonzero(~found))

        return look_up

    def _words(
        self, piece: Piece
    ) -> tuple[AnyArray, AnyArray, AnyArray, Iterator[tuple[AnyArray | slice, AnyArray]]]:
        """Two words of each row, the long rows, and for each word between them which of these have it, and what it is."""
        word0, word1 = piece.word0, piece.word1
        if not self._middle:  # a long row differs from all values by its length
            return word0, word1, _NO_ROWS, iter(())
        lengths = piece.lengths()
        rows = np.flatnonzero(lengths > INLINE)
        if len(rows) == 0:
            return word0, word1, rows, iter([(slice(None), rows)] * len(self._middle))
        lengths = lengths.take(rows)
        word1 = word1.copy()
        strings = LongStrings(piece.buffers, word1.take(rows))

        def between() -> Iterator[tuple[AnyArray | slice, AnyArray]]:
            for number in range(len(self._middle)):
                at = PREFIX + WORD * number
                which = slice(None) if number == 0 else np.flatnonzero(lengths > at + WORD)
                yield which, strings.words(which, at)

        word1[rows] = strings.words(slice(None), lengths - WORD)
        return word0, word1, rows, between()

    def _find_hash(self) -> bool:
        """Looks for a multiplier, of as few words as tell the values apart, and makes the table."""
        numbers = np.arange(len(self.values))
        chance = np.random.default_rng(0)
        for self._mix in _MIXES:
            if len(np.unique(self._mix(self._word0, self._word1))) < len(numbers):
                continue  # no multiplier tells them apart
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
