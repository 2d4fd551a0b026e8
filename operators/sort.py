"""ORDER BY: the rows in order, or the first k of them, through order-preserving integer codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tqp.operators.keys import ordered_bits, pack_by_range, sort_codes
from tqp.operators.rows import row_indices, take, take_optional
from tqp.operators.wide import order_keys

# Up to this share of the rows, finding the k-th row first is cheaper than sorting all.
_TOP_SHARE = 16


class SortColumn(NamedTuple):
    """One ORDER BY key: bool, integers, or floats [n], or wide integers int64 [n, 2]."""

    values: Tensor
    validity: Tensor | None = None
    descending: bool = False
    nulls_first: bool = False


def sort_rows(columns: Sequence[SortColumn]) -> Tensor:
    """Row indices (int64 [n]) in the order of the columns, first column first; ties keep their order."""
    words = pack_by_range([code for column in columns for code in _codes(column)])
    order = sort_codes(words[-1].codes)[1]
    for word in reversed(words[:-1]):  # stable sorts from the last word to the first
        order = take(order, sort_codes(take(word.codes, order))[1])
    return order


def top_rows(columns: Sequence[SortColumn], k: int) -> Tensor:
    """The first k (or all, if fewer) of the rows that `sort_rows` gives."""
    num_rows = columns[0].values.shape[0]
    if k <= 0:
        return torch.zeros(0, dtype=torch.int64, device=columns[0].values.device)
    if k * _TOP_SHARE > num_rows:
        return sort_rows(columns)[:k]
    # Rows after the k-th in the first column alone cannot be among the first k; its ties can.
    first_word = pack_by_range(_codes(columns[0]))[0].codes
    last = torch.topk(first_word, k, largest=False, sorted=False).values.max()
    candidates = row_indices(first_word <= last)
    remaining = [
        SortColumn(
            take(column.values, candidates),
            take_optional(column.validity, candidates),
            column.descending,
            column.nulls_first,
        )
        for column in columns
    ]
    return take(candidates, sort_rows(remaining)[:k])


def _codes(column: SortColumn) -> list[Tensor]:
    """Integer columns whose lexicographic ascending order is the order that the column asks for."""
    values = column.values
    if values.is_floating_point():
        codes = [ordered_bits(values)]
    elif values.dim() == 2:
        codes = list(order_keys(values))
    else:
        codes = [values.to(torch.int8) if values.dtype is torch.bool else values]
    if column.descending:
        codes = [~code for code in codes]  # reverses the order and, other than negation, cannot overflow
    if column.validity is None:
        return codes
    # equal codes under NULL, so that NULLs tie; the flag in front places them
    flag = column.validity if column.nulls_first else column.validity.logical_not()
    return [flag.to(torch.int8), *(code * column.validity for code in codes)]
