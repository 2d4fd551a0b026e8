"""Bytes as bits of 64-bit words, on the host: which bytes a row has, and where a row has a byte."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tqp.data.strings import Strings
from tqp.operators.strings.layout import compact

Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.int16]
Counts = npt.NDArray[np.int64]

_WORD = 64


def byte_sets(strings: Strings, alphabet: npt.NDArray[np.uint8]) -> list[Words]:
    """Words [n], a bit of which stands for a byte of the alphabet that the row has; as many words as the alphabet fills."""
    strings = compact(strings)
    starts, data = strings.starts.numpy(), strings.data.numpy()
    is_there = strings.lengths.numpy() > 0
    sets = []
    for first in range(0, len(alphabet), _WORD):
        bits = np.zeros(256, np.uint64)
        letters = alphabet[first : first + _WORD]
        bits[letters] = np.uint64(1) << np.arange(len(letters), dtype=np.uint64)
        made = np.zeros(len(starts), np.uint64)
        if is_there.any():
            made[is_there] = np.bitwise_or.reduceat(bits[data], starts[is_there])
        sets.append(made)
    return sets


def alphabet_of(*sides: Strings) -> npt.NDArray[np.uint8]:
    """The bytes that the buffers hold."""
    counts = sum(np.bincount(side.data.numpy(), minlength=256) for side in sides)
    return np.flatnonzero(counts).astype(np.uint8)


class Places:
    """Where each row of bytes, int16 [n, width] with negative numbers behind their ends, has a byte: bits of a word, so 64 at most."""

    def __init__(self, values: Bytes) -> None:
        counts = np.bincount(values.reshape(-1).clip(min=0), minlength=256)
        letters = np.flatnonzero(counts)
        self._codes = np.full(
            257, len(letters), np.int64
        )  # what no row has; the last is of the numbers behind ends
        self._codes[letters] = np.arange(len(letters))
        self._rows = np.arange(len(values))
        self._words = np.zeros((len(letters) + 1) * len(values), np.uint64)
        codes = self._codes[values.T]
        for place, of_place in enumerate(codes):
            at = of_place * len(values) + self._rows
            self._words[at] |= np.uint64(1) << np.uint64(place)
        self._words[len(letters) * len(values) :] = 0

    def of(self, wanted: Bytes) -> Words:
        """Words [n], the places at which each row has the byte wanted, int16 [n]."""
        words: Words = self._words[self._codes[wanted] * len(self._rows) + self._rows]
        return words
