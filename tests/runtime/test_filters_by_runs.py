"""Runtime filters that look up the runs of a sorted table column, against DuckDB."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tqp
from tests.oracle import assert_same_rows

_ORDERS = 2000
_TABLES = {
    "orders": pa.table(
        {
            "k": [i * 3 for i in range(_ORDERS)],
            "day": [i * 7 % 1000 for i in range(_ORDERS)],
            "c": [None if i % 11 == 0 else i % 300 for i in range(_ORDERS)],
        }
    ),
    # sorted by `k`, up to seven rows each, some keys without an order
    "lines": pa.table(
        {
            "k": [i * 3 + (i % 10 == 0) for i in range(_ORDERS) for _ in range(i % 8)],
            "a": [i * j % 97 for i in range(_ORDERS) for j in range(i % 8)],
            "b": [None if j == 2 else i * j % 89 for i in range(_ORDERS) for j in range(i % 8)],
        }
    ),
    "customers": pa.table({"c": list(range(300)), "s": [i % 20 for i in range(300)]}),
    "none": pa.table({"k": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}),
}
_QUERIES = [
    "SELECT l.k, a, b, day FROM lines l JOIN orders o ON l.k = o.k WHERE day < 50",
    "SELECT l.k, a, b, day FROM lines l JOIN orders o ON l.k = o.k WHERE day < 50 AND a > 20 AND b < 80",
    "SELECT l.k, sum(a), any_value(day) FROM lines l JOIN orders o ON l.k = o.k WHERE day < 50 AND a < b GROUP BY l.k",
    "SELECT s, sum(a) FROM lines l JOIN orders o ON l.k = o.k JOIN customers c ON o.c = c.c WHERE s = 3 GROUP BY s",
    "SELECT k, a FROM lines WHERE k IN (SELECT k FROM orders WHERE day < 50) AND b <> 7",
    "SELECT k, a FROM lines WHERE k IN (SELECT k FROM orders WHERE day < 0)",
    "SELECT l.k, a, v FROM lines l JOIN none n ON l.k = n.k",
    "SELECT o.k, m FROM orders o JOIN (SELECT k, max(a) AS m FROM lines GROUP BY k) g ON o.k = g.k WHERE day < 50",
    "SELECT o.k, m FROM (SELECT * FROM orders WHERE day < 50) o"
    + " LEFT JOIN (SELECT k, max(a) AS m FROM lines WHERE a < b GROUP BY k) g ON o.k = g.k",
    "SELECT day, count(*) FROM orders o WHERE day < 50 AND EXISTS (FROM lines l WHERE l.k = o.k AND a < b) GROUP BY day",
    "SELECT day, c FROM orders o WHERE day < 50 AND NOT EXISTS (FROM lines l WHERE l.k = o.k AND a < b)",
    "SELECT o.* FROM orders o WHERE day < 50 AND EXISTS (FROM lines l WHERE l.k = o.k AND l.a > o.day AND l.b < 80)",
    "SELECT s, o.k FROM orders o JOIN customers c ON o.c = c.c WHERE s = 3 AND NOT EXISTS (FROM lines l WHERE l.k = o.k)",
    "SELECT l.k, m.a FROM lines l JOIN orders o ON l.k = o.k JOIN lines m ON m.k = o.k WHERE day < 20 AND m.b > l.b",
]


@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("batch_rows", [None, pytest.param(1, marks=pytest.mark.slow), 7, 50])
@pytest.mark.parametrize("rule", ["", "index_join", "filter_by_runs", "runtime_filters"])
def test_answers_are_those_of_duckdb(query: str, batch_rows: int | None, rule: str) -> None:
    off = ["index_join", rule] if rule else []
    assert_same_rows(_TABLES, f"{query} ORDER BY ALL", batch_rows=batch_rows, disabled_rules=off)


def test_the_plan_says_so_and_the_join_does_not_ask_again() -> None:
    off = ["index_join", "filter_by_runs"]
    with tqp.connect(disabled_rules=off[:1]) as connection, tqp.connect(disabled_rules=off) as without:
        for name, table in _TABLES.items():
            connection.register(name, table)
            without.register(name, table)
        plan = str(connection.explain(_QUERIES[0]))
        assert "RuntimeFilter [by runs of the sorted column]" in plan
        assert "all match" in plan
        assert "by runs" not in str(without.explain(_QUERIES[0]))
        code = connection.compile(_QUERIES[0]).code
        assert "rows_in_build(" in code
        assert ".contains(" not in code
