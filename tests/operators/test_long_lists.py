"""Long lists of floats, 128-bit integers and intervals, against Python's own `in`."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tqp.operators.numbers import wide
from tqp.operators.numbers.long_lists import floats_in, intervals_in, wide_in

_RANDOM = np.random.default_rng(3)


@pytest.mark.parametrize("rows", [0, 1, 500])
def test_wide_integers(rows: int) -> None:
    words = [-(2**63), -1, 0, 1, 2**63 - 1]
    values = [int(high) * 2**64 + int(low) % 2**64 for high, low in _RANDOM.choice(words, (rows, 2))]
    for length in (1, 2, 12):
        wanted = [int(high) * 2**64 + int(low) % 2**64 for high, low in _RANDOM.choice(words, (length, 2))]
        found = wide_in(wide.from_ints(values), wide.from_ints(wanted))
        assert found.tolist() == [value in wanted for value in values]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_floats(dtype: torch.dtype) -> None:
    values = torch.tensor([0.0, -0.0, 1.5, float("nan"), float("inf"), 2.0], dtype=dtype)
    wanted = torch.tensor([-0.0, 2.0, float("inf"), *range(5, 50)], dtype=dtype)
    assert floats_in(values, wanted).tolist() == [True, True, False, False, True, True]
    with_nan = torch.cat([wanted, torch.tensor([float("nan")], dtype=dtype)])
    assert floats_in(values, with_nan).tolist() == [True, True, False, True, True, True]
    assert floats_in(values[:0], with_nan).tolist() == []


def test_intervals() -> None:
    day = 86_400_000_000
    values = torch.tensor([[1, 0, 0], [0, 30, 0], [0, 29, day], [0, 30, 1], [-1, 30, 0]])
    assert intervals_in(values, torch.tensor([[0, 30, 0], [2, 0, 0]])).tolist() == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert intervals_in(values, torch.tensor([[0, 0, 0]])).tolist() == [False, False, False, False, True]
