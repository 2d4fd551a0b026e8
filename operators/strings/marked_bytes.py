"""Marks of a buffer's bytes as bits, of which the ones from a row's start on are a word: where short rows have something, on the host.

A place is found by counting the zeros below a bit, the next one by clearing it: some 3 ns to read the word, and 0.5 for each step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tqp.operators.strings.scan import chunks_at

Bits = npt.NDArray[np.uint64]

#: Of a word that is read from any bit on, so many bits are certain.
CERTAIN_BITS = 57
#: Rows worked on at a time, so that what is computed of them stays in the cache.
ROWS_AT_ONCE = 32_768


def packed_marks(marks: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    """A bit for each mark, bool [n], with room to read a word from any of them on."""
    return np.concatenate([np.packbits(marks, bitorder="little"), np.zeros(8, np.uint8)])


def marks_of_word(span: npt.NDArray[np.uint8], word: bytes) -> npt.NDArray[np.bool_]:
    """bool [n]: does `word` stand at each byte of the span?"""
    marks: npt.NDArray[np.bool_] = span == word[0]
    for offset, byte in enumerate(word[1:], 1):
        marks[:-offset] &= span[offset:] == byte
        marks[-offset:] = False
    return marks


def bits_from(packed: npt.NDArray[np.uint8], places: npt.NDArray[np.int64]) -> Bits:
    """The marks from each place on, the first one lowest."""
    words: Bits = chunks_at(packed, 8, places >> 3) >> (places & 7).view(np.uint64)
    return words


def without_lowest(words: Bits) -> Bits:
    """Without the lowest bit that is set."""
    return words & (words - np.uint64(1))


def lowest(words: npt.NDArray[np.unsignedinteger[Any]]) -> npt.NDArray[np.uint8]:
    """How many bits stand below the lowest one that is set: 64 of none."""
    return np.bitwise_count(~words & (words - np.uint64(1)))
