"""The first rows of partitions: candidates against the sort of all rows, whatever the keys."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.operators.test_top_rows import KINDS, columns_of
from tqp.operators.sorting.sort import SortColumn, sort_rows, take_rows
from tqp.operators.windows.first_rows import candidates
from tqp.operators.windows.partitions import Partitions, segments
from tqp.operators.windows.ranking import row_number

ROWS = 5_001


def partitions_of(kind: str) -> list[Tensor]:
    picks = torch.randint(0, 2**31, (ROWS,), generator=torch.Generator().manual_seed(5))
    match kind:
        case "few":
            return [picks % 10 + 1_000_000]
        case "clustered":
            return [(picks % 15).sort().values.to(torch.int8) - 100]
        case "skewed":  # most rows in one, and some of one row or two
            return [torch.where(picks % 100 == 0, picks // 100 % 60, 7).to(torch.int16)]
        case "two keys":
            return [(picks % 3).to(torch.int8), picks // 3 % 5 - 2]
        case "wide":
            return [torch.stack([picks % 2, -(picks // 2 % 4)], dim=1)]
        case _:
            return []


def first_of(partition: list[Tensor], order: list[SortColumn], most: int) -> Tensor:
    """The first rows of each partition by a sort of all rows, in that order."""
    words = [word for column in partition for word in ([column] if column.dim() == 1 else column.unbind(1))]
    rows = sort_rows([*map(SortColumn, words), *order])
    starts = segments([word[rows] for word in words], rows.shape[0], rows.device)
    return rows[row_number(Partitions(starts, starts)) <= most]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("descending", [False, True])
def test_any_order(kind: str, nulls: float, descending: bool) -> None:
    order = columns_of(kind, ROWS, nulls, descending, nulls_first=descending == (nulls > 0.5))
    check(partitions_of("few"), order, 3)
    check(partitions_of("few"), order[:1], 3)


@pytest.mark.parametrize("kind", ["clustered", "skewed", "two keys", "wide", "one"])
@pytest.mark.parametrize("most", [1, 3, 10])
def test_any_partitions(kind: str, most: int) -> None:
    check(partitions_of(kind), columns_of("int64", ROWS, 0.3, False, True), most)


def check(partition: list[Tensor], order: list[SortColumn], most: int) -> None:
    rows = candidates(partition, order, most)
    assert rows is not None and bool((rows[1:] > rows[:-1]).all())
    found = first_of([each[rows] for each in partition], [take_rows(key, rows) for key in order], most)
    assert torch.equal(rows[found], first_of(partition, order, most))


def test_ties_are_candidates_and_others_are_few() -> None:
    (partition,) = partitions_of("few")
    constant = SortColumn(torch.zeros(ROWS, dtype=torch.int64))
    rows = candidates([partition], [constant], 3)
    assert rows is not None and rows.shape[0] == ROWS
    places = SortColumn(torch.arange(ROWS))
    for order in ([places], [constant, places]):  # also where the first key says nothing
        rows = candidates([partition], order, 3)
        assert rows is not None and rows.shape[0] < 10 * 20


def test_rows_as_they_come() -> None:
    (partition,) = partitions_of("few")
    rows = candidates([partition], [], 2)
    assert rows is not None and rows.shape[0] < 10 * 15
    expected = first_of([partition], [], 2)
    assert set(expected.tolist()) <= set(rows.tolist())


def test_all_rows_where_there_is_nothing_to_gain() -> None:
    order = [SortColumn(torch.arange(ROWS))]
    (partition,) = partitions_of("few")
    assert candidates([torch.arange(ROWS)], order, 1) is None  # each a partition
    assert candidates([partition * 2**40], order, 3) is None  # which lie far apart
    assert candidates([partition], order, 5000) is None
    assert candidates([partition], order, 0) is None
    assert candidates([partition[:100]], [take_rows(order[0], torch.arange(100))], 3) is None
    assert candidates([partition[:0]], [take_rows(order[0], torch.arange(0))], 3) is None
