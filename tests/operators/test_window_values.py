"""What is kept of the values of sorted rows for all frames: those that are equal, and their order, against a slow reference."""

from __future__ import annotations

import random

import pytest
import torch

from tests.operators.window_cases import CASES, Case, case, draw_validity, find_rows, find_values, listed
from tqp.operators.sorting.sort import SortColumn
from tqp.operators.windows import frames
from tqp.operators.windows.occurrences import Occurrences
from tqp.operators.windows.ordered import OrderedFrames, OrderedPieces, half_of_pieces


@pytest.mark.parametrize("share", [None, 0.0, 0.6])
@pytest.mark.parametrize("at", CASES, ids=range(len(CASES)))
def test_rows_with_equal_values(at: Case, share: float | None) -> None:
    generator = random.Random(at.size)
    column = torch.tensor([generator.randrange(4) for _ in range(at.size)], dtype=torch.int64)
    validity = None if share is None else draw_validity(at.size, share)
    occurrences = Occurrences([column], validity, at.rows)
    to_row = frames.frame(at.rows.begins, find_rows(at, -200, 1).ends)
    from_row = frames.frame(find_rows(at, 2, 200).begins, at.rows.ends)
    for from_start, whole in ((True, to_row), (False, from_row)):
        once, modes = occurrences.once(from_start), occurrences.modes([whole], from_start)
        for row in range(at.size):
            counts = [each for each in at.of_partition(row) if validity is None or validity[each]]
            same = [each for each in counts if column[each] == column[row]]
            assert bool(once[row]) == (row in counts and row == same[0 if from_start else -1])
            rows = [each for each in listed([whole], row) if each in counts]
            values_of_frame = [column[each].item() for each in rows]
            best = max(rows, key=lambda each: values_of_frame.count(column[each].item()), default=-1)
            assert modes[row].item() == best
    for whole in (to_row, from_row, find_rows(at, -5, 2), find_values(at, 1, 2)):
        counts_of_frames = occurrences.count_values(whole).tolist()
        for row in range(at.size):
            rows = [each for each in listed([whole], row) if validity is None or validity[each]]
            assert counts_of_frames[row] == len({column[each].item() for each in rows})


@pytest.mark.parametrize("block", [7, 1 << 15])
@pytest.mark.parametrize("share", [None, 0.0, 0.6])
@pytest.mark.parametrize("at", CASES, ids=range(len(CASES)))
def test_rows_of_frames_in_order(
    at: Case, share: float | None, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "_BLOCK", block)
    generator = random.Random(at.size)
    numbers = [generator.randrange(-9, 9) / 2 for _ in range(at.size)]
    validity = None if share is None else draw_validity(at.size, share)
    columns = [SortColumn(torch.tensor(numbers, dtype=torch.float64))]
    running = [frames.frame(at.rows.begins, find_rows(at, 0, 0).ends)]
    near = frames.excluding(at.rows, find_rows(at, -5, 2), "TIES")
    for half, ranges in ((None, running), (None, near), (3, near), (5, near)):
        ordered = OrderedPieces(columns, validity, at.rows, half)
        expected = [
            sorted(
                (each for each in listed(ranges, row) if validity is None or validity[each]),
                key=lambda each: numbers[each],
            )
            for row in range(at.size)
        ]
        found = OrderedFrames(ordered, ranges)
        assert found.counts.tolist() == list(map(len, expected))
        places = torch.tensor([max(0, len(rows) - 1) for rows in expected], dtype=torch.int64)
        for place in (places // 2, (places + 1) // 2, places, places * 0):
            rows = found.at(place).tolist()
            assert rows == [of_frame[place[row]] if of_frame else -1 for row, of_frame in enumerate(expected)]


def test_short_frames_of_long_partitions_are_ordered_in_pieces() -> None:
    at = case(9, 2000, 1, 2000)
    assert half_of_pieces([find_rows(at, -7, 0)], at.rows) == 3
    assert half_of_pieces([find_rows(at, -200, 0)], at.rows) is None
    assert half_of_pieces([find_rows(CASES[0], -7, 0)], CASES[0].rows) is None
