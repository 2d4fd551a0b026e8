"""What a pipeline leaves is read by the next one, in batches of any length, by any number of workers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import tqp

_SHARED = "WITH g AS (SELECT k, min(n) AS low, max(n) AS high, count(*) AS c, sum(n) AS s FROM t GROUP BY k) "
_QUERIES = (
    "SELECT k, sum(n) AS s FROM t GROUP BY k HAVING sum(n) > 20 ORDER BY k",
    "SELECT count(*) FROM t WHERE k IN (SELECT k FROM t GROUP BY k HAVING count(*) > 2)",
    _SHARED + "SELECT a.k, a.low, b.high FROM g a JOIN g b ON a.k = b.k + 1000 ORDER BY a.k",
    _SHARED + "SELECT c, sum(s), count(low) FROM g GROUP BY c ORDER BY c",
    # sums of doubles, in the order of the batches
    "WITH u AS (SELECT k, s, x FROM t WHERE n > 0) SELECT s, sum(x) FROM u GROUP BY s UNION ALL SELECT 'all', sum(x) FROM u",
    (
        "WITH u AS (SELECT k, s, x FROM t WHERE n > 0) SELECT u.s, sum(u.x), count(v.k) "
        "FROM u LEFT JOIN u v ON u.k = v.k AND v.s < u.s GROUP BY u.s ORDER BY u.s"
    ),
    # row numbers of rows that a pipeline left
    "WITH u AS (SELECT * FROM t WHERE n > 0) SELECT s, x, k FROM u ORDER BY x LIMIT 20",
    "SELECT s, x FROM (SELECT * FROM t WHERE n > 0 UNION ALL SELECT * FROM t WHERE n < -2) ORDER BY x, s LIMIT 30",
    "SELECT sum(n), count(s) FROM (SELECT n, s FROM t UNION ALL SELECT n + 1, upper(s) FROM t WHERE n < 0)",
    # row limits
    "SELECT * FROM (SELECT k, count(s) AS c FROM t GROUP BY k) WHERE c > 1 LIMIT 11",
    "SELECT n, count(*) FROM (SELECT DISTINCT n, s FROM t) GROUP BY n ORDER BY n",
)


def _table(rows: int) -> pa.Table:
    random = np.random.default_rng(7)
    texts = [None if number % 5 == 0 else f"text {number % 40}" for number in random.integers(0, 999, rows)]
    return pa.table(
        {
            "k": np.sort(random.integers(0, 3 * rows, rows)) // 9 * 1000,
            "n": pa.array(random.integers(-5, 30, rows), mask=random.random(rows) < 0.2),
            "x": random.normal(size=rows),
            "s": pa.array(texts),
        }
    )


def _answers(query: str, rows: int, threads: int, batch_rows: int | None) -> list[tuple[object, ...]]:
    con = tqp.connect(threads=threads, batch_rows=batch_rows)
    con.register("t", _table(rows))
    return [con.sql(query).fetchall() for _ in range(2)][1]


@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("rows", [0, 500])
def test_queries(query: str, rows: int) -> None:
    sizes = (7, 64)
    expected = [_answers(query, rows, 1, batch_rows) for batch_rows in sizes]
    assert [_answers(query, rows, 3, batch_rows) for batch_rows in sizes] == expected


def test_analyze_and_traces() -> None:
    con = tqp.connect(threads=2, batch_rows=16)
    con.register("t", _table(300))
    for query in _QUERIES:
        expected = sorted(con.sql(query).fetchall(), key=str)
        assert "ms" in str(con.sql(f"EXPLAIN ANALYZE {query}").fetchall())
        with con.trace():
            assert sorted(con.sql(query).fetchall(), key=str) == expected
