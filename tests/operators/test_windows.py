"""Window kernels against a slow reference: boundaries, ranks, frames, rows to take values from."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from tests.operators.window_cases import (
    CASES,
    CPU,
    EXCLUSIONS,
    Case,
    draw_validity,
    excluded,
    find_groups,
    find_rows,
    find_values,
    listed,
)
from tqp.core.errors import ExecutionError
from tqp.operators.sorting.sort import SortColumn, sort_rows
from tqp.operators.windows import frames, ranking, value_bounds, values
from tqp.operators.windows.frames import Range
from tqp.operators.windows.partitions import Partitions, segments


@pytest.mark.parametrize("at", CASES, ids=range(len(CASES)))
def test_ranks(at: Case) -> None:
    for row in range(at.size):
        rows, peers = at.of_partition(row), at.peers(row)
        before = [other for other in rows if at.keys[other] < at.keys[row]]
        expected = {
            "row_number": row - rows[0] + 1,
            "rank": len(before) + 1,
            "dense_rank": len({at.keys[other] for other in before}) + 1,
            "percent_rank": len(before) / (len(rows) - 1) if len(rows) > 1 else 0.0,
            "cume_dist": (len(before) + len(peers)) / len(rows),
        }
        assert {
            name: function(at.rows)[row].item() for name, function in ranking.RANKINGS.items()
        } == expected
    for name, function in ranking.RANKINGS.items():
        assert function(at.rows).shape == (at.size,), name


@pytest.mark.parametrize("tiles", [1, 2, 3, 7, 1000])
def test_tiles_are_cut_evenly_the_larger_ones_first(tiles: int) -> None:
    at = CASES[0]
    found = ranking.ntile(at.rows, torch.full((at.size,), tiles), None).tolist()
    for row in range(at.size):
        rows = at.of_partition(row)
        sizes = [found[rows[0] : rows[-1] + 1].count(tile) for tile in range(1, min(tiles, len(rows)) + 1)]
        assert sum(sizes) == len(rows) and sizes == sorted(sizes, reverse=True) and sizes[0] - sizes[-1] <= 1
        assert found[rows[0] : rows[-1] + 1] == sorted(found[rows[0] : rows[-1] + 1])
    with pytest.raises(ExecutionError, match="greater than zero"):
        ranking.ntile(at.rows, torch.zeros(at.size, dtype=torch.int64), None)
    validity = torch.zeros(at.size, dtype=torch.bool)
    assert ranking.ntile(at.rows, torch.zeros(at.size, dtype=torch.int64), validity).shape == (at.size,)


def in_rows(at: Case, row: int, other: int) -> int:
    return other - row


def in_groups(at: Case, row: int, other: int) -> int:
    numbers = sorted({at.keys[each] for each in at.of_partition(row)})
    return numbers.index(at.keys[other]) - numbers.index(at.keys[row])


def in_values(at: Case, row: int, other: int) -> int:
    return at.keys[other] - at.keys[row]


@pytest.mark.parametrize(
    ("find", "distance"), [(find_rows, in_rows), (find_groups, in_groups), (find_values, in_values)]
)
@pytest.mark.parametrize("at", CASES, ids=range(len(CASES)))
def test_frames(
    at: Case, find: Callable[[Case, int, int], Range], distance: Callable[[Case, int, int], int]
) -> None:
    distances = [
        {other: distance(at, row, other) for other in at.of_partition(row)} for row in range(at.size)
    ]
    for start, end in ((-1, 0), (-2, 1), (0, 3), (1, 2), (-3, -2), (0, 0), (-200, 200)):
        whole = find(at, start, end)
        for exclusion in EXCLUSIONS:
            ranges = frames.excluding(at.rows, whole, exclusion)
            for row in range(at.size):
                without = excluded(at, row, exclusion)
                left = [
                    other
                    for other, between in distances[row].items()
                    if start <= between <= end and other not in without
                ]
                assert listed(ranges, row) == left, (start, end, exclusion, row)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
def test_ranges_of_floats_and_nulls(descending: bool, nulls_first: bool) -> None:
    drawn = [-math.inf, -1.0, -0.0, 0.0, 0.5, 1.0, math.inf, math.nan, None, None]
    column = torch.tensor([0.0 if each is None else each for each in drawn], dtype=torch.float64)
    validity = torch.tensor([each is not None for each in drawn])
    order = sort_rows([SortColumn(column, validity, descending, nulls_first)])
    column, validity = column[order], validity[order]
    whole = segments([], len(drawn), CPU)
    rows = Partitions(whole, segments([column.nan_to_num(9.0), validity], len(drawn), CPU, whole))
    key = value_bounds.order_key(column, validity, descending, nulls_first)
    sign = 1.0 if descending else -1.0
    bounds = value_bounds.range_codes(column + sign * 1.0, descending)
    begins = value_bounds.values_from(rows, key, bounds, validity, True, False)
    for row in range(len(drawn)):
        value = column[row].item()
        if not validity[row]:
            expected = rows.peers.begins[row].item()
        elif math.isnan(value):
            expected = min(
                other for other in range(len(drawn)) if validity[other] and math.isnan(column[other])
            )
        else:
            near = [
                other
                for other in range(len(drawn))
                if validity[other]
                and (
                    (column[other] >= value - 1.0 or column[other].isnan())
                    if not descending
                    else column[other] <= value + 1.0
                )
            ]
            expected = min(near)
        assert begins[row].item() == expected


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
@pytest.mark.parametrize("at", CASES, ids=range(len(CASES)))
def test_bounds_are_found_whether_or_not_partition_and_key_fit_one_word(
    at: Case, nulls_first: bool, descending: bool
) -> None:
    keys, validity = torch.tensor(at.keys, dtype=torch.int64), draw_validity(at.size, 0.7)
    partitions = at.rows.partitions
    order = sort_rows([SortColumn(partitions.numbers), SortColumn(keys, validity, descending, nulls_first)])
    keys, validity = keys[order], validity[order]
    rows = Partitions(partitions, segments([keys * validity, validity], at.size, CPU, partitions))
    most = 1 + max(map(abs, at.keys), default=0)
    far = 2**61 // most
    for away, is_end in ((-2, False), (-1, True), (0, False), (0, True), (1, False), (2, True), (99, True)):
        bounds = keys + (-away if descending else away)
        for valid in (validity, None):
            found = [
                value_bounds.values_from(
                    rows,
                    value_bounds.order_key(keys * scale, valid, descending, nulls_first),
                    value_bounds.range_codes(bounds.clamp(-most, most) * scale, descending),
                    None,
                    away <= 0,
                    is_end,
                )
                for scale in (1, far)
                if valid is not None or validity.all()
            ]
            assert all(each.equal(found[0]) for each in found), (away, is_end)
            for row in range(at.size) if found else ():
                if validity[row]:
                    of_row = [each for each in at.of_partition(row) if validity[each]]
                    sign = -1 if descending else 1
                    before = [
                        each
                        for each in of_row
                        if (distance := sign * (keys[each] - keys[row]).item()) < away
                        or (is_end and distance == away)
                    ]
                    assert found[0][row].item() == of_row[0] + len(before), (away, is_end, row)


def test_offsets_are_checked() -> None:
    with pytest.raises(ExecutionError, match="negative"):
        frames.offsets(torch.tensor([1, -1]), None, "ROWS PRECEDING")
    with pytest.raises(ExecutionError, match="NULL"):
        frames.offsets(torch.tensor([1, 1]), torch.tensor([True, False]), "ROWS PRECEDING")
    keys = torch.tensor([1, 2])
    whole = segments([], 2, CPU)
    rows = Partitions(whole, segments([keys], 2, CPU, whole))
    key = value_bounds.order_key(keys, None, False, False)
    with pytest.raises(ExecutionError, match="negative"):
        value_bounds.values_from(rows, key, keys + 1, None, True, False)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0, None])
@pytest.mark.parametrize("at", CASES, ids=range(len(CASES)))
def test_rows_to_take_values_from(at: Case, share: float | None) -> None:
    validity = None if share is None else draw_validity(at.size, share)
    counted = values.ValidRows(validity)

    def counts(row: int) -> bool:
        return validity is None or bool(validity[row])

    for away in (-3, -1, 0, 1, 2, 1000, -1000):
        by_number = values.shifted(at.rows, away, counted).tolist()
        assert values.shifted(at.rows, torch.full((at.size,), away), counted).tolist() == by_number
        for row in range(at.size):
            others = [each for each in at.of_partition(row) if counts(each)]
            ahead = (
                [each for each in others if each > row]
                if away > 0
                else [each for each in others if each < row]
            )
            ahead = ahead if away > 0 else ahead[::-1]
            expected = row if away == 0 else ahead[abs(away) - 1] if len(ahead) >= abs(away) else -1
            assert by_number[row] == expected, (away, row)
    for exclusion in EXCLUSIONS:
        ranges = frames.excluding(at.rows, find_rows(at, -2, 3), exclusion)
        last = values.last_of_frame(ranges, counted)
        found = {number: values.nth_of_frame(ranges, number, counted) for number in (-1, 0, 1, 4)}
        for row in range(at.size):
            rows = [each for each in listed(ranges, row) if counts(each)]
            assert last[row].item() == (rows[-1] if rows else -1)
            for number, chosen in found.items():
                assert chosen[row].item() == (rows[number] if 0 <= number < len(rows) else -1), (
                    exclusion,
                    number,
                )
