"""Distinct values of groups whose rows are all there: one row of each (group, value), and how many each group has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tqp.core.process.memory_budget import reserve
from tqp.data.backend import is_host
from tqp.operators.groups import aggregates
from tqp.operators.groups.group_ids import group_ids_of_columns, one_of_each_combination
from tqp.operators.memory.arrays import Array
from tqp.operators.rows.keys import numpy_sorts_words_faster
from tqp.operators.rows.selection import row_indices, take

#: From so many pairs on they are sorted: as quick as hashing them where 32 bits hold a pair (8 ns a row), in a fifth of the calls.
_SORTED_ROWS = 32_768
_SORTED_SPAN, _LONG_SPAN = 1 << 32, 1 << 64
_HALF = 1 << 31
#: Of a pair, in order, and once more of those that are left.
_PAIR_BYTES = 2 * 8


def one_of_each(group_ids: Tensor, keys: Sequence[Tensor], validity: Tensor | None = None) -> Tensor:
    """bool [n], true for one row of each distinct combination of group and keys among the valid rows.

    `keys`: integers, each [n] or [n, 2]; of floats, their `ordered_bits`.
    """
    if validity is None:
        return one_of_each_combination([group_ids, *keys])
    rows = row_indices(validity)
    chosen = torch.zeros_like(validity)
    chosen[rows] = one_of_each_combination([take(each, rows) for each in (group_ids, *keys)])
    return chosen


def count_distinct_by_group(
    group_ids: Tensor, num_groups: int, keys: Tensor, validity: Tensor | None = None
) -> Tensor:
    """The number of distinct keys among the valid rows of each group: int64 [num_groups]; arguments as of `one_of_each`."""
    if not is_host(keys) or keys.shape[0] < _SORTED_ROWS:
        return aggregates.count_by_group(group_ids, num_groups, one_of_each(group_ids, [keys], validity))
    if validity is not None:
        rows = row_indices(validity)
        group_ids, keys = take(group_ids, rows), take(keys, rows)
    if not keys.shape[0]:
        return torch.zeros(num_groups, dtype=torch.int64)
    low, span = 0, _LONG_SPAN + 1  # of two words
    if keys.dim() == 1:
        low, high = (int(extreme) for extreme in torch.aminmax(keys))
        span = high - low + 1
    if num_groups * span > _SORTED_SPAN:
        if not numpy_sorts_words_faster():
            return aggregates.count_by_group(group_ids, num_groups, one_of_each(group_ids, [keys]))
        if num_groups * span > _LONG_SPAN:  # numbers of the keys are below the number of rows
            (keys, _, span), low = group_ids_of_columns([keys]), 0
    return torch.from_numpy(_count_sorted(group_ids.numpy(), num_groups, keys.numpy(), low, span))


def _count_sorted(group_ids: Array, num_groups: int, keys: Array, low: int, span: int) -> Array:
    """int64 [num_groups], of at least one key from `low` to `low + span - 1`; there are at most 2^64 possible pairs."""
    bits = 32 if num_groups * span <= _SORTED_SPAN else 64
    dtype: type[np.unsignedinteger[Any]] = np.uint32 if bits == 32 else np.uint64
    reserve(_PAIR_BYTES * keys.shape[0])
    pairs: npt.NDArray[Any] = group_ids.astype(dtype)
    pairs *= dtype(span % (1 << bits))  # 2^bits with one group, whose number is 0
    pairs += keys.astype(dtype)  # modulo 2^bits, as all that is added
    if low:
        pairs += dtype(-low % (1 << bits))
    if bits == 64 or numpy_sorts_words_faster():
        pairs.sort()
    else:  # torch sorts int32 in half the time of int64, and no unsigned ones
        pairs ^= dtype(_HALF)
        pairs = torch.sort(torch.from_numpy(pairs.view(np.int32)), stable=True)[0].numpy().view(np.uint32)
        pairs ^= dtype(_HALF)
    is_first = np.empty(len(pairs), np.bool_)
    is_first[0] = True
    np.not_equal(pairs[1:], pairs[:-1], out=is_first[1:])
    if num_groups == 1:
        return np.array([np.count_nonzero(is_first)])
    groups = pairs[is_first]
    groups //= dtype(span)
    return np.bincount(groups.astype(np.int64), minlength=num_groups)
