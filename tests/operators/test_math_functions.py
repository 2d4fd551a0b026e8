"""Numeric functions against DuckDB, at their extremes and on random values."""

from __future__ import annotations

import math
import random

import pytest
import torch

from tests.operators.oracle import check, run
from tests.operators.test_casts import INTEGERS, samples
from tqp.core import datatypes as t
from tqp.core.datatypes import DataType, decimal
from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.operators.numbers.gamma import gamma
from tqp.operators.scalar_kernels import resolve

DECIMALS = [decimal(3, 1), decimal(6, 2), decimal(18, 9), decimal(38, 10)]
DOUBLES = [
    0.0,
    -0.0,
    0.5,
    1.5,
    2.5,
    -0.5,
    -2.5,
    0.285,
    1.005,
    2.675,
    1e15 + 0.5,
    1e300,
    -1e300,
    1e-300,
    3.0,
    10.0,
    1e22,
]
SPECIAL = [math.nan, math.inf, -math.inf]
NARROW = [each for each in INTEGERS if each.bounds[1] < 2**63]


def integers(data_type: DataType, count: int = 30) -> list[int]:
    return [v for v in samples(data_type, random.Random(3)) if isinstance(v, int)][:count]


@pytest.mark.parametrize(
    "name",
    [
        "sqrt",
        "cbrt",
        "exp",
        "ln",
        "log10",
        "log2",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "degrees",
        "radians",
    ],
)
def test_functions_of_one_double(name: str) -> None:
    values = [*DOUBLES, *SPECIAL, 1.0, -1.0, 2.0, 100.0, 0.1, None]
    if name in ("sin", "cos", "tan"):  # beyond, every library reduces the argument in its own way
        values = [v for v in values if v is None or abs(v) < 1e4 or not math.isfinite(v)]
    check(f"{name}(a)", name, [t.DOUBLE], [values], t.DOUBLE, tolerance=1e-14)


@pytest.mark.parametrize(
    ("name", "sql"),
    [
        ("power", "power(a, b)"),
        ("atan2", "atan2(a, b)"),
        ("log", "log(a, b)"),
        ("divide", "a / b"),
        ("modulo", "a % b"),
    ],
)
def test_functions_of_two_doubles(name: str, sql: str) -> None:
    values = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 10.0, -7.5, 1e300, *SPECIAL]
    pairs = [(a, b) for a in values for b in values]
    check(
        sql,
        name,
        [t.DOUBLE, t.DOUBLE],
        [[a for a, _ in pairs], [b for _, b in pairs]],
        t.DOUBLE,
        tolerance=1e-14,
    )


@pytest.mark.parametrize("name", ["is_nan", "is_inf", "is_finite"])
@pytest.mark.parametrize("data_type", [t.FLOAT, t.DOUBLE], ids=str)
def test_kinds_of_floats(name: str, data_type: DataType) -> None:
    check(f"{name.replace('_', '')}(a)", name, [data_type], [[1.0, *SPECIAL, None]], t.BOOLEAN)


@pytest.mark.parametrize("name", ["floor", "ceil", "round", "trunc", "abs"])
@pytest.mark.parametrize("data_type", [t.FLOAT, t.DOUBLE], ids=str)
def test_rounding_floats(name: str, data_type: DataType) -> None:
    values = [
        *(v for v in DOUBLES if abs(v) < 1e30 or data_type == t.DOUBLE),
        *SPECIAL,
        0.49999999999999994,
        None,
    ]
    if data_type == t.FLOAT:
        values = [v if v is None else float(torch.tensor(v, dtype=torch.float32)) for v in values]
    check(f"{name}(a)", name, [data_type], [values], data_type)


@pytest.mark.parametrize("digits", [0, 1, 2, 3, 8, -1, -2, -20, 400, -400])
@pytest.mark.parametrize("name", ["round", "trunc"])
@pytest.mark.parametrize("data_type", [t.FLOAT, t.DOUBLE], ids=str)
def test_rounding_floats_to_digits(name: str, digits: int, data_type: DataType) -> None:
    rng = random.Random(5)
    values = [rng.uniform(-1, 1) * 10 ** rng.randint(0, 12) for _ in range(50)]
    values += [v for v in DOUBLES if abs(v) < 1e30 or data_type == t.DOUBLE] + SPECIAL
    if data_type == t.FLOAT:
        values = [float(torch.tensor(v, dtype=torch.float32)) for v in values]
    check(
        f"{name}(a, {digits})",
        name,
        [data_type],
        [values],
        data_type,
        constants=[digits],
        constant_types=[t.INTEGER],
    )


