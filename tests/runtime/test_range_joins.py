"""Joins by inequalities against DuckDB: types, NULLs, duplicates, empty sides, join types, residuals, small batches, rule off."""

from __future__ import annotations

import datetime
import decimal
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import tqp
from tests.oracle import assert_same_rows, duckdb_rows

_DAY = datetime.date(2024, 1, 1)
_TYPES: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "TINYINT": (pa.int8(), lambda n: n - 20),
    "BIGINT": (pa.int64(), lambda n: {0: -(2**63), 40: 2**63 - 1}.get(n, n)),
    "DATE": (pa.date32(), lambda n: _DAY + datetime.timedelta(n)),
    "TIMESTAMP": (pa.timestamp("us"), lambda n: datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=n)),
    "DECIMAL(10,2)": (pa.decimal128(10, 2), lambda n: decimal.Decimal(n - 10) / 4),
    "DECIMAL(38,2)": (pa.decimal128(38, 2), lambda n: decimal.Decimal(n * 10**25)),
    "DOUBLE": (pa.float64(), lambda n: {0: float("nan"), 1: -0.0, 2: float("inf")}.get(n, n / 4 - 3)),
    "FLOAT": (pa.float32(), lambda n: {0: float("nan"), 1: 0.0, 2: float("-inf")}.get(n, n / 4 - 3)),
    "VARCHAR": (pa.string(), str),
}
_QUERIES = {
    **{
        f"a.x {comparison} b.lo": f"SELECT a.i, b.j FROM a JOIN b ON a.x {comparison} b.lo"
        for comparison in ("<", "<=", ">", ">=")
    },
    "window": "SELECT a.i, b.j FROM a JOIN b ON b.lo > a.x AND b.lo <= a.y",
    "open window": "SELECT a.i, b.j FROM a JOIN b ON b.lo >= a.x AND b.lo < a.y AND a.i <> b.j",
    "points": "SELECT a.i, b.j FROM a JOIN b ON a.x BETWEEN b.lo AND b.hi",
    "overlap": "SELECT a.i, b.j FROM a JOIN b ON a.x < b.hi AND b.lo < a.y",
    "dominance": "SELECT a.i, b.j FROM a JOIN b ON a.x < b.lo AND a.y <= b.hi AND (a.i + b.j) % 3 <> 0",
    "left": "SELECT a.i, b.j FROM a LEFT JOIN b ON a.x BETWEEN b.lo AND b.hi",
    "left with residual": "SELECT a.i, b.j FROM a LEFT JOIN b ON b.lo > a.x AND (a.i + b.j) % 2 = 0",
    "right": "SELECT a.i, b.j FROM a RIGHT JOIN b ON b.lo BETWEEN a.x AND a.y",
    "full": "SELECT a.i, b.j FROM a FULL JOIN b ON a.x > b.lo AND a.x < b.hi",
    "semi": "SELECT a.i FROM a WHERE EXISTS (FROM b WHERE a.x >= b.lo AND a.x < b.hi)",
    "semi with residual": "SELECT a.i FROM a WHERE EXISTS (FROM b WHERE a.x >= b.lo AND a.i <> b.j)",
    "anti": "SELECT a.i FROM a WHERE NOT EXISTS (FROM b WHERE b.lo > a.x AND b.lo <= a.y)",
    "anti, two keys": "SELECT a.i FROM a WHERE NOT EXISTS (FROM b WHERE b.lo > a.x AND b.hi > a.y)",
    "mark": "SELECT a.i, EXISTS (FROM b WHERE a.x BETWEEN b.lo AND b.hi) AS found FROM a",
    "any": "SELECT a.i, a.x > ANY (SELECT b.lo FROM b WHERE b.hi > a.y) AS found FROM a",
    "all": "SELECT a.i FROM a WHERE a.x >= ALL (SELECT b.lo FROM b)",
    "scalar": "SELECT a.i, (SELECT count(*) FROM b WHERE b.lo <= a.x) AS n FROM a",
    "count": "SELECT count(*) AS n FROM a JOIN b ON b.lo > a.x AND b.lo <= a.y",
    "two": "SELECT a.i, b.j, c.j FROM a JOIN b ON a.x BETWEEN b.lo AND b.hi JOIN b c ON a.y >= c.lo AND a.y < c.hi",
}


@cache
def _tables(kind: str, nulls: bool, probe_rows: int, build_rows: int) -> dict[str, pa.Table]:
    generator = random.Random(kind)
    data_type, value = _TYPES[kind]

    def column(rows: int) -> pa.Array:
        drawn = [generator.randint(0, 40) for _ in range(rows)]
        return pa.array([None if nulls and generator.random() < 0.2 else value(n) for n in drawn], data_type)

    names = {"a": ("i", "x", "y", probe_rows), "b": ("j", "lo", "hi", build_rows)}
    return {
        name: pa.table({number: pa.array(range(rows), pa.int32()), x: column(rows), y: column(rows)})
        for name, (number, x, y, rows) in names.items()
    }


@pytest.mark.parametrize("rules", [(), ("range_join",), ("swap_join_sides",)], ids=str)
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("kind", _TYPES)
def test_every_type(kind: str, nulls: bool, rules: tuple[str, ...]) -> None:
    tables = _tables(kind, nulls, 30, 45)
    with tqp.connect(threads=2, disabled_rules=rules) as connection:
        for name, table in tables.items():
            connection.register(name, table)
        for query in _QUERIES.values():
            query += " ORDER BY ALL"
            assert connection.sql(query).fetchall() == duckdb_rows(tables, query), query


@pytest.mark.parametrize("query", _QUERIES.values(), ids=list(_QUERIES))
@pytest.mark.parametrize("batch_rows", [1, 3, 7])
def test_small_batches(query: str, batch_rows: int) -> None:
    assert_same_rows(_tables("DATE", True, 20, 15), f"{query} ORDER BY ALL", batch_rows=batch_rows)


@pytest.mark.parametrize("query", _QUERIES.values(), ids=list(_QUERIES))
@pytest.mark.parametrize("rows", [(0, 9), (9, 0), (0, 0), (1, 1)])
def test_empty_sides(query: str, rows: tuple[int, int]) -> None:
    assert_same_rows(_tables("TIMESTAMP", True, *rows), f"{query} ORDER BY ALL")


def test_integers_of_different_widths_and_expressions() -> None:
    tables = {
        "a": pa.table({"i": pa.array([1, 2, 3, None], pa.int8()), "s": pa.array([2, 40000, None, 7], pa.int32())}),
        "b": pa.table({"j": pa.array([0, 300, 2, None], pa.int64())}),
    }  # fmt: skip
    assert_same_rows(
        tables, "SELECT i, j FROM a JOIN b ON b.j + 1 > a.i * 2 AND b.j - 1 <= a.s + a.i ORDER BY ALL"
    )


def test_the_plan_shows_the_range_join_and_its_bounds() -> None:
    with tqp.connect() as connection:
        for name, table in _tables("DATE", True, 30, 45).items():
            connection.register(name, table)
        plan = connection.explain(_QUERIES["open window"])
        assert "[range join] on lo >= x AND lo < y where i <> j" in plan
        swapped = connection.explain(_QUERIES["points"])
        assert "[range join] on x >= lo AND x <= hi" in swapped
        two = connection.explain(_QUERIES["two"])
        assert two.count("[range join]") == 2 and "nested-loop" not in two
    with tqp.connect(disabled_rules=["range_join"]) as connection:
        for name, table in _tables("DATE", True, 30, 45).items():
            connection.register(name, table)
        assert "[nested-loop join]" in connection.explain(_QUERIES["window"])
