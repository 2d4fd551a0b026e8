"""The hash table: every key keeps its number, whatever batches bring; what is found, whatever keys meet in its slots."""

from __future__ import annotations

import random

import pytest
import torch

from tqp.operators.rows import hash_table
from tqp.operators.rows.hash_table import (
    MULTIPLIERS,
    HashTable,
    empty_table,
    is_last_equal,
    table_of_rows,
)


def _signed(numbers: list[int]) -> list[int]:
    return [(number + 2**63) % 2**64 - 2**63 for number in numbers]


def _check_insert(table: HashTable, known: dict[int, int], keys: list[int]) -> None:
    """Numbers the keys, and compares with the numbers known from before, which the new ones follow."""
    numbers = table.insert(torch.tensor(keys, dtype=torch.int64))
    assert numbers.dtype is torch.int64 and numbers.shape == (len(keys),)
    for key, number in zip(keys, numbers.tolist(), strict=True):
        assert known.setdefault(key, number) == number
    assert sorted(known.values()) == list(range(table.count))
    assert table.count <= table.capacity
    found = table.keys().tolist()
    assert all(found[number] == key for key, number in known.items())


@pytest.mark.parametrize("rows_at_once", [hash_table._ROWS_AT_ONCE, 100])
@pytest.mark.parametrize("domain", [[0], [1], [0, 1, -1], [-(2**63), 2**63 - 1, 0], "few", "many", "more"])
def test_numbers(domain: list[int] | str, rows_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hash_table, "_ROWS_AT_ONCE", rows_at_once)
    generator = random.Random(5)
    if isinstance(domain, str):
        size = {"few": 50, "many": 700, "more": 5000}[domain]
        domain = [generator.randrange(-(2**63), 2**63) for _ in range(size)]
    table, known = empty_table(100, torch.device("cpu")), {}
    for num_rows in (0, 1, 7, 3000, 0, 3000, 10_000):
        _check_insert(table, known, generator.choices(domain, k=num_rows))


@pytest.mark.parametrize("expected", [0, 1e30, float("inf")])
def test_an_estimate_of_keys_may_be_any_number(expected: float) -> None:
    table = empty_table(expected, torch.device("cpu"))
    assert table.insert(torch.tensor([5, 7, 5])).tolist()[0::2] == [0, 0]
    assert table.count == 2 and table.capacity <= 1 << 24


@pytest.mark.parametrize("first", [0, 1, -(2**63), 12345])
def test_the_first_key_may_come_back_in_any_company(first: int) -> None:
    """Slots without a key name the first key: it must be found in its own, and those must not seem to hold it."""
    generator = random.Random(first)
    table, known = empty_table(1, torch.device("cpu")), {}
    _check_insert(table, known, [first] * 3)
    for _ in range(20):
        _check_insert(table, known, [generator.randrange(-(2**63), 2**63) for _ in range(200)] + [first])


@pytest.mark.parametrize("expected", [1, 100, 5000, 300_000])
def test_slots_are_many_times_as_many_as_keys_where_the_cache_holds_them(expected: int) -> None:
    """A row whose key lies further down costs ten times as much; accumulators are as many as the keys that have room."""
    table = empty_table(expected, torch.device("cpu"))
    assert expected <= table.capacity <= max(512, 2 * expected)
    slots = 1 << table._bits
    assert slots >= min(16 * table.capacity, 1 << hash_table._CACHED_BITS)
    assert slots >= 2 * table.capacity


