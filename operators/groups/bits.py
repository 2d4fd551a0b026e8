"""bit_and, bit_or and bit_xor of groups.

On the host, how many rows of a group have a bit says what all three are: the counts of several bits are added up side by side in a
word. Where that takes many words, row by row; elsewhere, and of wide integers, run by run of rows in order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.groups.aggregates import count_by_group
from tqp.operators.memory import allocation
from tqp.operators.memory.arrays import Array
from tqp.operators.rows.keys import is_ascending, narrow, sort_codes
from tqp.operators.rows.selection import row_indices, take


class _Bitwise(NamedTuple):
    identity: int
    combine: Callable[[Tensor, Tensor], Tensor]
    ufunc: np.ufunc
    #: Whether a bit is set, by how many rows of a group have it, and how many rows there are.
    is_set: Callable[[Array, Array], Array]


_OPERATIONS = {
    "bit_and": _Bitwise(-1, torch.bitwise_and, np.bitwise_and, np.equal),
    "bit_or": _Bitwise(0, torch.bitwise_or, np.bitwise_or, lambda counts, rows: counts > 0),
    "bit_xor": _Bitwise(0, torch.bitwise_xor, np.bitwise_xor, lambda counts, rows: counts & 1),
}

#: Words of counts that take as long as going row by row, of which a row costs 8 ns, a word 1.5.
_MOST_WORDS = 4
#: Counts in a word at most: the table of words by bits is to stay in the first cache.
_MOST_COUNTS = 10
#: Rows that are counted at once, so that what is computed of them stays in the cache, and counts are small.
_ROWS_AT_ONCE = 131_072
#: Rows for each group from which on the counts of all groups are read in less time than they are added up.
_ROWS_OF_A_GROUP = 16


def bits_by_group(
    values: Tensor,
    group_ids: Tensor,
    num_groups: int,
    validity: Tensor | None = None,
    out: Tensor | None = None,
    *,
    which: str,
    shared: Counted | None = None,
) -> Tensor:
    """Of integers [n] or wide ones [n, 2], in their dtype: [num_groups] or [num_groups, 2]; the identity for an empty group.

    `shared`: what `count_bits` gives for the same arguments.
    """
    operation = _OPERATIONS[which]
    if validity is not None:
        rows = row_indices(validity)
        values, group_ids = take(values, rows), take(group_ids, rows)
    found = allocation.full(num_groups, operation.identity, values.dtype, values.device)
    if num_groups > 1 and not is_ascending(group_ids):
        if is_host(values) and values.dim() == 1:
            counted = count_bits(values, group_ids, num_groups) if shared is None else shared
            assert counted is not None  # as the ids are not ascending
            states, ids, numbers = found.numpy(), group_ids.numpy(), values.numpy()
            for piece, of_bits in counted:
                if of_bits is None:
                    operation.ufunc.at(states, ids[piece], numbers[piece])
                else:
                    operation.ufunc(states, of_bits.bits(operation), out=states, casting="same_kind")
            return _merged(found, out, operation)
        order = sort_codes(narrow(group_ids, num_groups))[1]
        values, group_ids = take(values, order), take(group_ids, order)
    counts = count_by_group(group_ids, num_groups)
    groups = row_indices(counts > 0)
    starts = take(counts.cumsum(0) - counts, groups)
    shape = (num_groups, *values.shape[1:])
    found = found.unsqueeze(1).repeat(1, *shape[1:]) if len(shape) > 1 else found
    if groups.shape[0]:
        found.index_copy_(0, groups, _of_runs(values, starts, take(counts, groups), operation))
    return _merged(found, out, operation)


class BitCounts(NamedTuple):
    """How many rows each group has, and how many of them have each bit."""

    rows: Array  # int64 [num_groups]
    words: list[Array]  # of so many counts each, those of the lowest bits first, int64 [num_groups]
    in_word: int
    width: int  # bits of a count
    num_bits: int  # of any row

    def bits(self, operation: _Bitwise) -> Array:
        """What the rows of each group come to, the identity for a group without rows: int64 [num_groups]."""
        result, mask = np.zeros(self.rows.shape[0], np.int64), (1 << self.width) - 1
        for number, word in enumerate(self.words):
            first = number * self.in_word
            places = np.arange(min(self.in_word, self.num_bits - first))[:, None]
            is_set = operation.is_set((word >> places * self.width) & mask, self.rows)
            result |= np.left_shift(is_set, first + places, dtype=np.int64).sum(0)
        result[self.rows == 0] = operation.identity
        return result


#: Pieces of the rows, and the counts of their bits, None where these cost more than going row by row.
Counted = list[tuple[slice, BitCounts | None]]


def count_bits(
    values: Tensor, group_ids: Tensor, num_groups: int, validity: Tensor | None = None
) -> Counted | None:
    """What all three functions read of integers [n]; None where they do not."""
    if not is_host(values) or values.dim() > 1 or validity is not None or is_ascending(group_ids):
        return None
    at_once = max(_ROWS_AT_ONCE, num_groups * _ROWS_OF_A_GROUP)
    pieces = [slice(first, first + at_once) for first in range(0, values.shape[0], at_once)]
    return [(rows, _counts(values[rows].numpy(), group_ids[rows], num_groups)) for rows in pieces]


def _counts(values: Array, group_ids: Tensor, num_groups: int) -> BitCounts | None:
    if num_groups * _ROWS_OF_A_GROUP > values.shape[0] or values.min() < 0:
        return None
    rows = torch.bincount(group_ids, minlength=num_groups).numpy()
    bits, width = int(np.bitwise_or.reduce(values)).bit_length(), int(rows.max()).bit_length()
    in_word = min(_MOST_COUNTS, 64 // width)
    if bits > _MOST_WORDS * in_word:
        return None
    ids, table, words = group_ids.to(torch.int64), _words_by_bits(in_word, width), []
    for first in range(0, bits, in_word):
        some = (values >> first) & ((1 << in_word) - 1) if bits > in_word else values
        summands = torch.index_select(table, 0, torch.from_numpy(some.astype(np.int32)))
        words.append(torch.zeros(num_groups, dtype=torch.int64).scatter_add_(0, ids, summands).numpy())
    return BitCounts(rows, words, in_word, width, bits)


@lru_cache(maxsize=64)
def _words_by_bits(count: int, width: int) -> Tensor:
    """int64 [2 ** count]: for each number of `count` bits a word in which each bit has `width` bits of its own."""
    numbers = np.arange(1 << count)
    words = np.zeros(1 << count, np.uint64)
    for bit in range(count):
        words |= ((numbers >> bit) & 1).astype(np.uint64) << np.uint64(bit * width)
    return torch.from_numpy(words.view(np.int64))


def _merged(found: Tensor, out: Tensor | None, operation: _Bitwise) -> Tensor:
    return found if out is None else out.copy_(operation.combine(out, found.to(out.dtype)))


def _of_runs(values: Tensor, starts: Tensor, lengths: Tensor, operation: _Bitwise) -> Tensor:
    """One value for each run of rows; a run has at least one."""
    if is_host(values):
        return torch.from_numpy(operation.ufunc.reduceat(values.numpy(), starts.numpy(), axis=0))
    # tables of what 1, 2, 4, ... rows from each row on come to; a run of 13 rows is one of 1, of 4 and of 8
    found, places, table = None, starts.clone(), values
    for level in range(int(lengths.max()).bit_length()):
        step = 1 << level
        if level:
            table = operation.combine(table[: -step // 2], table[step // 2 :])
        chosen = (lengths & step) != 0
        taken = take(table, places * chosen)
        shape = chosen if taken.dim() == 1 else chosen.unsqueeze(1)
        taken = torch.where(shape, taken, operation.identity)
        found = taken if found is None else operation.combine(found, taken)
        places = places + lengths.bitwise_and(step)
    assert found is not None
    return found


def bits_of_all(values: Tensor, validity: Tensor | None = None, *, which: str) -> Tensor:
    """Of all integers [n] or [n, 2], 0-d or [2]."""
    if is_host(values):
        operation = _OPERATIONS[which]
        valid = values if validity is None else take(values, row_indices(validity))
        return torch.from_numpy(
            np.asarray(operation.ufunc.reduce(valid.numpy(), axis=0, initial=operation.identity))
        )
    one_group = torch.zeros(values.shape[0], dtype=torch.int64, device=values.device)
    return bits_by_group(values, one_group, 1, validity, which=which)[0]


BY_GROUP = {which: partial(bits_by_group, which=which) for which in _OPERATIONS}
OF_ALL = {which: partial(bits_of_all, which=which) for which in _OPERATIONS}
MERGES = {which: operation.combine for which, operation in _OPERATIONS.items()}
