"""Tensors encoded where they are: the same columns and facts as on the CPU."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tqp.data.encoding.device_columns import encode_on_device
from tqp.data.sources.objects.tensors import TensorSource


def _shuffled(num_rows: int) -> Tensor:
    return torch.randperm(num_rows, generator=torch.Generator().manual_seed(1))


VALUES = {
    "ascending": torch.arange,
    "with repeats": lambda n: torch.arange(n) // 3,
    "shuffled": _shuffled,
    "far apart": lambda n: _shuffled(n) * 1_000_003,
    "few": lambda n: _shuffled(n) % 7 - 3,
    "bytes": lambda n: (_shuffled(n) % 200).to(torch.uint8),
    "two bytes": lambda n: (_shuffled(n) % 60_000).to(torch.uint16),
    "truth": lambda n: _shuffled(n) % 2 == 0,
    "floats": lambda n: _shuffled(n) / 3,
    "halves": lambda n: (_shuffled(n) % 100).to(torch.float16),
}


@pytest.mark.parametrize("num_rows", [0, 1, 2, 1000, 30_000])
@pytest.mark.parametrize("values", VALUES)
def test_columns_are_those_of_the_cpu(values: str, num_rows: int) -> None:
    tensor = VALUES[values](num_rows)
    expected = TensorSource("t", {"x": tensor}, torch.device("cpu")).column("x")
    column = encode_on_device(tensor, expected.data_type)
    assert column.values is not None and expected.values is not None
    assert column.values.dtype is expected.values.dtype and torch.equal(column.values, expected.values)
    for fact in ("minimum", "maximum", "is_unique", "is_sorted"):
        assert getattr(column.facts, fact) == getattr(expected.facts, fact)
    estimates = column.estimates.distinct_count, expected.estimates.distinct_count
    assert estimates[0] == pytest.approx(estimates[1], rel=0.1)
