"""Dictionary codes of short strings in Arrow's view layout, where a string of up to 12 bytes is two 64-bit integers.

A table of the values known so far is looked up by a hash without collisions: some 6 ns a row against 20 of a general
hash table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tqp.data.arrow_buffers import AnyArray, BoolArray, pack_bits, validity_of, values_view
from tqp.data.column_facts import BLOCK

_LONGEST = 12
_MOST_VALUES = 4_096
_MOST_LEARNED = 8


def encode_short_views(chunks: Sequence[pa.Array], sample: pa.Array) -> list[pa.DictionaryArray] | None:
    """Dictionary arrays over one dictionary of large_binary; `sample`: distinct values, large_binary without NULL.

    None if the chunks are not in the view layout, values are many or long, or too many were not in the sample.
    """
    if not all(is_view(chunk.type) for chunk in chunks):
        return None
    known = _Values.of(sample)
    learned = 0
    encoded: list[tuple[AnyArray, BoolArray | None]] = []
    for chunk in chunks:
        views, validity = values_view(chunk, np.int64, 2), validity_of(chunk)
        codes = np.empty(len(chunk), np.int32)
        start = 0
        while start < len(chunk):
            if known is None:
                return None
            rows = slice(start, start + BLOCK)
            found = known.look_up(views[rows], codes[rows])
            if validity is not None:
                found |= ~validity[rows]
            if not found.all():
                missing = take_rows(chunk, np.flatnonzero(~found) + start)
                learned += 1
                more = pc.unique(as_binary(missing))
                known = known.with_more(more) if learned <= _MOST_LEARNED else None
                continue  # the same block again
            start += BLOCK
        encoded.append((codes, validity))
    if known is None:
        return None
    return [
        pa.DictionaryArray.from_arrays(
            pa.array(codes, mask=None if validity is None else ~validity), known.values, safe=False
        )
        for codes, validity in encoded
    ]


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
    bits = pack_bits(None if validity is None else validity[rows])
    buffers = [bits, pa.py_buffer(np.ascontiguousarray(views)), *array.buffers()[2:]]
    return pa.Array.from_buffers(array.type, len(rows), buffers)


class _Values:
    """Distinct short strings and a table that finds them."""

    def __init__(self, values: pa.Array, words: AnyArray, multiplier: np.uint64, bits: int) -> None:
        self.values, self._words, self._multiplier = values, words, multiplier
        self._shift = np.uint64(64 - bits)
        self._table = np.zeros(1 << bits, np.int32)
        self._table[self._hash(words)] = np.arange(len(words))

    @staticmethod
    def of(values: pa.Array) -> _Values | None:
        """None if they are too many, too long, or no hash without collisions is found."""
        if not 0 < len(values) <= _MOST_VALUES or pc.max(pc.binary_length(values)).as_py() > _LONGEST:
            return None
        words = values_view(values.cast(pa.binary_view()), np.int64, 2)
        bits = max(len(values).bit_length() + 3, 6)
        chance = np.random.default_rng(0)
        for attempt in range(30):
            multiplier = np.uint64(chance.integers(1, 1 << 63)) * np.uint64(2) + np.uint64(1)
            tried = _Values(values, words, multiplier, min(bits + attempt // 5, 18))
            if len(np.unique(tried._hash(words))) == len(words):
                return tried
        return None

    def with_more(self, values: pa.Array) -> _Values | None:
        """With new values behind the others, whose codes stay; None as `of`, or if one is not new."""
        joined = pa.concat_arrays([self.values, values])
        return None if pc.count_distinct(joined).as_py() < len(joined) else _Values.of(joined)

    def _hash(self, words: AnyArray) -> AnyArray:
        mixed = words[:, 0].view(np.uint64) ^ (words[:, 1].view(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
        mixed ^= mixed >> np.uint64(29)
        mixed *= self._multiplier
        mixed >>= self._shift
        return mixed.view(np.int64)

    def look_up(self, words: AnyArray, codes: AnyArray) -> BoolArray:
        """Writes the code of each row [n, 2] into `codes`; returns which rows are known."""
        self._table.take(self._hash(words), out=codes, mode="clip")
        found: BoolArray = self._words[:, 0].take(codes) == words[:, 0]
        found &= self._words[:, 1].take(codes) == words[:, 1]
        return found
