"""Sums and extremes made of counts of values, against plain ones."""

from __future__ import annotations

import pytest
import torch

from tqp.operators.groups import aggregates
from tqp.operators.groups.value_counts import count_values, reduce_counts


@pytest.mark.parametrize("rows", [0, 1, 500])
@pytest.mark.parametrize(
    "low, high", [(0, 1), (-5, 7), (3, 3), (1_000, 1_100), (2**40, 2**40 + 9), (-(2**40), -(2**40) + 9)]
)
@pytest.mark.parametrize("code_dtype", [torch.int8, torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.int64])
def test_counts_of_values(
    rows: int, low: int, high: int, code_dtype: torch.dtype, dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(rows + high)
    if high > torch.iinfo(dtype).max or low < torch.iinfo(dtype).min:
        dtype = torch.int64
    values = torch.randint(low, high + 1, (rows,), generator=generator).to(dtype)
    codes = torch.randint(0, 4, (rows,), generator=generator).to(code_dtype)
    before = (values.clone(), codes.clone())
    counted = count_values(None, values[: rows // 2], codes[: rows // 2], 5, low, high)
    counted = count_values(counted, values[rows // 2 :], codes[rows // 2 :], 5, low, high)
    assert torch.equal(values, before[0]) and torch.equal(codes, before[1])
    counts = aggregates.count_by_group(codes.to(torch.int64), 5)
    assert torch.equal(reduce_counts(counted, "count_star"), counts)
    assert torch.equal(reduce_counts(counted, "sum"), aggregates.sum_by_group(values, codes, 5))
    there = counts > 0
    for kind, plain in (("min", aggregates.min_by_group), ("max", aggregates.max_by_group)):
        reduced = reduce_counts(counted, kind)
        assert reduced.dtype is dtype
        assert torch.equal(reduced[there], plain(values, codes, 5)[there])


def test_counts_of_bools() -> None:
    counted = count_values(None, torch.tensor([True, False, True]), torch.tensor([0, 1, 0]), 2, 0, 1)
    assert reduce_counts(counted, "sum").tolist() == [2, 0]
    assert reduce_counts(counted, "min").tolist() == [1, 0]
    assert reduce_counts(counted, "max").dtype is torch.int8
