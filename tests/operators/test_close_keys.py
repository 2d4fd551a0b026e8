"""Keys that lie close together: their codes lead back to them, bit by bit; others have none."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tqp.operators.rows.close_keys import close_codes, steps_of_unit

_RANDOM = np.random.default_rng(5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int16])
@pytest.mark.parametrize("steps", [1, 2, 10, 100])
@pytest.mark.parametrize("low", [0, 1, -300, 20_000])
def test_codes_lead_back_to_keys(low: int, steps: int, dtype: type[np.generic]) -> None:
    numbers = _RANDOM.integers(low, low + 900, 3000)
    is_float = np.issubdtype(dtype, np.floating)
    keys = torch.from_numpy((numbers / steps if is_float else numbers).astype(dtype))
    found = steps_of_unit(keys)
    assert found is not None and (found <= steps if is_float else found == 1)
    codes = close_codes(keys, found)
    assert codes is not None
    of_rows, by_code = codes
    assert of_rows.dtype is torch.int32 and by_code.dtype is keys.dtype
    assert by_code.unique().shape == by_code.shape and int(of_rows.min()) == 0
    back = by_code[of_rows.long()].numpy()
    assert back.tobytes() == keys.numpy().tobytes()


@pytest.mark.parametrize("other", [math.nan, math.inf, -math.inf, -0.0, 0.3, 1e6, 1e38, -1e38])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_one_key_may_lie_elsewhere(dtype: torch.dtype, other: float) -> None:
    keys = torch.arange(2000).to(dtype) / 2
    assert steps_of_unit(keys) == 2 and close_codes(keys, 2) is not None
    keys[1500] = other
    assert steps_of_unit(keys) == 2 and close_codes(keys, 2) is None


def test_keys_far_apart() -> None:
    assert steps_of_unit(torch.rand(2000, dtype=torch.float64)) is None
    for least, greatest in ((-(2**63), 2**63 - 1), (0, 65_536), (-3, 2**40)):
        keys = torch.tensor([least, greatest, 0])
        assert close_codes(keys, 1) is None and steps_of_unit(keys) is None
    extremes = torch.tensor([-(2**63), -(2**63) + 7])
    assert steps_of_unit(extremes) == 1
    assert steps_of_unit(torch.empty(0, dtype=torch.float64)) is None


def test_no_keys_have_no_codes() -> None:
    assert close_codes(torch.empty(0, dtype=torch.float64), 2) is None
    assert close_codes(torch.empty(0, dtype=torch.int64), 1) is None
