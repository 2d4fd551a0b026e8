"""Ranges of the first key, each sorted by itself, against the sort of all rows at once; and orders against Python's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from tests.operators.test_top_rows import KINDS, columns_of, draw
from tqp.operators.memory import allocation
from tqp.operators.sorting import sort_ranges
from tqp.operators.sorting.sort import SortColumn, sort_rows, take_rows
from tqp.operators.strings.layout import from_list, take, to_list


def one_worker(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    return [function(item) for item in items]


def rows_by_ranges(columns: list[SortColumn]) -> tuple[torch.Tensor, int]:
    found = sort_ranges.sort_ranges(columns, one_worker)
    assert found is not None
    prepared, ranges = found
    parts = [rows[sort_rows([take_rows(column, rows) for column in prepared])] for rows in ranges]
    return torch.cat(parts), len(ranges)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
def test_ranges(
    kind: str, nulls: float, descending: bool, nulls_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sort_ranges, "_RANGE_ROWS", 1000)
    monkeypatch.setattr(sort_ranges, "_SAMPLE_ROWS", 300)
    columns = columns_of(kind, 5003, nulls, descending, nulls_first)
    rows, count = rows_by_ranges(columns)
    assert torch.equal(rows, sort_rows(columns))
    assert count > 2 or nulls == 1.0 or kind in ("bool", "constant", "wide")


def texts(num_rows: int, seed: int) -> list[bytes]:
    generator = torch.Generator().manual_seed(seed)
    picks = torch.randint(0, 2**31, (num_rows,), generator=generator).tolist()
    ends = [b"", b"\0", b"\0\0", b"a", b"\xff\xff", b" and some more words after it", b"z"]
    return [
        (b"common beginning " * (pick % 3)) + bytes([97 + pick // 3 % 2]) * (pick % 11) + ends[pick // 7 % 7]
        for pick in picks
    ]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("num_rows", [0, 1, 2, 999])
def test_strings_as_python_orders_them(descending: bool, num_rows: int) -> None:
    values = texts(num_rows, 4)
    expected = sorted(range(num_rows), key=lambda row: values[row], reverse=descending)
    column = SortColumn(from_list(values), None, descending)
    assert sort_rows([column]).tolist() == expected


def test_strings_in_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sort_ranges, "_RANGE_ROWS", 700)
    for seed in range(3):
        values = texts(4000, seed)
        columns = [SortColumn(from_list(values)), SortColumn(draw("int8", 4000, seed))]
        rows, _ = rows_by_ranges(columns)
        assert torch.equal(rows, sort_rows(columns))
        assert to_list(take(from_list(values), rows)) == sorted(values)


def test_rows_that_tie_in_their_first_bits() -> None:
    # the first 32 bits are those of few large values, so that almost all rows tie in them
    values = torch.randint(0, 1000, (100_000,), generator=torch.Generator().manual_seed(1))
    values[::10_000] = 2**62
    second = -torch.arange(100_000)
    order = sort_rows([SortColumn(values), SortColumn(second)])
    assert order.tolist() == sorted(range(100_000), key=lambda row: (int(values[row]), int(second[row])))


def test_neighbours_in_memory_are_joined_without_a_copy() -> None:
    values = torch.arange(24).view(12, 2)
    joined = allocation.concatenate([values[2:5], values[5:6], values[6:11]])
    assert torch.equal(joined, values[2:11])
    assert joined.data_ptr() == values[2:].data_ptr()
    assert torch.equal(allocation.concatenate([values[2:5], values[6:7]]), values[[2, 3, 4, 6]])
    assert torch.equal(allocation.concatenate([values[:0], values[:2]]), values[:2])
    assert torch.equal(allocation.concatenate([values[:2, 0], values[2:4, 0]]), values[:4, 0])
