"""The hash table of distinct keys: what it finds, whatever keys meet in its slots, and that it tells when a key comes twice."""

from __future__ import annotations

import random

import pytest
import torch

from tqp.operators.groups.hash_groups import MULTIPLIERS
from tqp.operators.joins.key_places import place_keys


def _signed(numbers: list[int]) -> list[int]:
    return [(number + 2**63) % 2**64 - 2**63 for number in numbers]


def _check(keys: list[int], rows: list[int] | None, probe: list[int]) -> None:
    places = place_keys(
        torch.tensor(keys, dtype=torch.int64), None if rows is None else torch.tensor(rows, dtype=torch.int64)
    )
    assert places is not None
    row_of = {keys[row]: row for row in (range(len(keys)) if rows is None else rows)}
    numbers, found = places.find(torch.tensor(probe, dtype=torch.int64))
    assert found.tolist() == [key in row_of for key in probe]
    expected = [row_of.get(key, -1) for key in probe]
    assert [number if hit else -1 for number, hit in zip(numbers.tolist(), found, strict=True)] == expected


@pytest.mark.parametrize("size", [0, 1, 2, 300, 5000, 20_000])
def test_random_keys(size: int) -> None:
    generator = random.Random(size)
    keys = [generator.randrange(-(2**63), 2**63) for _ in range(size)]
    _check(keys, None, [*generator.choices([*keys, 0], k=3000), 0, -1, 2**63 - 1, -(2**63)])


def test_rows_that_are_left_out_are_not_found() -> None:
    generator = random.Random(3)
    keys = [generator.randrange(50) for _ in range(4)] + generator.sample(range(100, 10_000), 3000)
    rows = sorted(generator.sample(range(4, len(keys)), 2000))  # the first rows may have one key, and any
    _check(keys, rows, list(range(10_000)))
    _check(keys, [], keys)


@pytest.mark.parametrize("level", range(len(MULTIPLIERS)))
def test_keys_that_meet(level: int) -> None:
    """Keys whose hashes by one multiplier are small share its first slots, those with few low bits other ones."""
    inverse = pow(MULTIPLIERS[level], -1, 2**64)
    products = _signed([number * inverse for number in range(3000)])
    shared = _signed([number << 48 for number in range(1, 3000)])
    generator = random.Random(level)
    for keys in (products, shared, products + shared):
        keys = generator.sample(keys, len(keys) - 500)
        _check(keys, None, products + shared)


def test_a_key_that_comes_twice() -> None:
    generator = random.Random(9)
    for size in (2, 10, 2000):
        for _ in range(20):
            keys = generator.sample(range(2**40), size - 1)
            keys.insert(generator.randrange(size), generator.choice(keys))
            assert place_keys(torch.tensor(keys)) is None
    same = _signed(
        [number * pow(MULTIPLIERS[0], -1, 2**64) for number in range(3000)]
    )  # found among what is left over
    assert place_keys(torch.tensor([*same, same[-1]])) is None
