"""Window kernels against a slow reference: boundaries, ranks, frames, rows to take values from, reductions of frames."""

from __future__ import annotations

import functools
import math
import operator
import random
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import pytest
import torch

from tqp.core.errors import ExecutionError
from tqp.operators.numbers import wide
from tqp.operators.sorting.sort import SortColumn, sort_rows
from tqp.operators.windows import folds, frames, ranking, reductions, values
from tqp.operators.windows.frames import Range
from tqp.operators.windows.partitions import Partitions, segments

CPU = torch.device("cpu")
EXCLUSIONS = ("NO OTHERS", "CURRENT ROW", "GROUP", "TIES")


class Case(NamedTuple):
    """Sorted rows as Python lists: the partition and the order key of each; and as the kernels have them."""

    partitions: list[int]
    keys: list[int]
    rows: Partitions

    @property
    def size(self) -> int:
        return len(self.keys)

    def of_partition(self, row: int) -> list[int]:
        return [other for other in range(self.size) if self.partitions[other] == self.partitions[row]]

    def peers(self, row: int) -> list[int]:
        return [other for other in self.of_partition(row) if self.keys[other] == self.keys[row]]


def case(seed: int, size: int = 60, num_partitions: int = 4, num_keys: int = 5) -> Case:
    generator = random.Random(seed)
    drawn = sorted((generator.randrange(num_partitions), generator.randrange(num_keys)) for _ in range(size))
    partitions, keys = [row[0] for row in drawn], [row[1] for row in drawn]
    whole = segments([torch.tensor(partitions, dtype=torch.int64)], size, CPU)
    peers = segments([torch.tensor(keys, dtype=torch.int64)], size, CPU, whole)
    return Case(partitions, keys, Partitions(whole, peers))


CASES = [
    case(1),
    case(2, 100, 1, 3),
    case(3, 50, 50, 2),
    case(4, 40, 2, 1),
    case(5, 30, 3, 100),
    case(6, 1),
    case(7, 0),
]


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


def excluded(at: Case, row: int, exclusion: str) -> set[int]:
    return {
        "NO OTHERS": set(),
        "CURRENT ROW": {row},
        "GROUP": set(at.peers(row)),
        "TIES": set(at.peers(row)) - {row},
    }[exclusion]


def listed(ranges: Any, row: int) -> list[int]:
    return [each for part in ranges for each in range(int(part.begins[row]), int(part.ends[row]))]


def find_rows(at: Case, start: int, end: int) -> Range:
    return frames.frame(
        frames.rows_from(at.rows, torch.full((at.size,), start), False), frames.rows_from(at.rows, end, True)
    )


def find_groups(at: Case, start: int, end: int) -> Range:
    return frames.frame(
        frames.groups_from(at.rows, torch.full((at.size,), start), False),
        frames.groups_from(at.rows, end, True),
    )


def find_values(at: Case, start: int, end: int) -> Range:
    keys = torch.tensor(at.keys, dtype=torch.int64)
    key = frames.order_key(keys, None, False, False)
    first = frames.values_from(at.rows, key, keys + start, None, start < 0, False)
    return frames.frame(first, frames.values_from(at.rows, key, keys + end, None, end < 0, True))


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
    for start, end in ((-1, 0), (-2, 1), (0, 3), (1, 2), (-3, -2), (0, 0), (-200, 200)):
        whole = find(at, start, end)
        for exclusion in EXCLUSIONS:
            ranges = frames.excluding(at.rows, whole, exclusion)
            for row in range(at.size):
                expected = [
                    other for other in at.of_partition(row) if start <= distance(at, row, other) <= end
                ]
                left = [other for other in expected if other not in excluded(at, row, exclusion)]
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
    key = frames.order_key(column, validity, descending, nulls_first)
    sign = 1.0 if descending else -1.0
    bounds = frames.range_codes(column + sign * 1.0, descending)
    begins = frames.values_from(rows, key, bounds, validity, True, False)
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


