"""bit_and, bit_or and bit_xor of groups against NumPy, row by row: of values in order, and where sorting them is not worth it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tqp.operators.groups import bits

SMALL = (1, 100, 10_000, 2**15 - 1, 2**31 - 1, 2**63 - 1)


def reference(which: str, values: np.ndarray, ids: np.ndarray, num_groups: int) -> np.ndarray:
    found = np.full(num_groups, -1 if which == "bit_and" else 0, values.dtype)
    {"bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}[which].at(
        found, ids, values
    )
    return found


@pytest.mark.parametrize("which", bits.BY_GROUP)
@pytest.mark.parametrize("greatest", SMALL)
@pytest.mark.parametrize("least", [0, -3])
def test_groups_of_many_rows(monkeypatch: pytest.MonkeyPatch, which: str, greatest: int, least: int) -> None:
    monkeypatch.setattr(bits, "_ROWS_TOGETHER", 1500)
    random = np.random.default_rng(greatest)
    for num_groups, skewed in ((2, False), (7, True), (40, False), (300, False)):
        size = 4000
        drawn = random.integers(least, greatest, size, endpoint=True)
        ids = random.integers(0, num_groups - 1, size)  # the last one stays empty
        if skewed:
            ids[random.random(size) < 0.9] = 0
        for dtype in (np.int16, np.int64):
            values = drawn.astype(dtype)
            given = torch.from_numpy(values), torch.from_numpy(ids), num_groups
            expected = reference(which, values, ids, num_groups)
            got = bits.BY_GROUP[which](*given)
            assert got.numpy().dtype == dtype and np.array_equal(got.numpy(), expected)
            shared = bits.sort_values(*given)
            assert torch.equal(bits.BY_GROUP[which](*given, shared=shared), got)
            # into the states of a batch before
            again = bits.BY_GROUP[which](*given, None, got.clone())
            both = reference(which, np.tile(values, 2), np.tile(ids, 2), num_groups)
            assert np.array_equal(again.numpy(), both)


def test_values_are_sorted_beside_their_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    ids = torch.from_numpy(random.integers(0, 10, 1000))
    few, many = (torch.from_numpy(random.integers(0, top, 1000)) for top in (10_000, 2**62))

    def are_sorted(values: torch.Tensor) -> bool:
        return bits.sort_values(values, ids, 10) is not None

    monkeypatch.setattr(bits, "numpy_sorts_words_faster", lambda: True)
    assert are_sorted(few) and are_sorted(few - 5000) and not are_sorted(many)
    assert bits.sort_values(few, ids.sort().values, 10) is None  # runs are found without a sort
    assert bits.sort_values(few, ids, 10, ids > 3) is None
    monkeypatch.setattr(bits, "numpy_sorts_words_faster", lambda: False)
    assert not are_sorted(few)
