"""ORDER BY of many rows: ranges of the first key, which workers sort each by itself, one after the other in the caches.

Splitters come of a sample; which rows a range gets depends on them, the order of the rows does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from tqp.data.backend import is_host_device
from tqp.data.strings import Strings
from tqp.operators.memory import allocation
from tqp.operators.memory.allocation import Map
from tqp.operators.numbers import elementwise
from tqp.operators.rows.keys import ordered_bits, sort_codes
from tqp.operators.rows.selection import take
from tqp.operators.sorting.sort import SortColumn, sort_rows, take_rows
from tqp.operators.string_keys.first_bits import pack_leading_bits

#: About so many rows of a range are sorted within the caches.
_RANGE_ROWS = 262_144
_MAX_RANGES = 64
_SAMPLE_ROWS = 4096


def sort_ranges(columns: Sequence[SortColumn], workers: Map) -> tuple[list[SortColumn], list[Tensor]] | None:
    """Columns that sort as the given ones do, faster, and ascending row numbers (int64) for each range.

    The rows of a range come before those of the next. None for few rows, which are sorted at once.
    """
    num_rows, device = columns[0].num_rows, columns[0].device
    num_ranges = min(_MAX_RANGES, -(-num_rows // _RANGE_ROWS))
    if num_ranges < 2 or not is_host_device(device):
        return None
    pieces = [(start, min(start + _RANGE_ROWS, num_rows)) for start in range(0, num_rows, _RANGE_ROWS)]
    columns = [*_leading_integers(columns[0], pieces, workers), *columns[1:]]
    splitters = _splitters(columns[0], num_ranges)
    distributed = workers(partial(_distribute, columns[0], splitters), pieces)
    ranges = [
        torch.cat([rows[ends[number] : ends[number + 1]] for rows, ends in distributed])
        for number in range(len(splitters) + 1)
    ]
    return columns, ranges


def _leading_integers(
    column: SortColumn, pieces: Sequence[tuple[int, int]], workers: Map
) -> list[SortColumn]:
    """The column with integers [n] for values; of strings, their first bits, and then the strings from there on."""
    values = column.values
    if isinstance(values, Strings):
        packed = pack_leading_bits(values, column.validity, workers)
        return [column._replace(values=packed.codes), column._replace(offset=packed.num_bytes)]
    if values.dim() == 2:
        return [column._replace(values=values[:, 0].contiguous()), column]
    if not values.is_floating_point():
        return [column._replace(values=values.view(torch.int8) if values.dtype is torch.bool else values)]
    codes = allocation.empty(values.shape, torch.int64, values.device)

    def write(piece: tuple[int, int]) -> None:
        codes[slice(*piece)] = ordered_bits(values[slice(*piece)])

    workers(write, pieces)
    return [column._replace(values=codes)]


def _sample(num_rows: int) -> Tensor:
    """Rows at even distances."""
    return torch.arange(0, num_rows, max(1, num_rows // _SAMPLE_ROWS))


def _splitters(column: SortColumn, num_ranges: int) -> list[int]:
    """Values at even distances in the order of the valid rows of a sample, each once."""
    sample = take_rows(column, _sample(column.num_rows))
    order = sort_rows([sample])
    assert isinstance(sample.values, Tensor)
    if sample.validity is not None:
        order = order[take(sample.validity, order)]
    places = torch.arange(1, num_ranges) * order.shape[0] // num_ranges
    values: list[int] = take(sample.values, take(order, places)).tolist() if order.shape[0] else []
    return list(dict.fromkeys(values))


def _distribute(
    column: SortColumn, splitters: Sequence[int], piece: tuple[int, int]
) -> tuple[Tensor, list[int]]:
    """The rows of a piece, range by range, and where each range begins, and at last where the last one ends."""
    values = column.values
    assert isinstance(values, Tensor)
    values = values[slice(*piece)]
    after = elementwise.less if column.descending else elementwise.greater
    number = torch.zeros(values.shape, dtype=torch.int8)
    for splitter in splitters:
        number += after(values, splitter).view(torch.int8)
    if column.validity is not None:
        validity = column.validity[slice(*piece)]
        number *= validity
        if not column.nulls_first:
            number += validity.logical_not().view(torch.int8) * len(splitters)
    rows = sort_codes(number)[1].add_(piece[0])
    counts = torch.bincount(number, minlength=len(splitters) + 1)
    return rows, [0, *counts.cumsum(0).tolist()]
