"""Group ids: which rows have equal keys, as dense numbers, one representative row per group.

Each function returns (group_ids int64 [n], representative_rows int64 [g], g): row i belongs to group group_ids[i], and
representative_rows[k] is the first row of group k. NULLs are the caller's: a code of their own, or an extra column.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tqp.core.process.memory_budget import reserve
from tqp.data.backend import is_host
from tqp.operators.groups.aggregates import count_by_group
from tqp.operators.joins.pairs import any_by_row
from tqp.operators.memory import allocation
from tqp.operators.numbers import elementwise
from tqp.operators.numbers.logic import any_true
from tqp.operators.rows.hash_table import group_by_hash, is_last_equal
from tqp.operators.rows.keys import Word, narrow, pack_by_range, sort_codes
from tqp.operators.rows.runs import Runs
from tqp.operators.rows.selection import row_indices, take

Groups = tuple[Tensor, Tensor, int]

# Up to so many slots a row, a table over the key range is cheaper than a sort.
_TABLE_SLOTS_PER_ROW = 4
_MIN_TABLE_SLOTS = 1024
# Rows among which the first one with each value is looked for first, at least: of values that come equally often, and for each.
_FIRST_ROWS, _ROWS_OF_A_VALUE = 65_536, 16
# Of a row while groups are found: by sorting its code in order, its place, and its group's number in both orders.
_GROUPED_BYTES = 4 * 8
# Between these numbers of rows, hashing is cheaper than a sort: its steps are not too small, and the table fits the cache.
_MIN_HASHED_ROWS, _MAX_HASHED_ROWS = 2048, 1_000_000


def group_ids_of_columns(columns: Sequence[Tensor]) -> Groups:
    """Groups the rows by several integer columns, each [n] or [n, 2] (wide), of any range."""
    words = _words(columns)
    groups = _group_word(words[0])
    for word in words[1:]:
        # both ids are dense, below the number of rows: their pairs fit one code
        inner_ids, _, num_inner = _group_word(word)
        size = groups[2] * num_inner
        groups = _group_word(Word(narrow((groups[0] * num_inner).add_(inner_ids), size), size))
    return groups


def counted_combinations(columns: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Of each distinct combination of integer columns how many rows have it, and the first of these: int64 [g] both."""
    words = _words(columns)
    if len(words) == 1 and columns[0].shape[0] and _fits_table(words[0]):  # no row has to know its number
        codes, span = words[0]
        reserve(2 * 8 * span + 2 * 8 * codes.shape[0])
        counts = torch.bincount(codes, minlength=span)
        occupied = row_indices(elementwise.greater(counts, 0))
        some = max(_FIRST_ROWS, _ROWS_OF_A_VALUE * span) if is_host(codes) else codes.shape[0]
        first_rows = take(_first_rows(codes[:some].to(torch.int64), span), occupied)
        if some < codes.shape[0] and any_true(
            first_rows == some
        ):  # a value comes later than those that come often
            first_rows = take(_first_rows(codes.to(torch.int64), span), occupied)
        return take(counts, occupied), first_rows.to(torch.int64)
    ids, first_rows, count = group_ids_of_columns([word.codes for word in words])
    return count_by_group(ids, count), first_rows


def one_of_each_combination(columns: Sequence[Tensor]) -> Tensor:
    """bool [n], true for one row of each distinct combination of integer columns, as `group_ids_of_columns`."""
    words = _words(columns)
    if len(words) == 1 and _is_hashed(words[0]):
        return is_last_equal(words[0].codes)
    first_rows = group_ids_of_columns([word.codes for word in words])[1]
    return any_by_row(first_rows, columns[0].shape[0])


def _words(columns: Sequence[Tensor]) -> list[Word]:
    return pack_by_range(
        [word for column in columns for word in ([column] if column.dim() == 1 else column.unbind(1))]
    )


def _fits_table(word: Word) -> bool:
    return word.span <= max(_TABLE_SLOTS_PER_ROW * word.codes.shape[0], _MIN_TABLE_SLOTS)


def _is_hashed(word: Word) -> bool:
    rows = word.codes.shape[0]
    return is_host(word.codes) and _MIN_HASHED_ROWS <= rows <= _MAX_HASHED_ROWS and not _fits_table(word)


def _group_word(word: Word) -> Groups:
    codes, span = word
    reserve(_GROUPED_BYTES * codes.shape[0])
    if _fits_table(word):
        return _group_by_table(codes.to(torch.int64), span)
    if _is_hashed(word):
        return group_by_hash(codes)
    ordered, order = sort_codes(codes)
    runs = Runs(ordered)
    group_ids = torch.empty_like(runs.ids()).scatter_(0, order, runs.ids())
    return group_ids, take(order, runs.first_rows), runs.count


def _first_rows(codes: Tensor, size: int) -> Tensor:
    """int32 (int64 of 2^31 rows and more) [size]: the first row with each code, the number of rows where there is none."""
    num_rows = codes.shape[0]
    rows = torch.arange(num_rows, dtype=torch.int32 if num_rows < 2**31 else torch.int64, device=codes.device)
    table = allocation.full(size, num_rows, rows.dtype, codes.device)
    return table.scatter_reduce_(0, codes, rows, "amin")


def _group_by_table(codes: Tensor, size: int) -> Groups:
    table = _first_rows(codes, size)
    occupied = row_indices(elementwise.less(table, codes.shape[0]))
    num_groups = occupied.shape[0]
    first_rows = take(table, occupied).to(torch.int64)
    # from here on it holds the id of each key
    table.scatter_(0, occupied, torch.arange(num_groups, dtype=table.dtype, device=table.device))
    return take(table, codes).to(torch.int64), first_rows, num_groups
