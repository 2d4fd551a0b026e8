"""The first k rows of each partition: a bound for each that k of its rows do not come after, and the rows up to the bounds.

The rows are dealt out to k hands in turn. The first row of a partition in each hand makes k rows, and the last of these is a bound:
a row behind it is not among the first k. Of m rows of a partition in random order about k (1 + 1/2 + ... + 1/k) are not behind it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from tqp.core.process.memory_budget import reserve
from tqp.data.strings import Strings
from tqp.operators.memory import allocation
from tqp.operators.numbers import elementwise
from tqp.operators.rows.keys import pack
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.sorting.sort import SortColumn, leading_codes, take_rows
from tqp.operators.strings.words import order_key, words

#: Of fewer rows, all are sorted.
_FEWEST_ROWS = 4096
#: From this share of rows on that are expected up to the bounds, sorting all is not much slower than finding these first.
_LARGEST_SHARE = 0.5
#: So many times the rows that are expected are many: their first keys tie.
_MANY = 4
#: Of a row: the number of its partition, its code, its own bound.
_ROW_BYTES = 3 * 8


def candidates(partition: Sequence[Tensor], order: Sequence[SortColumn], most: int) -> Tensor | None:
    """The rows (int64, ascending) that may be among the first `most` of their partitions, ties included; None for all rows.

    `partition`: integers [n], or [n, 2] (wide), that tell the partitions apart; `order`: at least one of both. None where the
    partitions may be so many, or lie so far apart, that it would take as long as sorting.
    """
    num_rows = partition[0].shape[0] if partition else order[0].num_rows
    if num_rows < _FEWEST_ROWS or most < 1:
        return None
    keys = [word for column in partition for word in ([column] if column.dim() == 1 else column.unbind(1))]
    extremes = (
        torch.stack([torch.stack(torch.aminmax(key)).to(torch.int64) for key in keys]).tolist()
        if keys
        else ()
    )
    parts = [(low, high - low + 1, False) for low, high in extremes]
    span = math.prod(span for _, span, _ in parts)
    expected = most * (1 + math.log(most)) * span
    if expected > _LARGEST_SHARE * num_rows:
        return None
    reserve(_ROW_BYTES * num_rows)
    numbers = pack([(key, None) for key in keys], parts) if span > 1 else None
    if not order:
        places = torch.arange(num_rows, dtype=torch.int32, device=partition[0].device)
        return _up_to_bounds(numbers, span, places, most)
    rows = _up_to_bounds(numbers, span, _first_codes(order[0]), most)
    if rows.shape[0] > _MANY * expected:
        chosen = leading_codes([take_rows(key, rows) for key in order])
        rows = take(rows, _up_to_bounds(None if numbers is None else take(numbers, rows), span, chosen, most))
    return rows


def _up_to_bounds(numbers: Tensor | None, span: int, codes: Tensor, most: int) -> Tensor:
    """The rows whose codes do not exceed a code of their partition that at least `most` of its rows do not exceed."""
    last = _limits(codes)[1]  # of partitions with fewer rows
    firsts = allocation.full(most * span, last, codes.dtype, codes.device).view(most, span)
    places = torch.zeros(1, dtype=torch.int64, device=codes.device).expand_as(codes)
    if numbers is not None:
        places = numbers.to(torch.int64)
    for hand in range(most):
        firsts[hand].scatter_reduce_(0, places[hand::most], codes[hand::most], "amin")
    bounds = firsts.amax(0)
    own = bounds.expand_as(codes) if numbers is None else take(bounds, numbers)
    return row_indices(elementwise.less_equal(codes, own))


def _first_codes(column: SortColumn) -> Tensor:
    """Integers or floats [n], none NaN, that ascend in the order of one key; rows may tie that differ in it."""
    values = column.values
    if isinstance(values, Strings):
        codes = order_key(words(values, 0))
    elif values.is_floating_point():
        codes = torch.fmin(values, values.new_full((), math.inf))  # NaN ties with infinity
    elif values.dim() == 2:
        codes = values[:, 0]
    else:
        codes = values.to(torch.int8) if values.dtype is torch.bool else values
    if column.descending:
        codes = -codes if codes.is_floating_point() else ~codes
    if column.validity is None:
        return codes
    first, last = _limits(codes)
    return torch.where(column.validity, codes, first if column.nulls_first else last)


def _limits(codes: Tensor) -> tuple[float, float]:
    """The least and the greatest value of the codes' type."""
    if codes.is_floating_point():
        return -math.inf, math.inf
    limits = torch.iinfo(codes.dtype)
    return limits.min, limits.max
