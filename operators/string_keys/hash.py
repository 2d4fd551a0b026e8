"""Hash strings."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.memory import allocation
from tqp.operators.numbers import elementwise
from tqp.operators.rows.selection import row_indices
from tqp.operators.string_keys.pack import Packing, packer_of, signed
from tqp.operators.strings.layout import cut, take
from tqp.operators.strings.words import BLOCK, LONGEST_LEADING, WORD, leading_words, step_width, words

_SCRAMBLE = signed(0x9E3779B97F4A7C15)
_BASE = 0xD1342543DE82EF95
_FINISH = signed(0xBF58476D1CE4E5B9)
#: Bytes that are read together, of all rows.
_FIRST_BYTES = 2 * WORD
#: From this share of long enough rows on, the next word is read of all rows.
_MOST = 0.5


def hash64(strings: Strings) -> Tensor:
    """A 64-bit hash of each row's bytes and length: int64 [n], the same wherever the bytes lie."""
    if not is_host(strings.starts) or strings.num_rows <= BLOCK:
        return _hash64(strings)
    result = allocation.empty((strings.num_rows,), torch.int64, strings.starts.device)
    for start in range(0, strings.num_rows, BLOCK):
        result[start : start + BLOCK] = _hash64(cut(strings, start, start + BLOCK))
    return result


def partition_and_pack(strings: Strings) -> tuple[Tensor, tuple[Tensor, Packing] | None]:
    """A hash good enough for partitions, int64 [n], and what `pack` makes of the rows: bytes are read once.

    Of at least one row, in main memory. The hash is the same wherever the bytes lie; with the codes goes their packing, as
    which rows of other calls may have another one.
    """
    packer = packer_of(strings, with_holes=True)
    result = allocation.empty((strings.num_rows,), torch.int64, strings.starts.device)
    for start in range(0, strings.num_rows, BLOCK):
        block = cut(strings, start, start + BLOCK)
        if packer is None:
            result[start : start + BLOCK] = _partition_hash(block)
            continue
        leading = leading_words(block, packer.num_bytes)
        result[start : start + BLOCK] = _hash_of_words(leading, block)
        if not packer.add(leading, block.lengths):
            packer = None
    return result, None if packer is None else (packer.codes(), packer.packing)


def _partition_hash(strings: Strings) -> Tensor:
    is_long = elementwise.greater(strings.lengths, LONGEST_LEADING)
    longer = row_indices(is_long)
    if longer.shape[0] == 0:
        return _hash_of_words(leading_words(strings, int(strings.lengths.max())), strings)
    result = torch.empty_like(strings.starts)
    result[longer] = _hash64(take(strings, longer))
    shorter = row_indices(~is_long)
    if shorter.shape[0]:
        result[shorter] = _partition_hash(take(strings, shorter))
    return result


def _hash_of_words(leading: Sequence[Tensor], strings: Strings) -> Tensor:
    """A sum of products, to which words that are 0 add nothing; of all words of the rows."""
    result = torch.zeros_like(strings.starts)
    for position, word in enumerate(leading):
        result += elementwise.multiply(word, _power(position + 1))
    result ^= result >> 32
    return result


def _hash64(strings: Strings) -> Tensor:
    # A polynomial over scrambled words. The word 0 is scrambled to 0, so padding past a row's end adds nothing.
    result = elementwise.multiply(strings.lengths.to(torch.int64), _FINISH)
    longest = int(strings.lengths.max()) if strings.num_rows else 0
    for position, word in enumerate(leading_words(strings, min(longest, _FIRST_BYTES))):
        result += elementwise.multiply(_scrambled(word), _power(position)) if position else _scrambled(word)
    rows: Tensor | None = None
    offset = _FIRST_BYTES
    while offset < longest:
        kept = row_indices(elementwise.greater(strings.lengths, offset))
        if kept.shape[0] == 0:
            break
        if kept.shape[0] < _MOST * strings.num_rows:
            rows = kept if rows is None else torch.index_select(rows, 0, kept)
            strings = take(strings, kept)
        count = step_width(offset)
        scrambled = _scrambled(words(strings, offset, count))
        powers = [_power(offset // WORD + step) for step in range(count)]
        if count == 1:
            part = elementwise.multiply(scrambled, powers[0])
        else:
            part = (scrambled * torch.tensor(powers, device=scrambled.device)).sum(1)
        if rows is None:
            result += part
        else:
            result.index_add_(0, rows, part)
        offset += WORD * count
    result = elementwise.multiply(result ^ ((result >> 32) & 0xFFFFFFFF), _FINISH)
    return result ^ ((result >> 32) & 0xFFFFFFFF)


def _power(position: int) -> int:
    return signed(pow(_BASE, position, 1 << 64))


def _scrambled(word: Tensor) -> Tensor:
    scrambled = elementwise.multiply(word ^ ((word >> 32) & 0xFFFFFFFF), _SCRAMBLE)
    scrambled ^= (scrambled >> 29) & 0x7FFFFFFFF
    return scrambled
