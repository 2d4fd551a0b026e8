"""Every cast between types that are not strings, against DuckDB."""

from __future__ import annotations

import math
import random

import pytest
import torch

from tests.operators.oracle import check, run, values_of
from tqp.core import datatypes as t
from tqp.core.datatypes import DataType, decimal
from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.operators.numbers.casts import resolve_cast

_SEED = 20
INTEGERS = [
    t.TINYINT, t.SMALLINT, t.INTEGER, t.BIGINT, t.HUGEINT, t.UTINYINT, t.USMALLINT, t.UINTEGER, t.UBIGINT,
]  # fmt: skip
DECIMALS = [
    decimal(1, 0),
    decimal(3, 1),
    decimal(4, 4),
    decimal(15, 2),
    decimal(18, 9),
    decimal(19, 0),
    decimal(38, 10),
    decimal(38, 38),
]
NUMBERS = [*INTEGERS, *DECIMALS, t.FLOAT, t.DOUBLE]
TIMESTAMPS = [t.TIMESTAMP_S, t.TIMESTAMP_MS, t.TIMESTAMP, t.TIMESTAMP_NS]


def samples(data_type: DataType, rng: random.Random) -> list[object]:
    if data_type.is_float:
        values = [
            0.0,
            -0.0,
            0.5,
            1.5,
            2.5,
            -0.5,
            -2.5,
            0.285,
            2.675,
            99.95,
            126.5,
            127.5,
            1e3,
            1e10,
            -1e18,
            1e19,
            1e30,
        ]
        values += [math.nan, math.inf, -math.inf, 2.0**31, 2.0**63, -(2.0**63), 2.0**127]
        values += [rng.uniform(-1, 1) * 10 ** rng.randint(0, 20) for _ in range(40)]
        if data_type.kind is t.TypeKind.FLOAT:
            return [struct_float(value) for value in values if abs(value) < 1e38 or not math.isfinite(value)]
        return [*values, 1e300, 3.4028235e38, 3.5e38]
    if data_type.kind is t.TypeKind.BOOLEAN:
        return [True, False]
    low, high = data_type.bounds
    values = [
        0,
        1,
        low,
        high,
        *(v for v in (-1, 5, 15, 25, -5, -15, -25, 127, 128, 255, 256, 9_999) if low <= v <= high),
    ]
    bits = high.bit_length()
    values += [
        max(low, min(high, rng.getrandbits(rng.randint(1, bits)) * rng.choice((1, -1)))) for _ in range(30)
    ]
    return values


def struct_float(value: float) -> float:
    return float(torch.tensor(value, dtype=torch.float32))


@pytest.mark.parametrize("target", [*NUMBERS, t.BOOLEAN], ids=str)
@pytest.mark.parametrize("source", [*NUMBERS, t.BOOLEAN], ids=str)
def test_numbers(source: DataType, target: DataType) -> None:
    values = [*samples(source, random.Random(_SEED)), None]
    tried = resolve_cast(source, target, is_try=True)
    if source != target:
        check(f"TRY_CAST(a AS {target})", tried, [source], [values], target)
    kernel = resolve_cast(source, target, is_try=False)
    good = [
        value
        for value, result in zip(
            values, run(tried, [source], [values], target) if source != target else values
        )
        if result is not None
    ]
    if good and source != target:
        check(f"CAST(a AS {target})", kernel, [source], [[*good, None]], target)
        bad = [value for value in values if value not in good and value is not None]
        for value in bad[:3]:
            with pytest.raises(ExecutionError, match="value"):
                run(kernel, [source], [[value]], target)


SECONDS = [0, 1, -1, 86_399, 86_400, -86_400, -86_401, 1_583_020_800, -2_208_988_800, 9_000_000_000]


@pytest.mark.parametrize("target", [*TIMESTAMPS, t.TIMESTAMP_TZ, t.DATE, t.TIME], ids=str)
@pytest.mark.parametrize("source", [*TIMESTAMPS, t.DATE], ids=str)
def test_times(source: DataType, target: DataType) -> None:
    unsupported_by_duckdb = {("TIMESTAMP_NS", "TIMESTAMP_S"), ("TIMESTAMP_MS", "TIMESTAMP WITH TIME ZONE")}
    if source == target or (source.kind is t.TypeKind.DATE and target.kind is t.TypeKind.TIME):
        return
    if (str(source), str(target)) in unsupported_by_duckdb:
        return
    rng = random.Random(_SEED)
    if source.kind is t.TypeKind.DATE:
        values: list[int | None] = [0, 1, -1, 18_321, -25_567, 100_000, 2_147_483, -2_000_000]
    else:
        ticks = t.TICKS_PER_SECOND[source.kind]
        values = [
            s * ticks + rng.choice((0, ticks // 2, ticks // 2 + 1, ticks - 1, rng.randrange(ticks)))
            for s in SECONDS
            for _ in range(6)
        ]
    values.append(None)
    check(f"CAST(a AS {target})", resolve_cast(source, target, is_try=False), [source], [values], target)


def test_infinite_dates_stay_infinite() -> None:
    infinite = torch.tensor([2**31 - 1, -(2**31) + 1, 0])
    kernel = resolve_cast(t.DATE, t.TIMESTAMP, is_try=False)
    assert kernel.function(infinite).tolist() == [2**63 - 1, -(2**63) + 1, 0]
    back = resolve_cast(t.TIMESTAMP, t.DATE, is_try=False)
    assert back.function(kernel.function(infinite)).tolist() == infinite.tolist()
    with pytest.raises(ExecutionError, match="infinite"):
        resolve_cast(t.TIMESTAMP, t.TIME, is_try=False).function(torch.tensor([2**63 - 1]))


def test_a_row_that_does_not_count_does_not_raise() -> None:
    kernel = resolve_cast(t.DOUBLE, t.INTEGER, is_try=False)
    values = torch.tensor([1e30, 3.0], dtype=torch.float64)
    assert kernel.function(values, validity=torch.tensor([False, True])).tolist()[1] == 3
    with pytest.raises(
        ExecutionError,
        match="Type DOUBLE with value 1e\\+30 can't be cast because the value is out of range for the destination type INTEGER",
    ):
        kernel.function(values)


def test_empty_and_unknown() -> None:
    for source in (t.DOUBLE, t.BIGINT, t.HUGEINT):
        kernel = resolve_cast(source, t.TINYINT, is_try=False)
        empty = torch.zeros(0, dtype=torch.float64 if source == t.DOUBLE else torch.int64)
        assert values_of(kernel.function(empty)) == []
    with pytest.raises(UnsupportedError, match="INTEGER -> DATE"):
        resolve_cast(t.INTEGER, t.DATE, is_try=False)
