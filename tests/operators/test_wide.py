"""128-bit integers against Python's."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch

from tqp.core.datatypes import HUGEINT
from tqp.core.errors import ExecutionError
from tqp.operators.numbers import arithmetic, wide, wide_divide
from tqp.operators.scalar_kernels import resolve

EDGES = [
    0,
    1,
    -1,
    2**31,
    2**32 - 1,
    2**32,
    2**63 - 1,
    2**63,
    -(2**63),
    -(2**63) - 1,
    2**64 - 1,
    2**64,
    -(2**64),
    2**96,
    10**38 - 1,
    wide.MAXIMUM,
    wide.MINIMUM,
]


def some(count: int, bits: int, seed: int = 0) -> list[int]:
    rng = random.Random(seed)
    values = [rng.getrandbits(rng.randint(1, bits)) * rng.choice((1, -1)) for _ in range(count)]
    return values + [value for value in EDGES if abs(value) < 2**bits]


def test_round_trip_and_empty() -> None:
    values = some(500, 127)
    assert wide.to_ints(wide.from_ints(values)) == values
    assert wide.to_ints(wide.from_ints([])) == []
    assert wide.to_ints(wide.from_narrow(torch.tensor([-5, 5], dtype=torch.int8))) == [-5, 5]
    assert wide.from_narrow(torch.tensor(3)).shape == (1, 2)


@pytest.mark.parametrize(
    ("kernel", "operate"),
    [(wide.add, int.__add__), (wide.subtract, int.__sub__), (wide.multiply, int.__mul__)],
)
def test_arithmetic_is_exact_or_raises(
    kernel: Callable[..., torch.Tensor], operate: Callable[[int, int], int]
) -> None:
    values, others = some(400, 127), some(400, 127, seed=1)
    rng = random.Random(2)
    pairs = [
        (
            rng.choice(values) >> rng.choice((0, 40, 64, 100)),
            rng.choice(others) >> rng.choice((0, 40, 64, 100)),
        )
        for _ in range(3_000)
    ]
    fits = [wide.MINIMUM <= operate(a, b) <= wide.MAXIMUM for a, b in pairs]
    good = [pair for pair, fit in zip(pairs, fits) if fit]
    result = kernel(wide.from_ints([a for a, _ in good]), wide.from_ints([b for _, b in good]))
    assert wide.to_ints(result) == [operate(a, b) for a, b in good]
    for a, b in [pair for pair, fit in zip(pairs, fits) if not fit][:50]:
        with pytest.raises(ExecutionError, match="Overflow"):
            kernel(wide.from_ints([a]), wide.from_ints([b]))
        kernel(wide.from_ints([a]), wide.from_ints([b]), torch.tensor([False]))


def test_products_of_narrow_values() -> None:
    values = [value for value in some(500, 64) if -(2**63) <= value < 2**63]
    a, b = torch.tensor(values), torch.tensor(values[::-1])
    expected = [x * y for x, y in zip(values, values[::-1])]
    assert wide.to_ints(wide.multiply(a, b)) == expected
    assert wide.to_ints(wide.multiply(a, wide.from_narrow(b))) == expected


def test_comparisons_and_order() -> None:
    values = some(60, 127)
    pairs = [(a, b) for a in values for b in values]
    a, b = wide.from_ints([x for x, _ in pairs]), wide.from_ints([y for _, y in pairs])
    for kernel, operate in (
        (wide.equal, int.__eq__),
        (wide.less, int.__lt__),
    ):
        assert kernel(a, b).tolist() == [operate(x, y) for x, y in pairs]
    high, low = wide.order_keys(wide.from_ints(values))
    assert sorted(values) == [value for _, value in sorted(zip(zip(high.tolist(), low.tolist()), values))]


def test_signs() -> None:
    values = [value for value in some(200, 127) if value > wide.MINIMUM]
    a = wide.from_ints(values)
    assert wide.to_ints(wide.absolute(a)) == [abs(value) for value in values]
    assert wide.sign(a).tolist() == [(value > 0) - (value < 0) for value in values]
    with pytest.raises(ExecutionError, match="Overflow"):
        wide.absolute(wide.from_ints([wide.MINIMUM]))


@pytest.mark.parametrize(
    "divisor", [1, 2, 3, 10, 10**5, 10**9, 10**10, 10**18, 10**20, 10**38, 12_345_678_901]
)
@pytest.mark.parametrize("round_half_away", [True, False])
def test_division_by_a_constant(divisor: int, round_half_away: bool) -> None:
    values = some(300, 127)
    half = divisor // 2 if round_half_away else 0
    expected = [(abs(value) + half) // divisor * (1 if value >= 0 else -1) for value in values]
    assert (
        wide.to_ints(wide_divide.divide_by_int(wide.from_ints(values), divisor, round_half_away)) == expected
    )


def test_rescale() -> None:
    a = wide.from_ints([125, -125, 124, 10**30])
    assert wide.to_ints(wide_divide.rescale(a, 2, 1)) == [13, -13, 12, 10**29]
    assert wide.to_ints(wide_divide.rescale(a, 0, 8)) == [125 * 10**8, -125 * 10**8, 124 * 10**8, 10**38]
    with pytest.raises(ExecutionError, match="Overflow"):
        wide_divide.rescale(a, 0, 20)


def test_floats() -> None:
    exact = [
        float(value)
        for value in (0, 1, -1, 2**52, -(2**63), 2**63, 2**64, -(2**64), 3 * 2**100, -(2**127) + 2**80)
    ]
    assert wide.to_ints(wide.from_float64(torch.tensor(exact, dtype=torch.float64))) == [
        int(value) for value in exact
    ]
    assert wide.to_float64(wide.from_ints([int(value) for value in exact])).tolist() == exact


def test_narrowing() -> None:
    a = wide.from_ints([2**63 - 1, -(2**63)])
    assert wide.to_narrow(a).tolist() == [2**63 - 1, -(2**63)]
    with pytest.raises(ExecutionError, match="too large"):
        wide.to_narrow(wide.from_ints([2**63]), "too large")
    assert wide.to_narrow(wide.from_ints([2**63, 5]), "too large", torch.tensor([False, True]))[1] == 5
    with pytest.raises(ExecutionError, match="outside"):
        arithmetic.check_bounds(wide.from_ints([10**38]), (-(10**38) + 1, 10**38 - 1), "outside")


@pytest.mark.parametrize("bits", [7, 31, 62, 63, 100])
def test_sums(bits: int) -> None:
    values = [value for value in some(2_000, bits) if abs(value) < 2**bits]
    groups = [random.Random(7).randrange(9) for _ in values]
    rng = random.Random(8)
    groups = [rng.randrange(9) for _ in values]
    expected = [sum(value for value, group in zip(values, groups) if group == g) for g in range(10)]
    narrow = torch.tensor(values) if bits <= 63 else wide.from_ints(values)
    for column in (narrow, wide.from_ints(values)):
        assert wide.to_ints(wide.sum_by_group(column, torch.tensor(groups), 10)) == expected
        assert wide.to_ints(wide.sum_all(column)) == [sum(values)]
    assert wide.to_ints(wide.sum_all(narrow[:0])) == [0]


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 2**32 - 1, -(2**32), 0])
@pytest.mark.parametrize("count", [1, 3, 5_000])
def test_sums_of_extremes(value: int, count: int) -> None:
    assert wide.to_ints(wide.sum_all(torch.full((count,), value))) == [count * value]
    assert wide.to_ints(wide.sum_all(torch.tensor([value] * count + [1]))) == [count * value + 1]


def test_sums_beyond_128_bits_raise() -> None:
    with pytest.raises(ExecutionError, match="sum"):
        wide.sum_all(wide.from_ints([wide.MAXIMUM] * 3))
    assert wide.to_ints(
        wide.sum_all(wide.from_ints([wide.MAXIMUM, wide.MAXIMUM, wide.MINIMUM, wide.MINIMUM]))
    ) == [-2]


@pytest.mark.parametrize("count", [0, 1, 5, 60])
def test_narrow_products_of_few_and_many_values(count: int) -> None:
    a, b = ([value for value in some(count, 63, seed) if value < 2**63][:count] for seed in (1, 2))
    product = wide.multiply_narrow(torch.tensor(a, dtype=torch.int64), torch.tensor(b, dtype=torch.int64))
    assert product.shape == (count, 2)
    assert wide.to_ints(product) == [x * y for x, y in zip(a, b, strict=True)]
    for literal in (torch.tensor(-7, dtype=torch.int8), torch.tensor([10_000])):
        scaled = wide.multiply_narrow(literal, torch.tensor(a, dtype=torch.int64))
        assert wide.to_ints(scaled) == [x * int(literal) for x in a]


def test_shifts() -> None:
    generator = random.Random(4)
    pairs = [
        (value, count)
        for value in EDGES
        if abs(value) < 2**127
        for count in (0, 1, 31, 63, 64, 65, 126, 127, 128)
    ]
    pairs += [(generator.getrandbits(127) - 2**126, generator.randrange(128)) for _ in range(1_000)]
    values, counts = (wide.from_ints(each) for each in zip(*pairs, strict=True))
    right = resolve("shift_right", (HUGEINT, HUGEINT), HUGEINT).function
    assert wide.to_ints(wide.widen(right(values, counts))) == [a >> b if b < 128 else 0 for a, b in pairs]
    left = resolve("shift_left", (HUGEINT, HUGEINT), HUGEINT).function
    fits = torch.tensor([a >= 0 and (a << b) < 2**127 for a, b in pairs])
    shifted = wide.to_ints(wide.widen(left(values, counts, validity=fits)))
    assert [each for each, fit in zip(shifted, fits, strict=True) if fit] == [
        a << b for (a, b), fit in zip(pairs, fits, strict=True) if fit
    ]
    with pytest.raises(ExecutionError):
        left(values, counts)


def divisions(bits: int, count: int = 4000) -> list[tuple[int, int]]:
    """Unsigned pairs of every length, and such as are next to a multiple of each other."""
    rng = random.Random(bits)
    pairs = []
    for _ in range(count):
        divisor = rng.getrandbits(rng.randint(1, bits)) or 1
        factor = rng.getrandbits(rng.randint(1, bits))
        near = max(0, min(divisor * factor + rng.choice((-1, 0, 1, divisor - 1)), 2**bits - 1))
        pairs += [(rng.getrandbits(rng.randint(1, bits)), divisor), (near, divisor)]
    edges = [1, 2, 3, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]
    edges += [2**64, 2**127 - 1, 2**127, 2**128 - 2, 2**128 - 1]
    edges = [edge for edge in edges if edge < 2**bits]
    return [*pairs, *((a, b) for a in [0, *edges] for b in edges)]


def unsigned(values: list[int]) -> torch.Tensor:
    return wide.from_ints([(value ^ 2**127) - 2**127 for value in values])


@pytest.mark.parametrize("on_host", [True, False])
@pytest.mark.parametrize("bits", [31, 63, 64, 96, 128])
def test_unsigned_division_is_exact(bits: int, monkeypatch: pytest.MonkeyPatch, on_host: bool) -> None:
    if not on_host:
        monkeypatch.setattr(wide_divide, "is_host", lambda _: False)
    pairs = divisions(bits)
    quotients, remainders = wide_divide.divide_unsigned(*map(unsigned, map(list, zip(*pairs, strict=True))))
    assert torch.equal(quotients, unsigned([a // b for a, b in pairs]))
    assert torch.equal(remainders, unsigned([a % b for a, b in pairs]))
    for divisor in (1, 7, 2**31 - 1, 2**31, 2**64 - 1, 2**127, 2**128 - 1):
        dividends = [a for a, _ in pairs[:500]]
        quotients, remainders = wide_divide.divide_unsigned(unsigned(dividends), unsigned([divisor]))
        assert torch.equal(quotients, unsigned([a // divisor for a in dividends]))
        assert torch.equal(remainders, unsigned([a % divisor for a in dividends]))
