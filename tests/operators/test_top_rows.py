"""Top-k against the sort of all rows: types, NULL placement, direction, ties, and bounds that batches share."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators.numbers import wide
from tqp.operators.sorting.sort import SortColumn, sort_rows, take_rows
from tqp.operators.sorting.top_rows import Bound, top_rows
from tqp.operators.strings.compare import rows_up_to
from tqp.operators.strings.layout import from_list, take, to_list

KINDS = [
    "int8",
    "int64",
    "bool",
    "float32",
    "float64",
    "wide",
    "strings",
    "long strings",
    "digits",
    "constant",
]


def draw(kind: str, num_rows: int, seed: int) -> Tensor | Strings:
    generator = torch.Generator().manual_seed(seed)
    picks = torch.randint(0, 2**31, (num_rows,), generator=generator)
    numbers = torch.randint(-(2**63), 2**63 - 1, (num_rows,), generator=generator)
    if kind.startswith("float"):
        values = torch.randn(num_rows, generator=generator, dtype=getattr(torch, kind))
        special = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, math.nan], dtype=values.dtype)
        return torch.where(picks % 50 == 0, special[picks // 50 % 6], values)
    if kind == "wide":
        return torch.stack([numbers % 5, picks], dim=1)
    if kind == "strings":
        return take(
            from_list([b"", b"a", b"a\0", b"b", b"\xff", b"a longer one", b"a longer two"]), picks % 7
        )
    if kind == "digits":  # of which few are low, also by their first bytes, and some short
        return take(
            from_list([str(n * 7919 % 1_000_003).encode() for n in range(5000)] + [b"", b"1"]), picks % 5002
        )
    if kind == "long strings":
        return take(from_list([f"the same beginning {n}".encode() for n in range(5000)]), picks % 5000)
    return {
        "int8": numbers.to(torch.int8), "int64": numbers, "bool": numbers > 0, "constant": picks * 0,
    }[kind]  # fmt: skip


def columns_of(
    kind: str, num_rows: int, nulls: float, descending: bool, nulls_first: bool
) -> list[SortColumn]:
    generator = torch.Generator().manual_seed(3)
    validity = torch.rand(num_rows, generator=generator) >= nulls if nulls else None
    first = SortColumn(draw(kind, num_rows, 1), validity, descending, nulls_first)
    return [first, SortColumn(draw("int8", num_rows, 2), None, not descending)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nulls", [0.0, 0.3, 0.999, 1.0])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
def test_first_rows(kind: str, nulls: float, descending: bool, nulls_first: bool) -> None:
    columns = columns_of(kind, 19_201, nulls, descending, nulls_first)
    expected = sort_rows(columns)
    for k in (0, 7, 1200, 30_000):
        assert torch.equal(top_rows(columns, k), expected[:k])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nulls", [0.0, 0.3, 0.999])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("step", [60, 7000])
def test_batches_that_share_a_bound(kind: str, nulls: float, descending: bool, step: int) -> None:
    num_rows, k = 10_000 if step > 60 else 2_500, 20
    columns = columns_of(kind, num_rows, nulls, descending, descending)
    bound = Bound()
    kept = []
    for start in range(0, num_rows, step):
        rows = torch.arange(start, min(start + step, num_rows))
        kept.append(start + top_rows([take_rows(column, rows) for column in columns], k, bound))
    left = torch.cat(kept)
    order = top_rows([take_rows(column, left) for column in columns], k)
    assert torch.equal(left[order], sort_rows(columns)[:k])


def test_sample_unlike_the_rows() -> None:
    # the rows that the sample looks at are the only ones with small values
    values = torch.ones(1_000_000, dtype=torch.int64)
    values[:: 1_000_000 // 4096] = torch.arange(4099).flip(0) - 5000
    for column in (SortColumn(values), SortColumn(-values, descending=True)):
        assert torch.equal(top_rows([column], 1000), sort_rows([column])[:1000])


def test_no_rows() -> None:
    bound = Bound()
    for values in (torch.zeros(0), torch.zeros(0, dtype=torch.bool), from_list([])):
        assert top_rows([SortColumn(values)], 5, bound).tolist() == []
    assert bound.value is None
    assert top_rows([SortColumn(torch.arange(9))], 5, bound).tolist() == [0, 1, 2, 3, 4]
    assert bound.value == 4
    assert top_rows([SortColumn(torch.zeros(0, dtype=torch.int64))], 5, bound).tolist() == []


def test_wide_integers_tie_in_their_high_words() -> None:
    values = wide.from_ints([(n * 7919 % 1000) - 500 for n in range(1000)])
    assert torch.equal(top_rows([SortColumn(values)], 9), sort_rows([SortColumn(values)])[:9])


@pytest.mark.parametrize("bound", [b"", b"a", b"a longer one", b"a longer onf", b"a\0", b"zz", b"\xff"])
def test_rows_up_to(bound: bytes) -> None:
    strings: Any = draw("strings", 1000, 5)
    values = to_list(strings)
    assert rows_up_to(strings, bound, above=False).tolist() == [i for i, v in enumerate(values) if v <= bound]
    assert rows_up_to(strings, bound, above=True).tolist() == [i for i, v in enumerate(values) if v >= bound]


@pytest.mark.parametrize("above", [False, True])
@pytest.mark.parametrize("bound", [b"-10234", b"5", b"", b"\0", b"-", b"zz", b"-1\0\0", b"9999999"])
def test_rows_up_to_of_numbers(bound: bytes, above: bool) -> None:
    generator = torch.Generator().manual_seed(5)
    numbers = torch.randint(-(10**6), 10**6, (3000,), generator=generator).tolist()
    values = [str(number).encode() for number in numbers] + [b"", b"-", b"-1", b"-1\0", b"\0", bound, b"5"]
    for order in (range(len(values)), range(len(values) - 1, -1, -1)):
        strings = take(from_list(values), torch.tensor(order))
        asked = {i for i, at in enumerate(order) if (values[at] >= bound if above else values[at] <= bound)}
        found = rows_up_to(strings, bound, above).tolist()
        assert found == sorted(found) and asked <= set(found)
        left_out = {values[at] for i, at in enumerate(order) if i not in set(found)}
        kept = {values[order[i]] for i in found}
        assert not left_out or not kept or (min(kept) > max(left_out) if above else max(kept) < min(left_out))
