"""bit_and, bit_or and bit_xor of groups.

On the host, words that hold the group of a row and its value are sorted, which costs less than going row by row; the values of a
group follow one another then. Where both have no room in 64 bits, row by row; elsewhere, and of wide integers, run by run of rows
in order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.groups.aggregates import count_by_group
from tqp.operators.memory import allocation
from tqp.operators.memory.arrays import Array
from tqp.operators.rows.keys import is_ascending, narrow, numpy_sorts_words_faster, sort_codes
from tqp.operators.rows.runs import Runs
from tqp.operators.rows.selection import row_indices, take


class _Bitwise(NamedTuple):
    identity: int
    combine: Callable[[Tensor, Tensor], Tensor]
    ufunc: np.ufunc


_OPERATIONS = {
    "bit_and": _Bitwise(-1, torch.bitwise_and, np.bitwise_and),
    "bit_or": _Bitwise(0, torch.bitwise_or, np.bitwise_or),
    "bit_xor": _Bitwise(0, torch.bitwise_xor, np.bitwise_xor),
}

#: Rows that are sorted together, so that their words stay in the cache.
_ROWS_TOGETHER = 131_072
#: Rows for each group at least, so that groups have runs.
_ROWS_OF_A_GROUP = 16


def bits_by_group(
    values: Tensor,
    group_ids: Tensor,
    num_groups: int,
    validity: Tensor | None = None,
    out: Tensor | None = None,
    *,
    which: str,
    shared: ValuesInOrder | None = None,
) -> Tensor:
    """Of integers [n] or wide ones [n, 2], in their dtype: [num_groups] or [num_groups, 2]; the identity for an empty group.

    `shared`: what `sort_values` gives for the same arguments.
    """
    operation = _OPERATIONS[which]
    if validity is not None:
        valid = row_indices(validity)
        values, group_ids = take(values, valid), take(group_ids, valid)
    found = allocation.full(num_groups, operation.identity, values.dtype, values.device)
    if num_groups > 1 and (shared is not None or not is_ascending(group_ids)):
        if is_host(values) and values.dim() == 1:
            rows = group_ids.numpy(), values.numpy()
            in_order = shared or _in_order(*rows, num_groups)
            operation.ufunc.at(found.numpy(), *(rows if in_order is None else in_order.reduced(operation)))
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


class ValuesInOrder(NamedTuple):
    """Values of rows in the order of their groups: of all rows, or of so many after so many."""

    words: Array  # unsigned [n]: the group, and the lowest bits of the value
    width: int  # how many bits of a value
    runs: Runs[Array]
    dtype: np.dtype[Any]  # of the values

    def reduced(self, operation: _Bitwise) -> tuple[Array, Array]:
        """The groups of the runs, and what the values of each come to."""
        starts = self.runs.first_rows
        bits = self.words.dtype.itemsize * 8
        reduced = operation.ufunc.reduceat(self.words, starts).view(f"i{bits // 8}")
        spare = bits - self.width  # the highest bit of a value is its sign
        groups = (self.words[starts] >> self.width).astype(np.int64)
        return groups, ((reduced << spare) >> spare).astype(self.dtype)


def sort_values(
    values: Tensor, group_ids: Tensor, num_groups: int, validity: Tensor | None = None
) -> ValuesInOrder | None:
    """What all three functions read of integers [n]; None where they do not."""
    is_narrow = is_host(values) and values.dim() == 1
    if num_groups == 1 or not is_narrow or validity is not None or is_ascending(group_ids):
        return None
    return _in_order(group_ids.numpy(), values.numpy(), num_groups)


def _in_order(group_ids: Array, values: Array, num_groups: int) -> ValuesInOrder | None:
    """None where going row by row costs less. There is a row at least."""
    width = 1 + max(int(values.max()).bit_length(), (~int(values.min())).bit_length())
    word_bits = (num_groups - 1).bit_length() + width
    if word_bits > 64 or not numpy_sorts_words_faster():
        return None
    dtype = np.dtype(np.uint32 if word_bits <= 32 else np.uint64)
    words = group_ids.astype(dtype)
    words <<= width
    words |= values.astype(dtype) & ((1 << width) - 1)
    together = max(_ROWS_TOGETHER, num_groups * _ROWS_OF_A_GROUP)
    whole = words.shape[0] // together * together
    words[:whole].reshape(-1, together).sort(axis=1)
    words[whole:].sort()
    return ValuesInOrder(words, width, Runs(words >> width), values.dtype)


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
