"""Runs of equal neighbours and the sums over them."""

from __future__ import annotations

import itertools

import pytest
import torch

from tqp.operators.rows.runs import Runs


@pytest.mark.parametrize("keys", [[], [5], [1, 1, 1], [1, 2, 3], [3, 3, 1, 1, 1, 7], [2**40, 2**40, -1]])
@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64])
def test_runs_and_their_sums(keys: list[int], dtype: torch.dtype) -> None:
    key = torch.tensor([k % 100 if dtype is torch.int8 else k % 2**31 for k in keys], dtype=dtype)
    groups = [list(rows) for _, rows in itertools.groupby(range(len(keys)), lambda row: int(key[row]))]
    runs = Runs(key)
    assert runs.count == len(groups)
    assert runs.first_rows.tolist() == [rows[0] for rows in groups]
    assert runs.lengths().tolist() == [len(rows) for rows in groups]
    assert runs.ids().tolist() == [number for number, rows in enumerate(groups) for _ in rows]
    for low, high in ((0, 1), (-7, 90), (-(2**31), 2**31 - 1), (-(2**60), 2**60)):
        values = torch.tensor([low if row % 2 else high for row in range(len(keys))], dtype=torch.int64)
        expected = [sum(int(values[row]) for row in rows) for rows in groups]
        assert runs.sums(values, (low, high)).tolist() == expected


def test_running_sums_may_leave_their_width() -> None:
    values = torch.full((100_000,), 2**30, dtype=torch.int32)
    runs = Runs(torch.arange(100_000))
    assert runs.sums(values, (0, 2**30)).tolist() == values.tolist()
    flags = torch.tensor([True, False, True])
    assert Runs(torch.tensor([1, 1, 2])).sums(flags, (0, 1)).tolist() == [1, 1]
