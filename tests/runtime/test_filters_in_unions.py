"""Runtime filters of joins over UNION ALL go into the branches, some or all of them; answers are DuckDB's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import tqp
from tests.oracle import duckdb_database


def _facts(rows: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    keys = pa.array(random.integers(0, 1_000, rows), pa.int32(), mask=random.random(rows) < 0.1)
    return pa.table({"k": keys, "v": random.integers(0, 100, rows)})


TABLES = {
    "a": _facts(60_000, 1),
    "b": _facts(40_000, 2),
    "few": _facts(90, 3),
    "none": _facts(0, 4),
    "dim": pa.table(
        {"id": pa.array(range(1_000), pa.int32()), "n": pa.array([i % 100 for i in range(1_000)])}
    ),
}
_SUM = "SELECT count(*), sum(v), min(k), max(k) FROM ({}) u JOIN dim ON k = id WHERE n = 7"
QUERIES = {
    _SUM.format("FROM a UNION ALL FROM b"): 2,
    _SUM.format("SELECT k, v FROM a UNION ALL SELECT k + 1, v * 2 FROM b UNION ALL FROM few"): 2,
    _SUM.format("FROM few UNION ALL FROM a"): 1,
    _SUM.format("FROM a UNION ALL FROM none UNION ALL SELECT 7, 5"): 1,
    _SUM.format("FROM a UNION ALL (SELECT k, v FROM b WHERE v > 50 UNION ALL FROM few)"): 2,
    _SUM.format("SELECT k, sum(v) AS v FROM a GROUP BY k UNION ALL FROM b"): 2,
    "SELECT n, count(*) FROM (FROM a UNION ALL FROM few) u SEMI JOIN (FROM dim WHERE n = 7) d ON k = id, dim e WHERE e.id = k GROUP BY n": 1,
    "SELECT count(*), count(id) FROM (FROM a UNION ALL FROM b) u LEFT JOIN (FROM dim WHERE n = 7) d ON k = id": 0,
    "SELECT count(*) FROM (FROM a UNION ALL FROM few) u ANTI JOIN (FROM dim WHERE n = 7) d ON k = id": 0,
}


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_answers(backend: str) -> None:
    with tqp.connect(threads=2, backend=backend) as connection, duckdb_database() as oracle:
        for name, table in TABLES.items():
            connection.register(name, table)
            oracle.register(name, table)
        for query, num_filters in QUERIES.items():
            plan = connection.explain(query).partition("Physical plan")[2]
            assert plan.count("RuntimeFilter") == num_filters, query
            for _ in range(2):
                assert connection.sql(query).fetchall() == oracle.sql(query).fetchall(), query
