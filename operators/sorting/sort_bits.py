"""Sort keys as streams of bits that compare, read from the first one on, as the keys do: integers, and strings as they lie."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.rows.selection import take
from tqp.operators.string_keys.pack import append_bits, differing_bits, leading_bytes
from tqp.operators.strings.layout import take as take_strings
from tqp.operators.strings.layout import to_arrow_binary
from tqp.operators.strings.words import big_endian, words

#: So few strings, and so few that tie in their first words, are compared whole: word by word, each word is a dozen calls.
_FEW_ROWS, _FEW_TIED_ROWS = 2048, 65_536


class Chunk(NamedTuple):
    """The next `width` bits of some rows, int64 [n] in [0, 2^width), and the bits after them (None: there are none)."""

    codes: Tensor
    width: int
    rest: Bits | None


class NumberBits(NamedTuple):
    """Integers [n] of which the low `left` bits are still to come."""

    codes: Tensor
    left: int

    def take(self, rows: Tensor | None, room: int) -> Chunk:
        """As many of the next bits as there is room for; `rows` None means all."""
        width = min(self.left, room)
        codes = (self.codes if rows is None else take(self.codes, rows)).to(torch.int64)
        shift = self.left - width
        codes = (codes >> shift if shift else codes) & ((1 << width) - 1)
        return Chunk(codes, width, NumberBits(self.codes, shift) if shift else None)


class StringBits(NamedTuple):
    """Strings from byte `offset` on, and at their end their lengths, which differ where only trailing zero bytes do."""

    strings: Strings
    descending: bool
    offset: int = 0

    def take(self, rows: Tensor | None, room: int) -> Chunk | None:
        """Those of the next word's bits in which any of the rows differ; None if there is no room for one byte's."""
        strings = self.strings if rows is None else take_strings(self.strings, rows)
        shortest, longest = (int(extreme) for extreme in strings.lengths.aminmax())
        if self.offset >= longest:
            width = (longest - shortest).bit_length()
            chunk = Chunk((strings.lengths - shortest).to(torch.int64), width, None)
            return self._directed(chunk) if width <= room else None
        few = _FEW_ROWS if rows is None or not self.offset else _FEW_TIED_ROWS
        if strings.num_rows <= few and is_host(strings.starts):
            chunk = _ranks(strings)
            return self._directed(chunk) if chunk.width <= room else None
        word = big_endian(words(strings, self.offset))
        (differing,), num_bytes = leading_bytes([differing_bits(word, word[:1])], room)
        if not num_bytes:
            return None
        codes = torch.zeros_like(word)
        append_bits(codes, word, differing)
        rest = self._replace(offset=self.offset + num_bytes)
        return self._directed(Chunk(codes, differing.bit_count(), rest))

    def _directed(self, chunk: Chunk) -> Chunk:
        if not self.descending:
            return chunk
        return chunk._replace(codes=chunk.codes.bitwise_xor_((1 << chunk.width) - 1))


def _ranks(strings: Strings) -> Chunk:
    """All that is left of strings in main memory, as their dense ranks: by Arrow, which compares whole strings."""
    ranks = pc.rank(to_arrow_binary(strings), tiebreaker="dense")
    codes = torch.from_numpy(np.array(ranks, np.int64)) - 1
    return Chunk(codes, int(codes.max()).bit_length(), None)


Bits = NumberBits | StringBits
