"""Conditions on ranks: the first rows of each partition without a sort of all; answers are DuckDB's and those of the sort."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import tqp
from tests.oracle import duckdb_database

_ROWS = 20_000


def _tables() -> dict[str, pa.Table]:
    random = np.random.default_rng(3)
    names = np.array(["a", "b", "longer than eight bytes", "longer than eight", "é", ""])
    floats = np.round(random.standard_normal(_ROWS), 2)
    floats[:60] = np.repeat([np.nan, np.inf, -np.inf, -0.0], 15)
    rows = pa.table(
        {
            "id": random.permutation(_ROWS),
            "k": pa.array(random.integers(0, 40, _ROWS), mask=random.integers(0, 20, _ROWS) == 0),
            "g": random.integers(0, 2, _ROWS) * 2**40,
            "v": pa.array(random.integers(-500, 500, _ROWS), mask=random.integers(0, 9, _ROWS) == 0),
            "f": random.permutation(floats),
            "s": names[random.integers(0, 6, _ROWS)],
            "t": [f"text {each}" for each in random.integers(0, 9_000, _ROWS)],
        }
    )
    return {"rows": rows, "none": rows.slice(0, 0), "single": rows.slice(7, 1)}


TABLES = _tables()
#: Which rows come out does not depend on how ties are ordered.
QUERIES = [
    "row_number() OVER (PARTITION BY k ORDER BY v, id) <= 3",
    "row_number() OVER (PARTITION BY k ORDER BY f DESC NULLS LAST, id DESC) < 4",
    "row_number() OVER (PARTITION BY k, s ORDER BY t, id) = 2",
    "row_number() OVER (ORDER BY v DESC NULLS FIRST, id) <= 5",
    "row_number() OVER (PARTITION BY id ORDER BY v) <= 2",
    "row_number() OVER (PARTITION BY s ORDER BY g, v NULLS FIRST, id) <= 2",
    "row_number() OVER (PARTITION BY t ORDER BY id) <= 1",
    "rank() OVER (PARTITION BY k ORDER BY v) <= 3",
    "rank() OVER (PARTITION BY k ORDER BY f DESC) <= 2 AND v > 0",
    "rank() OVER (PARTITION BY g ORDER BY s) <= 10",
    "rank() OVER (ORDER BY v DESC NULLS LAST) = 1",
    "rank() OVER (PARTITION BY k ORDER BY v) <= 3 AND dense_rank() OVER (PARTITION BY k ORDER BY v) <= 2",
    "rank() OVER (PARTITION BY k) <= 1 AND id < 100",
]
#: Which of the rows that tie come first is for tqp to say, and does not depend on how they are found.
TIES = [
    "row_number() OVER (PARTITION BY k ORDER BY v) <= 3",
    "row_number() OVER (PARTITION BY s ORDER BY g) <= 4",
    "row_number() OVER (PARTITION BY k) <= 2",
    "row_number() OVER () <= 2",
]


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("table", ["rows", "none", "single"])
@pytest.mark.parametrize("batch_rows", [5000, None])
def test_answers(backend: str, table: str, batch_rows: int | None) -> None:
    settings = {"backend": backend, "threads": 2, "batch_rows": batch_rows}
    with (
        tqp.connect(**settings) as connection,
        tqp.connect(**settings, disabled_rules=["first_of_partitions"]) as sorting,
        duckdb_database() as oracle,
    ):
        for each in (connection, sorting, oracle):
            each.register("t", TABLES[table])
        for condition in QUERIES:
            text = f"SELECT id, k, v, t FROM t QUALIFY {condition} ORDER BY ALL"
            assert connection.sql(text).fetchall() == oracle.sql(text).fetchall(), text
        for condition in TIES:
            text = f"SELECT id, k FROM t QUALIFY {condition} ORDER BY ALL"
            assert connection.sql(text).fetchall() == sorting.sql(text).fetchall(), text


def test_every_rank_of_a_block_is_right() -> None:
    query = (
        "SELECT id, row_number() OVER w, rank() OVER w AS r, dense_rank() OVER w FROM t "
        "WINDOW w AS (PARTITION BY k ORDER BY v, id) QUALIFY r <= 3 ORDER BY ALL"
    )
    with tqp.connect() as connection, duckdb_database() as oracle:
        for each in (connection, oracle):
            each.register("t", TABLES["rows"])
        assert "take the first 3 of each partition" in connection.compile(query).code
        assert connection.sql(query).fetchall() == oracle.sql(query).fetchall()


def test_each_number_of_rows_is_planned_for() -> None:
    with tqp.connect() as connection:
        connection.register("t", TABLES["rows"])
        for most in (3, 5, 4):
            query = (
                f"SELECT id FROM t WHERE v > {most} QUALIFY rank() OVER (PARTITION BY k ORDER BY v) <= {most}"
            )
            connection.sql(query).fetchall()
            assert f"take the first {most} of each partition" in connection.compile(query).code