def test_offsets_are_checked() -> None:
    with pytest.raises(ExecutionError, match="negative"):
        frames.offsets(torch.tensor([1, -1]), None, "ROWS PRECEDING")
    with pytest.raises(ExecutionError, match="NULL"):
        frames.offsets(torch.tensor([1, 1]), torch.tensor([True, False]), "ROWS PRECEDING")
    keys = torch.tensor([1, 2])
    whole = segments([], 2, CPU)
    rows = Partitions(whole, segments([keys], 2, CPU, whole))
    key = frames.order_key(keys, None, False, False)
    with pytest.raises(ExecutionError, match="negative"):
        frames.values_from(rows, key, keys + 1, None, True, False)


def draw_validity(size: int, share: float) -> torch.Tensor:
    generator = random.Random(size)
    return torch.tensor([generator.random() < share for _ in range(size)], dtype=torch.bool)


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


def moment(numbers: list[float], power: int = 2) -> float:
    exact = list(map(Fraction, numbers))
    mean = sum(exact) / len(exact)
    return float(sum((each - mean) ** power for each in exact))


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


KERNELS: dict[str, Callable[..., torch.Tensor]] = {
    **reductions.FRAME_REDUCTIONS,
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
        for start, end in ((-200, 0), (-2, 1), (1, 3)):
            ranges = frames.excluding(at.rows, find(at, start, end), exclusion)
            found = KERNELS[kind](column, validity, ranges)
            for row in range(at.size):
                rows = [each for each in listed(ranges, row) if validity is None or validity[each]]
                if rows:
                    expected = REFERENCE[kind]([column[each].item() for each in rows])
                    assert found[row].item() == pytest.approx(expected, abs=1e-9), (start, end, row)


def test_sums_of_floats_keep_infinity_and_nan_in_their_frames() -> None:
    at = CASES[1]
    column = torch.ones(at.size, dtype=torch.float64)
    column[10], column[50], column[51] = math.nan, math.inf, 1e300
    found = folds.sum_float_frames(column, None, [find_rows(at, -1, 1)]).tolist()
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
        torch.tensor(ys, dtype=torch.float64), torch.tensor(xs, dtype=torch.float64), validity, ranges
    )
    for row in range(at.size):
        rows = [each for each in listed(ranges, row) if validity is None or validity[each]]
        if not rows:
            continue
        a, b = ([Fraction(column[each]) for each in rows] for column in (ys, xs))
        products = sum((y - sum(a) / len(rows)) * (x - sum(b) / len(rows)) for y, x in zip(a, b, strict=True))
        expected = moment([ys[each] for each in rows]), moment([xs[each] for each in rows]), float(products)
        assert [each[row].item() for each in found] == pytest.approx(expected, abs=1e-8)


def test_moments_lose_no_digits_far_from_zero() -> None:
    """Neither where the mean of all rows is far away, nor where that of a frame is."""
    at = case(8, 300, 1, 300)
    generator = random.Random(1)
    numbers = [row**3 * 1e5 + generator.random() for row in range(at.size)]
    column = torch.tensor(numbers, dtype=torch.float64)
    for find, start, end in ((find_rows, -200, 0), (find_rows, -1, 1), (find_rows, 2, 50)):
        ranges = [find(at, start, end)]
        found = folds.moment_frames(column, None, ranges, 4)
        for row in range(at.size):
            rows = [numbers[each] for each in listed(ranges, row)]
            if len(rows) > 2:
                assert found[0][row].item() == pytest.approx(moment(rows), rel=1e-13)
                assert found[2][row].item() == pytest.approx(moment(rows, 4), rel=1e-13)
    equal = folds.moment_frames(torch.full_like(column, 0.1), None, [find_rows(at, -7, 0)], 4)
    assert not any(sums.any() for sums in equal)


def test_moments_keep_infinity_and_nan_in_their_frames() -> None:
    at = CASES[1]
    column = torch.arange(at.size, dtype=torch.float64)
    column[10], column[50], column[52] = math.nan, math.inf, 1e60
    for sums in folds.moment_frames(column, None, [find_rows(at, -1, 1)], 4):
        assert [row for row, each in enumerate(sums.tolist()) if math.isnan(each)] == [9, 10, 11, 49, 50, 51]
    squares, *_ = folds.moment_frames(column, None, [find_rows(at, 0, 0)], 4)
    assert not squares[torch.arange(at.size) != 10].any()
    of_ys, of_xs, products = folds.pair_moment_frames(
        column, torch.ones_like(column), None, [find_rows(at, 0, 1)]
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
