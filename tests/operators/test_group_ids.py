"""Group ids against the reference: dense and sparse ranges, several and wide columns, sorted runs."""

from __future__ import annotations

import random

import pytest
import torch
from torch import Tensor

from tests import reference
from tqp.operators.group_ids import cluster_boundaries, group_by_codes_sorted, group_ids_of_columns


def check(groups: tuple[Tensor, Tensor, int], rows: list[tuple[int, ...]]) -> None:
    """Same partition and first rows as the reference, groups in key order."""
    ids, representatives, num_groups = groups
    expected_ids, first_rows = reference.group_ids(rows)
    by_key = sorted(first_rows, key=rows.__getitem__)
    assert num_groups == len(first_rows)
    assert ids.dtype is torch.int64 and representatives.tolist() == by_key
    rank = {expected_ids[row]: position for position, row in enumerate(by_key)}
    assert ids.tolist() == [rank[group] for group in expected_ids]


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("num_rows", [0, 1, 50])
def test_dense_keys(dtype: torch.dtype, num_rows: int) -> None:
    keys = torch.randint(-10, 10, (num_rows,), generator=torch.Generator().manual_seed(1)).to(dtype)
    check(group_by_codes_sorted(keys), [(key,) for key in keys.tolist()])


@pytest.mark.parametrize("num_rows", [2, 300, 20_000, 40_000])
def test_sparse_keys(num_rows: int) -> None:
    generator = random.Random(2)
    domain = [-(2**63), 2**63 - 1, *(generator.randrange(-(2**63), 2**63) for _ in range(500))]
    keys = generator.choices(domain, k=num_rows)
    check(group_by_codes_sorted(torch.tensor(keys)), [(key,) for key in keys])


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
    check(cluster_boundaries(torch.tensor(keys, dtype=torch.int32)), [(key,) for key in keys])