@pytest.mark.parametrize("name", ["floor", "ceil", "round", "trunc"])
@pytest.mark.parametrize("data_type", DECIMALS, ids=str)
def test_rounding_decimals(name: str, data_type: DataType) -> None:
    values = [*integers(data_type), None]
    check(f"{name}(a)", name, [data_type], [values], decimal(data_type.precision, 0))


@pytest.mark.parametrize("digits", [0, 1, 2, 5, -1, -2, -4])
@pytest.mark.parametrize("name", ["round", "trunc"])
@pytest.mark.parametrize("data_type", DECIMALS, ids=str)
def test_rounding_decimals_to_digits(name: str, digits: int, data_type: DataType) -> None:
    scale = min(max(digits, 0), data_type.scale)
    result = decimal(data_type.precision, scale)
    values = integers(data_type)
    check(
        f"{name}(a, {digits})",
        name,
        [data_type],
        [values],
        result,
        constants=[digits],
        constant_types=[t.INTEGER],
    )


@pytest.mark.parametrize("digits", [0, 2, -1, -2, -3, -5, -19])
@pytest.mark.parametrize("name", ["round", "trunc"])
@pytest.mark.parametrize("data_type", [t.TINYINT, t.SMALLINT, t.INTEGER, t.BIGINT, t.HUGEINT], ids=str)
def test_rounding_integers_to_digits(name: str, digits: int, data_type: DataType) -> None:
    check(
        f"{name}(a, {digits})",
        name,
        [data_type],
        [integers(data_type)],
        data_type,
        constants=[digits],
        constant_types=[t.INTEGER],
    )


@pytest.mark.parametrize("name", ["abs", "sign"])
@pytest.mark.parametrize("data_type", [*INTEGERS, *DECIMALS], ids=str)
def test_abs_and_sign(name: str, data_type: DataType) -> None:
    if name == "sign" and data_type.is_decimal:
        assert run(name, [data_type], [[-5, 0, 7]], t.TINYINT) == [-1, 0, 1]
        return
    check(
        f"{name}(a)",
        name,
        [data_type],
        [[*integers(data_type), None]],
        data_type if name == "abs" else t.TINYINT,
    )


@pytest.mark.parametrize(("name", "sign"), [("integer_divide", "//"), ("modulo", "%")])
@pytest.mark.parametrize("data_type", [*INTEGERS, decimal(6, 2), decimal(38, 10)], ids=str)
def test_division_of_integers(name: str, sign: str, data_type: DataType) -> None:
    if data_type.is_decimal and name == "integer_divide":
        return
    values = integers(data_type, 14)
    pairs = [(a, b) for a in values for b in values if b not in (0, -1)]
    columns = [[a for a, _ in pairs], [b for _, b in pairs]]
    check(f"a {sign} b", name, [data_type, data_type], columns, data_type)
    low = data_type.bounds[0]
    for a, b in ((1, 0), (low, -1), (low + 1, -1)):
        if low < 0:
            check(f"a {sign} b", name, [data_type, data_type], [[a], [b]], data_type)


def test_a_zero_under_null_does_not_raise() -> None:
    kernel = resolve("integer_divide", (t.BIGINT, t.BIGINT), t.BIGINT)
    values, zeros = torch.tensor([7, 8]), torch.tensor([0, 2])
    assert kernel.function(values, zeros, validity=torch.tensor([False, True])).tolist()[1] == 4
    with pytest.raises(ExecutionError, match="nullif"):
        kernel.function(values, zeros)


@pytest.mark.parametrize("name", ["integer_divide", "modulo"])
def test_the_quotient_beyond_64_bits_under_null_is_not_computed(name: str) -> None:
    """The processor would end the process for it."""
    kernel = resolve(name, (t.BIGINT, t.BIGINT), t.BIGINT)
    values, divisors = torch.tensor([-(2**63), 8]), torch.tensor([-1, 3])
    found = kernel.function(values, divisors, validity=torch.tensor([False, True])).tolist()
    assert found[1] == 2  # of both
    with pytest.raises(ExecutionError, match="Overflow"):
        kernel.function(values, divisors)


