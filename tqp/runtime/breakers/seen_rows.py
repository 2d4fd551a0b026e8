"""The rows that came so far, numbered, and which of further ones are new: UNION and USING KEY of WITH RECURSIVE."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators.memory import allocation
from tqp.operators.memory.growing import GrowingStrings, GrowingTensor
from tqp.operators.numbers import elementwise
from tqp.operators.rows.hash_table import empty_table
from tqp.operators.rows.keys import hash_combine, mix
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.string_keys.hash import hash64
from tqp.operators.strings import compare, layout
from tqp.runtime.breakers.collect import key_columns
from tqp.runtime.frame import FrameColumn

#: Up to so many rows at a time, a set of Python's takes less time than the calls that number them all at once.
_FEW_ROWS = 256

Keys = Sequence[Tensor | Strings]


class SeenRows:
    """Numbers distinct rows, and tells new ones. NULL equals NULL; the columns of different calls have the same types."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._few: dict[tuple[Any, ...], int] = {}
        self._many: _NumberedRows | None = None
        self._earlier: Tensor | None = None  # the numbers that the first rows of `_many` had before

    def add(self, columns: Sequence[FrameColumn]) -> tuple[Tensor, Tensor]:
        """(numbers, new) of the columns [n], n > 0: int64 [n], equal where rows are, with those of earlier calls too, and int64
        [k], the rows that equal none before them, in any order. Each of these has one of the k next numbers.
        """
        keys = [key for column in columns for key in keys_of(column)]
        if self._many is None:
            first = keys[0]
            if (first.num_rows if isinstance(first, Strings) else first.shape[0]) <= _FEW_ROWS:
                return self._add_few(keys)
            self._many = _NumberedRows(self._device)
            if self._few:
                few = [_key_of_values(values, self._device) for values in zip(*self._few, strict=True)]
                numbers, _ = self._many.add(few)
                self._earlier = torch.empty_like(numbers)
                self._earlier[numbers] = torch.arange(len(self._few), device=self._device)
                self._few.clear()
        numbers, new = self._many.add(keys)
        if self._earlier is not None:
            last = self._earlier.shape[0] - 1
            numbers = torch.where(numbers > last, numbers, take(self._earlier, numbers.clamp(max=last)))
        return numbers, new

    def _add_few(self, keys: Keys) -> tuple[Tensor, Tensor]:
        values = (layout.to_list(key) if isinstance(key, Strings) else key.tolist() for key in keys)
        numbers, new = list[int](), list[int]()
        for row, key in enumerate(zip(*values, strict=True)):
            if (number := self._few.get(key)) is None:
                number = self._few[key] = len(self._few)
                new.append(row)
            numbers.append(number)
        made = partial(torch.tensor, dtype=torch.int64, device=self._device)
        return made(numbers), made(new)


def keys_of(column: FrameColumn) -> Keys:
    """Integers [n] and strings that are equal, row by row, where the column's values are."""
    if isinstance(column.values, Strings):
        return [column.values] if column.validity is None else [column.values, column.validity.to(torch.int8)]
    return [word for key in key_columns(column) for word in ([key] if key.dim() == 1 else key.unbind(1))]


def _key_of_values(values: Sequence[Any], device: torch.device) -> Tensor | Strings:
    if isinstance(values[0], bytes):
        return layout.from_list(values, device)
    return torch.tensor(values, dtype=torch.int64, device=device)


class _NumberedRows:
    """A hash table numbers the hashes of distinct rows; their keys are kept, to tell rows apart that have one hash."""

    def __init__(self, device: torch.device) -> None:
        self._table, self._kept = empty_table(0, device), list[GrowingTensor | GrowingStrings]()

    def add(self, keys: Keys) -> tuple[Tensor, Tensor]:
        """As `SeenRows.add`."""
        if not self._kept:
            self._kept = [GrowingStrings() if isinstance(key, Strings) else GrowingTensor() for key in keys]
        hashes = hash_combine([hash64(key) if isinstance(key, Strings) else key for key in keys])
        rows, new = torch.arange(hashes.shape[0], device=hashes.device), list[Tensor]()
        numbers_of_rows = torch.empty_like(rows)
        while rows.shape[0]:
            before = self._table.count
            numbers = self._table.insert(hashes).to(torch.int64)
            numbers_of_rows.scatter_(0, rows, numbers)
            first = _first_rows(numbers - before, self._table.count - before)
            new.append(take(rows, first))
            is_same = torch.ones_like(rows, dtype=torch.bool)
            for kept, key in zip(self._kept, keys, strict=True):
                _append(kept, key, new[-1])
                is_same &= _equal(kept, numbers, key, rows)
            # of the others another row has the hash: they try another one, as do their equals
            others = row_indices(~is_same)
            rows, hashes = take(rows, others), mix(take(hashes, others) + 1)
        return numbers_of_rows, torch.cat(new)


def _first_rows(numbers: Tensor, count: int) -> Tensor:
    """int64 [count]: the first row of each number from 0 on, of int64 numbers [n] of which some may be negative."""
    rows = torch.arange(numbers.shape[0], device=numbers.device)
    first = allocation.full(count + 1, numbers.shape[0], torch.int64, numbers.device)
    return first.scatter_reduce_(0, numbers.clamp(min=-1).add_(1), rows, "amin")[1:]


def _append(kept: GrowingTensor | GrowingStrings, key: Tensor | Strings, rows: Tensor) -> None:
    if isinstance(key, Strings):
        assert isinstance(kept, GrowingStrings)
        kept.append(layout.compact(layout.take(key, rows)))
    else:
        assert isinstance(kept, GrowingTensor)
        kept.append(take(key, rows))


def _equal(
    kept: GrowingTensor | GrowingStrings, numbers: Tensor, key: Tensor | Strings, rows: Tensor
) -> Tensor:
    """bool [m]: does the key's row rows[i] equal the kept one with the number numbers[i]?"""
    if isinstance(key, Strings):
        assert isinstance(kept, GrowingStrings)
        return compare.equal(layout.take(kept.rows(), numbers), layout.take(key, rows))
    assert isinstance(kept, GrowingTensor)
    return elementwise.equal(take(kept.rows(), numbers), take(key, rows))
