"""Strings as numbers by the bytes that a set of strings has at each place: equal ones alike, other strings 0.

"item 0" to "item 999999" have ten to eleven values (no byte is one) at six places, the same bytes at five: 1.4 million
numbers. So a join on strings is one on integers, without hashes and comparisons after them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.joins.pairs import mark_rows
from tqp.operators.memory import allocation
from tqp.operators.memory.allocation import Map, one_by_one
from tqp.operators.numbers import elementwise
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.string_keys.pack import differing_bits
from tqp.operators.strings.layout import cut
from tqp.operators.strings.layout import take as take_strings
from tqp.operators.strings.words import LONGEST_LEADING, WORD, ends_in_nul, leading_words

_SAMPLE_ROWS = 512
#: Rows worked on at a time on the CPU.
_BLOCK = 131_072
#: Numbers are below, or below the other where it suffices; what stands for a byte that the set lacks makes sums negative.
_MOST, _MOST_INT32 = 1 << 56, 1 << 25
_CHUNK_BITS = 16
_CHUNK_VALUES = 1 << _CHUNK_BITS


@dataclass(frozen=True, slots=True)
class Chunk:
    """Two neighbouring bytes in which strings of the set differ: bits shift to shift + 16 of word `word`."""

    word: int
    shift: int
    parts: Tensor  # int32 or int64 [65536]: what each value adds to the number; very negative where the set lacks it


@dataclass(frozen=True, slots=True)
class StringNumbers:
    """Numbers 1 to `size` for the strings of a set, and some that are made of their pieces; 0 for all others."""

    size: int
    shortest: int
    longest: int
    constants: tuple[
        tuple[int, int], ...
    ]  # of each word, the bits (signed) that all strings share, and their values
    chunks: tuple[Chunk, ...]

    @property
    def dtype(self) -> torch.dtype:
        return _dtype(self.size)

    def number(self, strings: Strings, validity: Tensor | None = None, workers: Map | None = None) -> Tensor:
        """int32 or int64 [n] in [0, size]; 0 where `validity` (bool [n]) is False."""
        result = allocation.empty((strings.num_rows,), self.dtype, strings.starts.device)

        def fill(piece: slice) -> None:
            valid = None if validity is None else validity[piece]
            result[piece] = self._number(cut(strings, piece.start, piece.stop), valid)

        (workers or one_by_one)(fill, _pieces(strings))
        return result

    def _number(self, strings: Strings, validity: Tensor | None) -> Tensor:
        known = elementwise.less_equal(strings.lengths, self.longest)
        if self.shortest == self.longest:
            known = elementwise.equal(strings.lengths, self.longest)
        else:
            known &= elementwise.greater_equal(strings.lengths, self.shortest)
            blurred = ends_in_nul(strings)
            if blurred is not None:
                known &= ~blurred
        if validity is not None:
            known &= validity
        found = leading_words(strings, self.longest)
        for word, (bits, value) in zip(found, self.constants, strict=True):
            if bits:
                known &= elementwise.equal(word if bits == -1 else word & bits, value)
        total: Tensor | None = None
        for chunk in self.chunks:
            part = take(chunk.parts, _values(found[chunk.word], chunk.shift))
            total = part if total is None else total.add_(part)
        if total is None:
            return known.to(self.dtype)
        known &= elementwise.greater(total, 0)
        return elementwise.keep_where(total, known)


def number_strings(strings: Strings, workers: Map) -> StringNumbers | None:
    """Numbers for a set of strings (rows may be equal); None if there would be too many, or a row ends in a NUL byte."""
    num_rows, device = strings.num_rows, strings.starts.device
    if num_rows == 0:
        return StringNumbers(0, 1, 0, (), ())
    shortest, longest = (int(extreme) for extreme in strings.lengths.aminmax())
    if longest > LONGEST_LEADING:
        return None
    if num_rows > 8 * _SAMPLE_ROWS:
        sample = take_strings(strings, torch.arange(0, num_rows, num_rows // _SAMPLE_ROWS, device=device))
        if _chunks(sample, longest, one_by_one) is None:
            return None
    found = _chunks(strings, longest, workers)
    if found is None:
        return None
    size, constants, chunks = found
    return StringNumbers(size, shortest, longest, constants, chunks)


def _chunks(
    strings: Strings, longest: int, workers: Map
) -> tuple[int, tuple[tuple[int, int], ...], tuple[Chunk, ...]] | None:
    """How many numbers, the constants of the words, and the chunks; None as `number_strings`."""
    first = leading_words(cut(strings, 0, 1), longest)
    pieces = _pieces(strings)
    differing = [0] * len(first)
    for bits in workers(partial(_differing_bits, strings, first, longest), pieces):
        if bits is None:
            return None
        differing = [known | new for known, new in zip(differing, bits, strict=True)]
    places = [
        (word, shift)
        for word, bits in enumerate(differing)
        for shift in range(0, 8 * WORD, _CHUNK_BITS)
        if bits >> shift & (_CHUNK_VALUES - 1)
    ]
    found = workers(partial(_present, strings, places, longest), pieces)
    present = [row_indices(reduce(torch.logical_or, tables)) for tables in zip(*found, strict=True)]
    size = math.prod(values.shape[0] for values in present)
    if size >= _MOST:
        return None
    constants = []
    for word, value in enumerate(first):
        bits = (1 << 64) - 1
        for place, shift in places:
            if place == word:
                bits &= ~((_CHUNK_VALUES - 1) << shift)
        bits -= bits >> 63 << 64  # signed
        constants.append((bits, int(value) & bits))
    return size, tuple(constants), _with_parts(places, present, size)


def _with_parts(places: Sequence[tuple[int, int]], present: Sequence[Tensor], size: int) -> tuple[Chunk, ...]:
    dtype = _dtype(size)
    lacking = -(_MOST_INT32 if dtype is torch.int32 else _MOST)
    stride = 1
    chunks: list[Chunk] = []
    for (word, shift), values in zip(places, present, strict=True):
        parts = torch.full((_CHUNK_VALUES,), lacking, dtype=dtype, device=values.device)
        numbers = torch.arange(values.shape[0], dtype=dtype, device=values.device) * stride
        parts[values] = numbers if chunks else numbers + 1
        chunks.append(Chunk(word, shift, parts))
        stride *= values.shape[0]
    return tuple(chunks)


def _differing_bits(
    strings: Strings, first: Sequence[Tensor], longest: int, piece: slice
) -> list[int] | None:
    """Of each word the bits in which a row of the piece is not as `first`; None if a row ends in a NUL byte."""
    block = cut(strings, piece.start, piece.stop)
    blurred = ends_in_nul(block)
    if blurred is not None and bool(blurred.any()):
        return None
    found = leading_words(block, longest)
    return [differing_bits(word, value) for word, value in zip(found, first, strict=True)]


def _present(strings: Strings, places: Sequence[tuple[int, int]], longest: int, piece: slice) -> list[Tensor]:
    """Which values stand at each place (word, shift): bool [65536] each."""
    found = leading_words(cut(strings, piece.start, piece.stop), longest)
    tables = []
    for word, shift in places:
        table = torch.zeros(_CHUNK_VALUES, dtype=torch.bool, device=strings.starts.device)
        tables.append(mark_rows(table, _values(found[word], shift)))
    return tables


def _values(word: Tensor, shift: int) -> Tensor:
    return (word >> shift if shift else word) & (_CHUNK_VALUES - 1)


def _dtype(size: int) -> torch.dtype:
    return torch.int32 if size < _MOST_INT32 else torch.int64


def _pieces(strings: Strings) -> list[slice]:
    """The rows in blocks for the caches; all of them on other devices."""
    num_rows = strings.num_rows
    step = _BLOCK if is_host(strings.starts) else max(1, num_rows)
    return [slice(start, min(start + step, num_rows)) for start in range(0, num_rows, step)]
