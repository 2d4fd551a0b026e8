"""Sums that share accumulators: against plain sums, over chunks, signs, extremes and merges."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tqp.operators.groups.packed_sums import PackedSums, Range, arrange
from tqp.operators.memory.arrays import as_array

_CPU = torch.device("cpu")


def _columns(ranges: list[Range], num_rows: int, seed: int) -> list[Tensor | None]:
    """Values that reach both ends of their ranges; a count for (0, 1)."""
    generator = torch.Generator().manual_seed(seed)
    columns: list[Tensor | None] = []
    for low, high in ranges:
        if (low, high) == (0, 1):
            columns.append(None)
            continue
        choices = torch.tensor([low, high, (low + high) // 2])
        values = choices[torch.randint(0, 3, (num_rows,), generator=generator)]
        columns.append(values.to(torch.int16) if max(-low, high) < 2**15 else values)
    return columns


def _plain(columns: list[Tensor | None], ids: Tensor, groups: int) -> list[list[int]]:
    sums = []
    for column in columns:
        values = torch.ones_like(ids) if column is None else column.to(torch.int64)
        sums.append(torch.zeros(groups, dtype=torch.int64).scatter_add_(0, ids, values).tolist())
    return sums


@pytest.mark.parametrize(
    "ranges",
    [
        [(0, 1)],
        [(0, 1), (100, 5000), (0, 10), (90_000, 10_000_000), (0, 10**9), (0, 10**11)],
        [(-5, 7), (-(2**20), 2**20), (0, 1), (-3, -1), (0, 0)],
        [(-(2**50), 2**50), (0, 1), (-1, 0)],
        [(-1000, 1000), (0, 1)],  # 31 bits of 1,000 rows
        [(0, 2**20)],
        [(-(2**20), 2**20 - 1)],
        [(0, 3), (-4, 4), (0, 1)],
    ],
)
@pytest.mark.parametrize("groups", [1, 5, 20_000])
@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_sums_are_those_of_each_column(ranges: list[Range], groups: int, rows: int) -> None:
    first, second = _columns(ranges, rows, 1), _columns(ranges, rows, 2)
    ids = torch.randint(0, groups, (rows,))
    expected = _plain(first, ids, groups)
    assert _totals(_added(ranges, groups, rows, [first], ids)) == expected
    twice = [
        [a + b for a, b in zip(x, y, strict=True)]
        for x, y in zip(expected, _plain(second, ids, groups), strict=True)
    ]
    assert _totals(_added(ranges, groups, 2 * rows, [first, second], ids)) == twice
    one = _added(ranges, groups, 2 * rows, [first], ids)
    one.merge(_added(ranges, groups, 2 * rows, [second], ids))
    assert _totals(one) == twice


def _added(
    ranges: list[Range], groups: int, max_rows: int, batches: list[list[Tensor | None]], ids: Tensor
) -> PackedSums:
    sums = PackedSums(ranges, groups, max_rows, _CPU)
    for columns in batches:
        sums.add(columns, ids)
    return sums


def _totals(sums: PackedSums) -> list[list[int]]:
    return [total.tolist() for total in sums.totals()]


@pytest.mark.parametrize("has_kept", [False, True])
@pytest.mark.parametrize("capacity", [50, 10_000])
def test_ranges_of_groups(has_kept: bool, capacity: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums of several, each taken apart before or not, merged and read by ranges of groups."""
    monkeypatch.setattr("tqp.operators.groups.packed_sums._FEW_GROUPS", 0)
    ranges: list[Range] = [(-9, 100), (0, 1), (0, 3)]
    columns, ids = _columns(ranges, 1000, 3), torch.randint(0, 90, (1000,))
    kept = torch.rand(1000) < 0.7 if has_kept else torch.ones(1000, dtype=torch.bool)
    several = [PackedSums(ranges, 90, capacity, _CPU, has_kept) for _ in range(3)]
    for start in range(0, 800, 40):  # the last one adds nothing
        rows = slice(start, start + 40)
        several[start // 40 % 2].add(
            [None if c is None else c[rows] for c in columns], ids[rows], kept[rows] if has_kept else None
        )
    found: list[list[int]] = [[] for _ in ranges]
    for start, stop in ((0, 1), (1, 40), (40, 90)):
        first, *others = (sums.groups(start, stop) for sums in several)
        for other in others:
            first.merge(other)
        for sums, totals in zip(found, _totals(first), strict=True):
            sums += totals
    some = kept[:800]
    assert found == _plain([None if c is None else c[:800][some] for c in columns], ids[:800][some], 90)


