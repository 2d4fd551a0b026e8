"""`SeenRows` against a set of Python's: which rows are new, few and many at a time, and where hashes meet."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from torch import Tensor

from tqp.operators.strings import layout
from tqp.runtime.breakers import seen_rows
from tqp.runtime.breakers.seen_rows import SeenRows
from tqp.runtime.frame import FrameColumn

CPU = torch.device("cpu")


def columns(rows: list[tuple[int | None, bytes | None, float]]) -> list[FrameColumn]:
    numbers, texts, floats = zip(*rows, strict=True)
    return [
        FrameColumn(torch.tensor([n or 0 for n in numbers]), torch.tensor([n is not None for n in numbers])),
        FrameColumn(layout.from_list(texts), torch.tensor([text is not None for text in texts])),
        FrameColumn(torch.tensor(floats, dtype=torch.float64), None),
    ]


def few_hashes(words: list[Tensor]) -> Tensor:
    return words[0].to(torch.int64) % 3


@pytest.mark.parametrize("sizes", [[1] * 50, [3, 400, 1, 2, 500], [600, 600], [256, 257, 1]])
@pytest.mark.parametrize("collide", [False, True])
def test_new_rows(sizes: list[int], collide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if collide:
        monkeypatch.setattr(seen_rows, "hash_combine", few_hashes)
    generator, seen, known = random.Random(len(sizes)), SeenRows(CPU), set[Any]()
    numbered: dict[Any, int] = {}
    for size in sizes:
        rows = [
            (
                generator.choice([None, *range(12)]),
                generator.choice([None, b"", b"a", b"ab", "é".encode(), b"\x00"]),
                generator.choice([0.0, -0.0, 1.5, float("inf")]),
            )
            for _ in range(size)
        ]
        numbers, new = (each.tolist() for each in seen.add(columns(rows)))
        found = list(new)
        for row, number in zip(rows, numbers, strict=True):
            assert numbered.setdefault(row, number) == number
        assert sorted(numbered.values()) == list(range(len(numbered)))
        assert len(set(found)) == len(found)
        assert {rows[row] for row in found} == set(rows) - known
        assert len({rows[row] for row in found}) == len(found)
        known.update(rows)


def test_wide_numbers_and_nan() -> None:
    wide = torch.tensor([[0, 5], [1, 5], [0, 5], [-1, -5]])
    assert sorted(SeenRows(CPU).add([FrameColumn(wide, None)])[1].tolist()) == [0, 1, 3]
    floats = torch.tensor([float("nan"), -float("nan"), 1.0])
    seen = SeenRows(CPU)
    assert sorted(seen.add([FrameColumn(floats, None)])[1].tolist()) == [0, 2]
    assert seen.add([FrameColumn(floats, None)])[1].tolist() == []
