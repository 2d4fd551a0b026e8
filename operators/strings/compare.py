"""Compare strings as DuckDB's default collation does, byte by byte: equality, order, membership."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.numbers import elementwise
from tqp.operators.rows.selection import row_indices
from tqp.operators.strings.layout import broadcast, cut, from_list, take, to_arrow_binary, to_list
from tqp.operators.strings.words import BLOCK, WORD, leading, order_key, stands_at, step_width, word_of, words

#: Up to this many values, IN compares with each in turn; beyond, Arrow looks them up by hash.
_SHORT_LIST = 16
#: Bytes of a value that rows are compared with word by word; longer ones as rows are, several words at a time.
_LONGEST_WORD = 256
#: Rows whose first words are compared at a time on the CPU: long operations, as short ones wait for other threads.
_LONG_BLOCK = 4 * BLOCK


def equals_word(strings: Strings, word: bytes) -> Tensor:
    """Whether each row is `word`: bool [n]."""
    return stands_at(strings, strings.starts, word, elementwise.equal(strings.lengths, len(word)))


def equal(left: Strings, right: Strings) -> Tensor:
    """left = right: bool [n]. Either side may be one row."""
    one, many = (right, left) if right.num_rows == 1 else (left, right)
    if one.num_rows == 1:
        if int(one.lengths) <= _LONGEST_WORD:
            return equals_word(many, to_list(one)[0])
        left, right = many, broadcast(one, many.num_rows)
    step = _LONG_BLOCK if is_host(left.starts) else max(1, left.num_rows)
    if left.num_rows <= step:
        return _equal_rows(left, right)
    result = torch.empty_like(left.lengths, dtype=torch.bool)
    for start in range(0, left.num_rows, step):
        block = slice(start, start + step)
        result[block] = _equal_rows(cut(left, block.start, block.stop), cut(right, block.start, block.stop))
    return result


def _equal_rows(left: Strings, right: Strings) -> Tensor:
    result = elementwise.equal(left.lengths, right.lengths)
    rows: Tensor | None = None  # those that may be equal; None for all
    same, offset = result, 0
    at_once = 2 if is_host(result) else 1
    while True:
        kept = row_indices(same)
        if kept.shape[0] < same.shape[0]:
            rows = kept if rows is None else torch.index_select(rows, 0, kept)
            left, right = take(left, kept), take(right, kept)
        remaining = int(left.lengths.max()) - offset if kept.shape[0] else 0
        if remaining <= 0:
            break
        count = min(max(step_width(offset), at_once), -(-remaining // WORD))
        same = elementwise.equal(words(left, offset, count), words(right, offset, count))
        if count == 2:
            same = same[:, 0] & same[:, 1]
        elif count > 2:
            same = same.all(1)
        offset += WORD * count
    return result if rows is None else torch.zeros_like(result).index_fill_(0, rows, True)


def less(left: Strings, right: Strings) -> Tensor:
    """left < right: bool [n]. Either side may be one row."""
    return three_way(left, right) < 0


def three_way(left: Strings, right: Strings) -> Tensor:
    """-1, 0 or 1 as left is below, equal to or above right: int8 [n]. Either side may be one row."""
    # Zero bytes stand past the end of a row, so a tie in all words is decided by the lengths.
    result = (left.lengths > right.lengths).to(torch.int8) - (left.lengths < right.lengths).to(torch.int8)
    rows: Tensor | None = None
    offset = 0
    while left.num_rows and right.num_rows:
        count = step_width(offset)
        left_word, right_word = words(left, offset, count), words(right, offset, count)
        if count > 1:
            # In each row look at the first word that differs.
            first = (left_word != right_word).to(torch.int8).argmax(1, keepdim=True)
            left_word = left_word.expand(first.shape[0], count).gather(1, first).view(-1)
            right_word = right_word.expand(first.shape[0], count).gather(1, first).view(-1)
        left_key, right_key = order_key(left_word), order_key(right_word)
        above, below = elementwise.greater(left_key, right_key), elementwise.less(left_key, right_key)
        sign = above.view(torch.int8) - below.view(torch.int8)
        tied = elementwise.equal(sign, 0)
        if rows is None:
            result = sign + result * tied
        else:
            result.index_copy_(0, rows, sign + torch.index_select(result, 0, rows) * tied)
        offset += WORD * count
        if left.num_rows > 1:
            tied &= elementwise.greater(left.lengths, offset)
        elif int(left.lengths) <= offset:
            break
        if right.num_rows > 1:
            tied &= elementwise.greater(right.lengths, offset)
        elif int(right.lengths) <= offset:
            break
        kept = row_indices(tied)
        if kept.shape[0] == 0:
            break
        if kept.shape[0] < sign.shape[0]:
            rows = kept if rows is None else torch.index_select(rows, 0, kept)
            left, right = _rows_of(left, kept), _rows_of(right, kept)
    return result


def rows_up_to(strings: Strings, bound: bytes, above: bool) -> Tensor:
    """Rows (int64, ascending) that are not above `bound`, or with `above` not below it. Fast where they are few."""
    first_word = int.from_bytes(bound[:WORD].ljust(WORD, b"\0")) - (1 << 63)
    step = _LONG_BLOCK if is_host(strings.starts) else max(1, strings.num_rows)
    within = elementwise.greater_equal if above else elementwise.less_equal
    found = []
    for start in range(0, strings.num_rows, step):
        key = order_key(words(cut(strings, start, start + step), 0))
        found.append(row_indices(within(key, first_word)).add_(start))
    rows = torch.cat(found) if found else torch.zeros_like(strings.starts)
    sign = three_way(take(strings, rows), from_list([bound], rows.device))
    return torch.index_select(rows, 0, row_indices(sign >= 0 if above else sign <= 0))


def _rows_of(strings: Strings, rows: Tensor) -> Strings:
    return strings if strings.num_rows == 1 else take(strings, rows)


def in_list(strings: Strings, values: Sequence[bytes]) -> Tensor:
    """Whether each row is one of `values`: bool [n]."""
    distinct = sorted(set(values))
    if not distinct:
        return torch.zeros_like(strings.lengths, dtype=torch.bool)
    if len(distinct) <= _SHORT_LIST:
        return _in_short_list(strings, distinct)
    found = pc.is_in(to_arrow_binary(strings), value_set=pa.array(distinct, pa.large_binary()))
    return torch.from_numpy(np.array(found)).to(strings.starts.device)


def _in_short_list(strings: Strings, values: Sequence[bytes]) -> Tensor:
    """Whether each row is one of `values`: one read of the rows for all values of up to eight bytes."""
    found: list[Tensor] = []
    short = [value for value in values if len(value) <= WORD]
    if short:
        key = leading(strings, max(map(len, short)))
        size = key.element_size()
        for length in {len(value) for value in short}:
            # What follows a row of this length does not count.
            start = key if length == size else key & ((1 << (8 * length)) - 1)
            same = _equals_any(start, [word_of(value, size) for value in short if len(value) == length])
            found.append(same.logical_and_(elementwise.equal(strings.lengths, length)))
    found += [equals_word(strings, value) for value in values if len(value) > WORD]
    result = found[0]
    for part in found[1:]:
        result |= part
    return result


def _equals_any(numbers: Tensor, values: Sequence[int]) -> Tensor:
    """Whether each number (integers [n]) is one of the values: bool [n]."""
    wanted = torch.tensor(values, dtype=numbers.dtype, device=numbers.device)
    if not is_host(numbers):
        return (numbers[:, None] == wanted).any(1)
    result = np.empty(numbers.shape[0], np.bool_)
    for start in range(0, numbers.shape[0], _LONG_BLOCK):
        block = slice(start, start + _LONG_BLOCK)
        np.logical_or.reduce(numbers.numpy()[block] == wanted.numpy()[:, None], axis=0, out=result[block])
    return torch.from_numpy(result)
