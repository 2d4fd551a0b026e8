"""Joins on two keys of which an offset array finds one and compares the other, against DuckDB."""

from __future__ import annotations

import random
import re

import pyarrow as pa
import pytest

import tqp
from tests.oracle import assert_same_rows

_FAR = 10**12  # second keys so far apart that both keys together are not dense


def _table(seed: int, rows: int, keys: int) -> pa.Table:
    generator = random.Random(seed)
    return pa.table(
        {
            "k": [generator.randint(0, keys) for _ in range(rows)],
            "s": [generator.randint(0, 5) * _FAR for _ in range(rows)],
            "n": [generator.choice([None, 1, 2, _FAR]) for _ in range(rows)],
            "v": list(range(rows)),
        }
    )


_TABLES = {"a": _table(1, 3000, 200), "b": _table(2, 500, 800)}
_QUERIES = [
    "SELECT * FROM a JOIN b ON a.k = b.k AND a.s = b.s",
    "SELECT * FROM a LEFT JOIN b ON a.k = b.k AND b.s = a.s AND a.s < b.v * 10000000000",
    "SELECT * FROM a WHERE EXISTS (FROM b WHERE a.k = b.k AND a.s = b.s AND a.s < b.v * 10000000000)",
    "SELECT * FROM a WHERE NOT EXISTS (FROM b WHERE a.k = b.k AND a.s = b.s AND a.n = b.n)",
    "SELECT a.v, b.v FROM a JOIN b ON a.k = b.k AND a.n = b.n",
    "SELECT *, (SELECT max(v) FROM b WHERE b.k = a.k AND b.s = a.s) FROM a",
    "SELECT * FROM (SELECT * FROM a WHERE n = 1) a FULL JOIN b ON a.k = b.k AND a.s = b.s",
]


@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("batch_rows", [None, 7])
def test_answers_are_those_of_duckdb(query: str, batch_rows: int | None) -> None:
    assert_same_rows(_TABLES, f"{query} ORDER BY ALL", batch_rows=batch_rows)


def test_the_second_key_is_compared_by_the_directory() -> None:
    with tqp.connect() as connection:
        for name, table in _TABLES.items():
            connection.register(name, table)
        assert "matches_equal(" in connection.compile(_QUERIES[0]).code


def test_a_column_that_is_a_constant_is_compared_after_the_join() -> None:
    with tqp.connect() as connection:
        connection.sql("CREATE TABLE t (k BIGINT, s VARCHAR, c DECIMAL(38, 0))")
        connection.sql("INSERT INTO t VALUES (9223372036854775806, 'x', 0)")
        answer = connection.sql(
            "FROM (VALUES (4)) JOIN (FROM t LEFT JOIN LATERAL (SELECT c, 2 AS o FROM VALUES (8), (8)) l"
            " ON o <> ANY ([k, CASE WHEN s IS NOT NULL THEN o END])) ON 1"
        )
        assert [row[-1] for row in answer.fetchall()] == [2, 2]


def test_ranks_that_many_partitions_have_are_no_key_alone() -> None:
    sparse = [n % 3000 * _FAR for n in range(30_000)]
    rows = pa.table({"a": sparse, "b": sparse})
    ranked = "SELECT a, b, sum(x) OVER (PARTITION BY a) AS t, rank() OVER (PARTITION BY a, b ORDER BY x) AS r"
    query = (
        f"WITH v AS ({ranked} FROM (SELECT *, row_number() OVER () AS x FROM t)) "
        "SELECT count(*) AS n FROM v JOIN v w ON v.a = w.a AND v.b = w.b AND v.r = w.r + 1 "
        "WHERE v.t > 0 AND v.t - v.t + v.r > 0 AND v.r % 2 < 3 AND v.r * 2 > 1"
    )
    assert_same_rows({"t": rows}, query)
    with tqp.connect() as connection:
        connection.register("t", rows)
        _, _, physical = connection.explain(query).partition("Physical plan")
    join = next(line for line in physical.splitlines() if "w.r" in line or "+ 1" in line)
    assert " where " not in join, join


def test_a_scalar_subquery_is_a_side_of_a_join() -> None:
    rows = pa.table({"k": list(range(20_000)), "d": [n // 100 for n in range(20_000)]})
    query = "SELECT count(*) AS n, sum(a.k) AS s FROM t a JOIN t b ON a.k = b.k WHERE a.d = (SELECT d FROM t WHERE k = 777)"
    assert_same_rows({"t": rows}, query)
    with tqp.connect() as connection:
        connection.register("t", rows)
        _, _, physical = connection.explain(query).partition("Physical plan")
    assert re.search(r"Join \d+ inner [^\n]* on d(#\d+)? = d(#\d+)?  ", physical), physical


def test_a_key_with_enough_values_stands_for_several_where_a_filter_is_not_trusted() -> None:
    sales = pa.table(
        {"ticket": [n // 12 for n in range(60_000)], "item": [n % 97 * _FAR for n in range(60_000)]}
    )
    returns = sales.take(list(range(0, 60_000, 11))).append_column(
        "day", pa.array([n % 5000 for n in range(5455)])
    )
    days = pa.table({"day": list(range(5000)), "year": [n // 2 for n in range(5000)]})
    query = (
        "SELECT s.ticket, s.item, r.day FROM sales s, returns r, days d WHERE s.ticket = r.ticket AND s.item = r.item "
        "AND r.day = d.day AND d.year = 77 ORDER BY ALL"
    )
    assert_same_rows({"sales": sales, "returns": returns, "days": days}, query)
    with tqp.connect() as connection:
        for name, table in {"sales": sales, "returns": returns, "days": days}.items():
            connection.register(name, table)
        _, _, physical = connection.explain(query).partition("Physical plan")
    assert re.search(r"Join \d+ inner [^\n]* on s?\.?ticket(#\d+)? = r?\.?ticket(#\d+)? where ", physical), (
        physical
    )