@pytest.mark.parametrize(
    ("name", "sql"),
    [
        ("bit_and", "a & b"),
        ("bit_or", "a | b"),
        ("bit_xor", "xor(a, b)"),
        ("shift_left", "a << b"),
        ("shift_right", "a >> b"),
    ],
)
@pytest.mark.parametrize("data_type", INTEGERS, ids=str)
def test_bits(name: str, sql: str, data_type: DataType) -> None:
    values = integers(data_type, 14)
    others = [v for v in (0, 1, 3, 7, 8, 31, 63, 64, -1) if data_type.bounds[0] <= v <= data_type.bounds[1]]
    if name == "shift_left":
        values = [v for v in values if v >= 0][:8]
    pairs = [(a, b) for a in values for b in (others if "shift" in name else values)]
    check(sql, name, [data_type, data_type], [[a for a, _ in pairs], [b for _, b in pairs]], data_type)


@pytest.mark.parametrize("data_type", INTEGERS, ids=str)
def test_bit_not(data_type: DataType) -> None:
    check("~a", "bit_not", [data_type], [[*integers(data_type), None]], data_type)


@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_divisors_and_multiples(name: str) -> None:
    values = [0, 1, -1, 6, -15, 2**40, 2**62, 2**63 - 1, -(2**63), 12]
    pairs = [(a, b) for a in values for b in values]
    for a, b in pairs:
        if -(2**63) in (a, b):
            continue  # DuckDB raises for some results that exist
        check(f"{name}(a, b)", name, [t.BIGINT, t.BIGINT], [[a], [b]], t.BIGINT)


EXTREMES: list[tuple[DataType, list[object]]] = [
    (t.BIGINT, [None, 5, -7, 0]),
    (t.HUGEINT, [None, 5, -7, 2**100, -(2**100)]),
    (t.DOUBLE, [None, 0.5, math.nan, -1.0]),
    (t.DATE, [None, 5, -7, 0]),
    (t.BOOLEAN, [None, True, False]),
    (decimal(10, 2), [None, 5, -7, 0]),
    (t.INTERVAL, [None, (1, 0, 0), (0, 30, 0), (0, 31, -1)]),
    (t.VARCHAR, [None, "", "a", "ab", "b", "\u00e9"]),
]


@pytest.mark.parametrize("name", ["greatest", "least"])
@pytest.mark.parametrize(("data_type", "values"), EXTREMES, ids=[str(each) for each, _ in EXTREMES])
def test_greatest_and_least_ignore_null(name: str, data_type: DataType, values: list[object]) -> None:
    for domain in (values, values[1:]):
        rows = [(a, b, c) for a in domain for b in domain for c in domain]
        check(f"{name}(a, b, c)", name, [data_type] * 3, [list(column) for column in zip(*rows)], data_type)


def test_hugeint_functions_return_hugeint_even_of_narrow_values() -> None:
    check("gcd(a, b)", "gcd", [t.HUGEINT] * 2, [[12, 0, 7], [18, 5, 49]], t.HUGEINT)


def test_empty() -> None:
    for name in ("round", "abs", "sign", "trunc"):
        assert run(name, [t.BIGINT], [[]], t.BIGINT) == []
    assert run("integer_divide", [t.BIGINT] * 2, [[], []], t.BIGINT) == []


def test_unknown_names_are_errors() -> None:
    with pytest.raises(UnsupportedError, match='"sqrrt".*did you mean "sqrt"'):
        resolve("sqrrt", (t.DOUBLE,), t.DOUBLE)
    with pytest.raises(UnsupportedError, match=r'"bit_and" has no form for \(DOUBLE, DOUBLE\)'):
        resolve("bit_and", (t.DOUBLE, t.DOUBLE), t.DOUBLE)


def test_gamma_has_all_but_the_last_digits() -> None:
    generator = torch.Generator().manual_seed(3)
    near = torch.rand(3000, dtype=torch.float64, generator=generator) * 40 - 20
    far = torch.rand(3000, dtype=torch.float64, generator=generator) * 340 - 169
    found = gamma(torch.cat((near, far)))
    expected = [math.gamma(x) for x in [*near.tolist(), *far.tolist()]]
    assert found.tolist() == pytest.approx(expected, rel=3e-15)
    whole = torch.arange(1, 171, dtype=torch.float64)
    assert gamma(whole).tolist() == [float(math.factorial(number)) for number in range(170)]
    edges = torch.tensor([0.0, -0.0, 172.0, 1e300, math.inf], dtype=torch.float64)
    assert gamma(edges).tolist() == [math.inf, -math.inf, math.inf, math.inf, math.inf]
    assert gamma(torch.tensor([-1.0, -2.0, math.nan, -math.inf], dtype=torch.float64)).isnan().all()
