"""Sums of one column plus several constants are one sum and a count; answers and errors are DuckDB's."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import tqp

_ROWS = 1_000
_NUMBERS = np.random.default_rng(3)
_VALUES = _NUMBERS.integers(-100, 100, _ROWS)
_TABLE = pa.table(
    {
        "g": _NUMBERS.integers(0, 5, _ROWS),
        "i": pa.array([None if each == 7 else int(each) for each in _VALUES], pa.int32()),
        "n": _VALUES * 10**15,
        "u": pa.array(np.abs(_VALUES), pa.uint8()),
        "ends": pa.array(np.where(_VALUES > 0, 2**31 - 1, 5), pa.int32()),
        "x": _VALUES / 4,
        "id": np.arange(_ROWS),
    }
)
TAKEN_APART = [
    "SELECT sum(i), sum(i + 1), sum(2 + i), sum(i - 3), avg(i), sum(-4 + i) AS s FROM {}",
    "SELECT g, sum(n + 1), sum(n + 2), count(n), sum(n + 9223372), g + 1 AS h FROM {} GROUP BY g",
    "SELECT sum(i + 1) FILTER (g > 1), sum(i + 2) FILTER (g > 1), sum(i) FILTER (g > 1), sum(i + 5) FROM {}",
    "SELECT sum(i * 2 + 1), sum(i * 2 + 2), sum(i * 2 + 3), sum(u + 1) FROM {} HAVING sum(i * 2 + 4) IS NULL OR true",
]
LEFT = [
    "SELECT sum(i + 1), sum(n + 1), sum(i + 2), sum(n + 2) FROM {}",
    "SELECT sum(DISTINCT i + 1), sum(DISTINCT i + 2), sum(DISTINCT i + 3) FROM {}",
    "SELECT sum(x + 1), sum(x + 2), sum(x + 3) FROM {}",
    "SELECT sum(i + g), sum(i + g + i), sum(g + i) FROM {}",
    "SELECT id, sum(i + 1), sum(i + 2), sum(i + 3) FROM {} GROUP BY id",
]


@pytest.fixture
def oracle() -> duckdb.DuckDBPyConnection:
    oracle = duckdb.connect()
    oracle.register("t", _TABLE)
    oracle.register("none", _TABLE.slice(0, 0))
    return oracle


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("table", ["t", "none"])
@pytest.mark.parametrize("query", TAKEN_APART + LEFT)
def test_answers(backend: str, table: str, query: str, oracle: duckdb.DuckDBPyConnection) -> None:
    text = f"{query.format(table)} ORDER BY ALL"
    with tqp.connect(threads=2, backend=backend, batch_rows=300) as connection:
        connection.register("t", _TABLE)
        connection.register("none", _TABLE.slice(0, 0))
        result, expected = connection.sql(text), oracle.sql(text)
        assert [str(each) for each in result.types] == [str(each) for each in expected.types]
        assert result.fetchall() == expected.fetchall()
        if table == "t":
            plan = connection.explain(text).partition("Physical plan")[0]
            assert (plan.count("sum(") < query.count("sum(")) == (query in TAKEN_APART), plan


def test_a_value_that_overflows_raises_still() -> None:
    with tqp.connect() as connection:
        connection.register("t", _TABLE)
        with pytest.raises(tqp.ExecutionError, match="Overflow"):
            connection.sql("SELECT sum(ends + 1), sum(ends + 2), sum(ends + 3) FROM t").fetchall()
