"""Group ids: which rows have equal keys, as dense numbers, one representative row per group.

Each function returns (group_ids int64 [n], representative_rows int64 [g], g): row i belongs to group group_ids[i], and
representative_rows[k] is the first row of group k. NULLs are the caller's: a code of their own, or an extra column.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tqp.operators.keys import pack_by_range, sort_codes
from tqp.operators.rows import row_indices, take

Groups = tuple[Tensor, Tensor, int]

# A table over the key range is cheaper than a sort up to about this many slots a row.
_TABLE_SLOTS_PER_ROW = 8
_MIN_TABLE_SLOTS = 1024


def group_by_codes_sorted(keys: Tensor) -> Groups:
    """Groups the rows by integer keys [n] of any range; the groups come in key order."""
    return _group_word(pack_by_range([keys])[0])


def group_ids_of_columns(columns: Sequence[Tensor]) -> Groups:
    """Groups the rows by several integer columns, each [n] or [n, 2] (wide), of any range.

    The groups come in lexicographic order of the columns (the low word of a wide one ordered as signed).
    """
    words = []
    for column in columns:
        words += [column] if column.dim() == 1 else list(column.unbind(1))
    words = pack_by_range(words)
    groups = _group_word(words[0])
    for word in words[1:]:
        # the ids so far are dense and so are those of the next word: their pairs fit one code
        inner_ids, _, _ = _group_word(word)
        groups = _group_word(pack_by_range([groups[0], inner_ids])[0])
    return groups


def cluster_boundaries(keys: Tensor) -> Groups:
    """Groups runs of equal neighbours: for keys [n] that are sorted, or clustered."""
    num_rows = keys.shape[0]
    starts = torch.ones(num_rows, dtype=torch.bool, device=keys.device)
    if num_rows > 1:
        torch.ne(keys[1:], keys[:-1], out=starts[1:])
    first_rows = row_indices(starts)
    return starts.cumsum(0).sub_(1), first_rows, first_rows.shape[0]


def _group_word(codes: Tensor) -> Groups:
    """`codes`: integers [n] as `pack_by_range` makes them: from 0 on, but for those that take all 64 bits."""
    num_rows = codes.shape[0]
    if num_rows == 0:
        return cluster_boundaries(codes.to(torch.int64))
    low, high = torch.stack(torch.aminmax(codes)).tolist()
    if low >= 0 and high < max(_TABLE_SLOTS_PER_ROW * num_rows, _MIN_TABLE_SLOTS):
        return _group_by_table(codes.to(torch.int64), high + 1)
    ordered, order = sort_codes(codes)
    sorted_ids, first_places, num_groups = cluster_boundaries(ordered)
    group_ids = torch.empty_like(sorted_ids).scatter_(0, order, sorted_ids)
    return group_ids, take(order, first_places), num_groups


def _group_by_table(codes: Tensor, size: int) -> Groups:
    num_rows = codes.shape[0]
    rows = torch.arange(num_rows, dtype=torch.int32 if num_rows < 2**31 else torch.int64, device=codes.device)
    first_rows = torch.full((size,), num_rows, dtype=rows.dtype, device=codes.device)
    first_rows.scatter_reduce_(0, codes, rows, "amin")
    occupied = first_rows < num_rows
    ids = occupied.cumsum(0).sub_(1)
    representative_rows = take(first_rows, row_indices(occupied)).to(torch.int64)
    return take(ids, codes), representative_rows, representative_rows.shape[0]
