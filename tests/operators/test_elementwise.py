"""Comparisons, arithmetic and choices against Python, for every dtype, with and without numpy."""

import math
import operator

import pytest
import torch

from tqp.core.backends import Backend
from tqp.data.backend import computing_with, is_host
from tqp.operators.numbers import elementwise

COMPARISONS = {
    elementwise.equal: operator.eq,
    elementwise.not_equal: operator.ne,
    elementwise.less: operator.lt,
    elementwise.less_equal: operator.le,
    elementwise.greater: operator.gt,
    elementwise.greater_equal: operator.ge,
}
ARITHMETIC = {
    elementwise.add: operator.add,
    elementwise.subtract: operator.sub,
    elementwise.multiply: operator.mul,
}
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.float32, torch.float64)


@pytest.fixture(params=["numpy", "torch"], autouse=True)
def half(request):
    """Each test runs on both halves of the kernels; the second is what other devices take."""
    with computing_with(Backend.HOST if request.param == "numpy" else Backend.TORCH):
        yield


def sample(dtype, rows=67, seed=0):
    generator = torch.Generator().manual_seed(seed)
    if dtype is torch.bool:
        return torch.rand(rows, generator=generator) < 0.5
    if dtype.is_floating_point:
        special = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5], dtype=dtype)
        return special[torch.randint(0, len(special), (rows,), generator=generator)]
    limits = torch.iinfo(dtype)
    special = torch.tensor([limits.min, limits.max, 0, 1, -1], dtype=dtype)
    return special[torch.randint(0, len(special), (rows,), generator=generator)]


@pytest.mark.parametrize("rows", [0, 1, 67])
@pytest.mark.parametrize("dtype", [torch.bool, *INTEGERS, *FLOATS])
@pytest.mark.parametrize("kernel", COMPARISONS, ids=lambda kernel: kernel.__name__)
def test_comparisons(kernel, dtype, rows):
    a, b = sample(dtype, rows), sample(dtype, rows, seed=1)
    expected = [COMPARISONS[kernel](x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    result = kernel(a, b)
    assert result.dtype is torch.bool
    assert result.tolist() == expected
    literal = True if dtype is torch.bool else 1
    assert kernel(a, literal).tolist() == [COMPARISONS[kernel](x, literal) for x in a.tolist()]


@pytest.mark.parametrize("kernel", COMPARISONS, ids=lambda kernel: kernel.__name__)
def test_comparisons_of_two_widths_and_of_strided_values(kernel):
    narrow, wide = sample(torch.int8, 66)[::2], sample(torch.int64, 33, seed=1)
    expected = [COMPARISONS[kernel](x, y) for x, y in zip(narrow.tolist(), wide.tolist(), strict=True)]
    assert kernel(narrow, wide).tolist() == expected
    assert kernel(narrow, torch.tensor([1])).tolist() == [COMPARISONS[kernel](x, 1) for x in narrow.tolist()]


@pytest.mark.parametrize("other", INTEGERS)
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("kernel", ARITHMETIC, ids=lambda kernel: kernel.__name__)
def test_arithmetic_in_the_wider_dtype_and_wrapping(kernel, dtype, other):
    a, b = sample(dtype), sample(other, seed=1)
    result = kernel(a, b)
    widest = max(dtype, other, key=lambda d: d.itemsize)
    assert result.dtype is widest
    bits = widest.itemsize * 8
    for x, y, z in zip(a.tolist(), b.tolist(), result.tolist(), strict=True):
        assert (ARITHMETIC[kernel](x, y) - z) % 2**bits == 0


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("kernel", ARITHMETIC, ids=lambda kernel: kernel.__name__)
def test_arithmetic_with_a_number_on_either_side(kernel, dtype):
    values = torch.arange(-5, 6, dtype=dtype)
    for result, expected in (
        (kernel(values, 7), [ARITHMETIC[kernel](x, 7) for x in range(-5, 6)]),
        (kernel(7, values), [ARITHMETIC[kernel](7, x) for x in range(-5, 6)]),
    ):
        assert result.dtype is dtype
        assert result.tolist() == expected
    assert kernel(values[:0], 7).tolist() == []


@pytest.mark.parametrize("dtype", FLOATS)
def test_square_root(dtype):
    special = [-4.0, 0.0, -0.0, 0.5, 2.0, 9.0, math.inf, torch.finfo(dtype).tiny, torch.finfo(dtype).max]
    many = torch.rand(5_000, dtype=dtype) * 10.0 ** torch.randint(-30, 30, (5_000,))
    values = torch.cat([sample(dtype), torch.tensor(special, dtype=dtype), many.to(dtype)])
    result = elementwise.square_root(values)
    assert result.dtype is dtype
    roots = [math.nan if value < 0 else math.sqrt(value) for value in values.tolist()]
    expected = torch.tensor(roots, dtype=torch.float64).to(dtype)
    assert torch.equal(result.nan_to_num(nan=7.5), expected.nan_to_num(nan=7.5))
    assert torch.equal(torch.signbit(result[values == 0]), torch.signbit(values[values == 0]))
    assert elementwise.square_root(values[0]).dim() == 0


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (elementwise.exponential, torch.exp),
        (elementwise.natural_logarithm, torch.log),
        (elementwise.binary_logarithm, torch.log2),
        (elementwise.decimal_logarithm, torch.log10),
    ],
)
def test_exponential_and_logarithms(dtype, kernel, expected):
    special = [0.0, -0.0, 1.0, 8.0, 1000.0, -1.0, 5e-324, -745.0, -746.0, 709.0, 710.0, -5.5, 1e300]
    values = torch.cat([sample(dtype), torch.tensor(special, dtype=dtype)])
    result = kernel(values)
    assert result.dtype is dtype
    # in the last digit libraries differ, but not where the result has no other digits
    torch.testing.assert_close(
        result, expected(values), rtol=1e-6 if dtype is torch.float32 else 4e-16, atol=0.0, equal_nan=True
    )
    assert kernel(values[:0]).shape == (0,)
    assert kernel(values[0]).dim() == 0
    exact = torch.tensor([1.0, 10.0, 1e15, 2.0, 2.0**60, 0.5], dtype=torch.float64)
    if kernel is elementwise.decimal_logarithm:
        assert kernel(exact)[:3].tolist() == [0.0, 1.0, 15.0]
    if kernel is elementwise.binary_logarithm:
        assert kernel(exact)[3:].tolist() == [1.0, 60.0, -1.0]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_keep_where(dtype):
    values, condition = sample(dtype), sample(torch.bool)
    result = elementwise.keep_where(values, condition)
    assert result.dtype is dtype
    assert result.tolist() == [
        x if c else 0 for x, c in zip(values.tolist(), condition.tolist(), strict=True)
    ]


