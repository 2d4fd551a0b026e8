"""Group ids against the reference: dense and sparse ranges, several and wide columns, sorted runs."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import torch
from torch import Tensor

from tests import reference
from tqp.operators.groups import group_ids
from tqp.operators.groups.group_ids import group_ids_of_columns
from tqp.operators.rows.hash_table import group_by_hash
from tqp.operators.rows.keys import partition_rows
from tqp.operators.rows.runs import Runs


def check(groups: tuple[Tensor, Tensor, int], rows: list[tuple[int, ...]]) -> None:
    """Same partition and first rows as the reference; groups may come in any order."""
    ids, representatives, num_groups = groups
    expected_ids, first_rows = reference.group_ids(rows)
    assert num_groups == len(first_rows) and sorted(representatives.tolist()) == sorted(first_rows)
    assert ids.dtype is torch.int64
    assert representatives[ids].tolist() == [first_rows[group] for group in expected_ids]


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("num_rows", [0, 1, 50])
def test_dense_keys(dtype: torch.dtype, num_rows: int) -> None:
    keys = torch.randint(-10, 10, (num_rows,), generator=torch.Generator().manual_seed(1)).to(dtype)
    check(group_ids_of_columns([keys]), [(key,) for key in keys.tolist()])


@pytest.mark.parametrize("num_rows", [2, 300, 20_000, 40_000])
def test_sparse_keys(num_rows: int) -> None:
    generator = random.Random(2)
    domain = [-(2**63), 2**63 - 1, *(generator.randrange(-(2**63), 2**63) for _ in range(500))]
    keys = generator.choices(domain, k=num_rows)
    check(group_ids_of_columns([torch.tensor(keys)]), [(key,) for key in keys])


@pytest.mark.parametrize(
    "domains",
    [
        [(0, 5), (7, 9)],
        [(3, 3), (1, 2)],
        [(-(2**63), 0, 2**63 - 1), (0, 2**40), (-(2**62), 2**62)],
        [(4, 4)],
    ],
)
@pytest.mark.parametrize("num_rows", [0, 1, 200])
def test_several_columns(domains: list[tuple[int, ...]], num_rows: int) -> None:
    generator = random.Random(3)
    rows = [tuple(generator.choice(domain) for domain in domains) for _ in range(num_rows)]
    columns = [torch.tensor([row[i] for row in rows], dtype=torch.int64) for i in range(len(domains))]
    check(group_ids_of_columns(columns), rows)


def test_wide_columns_count_with_both_words() -> None:
    generator = random.Random(4)
    rows = [tuple(generator.choices([-(2**63), -1, 0, 2**62], k=3)) for _ in range(100)]
    table = torch.tensor(rows)
    check(group_ids_of_columns([table[:, :2], table[:, 2]]), rows)


@pytest.mark.parametrize("keys", [[], [4], [4, 4], [1, 1, 2, 5, 5, 5], [-3, 0, 1]])
def test_runs(keys: list[int]) -> None:
    runs = Runs(torch.tensor(keys, dtype=torch.int32))
    check((runs.ids(), runs.first_rows, runs.count), [(key,) for key in keys])


@pytest.mark.parametrize("distinct", [1, 7, 3000, 20_000])
@pytest.mark.parametrize("multiple", [1, 64, 2**40])
def test_groups_by_hash(distinct: int, multiple: int) -> None:
    generator = random.Random(distinct)
    keys = [generator.randrange(distinct) * multiple - 2**62 for _ in range(10_000)]
    check(group_by_hash(torch.tensor(keys)), [(key,) for key in keys])
    check(group_by_hash(torch.tensor(keys[:3])), [(key,) for key in keys[:3]])
    check(group_by_hash(torch.zeros(0, dtype=torch.int64)), [])


def test_partitions_keep_equal_keys_together_and_rows_in_order() -> None:
    keys = torch.randint(0, 500, (5000,), generator=torch.Generator().manual_seed(5)) * 64
    order, ends = partition_rows(keys, 3)
    assert sorted(order.tolist()) == list(range(5000)) and len(ends) == 8 and ends[-1] == 5000
    parts = [order[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    assert all(part.tolist() == sorted(part.tolist()) for part in parts)
    assert all(part.shape[0] > 300 for part in parts)
    owners = [set(keys[part].tolist()) for part in parts]
    assert sum(len(owner) for owner in owners) == len(set().union(*owners))
    assert partition_rows(keys[:0], 2)[1] == [0, 0, 0, 0]
    low_bits = torch.tensor([5, 4, 1, 0, 6], dtype=torch.int16)
    order, ends = partition_rows(low_bits, 2, dense=True)
    assert (order.tolist(), ends) == ([1, 3, 0, 2, 4], [2, 4, 5, 5])


@pytest.mark.parametrize("num_rows", [0, 1, 300, 5000])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("domain", [3, 40, 1 << 50])
def test_counted_combinations(
    domain: int, columns: int, num_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_ids, "_FIRST_ROWS", 200)  # the last value comes later than these rows
    generator = random.Random(f"{domain}{columns}{num_rows}")
    rows = [tuple(generator.randrange(domain) for _ in range(columns)) for _ in range(num_rows)]
    if rows:
        rows[-1] = (domain,) * columns
    given = [torch.tensor([row[column] for row in rows], dtype=torch.int64) for column in range(columns)]
    counts, first_rows = group_ids.counted_combinations(given)
    found = {rows[row]: (count, row) for count, row in zip(counts.tolist(), first_rows.tolist(), strict=True)}
    how_often = Counter(rows)
    first = {row: number for number, row in reversed(list(enumerate(rows)))}
    assert found == {row: (how_often[row], first[row]) for row in rows}
