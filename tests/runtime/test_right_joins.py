"""LEFT JOINs of few rows with many, whose left side is built: rows that nothing has met come out, too; answers are DuckDB's."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import tqp
from tests.oracle import duckdb_database

_ROWS = 3000


def _tables() -> dict[str, pa.Table]:
    chance = random.Random(0)
    many = {
        "k": pa.array([chance.choice([None, *range(0, 60, 2)]) for _ in range(_ROWS)], pa.int32()),
        "far": [chance.randrange(40) * 10**12 for _ in range(_ROWS)],
        "name": [f"näme {chance.randrange(50)}" for _ in range(_ROWS)],
        "v": pa.array([chance.choice([None, *range(100)]) for _ in range(_ROWS)], pa.int16()),
        "x": [chance.randrange(800) / 8 for _ in range(_ROWS)],
    }
    few = {
        "k": pa.array([*range(0, 90, 3), None, None, 6, 6], pa.int32()),
        "far": [row % 50 * 10**12 for row in range(34)],
        "name": [f"näme {row * 3}" for row in range(34)],
        "w": pa.array([None if row % 5 == 4 else row for row in range(34)], pa.int32()),
    }
    table, small = pa.table(many), pa.table(few)
    return {
        "many": table,
        "few": small,
        "one_each": small.slice(0, 30),
        "nothing": table.slice(0, 0),
        "nobody": small.slice(0, 0),
    }


TABLES = _tables()
JOINS = [
    "one_each f LEFT JOIN many m ON f.k = m.k",
    "few f LEFT JOIN many m ON f.k = m.k",
    "few f LEFT JOIN many m ON f.far = m.far",
    "few f LEFT JOIN many m ON f.name = m.name",
    "few f LEFT JOIN many m ON f.name = m.name AND f.far = m.far",
    "few f LEFT JOIN many m ON f.k IS NOT DISTINCT FROM m.k",
    "one_each f LEFT JOIN many m ON f.k = m.k AND m.v < f.w * 4",
    "few f LEFT JOIN many m ON f.k = m.k AND m.v < f.w * 4",
    "few f LEFT JOIN many m ON f.k = m.k AND f.w > 10",
    "few f LEFT JOIN many m ON f.k = m.k AND m.v > 90",
    "few f LEFT JOIN many m ON m.x > f.w AND m.x < f.w + 1",
    "many m RIGHT JOIN few f USING (k)",
    "few f LEFT JOIN (SELECT m.* FROM many m JOIN one_each e ON m.k = e.k AND e.w < 9) m ON f.k = m.k",
    "one_each f LEFT JOIN many m ON f.k = m.k JOIN (VALUES (3), (6), (70)) a(k) ON a.k = f.k",
]
QUERIES = [
    "SELECT f.w, f.name, m.v, m.name, m.x FROM {0}",
    "SELECT f.name, count(*) AS c, count(m.v) AS n, median(m.x) AS x, count(DISTINCT m.v) AS d FROM {0} GROUP BY f.name",
    "SELECT count(*), sum(f.w), sum(m.v) FROM {0}",
    "SELECT m.name, count(*) FROM {0} WHERE f.w > 5 GROUP BY m.name",
    "SELECT f.name FROM {0} WHERE m.v IS NULL",
]


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("join", JOINS)
def test_answers(join: str, backend: str) -> None:
    with tqp.connect(threads=2, backend=backend, batch_rows=200) as connection, duckdb_database() as oracle:
        for name, table in TABLES.items():
            connection.register(name, table)
            oracle.register(name, table)
        for query in QUERIES:
            text = query.format(join) + " ORDER BY ALL"
            assert connection.sql(text).fetchall() == oracle.sql(text).fetchall(), text
        # one that keeps few of the many rows builds on these; bounds of several kinds are searched for among them
        builds_on_many = "v > 90" in join or "m.x >" in join
        assert (" right [" in connection.explain(QUERIES[0].format(join))) is not builds_on_many
        for other in (join.replace("many m", "nothing m"), join.replace("few f", "nobody f")):
            text = QUERIES[0].format(other) + " ORDER BY ALL"
            assert connection.sql(text).fetchall() == oracle.sql(text).fetchall(), text


def test_the_larger_side_streams() -> None:
    with tqp.connect() as connection:
        for name, table in TABLES.items():
            connection.register(name, table)
        query = "SELECT m.v, f.w FROM {0} LEFT JOIN {1} ON f.k = m.k"
        assert " right [" in connection.explain(query.format("one_each f", "many m"))
        assert " left [" in connection.explain(query.format("many m", "one_each f"))
        assert " left [" in connection.explain(query.format("many f", "many m").replace("f.w", "f.v"))