@pytest.mark.parametrize("rows", [0, 1, 67])
@pytest.mark.parametrize("dtype", [torch.bool, *INTEGERS, *FLOATS])
def test_put_where(dtype, rows):
    first, second = sample(torch.bool, rows), sample(torch.bool, rows, seed=1)
    a, b = sample(dtype, rows), sample(dtype, rows, seed=2)
    number = True if dtype is torch.bool else 1
    for other in (b, number):
        result = elementwise.put_where(None, first, a, dtype)
        result = elementwise.put_where(result, second & ~first, other, dtype)
        assert result.dtype is dtype
        expected = [
            x if c else y if d else 0
            for c, d, x, y in zip(
                first.tolist(), second.tolist(), a.tolist(),
                b.tolist() if other is b else [number] * rows, strict=True,
            )
        ]  # fmt: skip
        assert repr(result.tolist()) == repr(torch.tensor(expected, dtype=dtype).tolist())  # NaN and -0.0 too


@pytest.mark.parametrize("rows", [0, 1, 67])
@pytest.mark.parametrize("dtype", [torch.bool, *INTEGERS, *FLOATS])
def test_choose(dtype, rows):
    condition, a, b = sample(torch.bool, rows), sample(dtype, rows), sample(dtype, rows, seed=1)
    number = True if dtype is torch.bool else 1
    for value, otherwise in ((a, b), (a, number), (number, b), (number, 0), (a[:1], b) if rows else (a, b)):
        result = elementwise.choose(condition, value, otherwise, dtype)
        expected = torch.where(
            condition, torch.as_tensor(value, dtype=dtype), torch.as_tensor(otherwise, dtype=dtype)
        )
        assert result.dtype is dtype
        assert torch.equal(result.nan_to_num(nan=7.5), expected.nan_to_num(nan=7.5))


@pytest.mark.parametrize("rows", [0, 1, 67])
@pytest.mark.parametrize("divisor", [1, 2, 7, 100, 1000, 86_400_000_000])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_by_one_number(dtype, divisor, rows):
    values = torch.cat([sample(dtype, rows), torch.arange(-101, 102, dtype=torch.int64).to(dtype)])
    given = values.tolist()
    floored, truncated = (
        elementwise.floor_divide(values, divisor),
        elementwise.truncate_divide(values, divisor),
    )
    assert floored.tolist() == [x // divisor for x in given]
    assert truncated.tolist() == [abs(x) // divisor * (1 if x >= 0 else -1) for x in given]
    assert elementwise.floor_remainder(values, divisor).tolist() == [x % divisor for x in given]
    remainders = [abs(x) % divisor * (1 if x >= 0 else -1) for x in given]
    assert elementwise.truncate_remainder(values, divisor).tolist() == remainders
    assert floored.dtype is truncated.dtype is (dtype if divisor <= torch.iinfo(dtype).max else torch.int64)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_masks_are_combined_and_left_as_they_are(count):
    masks = [sample(torch.bool, 9, seed) for seed in range(count)]
    before = [mask.tolist() for mask in masks]
    assert elementwise.all_of(masks).tolist() == [all(row) for row in zip(*before, strict=True)]
    assert elementwise.any_of(masks).tolist() == [any(row) for row in zip(*before, strict=True)]
    assert [mask.tolist() for mask in masks] == before


def test_device_forms_can_be_traced_by_torch_compile():
    choose, less, add = (each.device for each in (elementwise.choose, elementwise.less, elementwise.add))
    a, b = sample(torch.int64), sample(torch.int64, seed=1)
    compiled = torch.compile(
        lambda a, b: choose(less(a, b), add(a, 1), b, torch.int64), backend="eager", fullgraph=True
    )
    expected = elementwise.choose(elementwise.less(a, b), elementwise.add(a, 1), b, torch.int64)
    assert torch.equal(compiled(a, b), expected)


@pytest.mark.parametrize("base", [24, 1_000, 100_000])
def test_narrow_digits(base: int) -> None:
    unit, rows = 3_600, elementwise._BLOCK_ROWS + 5  # the last block has few rows
    values = torch.randint(0, unit << 31, (rows,), generator=torch.Generator().manual_seed(1))
    values[0], values[-1] = 0, (unit << 31) - 1
    digits = elementwise.narrow_digits(values, unit, base)
    if not is_host(values):
        assert digits is None
        return
    assert digits.dtype == {24: torch.int8, 1_000: torch.int16, 100_000: torch.int32}[base]
    assert torch.equal(digits.to(torch.int64), values // unit % base)
    for outside in (-1, -(2**63), unit << 31, 2**63 - 1):
        values[-1] = outside
        assert elementwise.narrow_digits(values, unit, base) is None
    assert elementwise.narrow_digits(values[:0], unit, base).tolist() == []