def test_more_rows_than_an_accumulator_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tqp.operators.groups.packed_sums._FEW_ROWS", 64)
    monkeypatch.setattr("tqp.operators.groups.packed_sums._FEW_ROWS_OF_STRIPE", 16)
    ranges: list[Range] = [(-9, 100), (0, 1), (0, 3)]
    columns, ids = _columns(ranges, 1000, 3), torch.randint(0, 4, (1000,))
    sums = PackedSums(ranges, 4, 10_000, _CPU)
    for start, stop in ((0, 10), (10, 70), (70, 1000)):
        sums.add([None if c is None else c[start:stop] for c in columns], ids[start:stop])
    assert _totals(sums) == _plain(columns, ids, 4)


@pytest.mark.parametrize("groups", [1, 3, 7, 100, 2_000])
@pytest.mark.parametrize("sizes", [(9_000,), (1, 63, 64, 65, 4_000, 0, 5_000), (7,) * 300])
def test_groups_with_several_accumulators(groups: int, sizes: tuple[int, ...]) -> None:
    """Few groups have stripes; batches of any length must fill none of them beyond its bits."""
    ranges: list[Range] = [(0, 1), (-(2**20), 2**20), (0, 100), (0, 2**40)]
    rows = sum(sizes)
    columns = _columns(ranges, rows, 4)
    for ids in (torch.randint(0, groups, (rows,)), torch.full((rows,), groups - 1)):
        parts = [torch.split(ids, list(sizes))]
        parts += [[None] * len(sizes) if c is None else torch.split(c, list(sizes)) for c in columns]
        sums, other = (PackedSums(ranges, groups, rows, _CPU) for _ in range(2))
        for place, (own, *batch) in enumerate(zip(*parts, strict=True)):
            (other if place % 3 == 1 else sums).add(batch, own)
        sums.merge(other)
        assert _totals(sums) == _plain(columns, ids, groups)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_group_ids_of_any_width(dtype: torch.dtype) -> None:
    ids = torch.randint(0, 100, (500,), generator=torch.Generator().manual_seed(1)).to(dtype)
    for ranges in ([(0, 1)], [(0, 1), (0, 9)]):
        columns = _columns(ranges, 500, 2)
        sums = PackedSums(ranges, 100, 2000, _CPU)
        sums.add(columns, ids)
        assert _totals(sums) == _plain(columns, ids.to(torch.int64), 100)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("groups", [1, 7, 100])
@pytest.mark.parametrize("ranges", [[(0, 1)], [(0, 1), (-9, 9)], [(0, 2**40), (0, 100), (0, 1)]])
@pytest.mark.parametrize("as_arrays", [False, True])
def test_rows_that_do_not_count(
    ranges: list[Range], groups: int, dtype: torch.dtype, as_arrays: bool
) -> None:
    """Their columns and group ids may be anything; a batch may have none of them, or nothing else."""
    generator = torch.Generator().manual_seed(groups)
    rows = 1000
    columns = _columns(ranges, rows, 5)
    ids = torch.randint(0, groups, (rows,), generator=generator)
    some = torch.rand(rows, generator=generator) < 0.8
    nothing = torch.zeros(rows, dtype=torch.bool)
    expected = [[0] * groups for _ in ranges]
    sums = PackedSums(ranges, groups, 4 * rows, _CPU, has_kept=True)
    for kept in (some, None, nothing, some):
        counts = torch.ones(rows, dtype=torch.bool) if kept is None else kept
        wrong = torch.iinfo(dtype).max
        given: list[Any] = [torch.where(counts, ids, wrong).to(dtype), kept]
        given += [None if c is None else torch.where(counts, c, torch.iinfo(c.dtype).max) for c in columns]
        batch = [None if c is None else c[counts] for c in columns]
        for total, more in zip(expected, _plain(batch, ids[counts], groups), strict=True):
            total[:] = [a + b for a, b in zip(total, more, strict=True)]
        given = as_array(given) if as_arrays else given
        sums.add(given[2:], given[0], given[1])
    assert _totals(sums) == expected


def test_columns_stay_as_they_are() -> None:
    ranges: list[Range] = [(0, 10), (0, 1)]
    values = torch.arange(10)
    PackedSums(ranges, 2, 10, _CPU).add([values, None], torch.zeros(10, dtype=torch.int64))
    assert values.tolist() == list(range(10))


def test_arrangement_fills_accumulators() -> None:
    packs = arrange(((0, 5000), (0, 10**7), (0, 10**9), (0, 10**11), (0, 10), (0, 1)), 262_144)
    assert len(packs) == 4
    assert all(sum(part.bits for part in pack) <= 63 for pack in packs)
    assert sorted(part.column for pack in packs for part in pack) == list(range(6))
