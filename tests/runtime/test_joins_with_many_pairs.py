"""Joins that form many pairs for each build row, against DuckDB."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import tqp
from tests.oracle import assert_same_rows

_SPREAD = 0x9E3779B97F4A7C1


def _tables() -> dict[str, pa.Table]:
    random = np.random.default_rng(8)
    many, few = random.integers(0, 400, 9000), random.integers(0, 500, 2500)
    nulls = random.random(2500) < 0.1
    return {
        "many": pa.table({"k": many, "s": many * _SPREAD, "a": random.integers(0, 40, 9000)}),
        "few": pa.table(
            {
                "k": pa.array(few, mask=nulls),
                "s": pa.array(few * _SPREAD, mask=nulls),
                "b": pa.array(random.integers(0, 40, 2500), mask=random.random(2500) < 0.2),
                "c": random.integers(0, 40, 2500),
                "name": [f"name {number % 7}" for number in range(2500)],
            }
        ),
    }


_TABLES = _tables()
_QUERIES = [
    "SELECT count(*), sum(a * b), sum(c) FROM many m JOIN few f ON m.{key} = f.{key}",
    "SELECT m.k, sum(a), max(b), min(name) FROM many m JOIN few f ON m.{key} = f.{key} GROUP BY m.k",
    "SELECT count(*), count(c), sum(a + coalesce(b, 1)) FROM many m LEFT JOIN few f ON m.{key} = f.{key}",
    "SELECT count(*), sum(b) FROM many m JOIN few f ON m.{key} = f.{key} AND m.a = f.c",
    "SELECT count(*), sum(b) FROM many m LEFT JOIN few f ON m.{key} = f.{key} AND m.a < f.c",
    "SELECT count(*), sum(b), count(a) FROM many m FULL JOIN few f ON m.{key} = f.{key} AND f.c > 20",
    "SELECT count(*), sum(b), count(a) FROM many m RIGHT JOIN few f ON m.{key} = f.{key}",
    "SELECT count(*) FROM many m WHERE EXISTS (FROM few f WHERE f.{key} = m.{key} AND f.c > m.a)",
    "SELECT count(*) FROM many m WHERE {key} NOT IN (SELECT {key} FROM few WHERE c > 30 AND {key} IS NOT NULL)",
    "SELECT count(*), sum(b) FROM many m JOIN (FROM few WHERE c < 25) f ON m.{key} = f.{key}",
]


@pytest.mark.parametrize("key", ["k", "s"])
@pytest.mark.parametrize("query", _QUERIES)
def test_answers_are_those_of_duckdb(query: str, key: str) -> None:
    off = ["group_before_join", "index_join"]  # these would form no pairs
    assert_same_rows(_TABLES, f"{query.format(key=key)} ORDER BY ALL", disabled_rules=off)


def test_left_rows_whose_own_condition_is_false_meet_no_right_row() -> None:
    table = pa.table({"x": pa.array(range(30_000), pa.int64())})
    for kind in ("LEFT", "FULL"):
        query = f"SELECT count(*) AS n, count(b.x) AS m FROM t a {kind} JOIN t b ON a.x = 5 AND (a.x + b.x) % 30 = 0"
        assert_same_rows({"t": table}, query)
        with tqp.connect() as connection:
            connection.register("t", table)
            assert f"{kind.lower()} [hash join] on" in connection.explain(query)


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_conditions_of_one_side_are_evaluated_once_for_each_row(backend: str) -> None:
    table = pa.table({"x": pa.array(range(300), pa.int64()), "g": [n % 2 for n in range(300)]})
    rows = []

    def is_small(values: pa.Array) -> pa.Array:
        rows.append(len(values))
        return pa.compute.less(values, 7)

    with tqp.connect(backend=backend) as connection:
        connection.register("t", table)
        connection.create_function("is_small", is_small, ["BIGINT"], "BOOLEAN")
        query = "FROM t a LEFT JOIN t b ON a.g + b.g < 2 AND (a.x < b.x OR a.g = 0) AND is_small({0}.x)"
        for side in "ab":
            rows.clear()
            count = connection.sql(f"SELECT count(*) {query.format(side)}").fetchone()
            assert 0 < sum(rows) <= 300
            assert count is not None
            expected = sum(
                max(1, sum(_is_pair(a, b) and (a if side == "a" else b) < 7 for b in range(300)))
                for a in range(300)
            )
            assert count[0] == expected


def _is_pair(a: int, b: int) -> bool:
    return a % 2 + b % 2 < 2 and (a < b or a % 2 == 0)
