"""Reductions of the rows of frames against a slow reference."""

from __future__ import annotations

import functools
import math
import operator
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from tests.operators.exact_moments import exact_moment
from tests.operators.window_cases import (
    CASES,
    Case,
    case,
    draw_validity,
    find_groups,
    find_rows,
    find_values,
    listed,
)
from tqp.operators.numbers import wide
from tqp.operators.sorting.sort import SortColumn, sort_rows
from tqp.operators.windows import folds, frames, reductions


def moment(numbers: list[float], power: int = 2) -> float:
    return exact_moment((numbers, power))


#: By kind of reduction, what it is of the values of a frame that has some.
REFERENCE: dict[str, Callable[[list[Any]], Any]] = {
    "sum": sum,
    "count": len,
    "sum_float": sum,
    "product": math.prod,
    "second_moment": moment,
    "third_moment": partial(moment, power=3),
    "fourth_moment": partial(moment, power=4),
    "bool_and": all,
    "bool_or": any,
    "bit_and": partial(functools.reduce, operator.and_),
    "bit_or": partial(functools.reduce, operator.or_),
    "bit_xor": partial(functools.reduce, operator.xor),
}


def moments_to(power: int, *arguments: Any) -> torch.Tensor:
    return folds.moment_frames(*arguments, power)[-1]


FOLDS: dict[str, Callable[..., torch.Tensor]] = {
    **folds.FRAME_FOLDS,
    "second_moment": partial(moments_to, 2),
    "third_moment": partial(moments_to, 3),
    "fourth_moment": partial(moments_to, 4),
}


@pytest.mark.parametrize("kind", REFERENCE)
@pytest.mark.parametrize("share", [None, 0.6])
@pytest.mark.parametrize("at", CASES, ids=range(len(CASES)))
def test_reductions(at: Case, share: float | None, kind: str) -> None:
    generator = random.Random(at.size)
    numbers = [generator.randrange(-4, 5) for _ in range(at.size)]
    column = torch.tensor(numbers, dtype=torch.int64)
    if kind.startswith("bool"):
        column = column > 0
    elif not kind.startswith("bit") and kind not in ("sum", "count"):
        column = column.to(torch.float64) / 2
    validity = None if share is None else draw_validity(at.size, share)
    for find, exclusion in ((find_rows, "NO OTHERS"), (find_groups, "TIES"), (find_values, "CURRENT ROW")):
        for start, end in ((None, 0), (None, -2), (-200, 0), (-2, 1), (1, 3)):
            whole = find(at, -200 if start is None else start, end)
            if start is None:
                whole = frames.frame(at.rows.begins, whole.ends)
            ranges = frames.excluding(at.rows, whole, exclusion)
            if kind in FOLDS:
                found = FOLDS[kind](column, validity, at.rows, ranges)
            else:
                found = reductions.FRAME_REDUCTIONS[kind](column, validity, ranges)
            for row in range(at.size):
                rows = [each for each in listed(ranges, row) if validity is None or validity[each]]
                if rows:
                    expected = REFERENCE[kind]([column[each].item() for each in rows])
                    assert found[row].item() == pytest.approx(expected, abs=1e-9), (start, end, row)


def test_sums_of_floats_keep_infinity_and_nan_in_their_frames() -> None:
    at = CASES[1]
    column = torch.ones(at.size, dtype=torch.float64)
    column[10], column[50], column[51] = math.nan, math.inf, 1e300
    found = folds.FRAME_FOLDS["sum_float"](column, None, at.rows, [find_rows(at, -1, 1)]).tolist()
    assert math.isnan(found[10]) and math.isnan(found[11]) and found[12] == 3.0
    assert found[49] == math.inf and found[52] == 1e300 and found[53] == 3.0


@pytest.mark.parametrize("share", [None, 0.6])
@pytest.mark.parametrize("at", CASES, ids=range(len(CASES)))
def test_moments_of_pairs(at: Case, share: float | None) -> None:
    generator = random.Random(at.size)
    ys, xs = ([generator.randrange(-4, 5) / 4 + offset for _ in range(at.size)] for offset in (1e6, 0.0))
    validity = None if share is None else draw_validity(at.size, share)
    ranges = frames.excluding(at.rows, find_rows(at, -9, 4), "TIES")
    found = folds.pair_moment_frames(
        torch.tensor(ys, dtype=torch.float64),
        torch.tensor(xs, dtype=torch.float64),
        validity,
        at.rows,
        ranges,
    )
    for row in range(at.size):
        rows = [each for each in listed(ranges, row) if validity is None or validity[each]]
        if not rows:
            continue
        a, b = ([column[each] for each in rows] for column in (ys, xs))
        expected = moment(a), moment(b), exact_moment((a, 1), (b, 1))
        assert [each[row].item() for each in found] == pytest.approx(expected, abs=1e-8)


