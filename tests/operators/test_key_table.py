"""The hash table of keys: every key keeps its slot, whatever batches bring, until there is no room."""

from __future__ import annotations

import random

import pytest
import torch

from tqp.operators.key_table import KeyTable


@pytest.mark.parametrize("domain", [[0], [1], [0, 1, -1], [-(2**63), 2**63 - 1, 0], "few", "many"])
def test_slots(domain: list[int] | str) -> None:
    generator = random.Random(5)
    if isinstance(domain, str):
        size = 50 if domain == "few" else 700
        domain = [generator.randrange(-(2**63), 2**63) for _ in range(size)]
    table = KeyTable(100)
    known: dict[int, int] = {}
    for num_rows in (0, 1, 7, 3000, 3000):
        keys = generator.choices(domain, k=num_rows)
        slots = table.slots(torch.tensor(keys, dtype=torch.int64))
        assert slots is not None and slots.dtype is torch.int64
        for key, slot in zip(keys, slots.tolist(), strict=True):
            assert 0 <= slot < table.size and known.setdefault(key, slot) == slot
    assert len(set(known.values())) == len(known)
    keys_found, slots_found = table.keys()
    assert list(zip(keys_found.tolist(), slots_found.tolist(), strict=True)) == sorted(known.items())


def test_a_full_table_says_so() -> None:
    table = KeyTable(10)
    assert table.slots(torch.arange(4 * table.size)) is None
    assert table.slots(table.keys()[0]) is not None
