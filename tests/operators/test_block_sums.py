"""Sums of floats and moments of many ranges against slow references: of all lengths, in order and in none, long columns and short ones."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction

import pytest
import torch

from tqp.operators.windows import folds
from tqp.operators.windows.frames import Range
from tqp.operators.windows.partitions import Partitions, segments

CPU = torch.device("cpu")


def ranges_of(size: int, length: Callable[[random.Random], int], in_order: bool) -> Range:
    generator = random.Random(size)
    begins, ends = [], []
    for row in range(size):
        begin = row if in_order else generator.randrange(size)
        begins.append(begin)
        ends.append(min(size, begin + length(generator)))
    return Range(torch.tensor(begins), torch.tensor(ends))


def all_rows(size: int) -> Partitions:
    whole = segments([], size, CPU)
    return Partitions(whole, whole)


LENGTHS: dict[str, Callable[[random.Random], int]] = {
    "none": lambda _: 0,
    "one": lambda _: 1,
    "two": lambda _: 2,
    "fixed": lambda _: 100,
    "a power of two and one": lambda _: 65,
    "mostly fixed": lambda generator: 50 if generator.random() < 0.95 else generator.randrange(50),
    "short": lambda generator: generator.randrange(5),
    "any": lambda generator: generator.randrange(700),
    "one long": lambda generator: 2000 if generator.random() < 0.001 else generator.randrange(3),
}


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("length", LENGTHS)
def test_moments_and_products_of_ranges(length: str, in_order: bool) -> None:
    generator = random.Random(5)
    numbers = [1e4 + generator.gauss(0, 1) for _ in range(2500)]
    column = torch.tensor(numbers, dtype=torch.float64)
    ranges = ranges_of(len(numbers), LENGTHS[length], in_order)
    (squares,) = folds.moment_frames(column, None, all_rows(len(numbers)), [ranges], 2)
    products = folds.multiply_frames(column / 1e4, None, all_rows(len(numbers)), [ranges])
    for row, (begin, end) in enumerate(zip(ranges.begins.tolist(), ranges.ends.tolist(), strict=True)):
        values = column[begin:end]
        if begin < end:
            mean = math.fsum(numbers[begin:end]) / (end - begin)
            expected = math.fsum((values - mean).square().tolist())
            assert squares[row].item() == pytest.approx(expected, rel=1e-9, abs=1e-12)
            assert products[row].item() == pytest.approx((values / 1e4).prod().item(), rel=1e-12)


def test_squares_beyond_all_floats_are_infinite() -> None:
    numbers = [1.0, 2.0, 1e200, 3.0, 4.0, 5.0, math.inf, 6.0, 7.0]
    column = torch.tensor(numbers, dtype=torch.float64)
    ranges = ranges_of(len(numbers), lambda _: 2, True)
    (squares,) = folds.moment_frames(column, None, all_rows(len(numbers)), [ranges], 2)
    assert squares.tolist() == pytest.approx(
        [0.5, math.inf, math.inf, 0.5, 0.5, math.nan, math.nan, 0.5, 0.0], nan_ok=True
    )


COLUMNS: dict[str, Callable[[random.Random], float]] = {
    "zeros": lambda _: 0.0,
    "halves": lambda generator: generator.randrange(-9, 10) / 2,
    "prices": lambda generator: generator.randrange(1, 10**6) / 100,
    "around zero": lambda generator: generator.gauss(0, 1),
    "of seven digits": lambda generator: generator.choice([1e-7, 1.0, -1.0, 1e7]) * generator.random(),
    "of all sizes": lambda generator: generator.choice([1e-300, 1e-30, -1.0, 1e30]) * generator.random(),
    "huge": lambda generator: 1e307 * generator.gauss(0, 1) / 1000,
    "tiny": lambda generator: 5e-324 * generator.randrange(9),
}


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("make", COLUMNS)
def test_sums_lose_nothing_to_what_other_ranges_hold(make: str, length: str) -> None:
    generator = random.Random(6)
    numbers = [COLUMNS[make](generator) for _ in range(1500)]
    ranges = ranges_of(len(numbers), LENGTHS[length], True)
    column = torch.tensor(numbers, dtype=torch.float64)
    found = folds.sum_frames(column, None, all_rows(len(numbers)), [ranges]).tolist()
    before = [Fraction(0)]
    for number in numbers:
        before.append(before[-1] + Fraction(number))
    for row, (begin, end) in enumerate(zip(ranges.begins.tolist(), ranges.ends.tolist(), strict=True)):
        sizes = math.fsum(map(abs, numbers[begin:end]))
        assert abs(Fraction(found[row]) - (before[end] - before[begin])) <= sizes * 2.0**-43


def test_sums_of_numbers_of_like_size_are_right_but_for_rounding() -> None:
    numbers = [(-1) ** row * (1e6 + row / 7) for row in range(3000)]
    ranges = ranges_of(len(numbers), lambda _: 1000, True)
    column = torch.tensor(numbers, dtype=torch.float64)
    found = folds.sum_frames(column, None, all_rows(len(numbers)), [ranges]).tolist()
    for row, (begin, end) in enumerate(zip(ranges.begins.tolist(), ranges.ends.tolist(), strict=True)):
        assert found[row] == pytest.approx(math.fsum(numbers[begin:end]), rel=2.0**-51)