def test_moments_lose_no_digits_far_from_zero() -> None:
    """Neither where the mean of all rows is far away, nor where that of a frame is."""
    at = case(8, 300, 1, 300)
    generator = random.Random(1)
    numbers = [row**3 * 1e5 + generator.random() for row in range(at.size)]
    column = torch.tensor(numbers, dtype=torch.float64)
    running = frames.frame(at.rows.begins, find_rows(at, 0, 0).ends)
    for ranges in ([running], [find_rows(at, -200, 0)], [find_rows(at, -1, 1)], [find_rows(at, 2, 50)]):
        found = folds.moment_frames(column, None, at.rows, ranges, 4)
        for row in range(at.size):
            rows = [numbers[each] for each in listed(ranges, row)]
            if len(rows) > 2:
                assert found[0][row].item() == pytest.approx(moment(rows), rel=1e-13)
                assert found[2][row].item() == pytest.approx(moment(rows, 4), rel=1e-13)
    equal = folds.moment_frames(torch.full_like(column, 0.1), None, at.rows, [find_rows(at, -7, 0)], 4)
    assert not any(sums.any() for sums in equal)


def test_moments_keep_infinity_and_nan_in_their_frames() -> None:
    at = CASES[1]
    column = torch.arange(at.size, dtype=torch.float64)
    column[10], column[50], column[52] = math.nan, math.inf, 1e60
    for sums in folds.moment_frames(column, None, at.rows, [find_rows(at, -1, 1)], 4):
        assert [row for row, each in enumerate(sums.tolist()) if math.isnan(each)] == [9, 10, 11, 49, 50, 51]
    squares, *_ = folds.moment_frames(column, None, at.rows, [find_rows(at, 0, 0)], 4)
    assert not squares[torch.arange(at.size) != 10].any()
    of_ys, of_xs, products = folds.pair_moment_frames(
        column, torch.ones_like(column), None, at.rows, [find_rows(at, 0, 1)]
    )
    assert of_ys[10].isnan() and products[10].isnan() and of_xs[10] == 0


def test_wide_sums() -> None:
    at = CASES[1]
    numbers = [2**62 + row for row in range(at.size)]
    ranges = [find_rows(at, -7, 5)]
    expected = [sum(numbers[each] for each in listed(ranges, row)) for row in range(at.size)]
    found = reductions.sum_wide_frames(torch.tensor(numbers), None, ranges)
    assert wide.to_ints(found) == expected
    signed = [(-1) ** row * (2**100 + row) for row in range(at.size)]
    validity = draw_validity(at.size, 0.5)
    found = reductions.sum_wide_frames(wide.from_ints(signed), validity, ranges)
    assert wide.to_ints(found) == [
        sum(signed[each] for each in listed(ranges, row) if validity[each]) for row in range(at.size)
    ]


@pytest.mark.parametrize("which", ["amin", "amax"])
@pytest.mark.parametrize("share", [None, 0.6])
@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.float64, torch.bool])
@pytest.mark.parametrize("at", CASES, ids=range(len(CASES)))
def test_extremes(at: Case, dtype: torch.dtype, share: float | None, which: Any) -> None:
    generator = random.Random(at.size)
    pool: list[Any] = [-128, 127, 0, 5]
    if dtype is torch.int64:
        pool = [-(2**63), 2**63 - 1, 0, 7]
    if dtype is torch.float64:
        pool = [math.inf, -math.inf, math.nan, 0.25, -1e300]
    column = torch.tensor([generator.choice(pool) for _ in range(at.size)], dtype=dtype)
    validity = None if share is None else draw_validity(at.size, share)
    order = sort_rows([SortColumn(column)])
    places = {row: place for place, row in enumerate(order.tolist())}
    running = [frames.frame(at.rows.begins, find_rows(at, 0, 0).ends)]
    for ranges in (
        running,
        [find_rows(at, -3, 2)],
        frames.excluding(at.rows, find_groups(at, -1, 1), "TIES"),
    ):
        found = reductions.extreme_frames(column, validity, at.rows, ranges, which)
        chosen = reductions.extreme_rows(order, validity, at.rows, ranges, which)
        for row in range(at.size):
            rows = [each for each in listed(ranges, row) if validity is None or validity[each]]
            if not rows:
                assert chosen[row].item() == -1
                continue
            expected = (min if which == "amin" else max)(rows, key=lambda each: places[each])
            assert chosen[row].item() == expected
            value, wanted = found[row].item(), column[expected].item()
            assert value == wanted or math.isnan(value) and math.isnan(wanted)


def test_running_extremes_of_a_small_range_take_one_pass() -> None:
    at = CASES[0]
    running = [frames.frame(at.rows.begins, find_rows(at, 0, 0).ends)]
    column = torch.tensor([(row * 37) % 11 - 5 for row in range(at.size)])
    found = reductions.extreme_codes(column, at.rows, running, "amin").tolist()
    for row in range(at.size):
        assert found[row] == min(column[each].item() for each in listed(running, row))


@pytest.mark.parametrize("kind", ["bit_and", "bit_or", "bit_xor"])
def test_bits_of_wide_integers(kind: str) -> None:
    at = CASES[1]
    numbers = [(-1) ** row * (2**100 + row) for row in range(at.size)]
    validity = draw_validity(at.size, 0.5)
    ranges = frames.excluding(at.rows, find_rows(at, -5, 2), "CURRENT ROW")
    found = wide.to_ints(reductions.FRAME_REDUCTIONS[kind](wide.from_ints(numbers), validity, ranges))
    for row in range(at.size):
        rows = [each for each in listed(ranges, row) if validity[each]]
        if rows:
            assert found[row] == REFERENCE[kind]([numbers[each] for each in rows])
