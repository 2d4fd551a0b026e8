"""ORDER BY with LIMIT: the first k rows, through a bound on the first key that few rows are not after.

A sample of the rows gives the bound, and so do rows that came before, of other batches or on other threads: a row with k
rows before it is out, wherever these are. Of all rows only the first key is read, once, and compared with the bound.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators.numbers import elementwise
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.sorting.sort import SortColumn, sort_rows, take_rows
from tqp.operators.strings.compare import rows_up_to
from tqp.operators.strings.layout import take as take_strings
from tqp.operators.strings.layout import to_list
from tqp.operators.strings.words import order_key, words

# Up to this share of the rows, finding a bound first is cheaper than sorting all.
_TOP_SHARE = 16
_SAMPLE_ROWS = 4096
#: From so many times the wanted rows on, comparing their first keys, or first words of strings, before they are sorted pays.
_SORTED_SHARE = 4
#: Standard deviations between the rows expected up to a bound of the sample and k: one batch in some ten thousands fails.
_SAFETY = 4
_NULL = object()


class Bound:
    """A value of the first key, or NULL, that at least k rows do not come after.

    Any worker may tighten it at any time, and whichever bound another one sees, the rows after it are out.
    """

    def __init__(self) -> None:
        self.value: Any = None
        self._best: list[int] = []
        self._lock = threading.Lock()

    def tighten(self, column: SortColumn, row: int) -> None:
        """At least k rows do not come after `row` of the first key."""
        self.value = _value_at(column, row)

    def add(self, column: SortColumn, k: int) -> None:
        """Rows of which the first key, of integers with NULLs last, is this; the best k of all that are added, or more, are a bound."""
        assert isinstance(column.values, Tensor)
        values = column.values if column.validity is None else column.values[column.validity]
        best = values if values.shape[0] <= k else values.topk(k, largest=column.descending).values
        with self._lock:
            self._best = sorted([*self._best, *best.tolist()], reverse=column.descending)[:k]
            if 0 < k == len(self._best):
                self.value = self._best[-1]


def top_rows(columns: Sequence[SortColumn], k: int, bound: Bound | None = None) -> Tensor:
    """The first k (or all, if fewer) of the rows that `sort_rows` gives: int64.

    Without those that cannot be among the first k of all rows that share `bound`, which is tightened.
    """
    first = columns[0]
    if k <= 0:
        return torch.zeros(0, dtype=torch.int64, device=first.device)
    candidates = rows_up_to_a_bound(first, k, bound)
    if candidates is None:
        rows = _first_rows(columns, k)
    else:
        rows = take(candidates, _first_rows([take_rows(column, candidates) for column in columns], k))
    if bound is not None and rows.shape[0] == k:
        bound.tighten(first, int(rows[-1]))
    return rows


def rows_up_to_a_bound(first: SortColumn, k: int, bound: Bound | None = None) -> Tensor | None:
    """Rows (int64, ascending) that may be among the first k by a first key and any others; None for all rows."""
    known = None if bound is None else bound.value
    if known is not None:
        return _rows_up_to(first, known)
    return None if k * _TOP_SHARE > first.num_rows else _rows_up_to_one_of_a_sample(first, k)


def _first_rows(columns: Sequence[SortColumn], k: int) -> Tensor:
    """The first k of the rows that `sort_rows` gives; of many only those are sorted that the k-th does not come before."""
    first = columns[0]
    rows = _rows_up_to_place(first, k - 1) if k * _SORTED_SHARE < first.num_rows else None
    if rows is None or rows.shape[0] * 2 >= first.num_rows:
        return sort_rows(columns)[:k]
    return take(rows, sort_rows([take_rows(column, rows) for column in columns])[:k])


def _rows_up_to_place(column: SortColumn, place: int) -> Tensor | None:
    """At least the rows up to a place, from 0, in the order of the column; None for all, or where finding them is no quicker."""
    values, validity = column.values, column.validity
    if not isinstance(values, Strings):
        return _rows_up_to(column, _value_at_place(column, place))
    if validity is not None:
        return None
    key = order_key(words(values, 0))
    key = key.bitwise_not_() if column.descending else key
    return row_indices(elementwise.less_equal(key, int(key.kthvalue(place + 1).values)))


def _rows_up_to_one_of_a_sample(column: SortColumn, k: int) -> Tensor | None:
    """At least k rows: all that do not come after one of a sample; None for all rows."""
    step = max(1, column.num_rows // _SAMPLE_ROWS)
    sample = torch.arange(0, column.num_rows, step, device=column.device)
    sampled = take_rows(column, sample)
    expected = k / step
    place = math.ceil(expected + _SAFETY * math.sqrt(expected)) + _SAFETY
    while place < sampled.num_rows:
        rows = _rows_up_to(column, _value_at_place(sampled, place))
        if rows is None or rows.shape[0] >= k:
            return rows
        place *= 8  # the sample is unlike the rows
    return None


def _value_at_place(column: SortColumn, place: int) -> Any:
    """The value at a place, from 0, in the order of the column: of numbers without sorting them."""
    values, validity = column.values, column.validity
    if isinstance(values, Strings):
        return _value_at(column, int(_first_rows([column], place + 1)[-1]))
    numbers = _leading(values)
    if validity is not None:
        numbers = take(numbers, row_indices(validity))
        if column.nulls_first:
            place -= column.num_rows - numbers.shape[0]
        if not 0 <= place < numbers.shape[0]:
            return _NULL
    from_lowest = numbers.shape[0] - place if column.descending else place + 1
    return numbers.kthvalue(from_lowest).values.tolist()  # NaN is the greatest


def _value_at(column: SortColumn, row: int) -> Any:
    if column.validity is not None and not bool(column.validity[row]):
        return _NULL
    values = column.values
    if isinstance(values, Strings):
        return to_list(take_strings(values, torch.tensor([row], device=column.device)))[0]
    return _leading(values)[row : row + 1].tolist()[0]


def _rows_up_to(column: SortColumn, value: Any) -> Tensor | None:
    """Rows (int64, ascending) among which are all that do not come after `value` in the order of the column; None for all.

    And none after a row that is not among them.
    """
    values, validity = column.values, column.validity
    if value is _NULL:
        assert validity is not None
        return row_indices(validity.logical_not()) if column.nulls_first else None
    if isinstance(values, Strings):
        return _with_nulls(rows_up_to(values, value, column.descending), column)
    mask = _not_after(_leading(values), value, column.descending)
    if validity is None:
        return row_indices(mask)
    return row_indices(mask | validity.logical_not() if column.nulls_first else mask & validity)


def _with_nulls(rows: Tensor, column: SortColumn) -> Tensor:
    """The rows (ascending) without those that are NULL, or with all that are, as NULLs come last or first."""
    if column.validity is None:
        return rows
    valid_rows = take(rows, row_indices(take(column.validity, rows)))
    if not column.nulls_first:
        return valid_rows
    return torch.cat([valid_rows, row_indices(column.validity.logical_not())]).sort().values


def _leading(values: Tensor) -> Tensor:
    """The high words of wide integers, on which their order depends first; bools as integers; others as they are."""
    if values.dim() == 2:
        return values[:, 0]
    return values.view(torch.int8) if values.dtype is torch.bool else values


def _not_after(values: Tensor, value: float, descending: bool) -> Tensor:
    """bool [n]: values <= value, or >=; NaN is the greatest."""
    if not values.is_floating_point():
        return (elementwise.greater_equal if descending else elementwise.less_equal)(values, value)
    # comparisons with NaN are false
    if math.isnan(value):
        return (
            elementwise.not_equal(values, values) if descending else torch.ones_like(values, dtype=torch.bool)
        )
    if descending:
        return elementwise.less(values, value).logical_not_()
    return elementwise.less_equal(values, value)
