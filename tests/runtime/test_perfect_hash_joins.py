"""Perfect-hash joins over rows that are not selected yet, and with build columns by key, by position and collected."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.oracle import assert_same_rows

_ROWS = 300
_TABLES = {
    # most rows pass `v <> 5`, so that filters on it leave their mask to the join
    "p": pa.table(
        {
            "k": [i % 50 for i in range(_ROWS)],
            "n": [None if i % 7 == 0 else i % 60 - 5 for i in range(_ROWS)],
            "v": [float(i % 7) for i in range(_ROWS)],
        }
    ),
    "b": pa.table(
        {
            "k": [i for i in range(40) if i % 3],
            "a": [f"a{i}" for i in range(40) if i % 3],
            "c": ["x" * (i % 5) for i in range(40) if i % 3],
            "u": [None if i % 4 == 0 else i * 100 for i in range(40) if i % 3],
            "w": [10**12 + i for i in range(40) if i % 3],
        }
    ),
    "every": pa.table({"k": list(range(50)), "f": [i % 5 for i in range(50)]}),
    "few": pa.table({"f": [0, 3], "g": [30, 33]}),
}
_QUERIES = [
    "SELECT p.k, q.w FROM p JOIN (SELECT k, a || c AS w FROM b) AS q ON p.k = q.k WHERE v <> 5",
    "SELECT p.k, b.u FROM p JOIN b ON p.k = b.k WHERE v <> 5",
    "SELECT p.k, b.u, b.w, b.a, b.c FROM p JOIN b ON p.n = b.k WHERE v <> 5",
    "SELECT p.k, b.k, b.u, b.a FROM p LEFT JOIN b ON p.n = b.k WHERE v <> 5",
    "SELECT p.k FROM p WHERE v <> 5 AND EXISTS (SELECT 1 FROM b WHERE b.k = p.n)",
    "SELECT p.k FROM p WHERE v <> 5 AND NOT EXISTS (SELECT 1 FROM b WHERE b.k = p.k)",
    "SELECT p.k, f FROM p JOIN every ON p.k = every.k WHERE v <> 5",
    "SELECT p.k, g, u FROM p JOIN every ON p.k = every.k JOIN few ON every.f = few.f JOIN b ON b.k = p.k WHERE v <> 5",
    "SELECT p.k, count(*), sum(u) FROM p JOIN b ON p.k = b.k WHERE v <> 5 GROUP BY p.k",
    "SELECT count(*), sum(7 // (k - 3)), min(n) FROM p WHERE NOT EXISTS (SELECT 1 FROM few WHERE f = k)",
    "SELECT sum(7 // (k - 3)) AS s, count(n) FROM p WHERE v <> 5 AND k NOT IN (SELECT f FROM few)",
    "SELECT k % 5, sum(7 // (k - 3)), max(v) FROM p WHERE NOT EXISTS (SELECT 1 FROM few WHERE f = k) GROUP BY k % 5",
    "SELECT k % 5, sum(100 // k), count(n) FROM p WHERE EXISTS (SELECT 1 FROM b WHERE b.k = p.k) GROUP BY k % 5",
    "SELECT k, (SELECT max(u) FROM b), (SELECT max(a) FROM b), (SELECT min(u) FROM b WHERE k < 0) FROM p",
    "SELECT k, n, (SELECT avg(k) FROM b) AS m, b.u FROM p LEFT JOIN b USING (k) WHERE v < (SELECT count(*) FROM few) + 3",
    "SELECT (SELECT max(w) FROM b) AS w, (SELECT sum(g) FROM few) AS g, count(*) FROM p GROUP BY ALL",
    "SELECT k, m.c FROM p, (SELECT max(c) AS c, max(u) AS u FROM b) m WHERE p.n * 100 > m.u AND v <> 5",
    "SELECT count(*), sum(n) FROM p WHERE n > ALL (SELECT u FROM b WHERE u < 500) OR n < ALL (SELECT g FROM few)",
    "SELECT p.k, b.u FROM p JOIN b ON p.k = b.k AND b.u > v * 300 WHERE v <> 5",
]


@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("batch_rows", [None, 7])
def test_answers_are_those_of_duckdb(query: str, batch_rows: int | None) -> None:
    order = "1" if query.endswith("GROUP BY p.k") else "ALL"
    assert_same_rows(_TABLES, f"{query} ORDER BY {order}", batch_rows=batch_rows)
