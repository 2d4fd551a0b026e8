"""Texts of several dictionaries, constants and NULLs as codes of one dictionary: answers are those of DuckDB, in every plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import tqp
from tests.oracle import assert_same_rows, duckdb_database
from tqp.planner.algebra import text_words

_ROWS = 3000


def _words(*words: str | None) -> pa.Array:
    return pa.array([words[row * row % 11 % len(words)] for row in range(_ROWS)])


_TABLES: dict[str, Any] = {
    "a": pa.table({"s": _words("x", "y", "zz", None), "v": list(range(_ROWS))}),
    "b": pa.table({"s": _words("q", "y", "é", "x"), "v": list(range(_ROWS))}),
    "m": pa.table({"s": ["Jan", "Feb", None, "Jan"], "k": ["const"] * 4, "v": list(range(4))}),
    "none": pa.table({"s": pa.array([], pa.string()), "v": pa.array([], pa.int64())}),
    "own": pa.table({"s": [f"word {row}" for row in range(_ROWS)], "v": list(range(_ROWS))}),
}
_QUERIES = [
    "SELECT s, count(*), sum(v) FROM (SELECT s, v FROM a UNION ALL SELECT s, v FROM b) GROUP BY s",
    "SELECT s, count(*), min(k), max(k) FROM (SELECT s, 'A' AS k FROM a UNION ALL SELECT s, 'B' FROM b UNION ALL SELECT NULL, NULL FROM m) GROUP BY s",
    "SELECT k, s, count(*) FROM (SELECT 'A' AS k, s FROM a UNION ALL SELECT 'b', s FROM b) GROUP BY ALL",
    "SELECT s FROM a UNION SELECT s FROM b UNION SELECT s FROM none",
    "SELECT s FROM own UNION SELECT s FROM b",
    "SELECT k, count(*) FROM (SELECT 'A' AS k UNION ALL SELECT 'B') GROUP BY k",
    "SELECT k, v, count(*) FROM (SELECT 'A' AS k, v FROM m UNION ALL SELECT 'B', v FROM m WHERE v > 1 UNION ALL (SELECT 'C', v FROM m ORDER BY v LIMIT 2)) GROUP BY ALL",
    "SELECT DISTINCT k FROM (SELECT 'A' AS k FROM a WHERE v < 0 UNION ALL SELECT NULL FROM m UNION ALL SELECT '' FROM m)",
    "SELECT k, count(*) FROM (SELECT lower('ABC') AS k FROM m UNION ALL SELECT CASE WHEN v > 2 THEN 'x' ELSE s END FROM m) GROUP BY k",
    "WITH x AS (SELECT 'A' AS k, s FROM m) SELECT k, s, count(*) FROM (FROM x UNION ALL FROM x UNION ALL SELECT 'Z', s FROM m) GROUP BY ALL",
    "SELECT CASE WHEN v % 3 = 0 THEN s ELSE 'other' END AS t, count(*) FROM a GROUP BY t",
    "SELECT CASE WHEN v % 3 = 0 THEN s END AS t, count(*) FROM a GROUP BY t",
    "SELECT CASE WHEN v % 3 = 0 THEN s WHEN v % 3 = 1 THEN 'y' ELSE '' END AS t, max(v) FROM own GROUP BY t",
    "SELECT coalesce(s, 'none') AS t, count(*) FROM a GROUP BY t",
    "SELECT CASE WHEN a.v % 2 = 0 THEN a.s WHEN a.v % 3 = 0 THEN b.s END AS t, count(*) FROM a JOIN b ON a.v = b.v GROUP BY t",
    "SELECT coalesce(a.s, b.s) AS s, a.s AS x, b.s AS y, count(*) FROM a FULL JOIN b ON a.v = b.v + 1500 GROUP BY ALL",
    "SELECT max(coalesce(a.s, b.s)), min(coalesce(b.s, a.s, 'zzz')) FROM a FULL JOIN b ON a.v = b.v + 1500",
    "SELECT t FROM (SELECT v, CASE WHEN v % 3 = 0 THEN s ELSE 'other' END AS t FROM b) WHERE t LIKE '%t%' OR t > 'p'",
    "SELECT v, t, row_number() OVER (PARTITION BY t ORDER BY v) FROM (SELECT v, coalesce(s, 'none') AS t FROM a UNION ALL SELECT v, s FROM m)",
    "SELECT x.s, m.v FROM (SELECT s FROM a WHERE v < 50 UNION ALL SELECT s FROM m) x JOIN m ON m.s = x.s OR x.s = 'y'",
    "SELECT concat(k, s), upper(k), k || v FROM (SELECT 'A' AS k, s, v FROM m UNION ALL SELECT s, k, v FROM m)",
    "SELECT k, count(*) FROM (SELECT 'A' AS k, * FROM m WHERE false UNION ALL SELECT s, * FROM m) t(k, s, l, v) GROUP BY k",
]


@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize(
    ("batch_rows", "rule"),
    [(None, ""), (100, "direct_aggregate"), (100, "prune_columns"), (None, "common_subplans")],
)
def test_answers_are_those_of_duckdb(query: str, batch_rows: int | None, rule: str) -> None:
    assert_same_rows(
        _TABLES, query + " ORDER BY ALL", batch_rows=batch_rows, disabled_rules=[rule] if rule else []
    )


@pytest.fixture
def connection() -> Iterator[tqp.Connection]:
    with tqp.connect() as connection:
        for name, table in _TABLES.items():
            connection.register(name, table)
        yield connection


@pytest.mark.parametrize("query", [0, 2, 10, 11, 14])
def test_groups_are_found_by_codes(query: int, connection: tqp.Connection) -> None:
    text = connection.sql("EXPLAIN " + _QUERIES[query]).fetchall()[0][-1]
    assert "Aggregate [direct group-by" in text or "[dictionary" in text, text


def test_many_words_stay_texts(connection: tqp.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    query = _QUERIES[0]
    with duckdb_database() as oracle:
        for name, table in _TABLES.items():
            oracle.register(name, table)
        expected = oracle.sql(query + " ORDER BY ALL").fetchall()
    monkeypatch.setattr(text_words, "MOST_WORDS", 3)
    assert "direct" not in connection.sql("EXPLAIN " + query).fetchall()[0][-1].partition("Physical plan")[2]
    assert connection.sql(query + " ORDER BY ALL").fetchall() == expected
