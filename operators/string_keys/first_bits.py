"""Strings by their first bits: integers that compare as the strings do, as far as 63 differing bits go.

A table keeps those of a column once a query has ordered by it: from then on that is ordering integers, and of the strings
only those are read whose integers tie.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from tqp.data.column import Column
from tqp.data.strings import Strings
from tqp.operators.memory import allocation
from tqp.operators.memory.allocation import Map
from tqp.operators.rows.selection import row_indices
from tqp.operators.string_keys.pack import leading_bytes, pack_bits, word_masks
from tqp.operators.strings.layout import cut, take

_BITS = 63
_PIECE_ROWS = 262_144
_SAMPLE_ROWS = 4096


@dataclass(frozen=True, slots=True)
class PackedStrings:
    """`codes`: int64 [n], in the order of the strings; equal where the first `num_bytes` bytes are, zero past the end."""

    codes: Tensor
    num_bytes: int

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes


def pack_column(column: Column, workers: Map) -> PackedStrings:
    """Of a column of strings in main memory, each row of which is the pool's; of NULL any code."""
    assert column.pool is not None and column.values is None
    return pack_leading_bits(column.pool, column.validity, workers)


def packed_range(packed: PackedStrings, first: int, num_rows: int) -> Tensor:
    """The codes of rows first .. first + num_rows, as a view."""
    return packed.codes[first : first + num_rows]


def pack_leading_bits(strings: Strings, validity: Tensor | None, workers: Map) -> PackedStrings:
    """The bits in which any of the valid strings differ, from the first on, of as many bytes as have at most 63."""
    num_rows = strings.num_rows
    pieces = [(start, min(start + _PIECE_ROWS, num_rows)) for start in range(0, num_rows, _PIECE_ROWS)]
    valid = strings if validity is None else take(strings, row_indices(validity))
    first = cut(valid, 0, 1)
    sample = torch.arange(0, valid.num_rows, max(1, valid.num_rows // _SAMPLE_ROWS))
    masks = word_masks(take(valid, sample), first, _BITS) if valid.num_rows else []

    def masks_of(piece: tuple[int, int]) -> list[int]:
        return word_masks(cut(valid, *piece), first, None, len(masks))

    found = workers(masks_of, [piece for piece in pieces if piece[0] < valid.num_rows])
    masks, num_bytes = leading_bytes([reduce(operator.or_, each) for each in zip(*found, strict=True)], _BITS)
    codes = allocation.empty((num_rows,), torch.int64, strings.starts.device)

    def write(piece: tuple[int, int]) -> None:
        codes[slice(*piece)] = pack_bits(cut(strings, *piece), masks)

    workers(write, pieces)
    return PackedStrings(codes, num_bytes)
