"""ORDER BY and top-k against the reference: types, NULL placement, direction, ties."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch

from tests import reference
from tqp.operators.numbers import wide
from tqp.operators.rows import keys
from tqp.operators.sorting import sort, sort_bits
from tqp.operators.sorting.sort import SortColumn, sort_rows
from tqp.operators.strings.layout import from_list

POOLS: dict[str, list[Any]] = {
    "int8": [-128, 127, 0, 1],
    "int64": [-(2**63), 2**63 - 1, 0, -1, 1],
    "bool": [True, False],
    "float32": [0.5, -0.0, 0.0, math.inf, -math.inf, math.nan],
    "float64": [0.1, -0.0, 0.0, math.inf, -math.inf, math.nan, -1e300],
    "wide": [-(2**127), 2**127 - 1, 2**64, 2**63, -1, 0],
}


#: Up to how many rows all keys are compared at once, strings whole, and strings that tie whole; from how many rows on codes
#: are sorted in words, and the bits of these.
_LIMITS = {
    "few rows": (1024, 2048, 4096, 1024, 63),
    "some rows": (0, 2048, 4096, 1024, 63),
    "few ties": (0, 0, 4096, 1024, 63),
    "many rows": (0, 0, 0, 1024, 63),
    "in words": (0, 0, 0, 2, 63),
    "in short words": (0, 0, 4096, 2, 26),
}


@pytest.fixture(params=_LIMITS.values(), ids=_LIMITS, autouse=True)
def as_many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows as they are sorted, and as if they were more."""
    few, whole, tied, in_words, word_bits = request.param
    monkeypatch.setattr(sort, "_FEW_ROWS", few)
    monkeypatch.setattr(sort_bits, "_FEW_ROWS", whole)
    monkeypatch.setattr(sort_bits, "_FEW_TIED_ROWS", tied)
    monkeypatch.setattr(keys, "numpy_sorts_words_faster", lambda: True)
    monkeypatch.setattr(keys, "_SORTED_WORDS", in_words)
    monkeypatch.setattr(keys, "_WORD_BITS", word_bits)


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


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
@pytest.mark.parametrize("offset", [0, 3, 40])
def test_strings_with_nulls_and_known_ties(descending: bool, nulls_first: bool, offset: int) -> None:
    generator = random.Random(offset)
    ends = [b"", b"\0", b"\0\0", b"a", b"a\0", b"abcdefgh", b"abcdefgh\0", "é".encode() * 9, b"\xff\xff"]
    values = [None if generator.random() < 0.2 else b"x" * offset + generator.choice(ends) for _ in range(60)]
    strings = from_list(values)
    validity = torch.tensor([value is not None for value in values])
    # what stands under NULL is any string
    strings = strings._replace(lengths=strings.lengths + validity.logical_not().int() * min(offset, 3))
    numbers = [generator.randrange(3) for _ in values]
    expected = reference.sort_rows([(values, descending, nulls_first), (numbers, False, False)])
    first = SortColumn(strings, validity, descending, nulls_first, offset)
    assert sort_rows([first, SortColumn(torch.tensor(numbers))]).tolist() == expected


def test_long_strings() -> None:
    values = [bytes([97 + row % 3]) * (row * 13 % 4001) for row in range(90)]
    assert sort_rows([SortColumn(from_list(values))]).tolist() == sorted(range(90), key=lambda r: values[r])
