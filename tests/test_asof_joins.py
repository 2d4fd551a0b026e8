"""ASOF joins, against DuckDB: by keys and values of many types, searched for and by one sort of both sides, with every kind of padding."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import tqp
from tests.oracle import duckdb_database

#: Expressions of a small number `x`; those of `_VALUES` in about its order.
_KEYS = {
    "none": None,
    "a number": "(x % 5)::INTEGER",
    "numbers far apart": "(x % 5) * 1000000000000000000",
    "a double": "(x % 4) / 0.7",
    "a text": "'name ' || x % 5",
    "two numbers": "[x % 3, x % 2]",
    "a boolean": "x % 2 = 0",
}
_VALUES = {
    "INTEGER": "x",
    "BIGINT, far apart": "CASE WHEN x < 20 THEN -9223372036854775808 + x ELSE 9223372036854775807 - 200 + x END",
    "TIMESTAMP": "TIMESTAMP '2024-01-01' + x * INTERVAL 7 HOUR",
    "DATE": "DATE '2024-01-01' + x::INTEGER",
    "DECIMAL": "x::DECIMAL(9, 2) / 8",
    "DOUBLE": "CASE WHEN x > 95 THEN 'nan'::DOUBLE WHEN x > 90 THEN 'inf'::DOUBLE WHEN x < 3 THEN '-inf'::DOUBLE WHEN x < 6 THEN -0.0 ELSE x / 8 END",
    "FLOAT": "(x / 3)::FLOAT",
    "VARCHAR": "'text ' || lpad((x // 2)::VARCHAR, 3, '0')",
    "HUGEINT": "x::HUGEINT * 73786976294838206464",  # a power of two: DuckDB gives Arrow doubles
    "BOOLEAN": "x > 40",
}


def _tables(oracle: duckdb.DuckDBPyConnection, key: str | None, value: str, seed: int) -> None:
    """`l` with repeated values, `r` with one row for each key and value, since DuckDB takes any of several."""
    chance = random.Random(seed)
    for name, rows in (("l", 150), ("r", 60)):
        numbers = ", ".join(
            "(NULL)" if chance.random() < 0.05 else f"({chance.randrange(100)})" for _ in range(rows)
        )
        columns = f"{key or 'NULL'} AS k, {value} AS v"
        distinct = (
            "SELECT k, v, min(x) AS n FROM made GROUP BY ALL"
            if name == "r"
            else "SELECT k, v, x AS n FROM made"
        )
        made = f"made AS (SELECT x, {columns} FROM (VALUES {numbers}) t(x))"
        oracle.execute(f"CREATE TABLE {name} AS WITH {made} {distinct}")


@cache
def _oracle(value: str) -> list[tuple[str, dict[str, pa.Table], dict[str, list[str]]]]:
    """For each key its name, the tables, and DuckDB's rows of each query."""
    made = []
    for seed, (name, key) in enumerate(_KEYS.items()):
        with duckdb_database() as oracle:
            _tables(oracle, key, _VALUES[value], seed)
            equal = "l.k = r.k AND " if key is not None else ""
            queries = [
                f"SELECT l.n, l.v, r.n, r.v FROM l ASOF {kind} JOIN r ON {equal}l.v "
                f"{('<', '<=', '>', '>=')[(seed + place) % 4]} r.v"
                for place, kind in enumerate(("", "LEFT", "RIGHT", "FULL"))
            ]
            tables = {table: oracle.table(table).to_arrow_table() for table in ("l", "r")}
            made.append((name, tables, {query: _rows(oracle.execute(query)) for query in queries}))
    return made


def _rows(answer: Any) -> list[str]:
    return sorted(map(repr, answer.fetchall()))


@pytest.mark.parametrize("disabled", [(), ("nearest_join",)], ids=["searched", "sorted"])
@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("value", _VALUES)
def test_the_rows_are_those_of_duckdb(value: str, backend: str, disabled: tuple[str, ...]) -> None:
    for name, tables, answers in _oracle(value):
        with tqp.connect(threads=2, backend=backend, batch_rows=37, disabled_rules=disabled) as connection:
            for table, rows in tables.items():
                if value == "HUGEINT":
                    connection.register("given", rows)
                    columns = "* REPLACE (v::HUGEINT AS v)"
                    connection.execute(f"CREATE TABLE {table} AS SELECT {columns} FROM given")
                else:
                    connection.register(table, rows)
            for query, expected in answers.items():
                assert _rows(connection.execute(query)) == expected, (name, query)


def test_of_equal_rows_the_first_is_taken() -> None:
    with tqp.connect() as connection:
        for comparison, nearest in (
            ("<=", [0, 1, None]),
            (">=", [0, 1, 1]),
            ("<", [1, None, None]),
            (">", [None, 0, 1]),
        ):
            query = (
                "SELECT r.n FROM (VALUES (1), (2), (3)) l(v) ASOF LEFT JOIN "
                f"(VALUES (1, 0), (2, 1), (2, 2), (1, 3)) r(v, n) ON l.v {comparison} r.v ORDER BY l.v"
            )
            assert [row[0] for row in connection.sql(query).fetchall()] == nearest
