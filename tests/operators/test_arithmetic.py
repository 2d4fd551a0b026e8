"""Checked arithmetic against Python's integers, and rescaling of decimals."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch

from tqp.core.errors import ExecutionError
from tqp.operators.numbers import arithmetic, wide
from tqp.operators.numbers.arithmetic import add_checked, multiply_checked, subtract_checked

INT64 = (-(2**63), 2**63 - 1)
INT8 = (-128, 127)
DECIMAL_18 = (-(10**18) + 1, 10**18 - 1)
OPERATIONS = [(add_checked, int.__add__), (subtract_checked, int.__sub__), (multiply_checked, int.__mul__)]


def pairs_within(bounds: tuple[int, int], seed: int) -> list[tuple[int, int]]:
    rng = random.Random(seed)
    edges = [
        bounds[0],
        bounds[1],
        0,
        1,
        -1,
        bounds[1] // 2,
        bounds[0] // 2,
        3,
        2**32 if bounds == INT64 else 2,
    ]
    numbers = edges + [rng.randint(*bounds) >> rng.randint(0, 63) for _ in range(40)]
    return [(a, b) for a in numbers for b in numbers]


@pytest.mark.parametrize(("kernel", "operate"), OPERATIONS)
@pytest.mark.parametrize("bounds", [INT64, INT8, DECIMAL_18, (0, 255)])
def test_exact_or_raises(
    kernel: Callable[..., torch.Tensor], operate: Callable[[int, int], int], bounds: tuple[int, int]
) -> None:
    pairs = pairs_within(bounds, 1)
    fits = [bounds[0] <= operate(a, b) <= bounds[1] for a, b in pairs]
    a, b = torch.tensor([x for x, _ in pairs]), torch.tensor([y for _, y in pairs])
    result = kernel(a, b, bounds, "INT", torch.tensor(fits))
    good = [row for row, fit in enumerate(fits) if fit]
    assert result[good].tolist() == [operate(*pairs[row]) for row in good]
    for row in [row for row, fit in enumerate(fits) if not fit][::7]:
        with pytest.raises(
            ExecutionError, match=r"Overflow in .* of INT \(.*\); cast an operand to a wider type"
        ):
            kernel(a[row : row + 1], b[row : row + 1], bounds, "INT")
    for row in good[::97]:  # one Python int
        assert kernel(a[row : row + 1], pairs[row][1], bounds, "INT").tolist() == [operate(*pairs[row])]
        assert kernel(pairs[row][0], b[row : row + 1], bounds, "INT").tolist() == [operate(*pairs[row])]


@pytest.mark.parametrize("kernel", [add_checked, subtract_checked, multiply_checked])
def test_narrow_inputs_do_not_wrap_and_empty_works(kernel: Callable[..., torch.Tensor]) -> None:
    small = torch.tensor([100, -100], dtype=torch.int8)
    assert kernel(small, small, INT64, "INT64").dtype == torch.int64
    assert multiply_checked(small, small, INT64, "INT64").tolist() == [10_000, 10_000]
    assert kernel(small[:0], small[:0], INT8, "INT8").tolist() == []


def test_the_message_names_the_values() -> None:
    with pytest.raises(ExecutionError, match=r"Overflow in addition of INT64 \(9223372036854775807 \+ 1\)"):
        add_checked(torch.tensor([5, 2**63 - 1]), 1, INT64, "INT64")


def test_rescale_rounds_half_away_from_zero() -> None:
    values = torch.tensor([125, -125, 124, -124, 0, 2**63 - 1, -(2**63)])
    assert arithmetic.rescale(values, 2, 1).tolist() == [
        13,
        -13,
        12,
        -12,
        0,
        922337203685477581,
        -922337203685477581,
    ]
    assert arithmetic.rescale(values[:3], 0, 2).tolist() == [12_500, -12_500, 12_400]
    assert arithmetic.divide_half_away(values, 10**19).tolist() == [0, 0, 0, 0, 0, 1, -1]
    assert arithmetic.divide_half_away(values, 10**20).tolist() == [0] * 7


def test_decimals_become_the_nearest_double() -> None:
    rng = random.Random(3)
    values = [rng.randint(*INT64) >> rng.randint(0, 60) for _ in range(500)]
    for scale in (0, 1, 2, 9, 18, 22, 30):
        expected = [value / 10**scale for value in values]
        assert arithmetic.scaled_to_float(torch.tensor(values), scale).tolist() == expected


def test_check_bounds() -> None:
    values = torch.tensor([1, 200])
    assert arithmetic.check_bounds(values, (0, 255), "bad") is values
    inside = arithmetic.check_bounds(values, INT8, "bad", torch.tensor([True, False]))
    assert inside.tolist() == [1, 0]  # of a row that does not count, a value within the bounds
    with pytest.raises(ExecutionError, match="bad"):
        arithmetic.check_bounds(values, INT8, "bad")


@pytest.mark.parametrize("scale", [2, 18, 25])
def test_few_and_many_decimals_become_the_same_floats(scale: int) -> None:
    rng = random.Random(scale)
    values = [rng.getrandbits(rng.randint(1, 62)) * rng.choice((1, -1)) for _ in range(60)]
    for tensor in (torch.tensor(values), wide.from_ints([value << 40 for value in values])):
        for dtype in (torch.float64, torch.float32):
            many = arithmetic.scaled_to_float(tensor, scale, dtype)
            few = [arithmetic.scaled_to_float(tensor[row : row + 5], scale, dtype) for row in range(0, 60, 5)]
            assert torch.equal(torch.cat(few), many)
    assert arithmetic.scaled_to_float(torch.tensor(25), 1).shape == ()
    assert arithmetic.scaled_to_float(torch.zeros((0, 2), dtype=torch.int64), 1).shape == (0,)
