"""Sums of products that are multiplied by group, not by row, are those of DuckDB, and of the plan without them.

So are sums and extremes of values that are counted by group.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tqp
from tests.oracle import duckdb_database
from tqp.operators.groups import packed_sums
from tqp.planner.physical import factored_sums

_MARK = "until sums are multiplied"
_ROWS = 3000

_FACTORED = (
    "SELECT k, sum(q), sum(p), sum(p * (1 - d)), sum(p * (1 - d) * (1 + t)), avg(d), count(*) FROM t GROUP BY k",
    "SELECT k, s, sum(p * (1 - d)), avg(p * (1 - d)), sum(p * d), avg(p), count(p), count(*) FROM t GROUP BY k, s",
    "SELECT s, sum(d), avg(d), sum(d * d), avg(d * t), sum(-t), sum(q * t) FROM t GROUP BY s",
    "SELECT k, sum(i * t), avg(i * (t - 3)), sum(i), count(i) FROM t WHERE w < 9 GROUP BY k",
    "SELECT k, sum(i * t), avg(i * (t - 3)), sum(i), count(i) FROM t WHERE w < 1 GROUP BY k",
    "SELECT k, sum(i * t), avg(i * (t - 3)), sum(i) FROM t WHERE s LIKE '%zzz%' GROUP BY k",
    "SELECT t, sum(q * t), sum(q * t * t), avg(t), count(*) FROM t GROUP BY t",
    "SELECT name, sum(p * d), sum(p * d * d), sum(p), avg(d) FROM t JOIN names ON t.w = names.w GROUP BY name",
    "SELECT k, sum(t), avg(t), min(t), max(t), count(t), count(*) FROM t GROUP BY k",
    "SELECT s, k, avg(d), min(d), max(d) FROM t WHERE w < 9 GROUP BY s, k",
    "SELECT s, max(q), sum(q), sum(q * q), count(i) FROM t WHERE w < 1 GROUP BY s",
    "SELECT s, min(w - 5), sum(w - 5), sum(w), avg(w * (w - 5)) FROM t GROUP BY s",
    "SELECT k, sum(q * (year(day) - 2018)), avg(q * (year(day) - 2018) * t), sum(q), sum(q * t) FROM t GROUP BY k",
)
_NOT_FACTORED = (
    "SELECT k, sum(p * n), sum(p * n * n), sum(p), avg(n) FROM t GROUP BY k",  # n may be NULL
    "SELECT k, sum(p * d) FILTER (WHERE t > 1), sum(p), avg(p), avg(d), sum(p * d * d) FROM t GROUP BY k",
    "SELECT k, sum(x * t), sum(x), avg(x), avg(t), sum(t) FROM t GROUP BY k",  # rounds row by row
    "SELECT k, sum(p * q * d), sum(p), sum(p * d), sum(d) FROM t GROUP BY k",  # two columns of many values
    "SELECT k, sum(big * t), sum(big * (t - 1)), sum(big), avg(t) FROM t GROUP BY k",  # does not fit 64 bits
    "SELECT sum(p * (1 - d)), sum(p * (1 - d) * (1 + t)), sum(p), avg(d), avg(t) FROM t",
    "SELECT k, sum(p * (1 - d)), count(*) FROM t GROUP BY k",  # little to gain
    "SELECT k, sum(zero * (t + 9000000000000000000::HUGEINT) * t), sum(zero), avg(t), sum(zero * t) FROM t GROUP BY k",
    "SELECT k, sum(n), min(n) FROM t GROUP BY k",
    "SELECT k, sum(t), min(d), max(d) FROM t GROUP BY k",
    "SELECT k, sum(t), min(t), max(d) FROM t GROUP BY k",
    "SELECT k, sum(t), min(t), sum(p) FROM t GROUP BY k",  # p would be added up besides
    "SELECT k, sum(i), min(i), max(i) FROM t GROUP BY k",  # many values
    "SELECT k, sum(DISTINCT p * d), sum(p * d * d), sum(p), sum(d) FROM t GROUP BY k",
)


def _tables() -> dict[str, pa.Table]:
    random = np.random.default_rng(7)

    def decimals(low: int, high: int, precision: int, missing: float = 0.0) -> pa.Array:
        values = [Decimal(int(value)) / 100 for value in random.integers(low, high, _ROWS)]
        given = [
            None if absent else value
            for value, absent in zip(values, random.random(_ROWS) < missing, strict=True)
        ]
        return pa.array(given, pa.decimal128(precision, 2))

    missing = random.random(_ROWS) < 0.2
    table = pa.table(
        {
            "k": pa.array(random.integers(-2, 5, _ROWS), mask=missing),
            "s": [f"group {number % 3}" for number in range(_ROWS)],
            "p": decimals(-(10**6), 10**7, 15, 0.3),
            "q": decimals(0, 5000, 15),
            "d": decimals(-3, 11, 15),
            "t": pa.array(random.integers(1, 5, _ROWS), pa.int32()),
            "i": pa.array(random.integers(-(10**6), 10**6, _ROWS), mask=random.random(_ROWS) < 0.5),
            "n": pa.array(random.integers(0, 4, _ROWS), mask=missing),
            "w": random.integers(0, 10, _ROWS),
            "zero": pa.nulls(_ROWS, pa.int64()).fill_null(0),
            "big": random.integers(-(2**50), 2**50, _ROWS),
            "x": random.normal(size=_ROWS),
            "day": pa.array(random.integers(18_600, 18_700, _ROWS).astype(np.int32), pa.int32()).cast(pa.date32()),
        }
    )  # fmt: skip
    names = pa.table({"w": range(8), "name": [f"name {number % 4}" for number in range(8)]})
    return {"t": table, "names": names}


_TABLES = _tables()


def _answer(query: str, **options: object) -> tuple[list[str], str]:
    with tqp.connect(**options) as connection:  # type: ignore[arg-type]
        for name, table in _TABLES.items():
            connection.register(name, table)
        return _sorted(connection.sql(query).fetchall()), str(connection.explain(query))


def _expected(query: str) -> list[str]:
    with duckdb_database() as oracle:
        for name, table in _TABLES.items():
            oracle.register(name, table)
        return _sorted(oracle.sql(query).fetchall())


def _sorted(rows: list[tuple[Any, ...]]) -> list[str]:
    """Averages to 14 digits: of small decimals DuckDB rounds twice."""
    return sorted(repr([f"{v:.14g}" if isinstance(v, float) else v for v in row]) for row in rows)


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factored_sums, "_ROWS_PER_GROUP", 0.01)
    monkeypatch.setattr(factored_sums, "_ROWS_PER_COUNT", 0.01)


@pytest.mark.parametrize("query", _FACTORED)
def test_products_by_group_are_those_by_row(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _expected(query)
    for threads, batch_rows in ((1, 97), (3, 500), (2, 10**6)):
        found, plan = _answer(query, threads=threads, batch_rows=batch_rows)
        assert found == expected
        assert _MARK in plan
    monkeypatch.setattr(packed_sums, "_FEW_ROWS", 64)
    assert _answer(query, threads=2)[0] == expected
    found, plan = _answer(query, disabled_rules=["factored_sums"])
    assert found == expected
    assert _MARK not in plan


@pytest.mark.parametrize("query", _NOT_FACTORED)
def test_other_sums_stay_as_they_are(query: str) -> None:
    found, plan = _answer(query, threads=2)
    assert _MARK not in plan
    if "x" not in query:  # sums of floats depend on the order of rows
        assert found == _expected(query)


def test_few_rows_are_not_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factored_sums, "_ROWS_PER_GROUP", 256)
    assert _MARK not in _answer(_FACTORED[0])[1]


def test_overflow_is_still_an_error() -> None:
    """Products that may leave their type are computed row by row, where the row that does is seen."""
    numbers = pa.array([2**31 - 1, 5], pa.int32())
    table = pa.table({"k": [1, 1], "i": numbers, "a": pa.array([2, 1], pa.int32())})
    with tqp.connect() as connection:
        connection.register("t", table)
        query = "SELECT k, sum(i * a), sum(i * (a + 1)), sum(i), avg(a) FROM t GROUP BY k"
        assert _MARK not in str(connection.explain(query))
        with pytest.raises(tqp.Error, match="verflow"):
            connection.sql(query)
