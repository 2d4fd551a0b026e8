"""Sets of distinct values by group against Python's sets."""

from __future__ import annotations

import random

import pytest
import torch

from tqp.operators.groups import distinct_sets
from tqp.operators.groups.distinct_sets import ValueRange


@pytest.mark.parametrize("low, high", [(0, 0), (0, 1), (-3, 12), (2**40, 2**40 + 99)])
@pytest.mark.parametrize("num_groups", [1, 3, 50])
@pytest.mark.parametrize("nulls", [False, True])
def test_sets(low: int, high: int, num_groups: int, nulls: bool) -> None:
    generator = random.Random(num_groups)
    known = ValueRange.of(low, high)
    assert known.width % 8 == 0 and low + known.width > high
    expected: list[set[int]] = [set() for _ in range(num_groups)]
    states: list[torch.Tensor | None] = [None, None]
    for batch, num_rows in enumerate((0, 70, 1, 40)):
        ids = [generator.randrange(num_groups) for _ in range(num_rows)]
        values = [generator.randint(low, high) for _ in range(num_rows)]
        valid = [not nulls or generator.random() < 0.7 for _ in range(num_rows)]
        for group, value, counts in zip(ids, values, valid, strict=True):
            if counts:
                expected[group].add(value)
        states[batch % 2] = distinct_sets.add_values(
            states[batch % 2],
            torch.tensor(values, dtype=torch.int64),
            None if num_groups == 1 else torch.tensor(ids, dtype=torch.int8),
            num_groups,
            known,
            torch.tensor(valid, dtype=torch.bool) if nulls else None,
        )
    first, second = states
    assert first is not None and second is not None
    sets = distinct_sets.merge_sets(first, second)
    assert distinct_sets.count_values(sets, num_groups).tolist() == [len(group) for group in expected]
    found_values, found_ids = distinct_sets.set_values(sets, known)
    pairs = sorted((group, value) for group, values in enumerate(expected) for value in values)
    assert list(zip(found_ids.tolist(), found_values.tolist(), strict=True)) == pairs
