"""Bounds of RANGE: the rows of the partition whose keys are so far from the row's."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.operators.joins.sorted_search import first_places
from tqp.operators.memory.allocation import Map, one_by_one
from tqp.operators.numbers import elementwise
from tqp.operators.numbers.logic import any_true
from tqp.operators.numbers.wide import is_wide, less
from tqp.operators.rows.keys import ordered_bits
from tqp.operators.rows.runs import sums_before
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.windows.frames import Range, by_blocks
from tqp.operators.windows.partitions import Partitions

_LARGEST = 2**63 - 1


class OrderKey(NamedTuple):
    """What RANGE offsets count: integers [n] or [n, 2], ascending within each partition but for the NULLs at one end."""

    codes: Tensor
    validity: Tensor | None
    descending: bool
    nulls_first: bool


def order_key(values: Tensor, validity: Tensor | None, descending: bool, nulls_first: bool) -> OrderKey:
    """A key of ORDER BY, integers or floats [n], or wide integers [n, 2]."""
    return OrderKey(range_codes(values, descending), validity, descending, nulls_first)


def range_codes(values: Tensor, descending: bool) -> Tensor:
    """int64 [n], of wide values [n, 2], that ascend as the order of the values, integers or floats, asks for."""
    codes = ordered_bits(values) if values.is_floating_point() else values.to(torch.int64)
    return ~codes if descending else codes


def values_from(
    rows: Partitions,
    key: OrderKey,
    bounds: Tensor,
    validity: Tensor | None,
    precedes: bool,
    is_end: bool,
    share: Map = one_by_one,
) -> Tensor:
    """The first row of the partition whose key is at or behind the bound (`is_end`: behind it); of a NULL, that of its peers.

    `bounds`: codes as those of the key. Raises ExecutionError for a bound on the other side of the row than `precedes` says.
    """
    valid = validity
    if key.validity is not None:
        valid = key.validity if valid is None else valid & key.validity
    is_wrong = _before(key.codes, bounds) if precedes else _before(bounds, key.codes)
    if any_true(is_wrong if valid is None else is_wrong & valid):
        raise ExecutionError(
            f"the offset of RANGE {'PRECEDING' if precedes else 'FOLLOWING'} cannot be negative"
        )
    found = _searched(rows, key, bounds, is_end, share)
    if found is None:
        found = _halved(rows, key, bounds, is_end, share)
    if valid is None:
        return found
    return torch.where(valid, found, rows.peers.ends if is_end else rows.peers.begins)


def _searched(rows: Partitions, key: OrderKey, bounds: Tensor, is_end: bool, share: Map) -> Tensor | None:
    """int64 [n]: the rows, where the number of the partition and a code are one word, by which all rows are in order; None: they are not."""
    if is_wide(key.codes) or not rows.num_rows:
        return None
    codes = key.codes if key.validity is None else take(key.codes, row_indices(key.validity))
    low, high = (int(extreme) for extreme in torch.aminmax(codes)) if codes.shape[0] else (0, 0)
    size = high - low + 5  # what is less or greater than all, and NULLs before or behind these
    if size * rows.partitions.count > _LARGEST or low < 2 - _LARGEST or high > _LARGEST - 2:
        return None
    numbers = rows.partitions.numbers
    first = numbers * size
    words = (key.codes - (low - 2)).add_(first)
    if key.validity is not None:
        words = torch.where(key.validity, words, first if key.nulls_first else first + (size - 1))

    def search(_: object, part: slice) -> tuple[Tensor]:
        wanted = (bounds[part].clamp(low - 1, high + 1) - (low - 2)).add_(first[part])
        return (first_places(words, wanted, after_equal=is_end).to(torch.int64),)

    return by_blocks(search, [Range(rows.begins, rows.ends)], share)[0]


def _halved(rows: Partitions, key: OrderKey, bounds: Tensor, is_end: bool, share: Map) -> Tensor:
    """int64 [n]: as `_searched`, by halves of the rows of each partition."""

    def search(part: list[Range], which: slice) -> tuple[Tensor]:
        (low, high), wanted = part[0], bounds[which]
        for _ in range(rows.partitions.longest.bit_length()):
            middle = (low + high) >> 1
            codes = take(key.codes, middle.clamp(max=rows.num_rows - 1))
            goes_on = (low < high) & (~_before(wanted, codes) if is_end else _before(codes, wanted))
            high = torch.where(goes_on | (low >= high), high, middle)
            low = torch.where(goes_on, middle + 1, low)
        return (low,)

    return by_blocks(search, [Range(*_with_keys(rows, key))], share)[0]


def _before(a: Tensor, b: Tensor) -> Tensor:
    """bool [n]: is the one code less than the other?"""
    return less(a, b) if is_wide(a) else elementwise.less(a, b)


def _with_keys(rows: Partitions, key: OrderKey) -> tuple[Tensor, Tensor]:
    """The rows of the partition whose keys are not NULL."""
    if key.validity is None:
        return rows.begins, rows.ends
    bounds = take(sums_before(key.validity), rows.partitions.bounds)
    valid = rows.partitions.spread(bounds[1:] - bounds[:-1])
    return (rows.ends - valid, rows.ends) if key.nulls_first else (rows.begins, rows.begins + valid)
