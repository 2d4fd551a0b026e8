"""IN, NOT IN and <> ALL over correlated subqueries with NULLs: what keys can be used leaves every answer as DuckDB has it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

import pyarrow as pa
import pytest

import tqp
from tests.oracle import duckdb_database

CORRELATIONS = (
    "r.c = l.c",
    "r.a IS NOT DISTINCT FROM l.a",
    "r.b IS NOT DISTINCT FROM l.b AND r.c = l.c",
    "r.f IS NOT DISTINCT FROM l.f",
    "r.a = l.a",
    "r.c = l.c AND r.a < l.c",
    "r.c < l.c",
)


def _table(seed: int, rows: int, numbers: list[int]) -> pa.Table:
    chance = random.Random(seed)
    values = {
        "i": (list(range(rows)), pa.int64()),
        "a": ([chance.choice([None, *numbers]) for _ in range(rows)], pa.int64()),
        "b": ([chance.choice([None, "x", "yz"[seed % 2]]) for _ in range(rows)], pa.string()),
        "c": ([chance.choice(numbers) for _ in range(rows)], pa.int64()),
        "f": ([chance.choice([None, 0.5]) for _ in range(rows)], pa.float64()),
    }
    return pa.table({name: pa.array(column, kind) for name, (column, kind) in values.items()})


def _queries() -> Iterator[str]:
    for column, correlation in product("abcf", CORRELATIONS):
        rows = f"SELECT r.{column} FROM r WHERE {correlation}"
        yield f"SELECT i, l.{column} IN ({rows}) FROM l ORDER BY i"
        yield f"SELECT i FROM l WHERE l.{column} NOT IN ({rows}) ORDER BY i"
        yield f"SELECT i, l.{column} <> ALL ({rows}) FROM l ORDER BY i"


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize(("left", "right"), [(30, 20), (30, 0), (0, 20), (300, 200)])
def test_answers(left: int, right: int, backend: str) -> None:
    tables = {"l": _table(1, left, [1, 2, 3]), "r": _table(2, right, [1, 2, 4])}
    with tqp.connect(backend=backend, threads=2) as connection, duckdb_database() as oracle:
        for name, table in tables.items():
            connection.register(name, table)
            oracle.register(name, table)
        for query in _queries():
            assert connection.sql(query).fetchall() == oracle.sql(query).fetchall(), query


def test_comparisons_that_are_never_null_are_keys() -> None:
    query = "SELECT i FROM l WHERE l.a NOT IN (SELECT r.a FROM r WHERE r.b IS NOT DISTINCT FROM l.b AND r.c = l.c)"
    with tqp.connect() as connection:
        connection.register("l", _table(1, 300, [1, 2, 3]))
        connection.register("r", _table(2, 300, [1, 2, 4]))
        _, _, physical = connection.explain(query).partition("Physical plan")
    assert "null-aware anti [" in physical
    assert "nested-loop" not in physical
