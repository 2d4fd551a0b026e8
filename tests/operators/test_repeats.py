"""Values that come several times in a row, by whichever way."""

from __future__ import annotations

import pytest
import torch

from tqp.core.backends import Backend
from tqp.data import repeats
from tqp.data.backend import computing_with


@pytest.mark.parametrize("most", [0, 1, 2, 9])
@pytest.mark.parametrize("num_values", [0, 1, 3, 300, 3000])
@pytest.mark.parametrize("backend", Backend)
def test_values_are_repeated(
    backend: Backend, num_values: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeats, "_MANY_ROWS", 16)
    generator = torch.Generator().manual_seed(num_values)
    counts = torch.randint(0, most + 1, (num_values,), generator=generator)
    values = torch.randint(-(2**63), 2**63 - 1, (num_values,), generator=generator)
    expected = [
        value for value, count in zip(values.tolist(), counts.tolist(), strict=True) for _ in range(count)
    ]
    for total in (None, len(expected)):
        with computing_with(backend):
            found = repeats.repeated(values, counts, total)
            pairs = repeats.repeated(torch.stack([values, -values], dim=1), counts, total)
        assert found.tolist() == expected
        assert pairs[:, 0].tolist() == expected


def test_values_by_steps_are_those_of_a_copy() -> None:
    counts = torch.tensor([0, 2, 0, 0, 1, 3, 0])
    values = torch.tensor([5, -(2**63), 7, 2**63 - 1, 0, -(2**63), 1])
    found = repeats._by_steps(values, counts, 6)
    assert found.tolist() == values.repeat_interleave(counts).tolist()
