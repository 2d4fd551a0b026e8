"""ORDER BY: the rows in order, through order-preserving integer codes (the first k of them: `top_rows`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators.keys import ordered_bits, pack_by_range, sort_codes
from tqp.operators.rows import take, take_optional
from tqp.operators.string_codes import order_codes
from tqp.operators.string_layout import take as take_strings
from tqp.operators.wide import order_keys


class SortColumn(NamedTuple):
    """One ORDER BY key: bool, integers, or floats [n], or wide integers int64 [n, 2], or strings."""

    values: Tensor | Strings
    validity: Tensor | None = None
    descending: bool = False
    nulls_first: bool = False

    @property
    def num_rows(self) -> int:
        return self._any.shape[0]

    @property
    def device(self) -> torch.device:
        return self._any.device

    @property
    def _any(self) -> Tensor:
        return self.values.starts if isinstance(self.values, Strings) else self.values


def sort_rows(columns: Sequence[SortColumn]) -> Tensor:
    """Row indices (int64 [n]) in the order of the columns, first column first; ties keep their order."""
    words = pack_by_range([code for column in columns for code in _codes(column)])
    order = sort_codes(words[-1].codes)[1]
    for word in reversed(words[:-1]):  # stable sorts from the last word to the first
        order = take(order, sort_codes(take(word.codes, order))[1])
    return order


def take_rows(column: SortColumn, rows: Tensor) -> SortColumn:
    """The given rows of a key."""
    values = column.values
    taken = take_strings(values, rows) if isinstance(values, Strings) else take(values, rows)
    return column._replace(values=taken, validity=take_optional(column.validity, rows))


def _codes(column: SortColumn) -> list[Tensor]:
    """Integer columns whose lexicographic ascending order is the order that the column asks for."""
    values = column.values
    if isinstance(values, Strings):
        codes = [order_codes(values, column.validity)]
    elif values.is_floating_point():
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