@pytest.mark.parametrize("multipliers", [1, 2, 3, 4])
def test_keys_that_meet_in_every_level(multipliers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that all hash to the first places under some of the multipliers, or share their low bits, move on or let it grow."""
    monkeypatch.setattr(hash_table, "_LEAST_KEY_BITS", 6)
    monkeypatch.setattr(hash_table, "_MORE_BITS", 0)
    inverse = pow(MULTIPLIERS[multipliers - 1], -1, 2**64)
    products = [number * inverse % 2**64 for number in range(3000)]  # what they are multiplied to is small
    shared = [number << 48 for number in range(3000)]
    generator = random.Random(7)
    for domain in (products, shared, products + shared):
        keys = _signed(domain)
        table, known = empty_table(1, torch.device("cpu")), {}
        for num_rows in (5, 100, 4000, 4000):
            _check_insert(table, known, generator.choices(keys, k=num_rows))


def test_keys_that_meet_under_all_multipliers() -> None:
    """Sums of one difference whose products all are short: more keys than levels share the first places of each."""
    generator = random.Random(11)

    def spread(difference: int) -> int:
        products = ((difference * multiplier) % 2**64 for multiplier in MULTIPLIERS)
        return max(min(product, 2**64 - product) for product in products)

    difference = min((generator.randrange(2**64) for _ in range(200_000)), key=spread)
    keys = [number * difference % 2**64 for number in range(-200, 200)]
    table, known = empty_table(1, torch.device("cpu")), {}
    _check_insert(table, known, _signed(keys) * 3)


def test_a_table_that_was_expected_to_be_small_grows() -> None:
    table, known = empty_table(10, torch.device("cpu")), {}
    before = table.capacity
    _check_insert(table, known, list(range(4 * before)))
    assert table.capacity >= 4 * before
    _check_insert(table, known, list(range(4 * before, 0, -3)))


def _check_find(keys: list[int], rows: list[int] | None, probe: list[int]) -> None:
    table = table_of_rows(
        torch.tensor(keys, dtype=torch.int64), None if rows is None else torch.tensor(rows, dtype=torch.int64)
    )
    assert table is not None
    row_of = {keys[row]: row for row in (range(len(keys)) if rows is None else rows)}
    numbers, found = table.find(torch.tensor(probe, dtype=torch.int64))
    assert found.tolist() == [key in row_of for key in probe]
    expected = [row_of.get(key, -1) for key in probe]
    assert [number if hit else -1 for number, hit in zip(numbers.tolist(), found, strict=True)] == expected


@pytest.mark.parametrize("size", [0, 1, 2, 300, 5000, 20_000])
def test_random_keys(size: int) -> None:
    generator = random.Random(size)
    keys = [generator.randrange(-(2**63), 2**63) for _ in range(size)]
    _check_find(keys, None, [*generator.choices([*keys, 0], k=3000), 0, -1, 2**63 - 1, -(2**63)])


def test_rows_that_are_left_out_are_not_found() -> None:
    generator = random.Random(3)
    keys = [generator.randrange(50) for _ in range(4)] + generator.sample(range(100, 10_000), 3000)
    rows = sorted(generator.sample(range(4, len(keys)), 2000))  # the first rows may have one key, and any
    _check_find(keys, rows, list(range(10_000)))
    _check_find(keys, [], keys)


@pytest.mark.parametrize("level", range(len(MULTIPLIERS)))
def test_keys_that_meet(level: int) -> None:
    """Keys whose hashes by one multiplier are small share its first slots, those with few low bits other ones."""
    inverse = pow(MULTIPLIERS[level], -1, 2**64)
    products = _signed([number * inverse for number in range(3000)])
    shared = _signed([number << 48 for number in range(1, 3000)])
    generator = random.Random(level)
    for keys in (products, shared, products + shared):
        keys = generator.sample(keys, len(keys) - 500)
        _check_find(keys, None, products + shared)


def test_a_key_that_comes_twice() -> None:
    generator = random.Random(9)
    for size in (2, 10, 2000):
        for _ in range(20):
            keys = generator.sample(range(2**40), size - 1)
            keys.insert(generator.randrange(size), generator.choice(keys))
            assert table_of_rows(torch.tensor(keys)) is None
    same = _signed(
        [number * pow(MULTIPLIERS[0], -1, 2**64) for number in range(3000)]
    )  # found among what is left over
    assert table_of_rows(torch.tensor([*same, same[-1]])) is None


@pytest.mark.parametrize("distinct", [1, 7, 1500, 20_000, 10**9])
@pytest.mark.parametrize("num_rows", [0, 1, 5, 1023, 30_000])
def test_is_last_equal(distinct: int, num_rows: int) -> None:
    generator = random.Random(distinct)
    keys = [generator.randrange(distinct) * 2**30 - 2**59 for _ in range(num_rows)]
    last = {key: row for row, key in enumerate(keys)}
    expected = [last[key] == row for row, key in enumerate(keys)]
    assert is_last_equal(torch.tensor(keys, dtype=torch.int64)).tolist() == expected
