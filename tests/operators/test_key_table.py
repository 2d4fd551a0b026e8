"""The hash table of keys: every key keeps its number, whatever batches bring, and however far the table has to grow."""

from __future__ import annotations

import random

import pytest
import torch

from tqp.operators.groups import key_table
from tqp.operators.groups.hash_groups import MULTIPLIERS
from tqp.operators.groups.key_table import KeyTable


def _check(table: KeyTable, known: dict[int, int], keys: list[int]) -> None:
    """Numbers the keys, and compares with the numbers known from before, which the new ones follow."""
    numbers = table.numbers(torch.tensor(keys, dtype=torch.int64))
    assert numbers.dtype is torch.int64 and numbers.shape == (len(keys),)
    for key, number in zip(keys, numbers.tolist(), strict=True):
        assert known.setdefault(key, number) == number
    assert sorted(known.values()) == list(range(table.count))
    assert table.count <= table.capacity
    found = table.keys().tolist()
    assert all(found[number] == key for key, number in known.items())


@pytest.mark.parametrize("rows_at_once", [key_table._ROWS_AT_ONCE, 100])
@pytest.mark.parametrize("domain", [[0], [1], [0, 1, -1], [-(2**63), 2**63 - 1, 0], "few", "many", "more"])
def test_numbers(domain: list[int] | str, rows_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_table, "_ROWS_AT_ONCE", rows_at_once)
    monkeypatch.setattr(key_table, "_MOST_ROWS", 5 * rows_at_once)
    generator = random.Random(5)
    if isinstance(domain, str):
        size = {"few": 50, "many": 700, "more": 5000}[domain]
        domain = [generator.randrange(-(2**63), 2**63) for _ in range(size)]
    table, known = KeyTable(100), {}
    for num_rows in (0, 1, 7, 3000, 0, 3000, 10_000):
        _check(table, known, generator.choices(domain, k=num_rows))


@pytest.mark.parametrize("first", [0, 1, -(2**63), 12345])
def test_the_first_key_may_come_back_in_any_company(first: int) -> None:
    """The first key has no place of its own: it must be found behind keys that came to its places later."""
    generator = random.Random(first)
    table, known = KeyTable(1), {}
    _check(table, known, [first] * 3)
    for _ in range(20):
        _check(table, known, [generator.randrange(-(2**63), 2**63) for _ in range(200)] + [first])


@pytest.mark.parametrize("expected", [1, 100, 5000, 300_000])
def test_places_are_many_times_as_many_as_keys_where_the_cache_holds_them(expected: int) -> None:
    """A row whose key lies further down costs ten times as much; accumulators are as many as the keys that have room."""
    table = KeyTable(expected)
    assert expected <= table.capacity <= max(512, 2 * expected)
    places = 1 << table._bits
    assert places >= min(16 * table.capacity, 1 << key_table._CACHED_BITS)
    assert places >= 2 * table.capacity


@pytest.mark.parametrize("multipliers", [1, 2, 3, 4])
def test_keys_that_meet_in_every_level(multipliers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that all hash to the first places under some of the multipliers, or share their low bits, move on or let it grow."""
    monkeypatch.setattr(key_table, "_LEAST_KEY_BITS", 6)
    monkeypatch.setattr(key_table, "_MORE_BITS", 0)
    inverse = pow(MULTIPLIERS[multipliers - 1], -1, 2**64)
    products = [number * inverse % 2**64 for number in range(3000)]  # what they are multiplied to is small
    shared = [number << 48 for number in range(3000)]
    generator = random.Random(7)
    for domain in (products, shared, products + shared):
        keys = [key - 2**64 if key >= 2**63 else key for key in domain]
        table, known = KeyTable(1), {}
        for num_rows in (5, 100, 4000, 4000):
            _check(table, known, generator.choices(keys, k=num_rows))


def test_keys_that_meet_under_all_multipliers() -> None:
    """Sums of one difference whose products all are short: more keys than levels share the first places of each."""
    generator = random.Random(11)

    def spread(difference: int) -> int:
        products = ((difference * multiplier) % 2**64 for multiplier in MULTIPLIERS)
        return max(min(product, 2**64 - product) for product in products)

    difference = min((generator.randrange(2**64) for _ in range(200_000)), key=spread)
    keys = [number * difference % 2**64 for number in range(-200, 200)]
    table, known = KeyTable(1), {}
    _check(table, known, [key - 2**64 if key >= 2**63 else key for key in keys] * 3)


def test_a_table_that_was_expected_to_be_small_grows() -> None:
    table, known = KeyTable(10), {}
    before = table.capacity
    _check(table, known, list(range(4 * before)))
    assert table.capacity >= 4 * before
    _check(table, known, list(range(4 * before, 0, -3)))
