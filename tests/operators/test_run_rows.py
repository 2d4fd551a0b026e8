"""Rows of a sorted column whose keys a join build has, against a look at every row."""

from __future__ import annotations

import pytest
import torch

from tqp.data.encoding.sorted_columns import sorted_runs
from tqp.operators.joins.offset_array_join import build_offset_array
from tqp.operators.joins.perfect_hash_join import build_membership, build_perfect_hash
from tqp.operators.joins.run_rows import rows_in_build


def column(size: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(size)
    return torch.randint(-5, 60, (size,), generator=generator).sort().values.to(dtype)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64])
@pytest.mark.parametrize("size", [0, 1, 2, 100, 70_000, 131_074])
def test_runs_cover_the_column(size: int, dtype: torch.dtype) -> None:
    values = column(size, dtype)
    runs = sorted_runs(values)
    distinct, counts = torch.unique_consecutive(values, return_counts=True)
    assert torch.equal(runs.values, distinct)
    assert runs.values.dtype is dtype
    assert runs.starts.dtype is torch.int32
    assert torch.equal(runs.starts[1:] - runs.starts[:-1], counts.to(torch.int32))
    assert runs.starts[-1] == size


@pytest.mark.parametrize("make", [build_membership, build_perfect_hash, build_offset_array])
@pytest.mark.parametrize("batch", [1, 7, 300, 1000])
@pytest.mark.parametrize("keys", [[], [0], [3, 4, 5, 30], [64], list(range(65))])
def test_rows_are_those_with_a_partner(make, batch: int, keys: list[int]) -> None:  # type: ignore[no-untyped-def]
    values = column(1000)
    build = make(torch.tensor(keys, dtype=torch.int32), 65)
    wanted = torch.isin(values + 5, torch.tensor(keys, dtype=torch.int32))
    found = []
    for first in range(0, 1000, batch):
        size = min(batch, 1000 - first)
        rows = rows_in_build(sorted_runs(values), (-5, 65, False), build, first, size)
        assert rows.dtype in (torch.int32, torch.int64)
        assert rows.numel() == 0 or 0 <= int(rows.min()) <= int(rows.max()) < size
        found += (rows.to(torch.int64) + first).tolist()
    assert found == torch.nonzero(wanted).squeeze(1).tolist()


def test_no_rows() -> None:
    values = column(0)
    build = build_membership(torch.tensor([1]), 65)
    assert rows_in_build(sorted_runs(values), (-5, 65, False), build, 0, 0).tolist() == []
    assert rows_in_build(sorted_runs(column(9)), (-5, 65, False), build, 0, 0).tolist() == []
