"""ORDER BY and top-k against the reference: types, NULL placement, direction, ties."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch

from tests import reference
from tqp.operators import wide
from tqp.operators.sort import SortColumn, sort_rows

POOLS: dict[str, list[Any]] = {
    "int8": [-128, 127, 0, 1],
    "int64": [-(2**63), 2**63 - 1, 0, -1, 1],
    "bool": [True, False],
    "float32": [0.5, -0.0, 0.0, math.inf, -math.inf, math.nan],
    "float64": [0.1, -0.0, 0.0, math.inf, -math.inf, math.nan, -1e300],
    "wide": [-(2**127), 2**127 - 1, 2**64, 2**63, -1, 0],
}


def column(kind: str, values: list[Any], descending: bool, nulls_first: bool) -> SortColumn:
    filled = [POOLS[kind][0] if value is None else value for value in values]
    tensor = wide.from_ints(filled) if kind == "wide" else torch.tensor(filled, dtype=getattr(torch, kind))
    validity = torch.tensor([value is not None for value in values], dtype=torch.bool)
    return SortColumn(tensor, None if bool(validity.all()) else validity, descending, nulls_first)


def draw(generator: random.Random, kind: str, num_rows: int, nulls: float) -> list[Any]:
    return [None if generator.random() < nulls else generator.choice(POOLS[kind]) for _ in range(num_rows)]


@pytest.mark.parametrize("kind", POOLS)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("num_rows", [0, 1, 100])
def test_one_column(kind: str, descending: bool, nulls_first: bool, nulls: float, num_rows: int) -> None:
    values = draw(random.Random(1), kind, num_rows, nulls)
    expected = reference.sort_rows([(values, descending, nulls_first)])
    columns = [column(kind, values, descending, nulls_first)]
    assert sort_rows(columns).tolist() == expected


@pytest.mark.parametrize("seed", range(30))
def test_several_columns(seed: int) -> None:
    generator = random.Random(seed)
    num_rows = generator.choice([1, 40, 400])
    drawn = []
    for _ in range(generator.randrange(1, 4)):
        kind = generator.choice(list(POOLS))
        values = draw(generator, kind, num_rows, generator.choice([0.0, 0.2]))
        drawn.append((kind, values, generator.random() < 0.5, generator.random() < 0.5))
    expected = reference.sort_rows([(values, descending, first) for _, values, descending, first in drawn])
    columns = [column(*each) for each in drawn]
    assert sort_rows(columns).tolist() == expected
