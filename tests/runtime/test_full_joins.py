"""FULL joins, each one pass over its sides, against DuckDB."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import tqp
from tests.oracle import assert_same_rows

_FAR = 10**12


def _table(seed: int, rows: int, keys: int) -> pa.Table:
    generator = random.Random(seed)

    def drawn(values: range | list[str]) -> list[object]:
        return [generator.choice([None, *generator.choices(values, k=4)]) for _ in range(rows)]

    return pa.table(
        {
            "k": pa.array(drawn(range(keys)), pa.int64()),
            "far": pa.array(drawn(range(0, keys * _FAR, _FAR)), pa.int64()),
            "s": pa.array(drawn([f"word {n}" for n in range(keys)]), pa.string()),
            "id": pa.array(random.Random(seed).sample(range(2 * rows), rows), pa.int64()),
            "v": pa.array(range(rows), pa.int64()),
        }
    )


_TABLES = {"a": _table(1, 400, 150), "b": _table(2, 300, 200)}
_EMPTY = {"a": _TABLES["a"], "b": _TABLES["b"].slice(0, 0)}
_CONDITIONS = {
    "offset-array join": "a.k = b.k",
    "perfect-hash join": "a.id = b.id",
    "hash join": "a.far = b.far",
    "string join": "upper(a.s) = upper(b.s)",
    "hash join of two keys": "a.far = b.far AND a.s = b.s",
    "range join": "a.v < b.v AND a.v + 5 > b.v",
    "nested-loop join": "a.v * b.v % 7 = 1",
    "NULLs match": "a.k IS NOT DISTINCT FROM b.k",
    "more than keys": "a.k = b.k AND a.v < b.v",
    "of one side": "a.k = b.k AND a.v > 100",
    "of the other side": "a.k = b.k AND b.v > 100",
    "keys of one side": "a.v = 5 AND (a.v + b.v) % 30 = 0",
    "nothing": "a.k = b.k AND a.k < -5",
}


@pytest.mark.parametrize("condition", _CONDITIONS.values(), ids=_CONDITIONS.keys())
@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("batch_rows", [None, 7])
def test_answers_are_those_of_duckdb(condition: str, backend: str, batch_rows: int | None) -> None:
    for sides in ("a FULL JOIN b", "b FULL JOIN a", "(FROM a WHERE v > 350) a FULL JOIN b"):
        query = f"SELECT a.k, a.s, b.s, b.far, b.v, a.v FROM {sides} ON {condition} ORDER BY ALL"
        assert_same_rows(_TABLES, query, backend=backend, batch_rows=batch_rows)


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("condition", ["a.k = b.k", "a.s = b.s", "a.v < b.v", "a.k = b.k AND a.v > b.v"])
def test_a_side_without_rows_leaves_those_of_the_other(condition: str, backend: str) -> None:
    for sides in ("a FULL JOIN b", "b FULL JOIN a"):
        for where in ("true", "v < 0"):
            query = f"SELECT a.k, b.s FROM {sides.replace('a', f'(FROM a WHERE {where}) a', 1)} ON {condition} ORDER BY ALL"
            assert_same_rows(_EMPTY, query, backend=backend)
            assert_same_rows(_TABLES, query, backend=backend)


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_what_reads_a_full_join_reads_all_of_it(backend: str) -> None:
    for query in (
        "SELECT count(*), count(a.k), count(b.k), sum(a.v), max(b.s) FROM a FULL JOIN b ON a.k = b.k",
        "SELECT count(*) FROM a FULL JOIN b ON a.id = b.id",
        "SELECT b.k, count(*) FROM a FULL JOIN b ON a.k = b.k GROUP BY b.k ORDER BY ALL",
        "SELECT a.v, b.v, c.v FROM a FULL JOIN b ON a.id = b.id FULL JOIN a c ON b.id = c.v ORDER BY ALL",
        "SELECT a.v, b.v FROM a FULL JOIN b ON a.k = b.k WHERE a.v IN (SELECT v FROM b WHERE k < 9) ORDER BY ALL",
        "SELECT a.v, b.v FROM a FULL JOIN b ON a.id = b.id JOIN (FROM b WHERE v < 9) c ON a.v = c.v ORDER BY ALL",
        "SELECT v, (SELECT count(*) FROM a FULL JOIN (SELECT 4 AS k) o ON a.k = o.k AND a.v < c.v) FROM b c ORDER BY ALL",
        (
            "WITH RECURSIVE r AS (SELECT 0 AS n UNION ALL SELECT r.n + 1 FROM r JOIN (SELECT a.k FROM a FULL JOIN b ON a.id = b.id"
            " WHERE a.v < 3 OR b.v < 3) j ON r.n < 3) SELECT n, count(*) FROM r GROUP BY n ORDER BY n"
        ),
    ):
        assert_same_rows(_TABLES, query, backend=backend)


@pytest.mark.parametrize("algorithm", [name for name in _CONDITIONS if name.endswith(" join")])
def test_one_join_reads_each_side_once(algorithm: str) -> None:
    with tqp.connect() as connection:
        for name, table in _TABLES.items():
            connection.register(name, table)
        query = f"SELECT a.v, b.v FROM a FULL JOIN b ON {_CONDITIONS[algorithm]}"
        _, _, plan = connection.explain(query).partition("Physical plan")
        assert plan.count("TableScan") == 2 and plan.count("Join ") == 1 and "Shared" not in plan
        assert f" full [{algorithm}" in plan, plan
