"""Several looks at a table for the same few rows are one, against DuckDB."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tqp
from tests.oracle import assert_same_rows

_ROWS = 6000
_TABLES = {
    "parts": pa.table({"p": list(range(500)), "brand": [i * 7 % 100 for i in range(500)]}),
    "lines": pa.table(
        {
            "o": [i // 4 for i in range(_ROWS)],
            "p": [i * 37 % 500 for i in range(_ROWS)],
            "q": [i * 13 % 50 for i in range(_ROWS)],
            "x": [None if i % 9 == 0 else i % 70 for i in range(_ROWS)],
            "word": [("red", "green", "blue")[i % 3] for i in range(_ROWS)],
        }
    ),
    "words": pa.table({"word": ["blue", "pink", "red"], "n": [1, 2, 3]}),
}
_QUERIES = [
    "SELECT sum(x) FROM lines l, parts p WHERE l.p = p.p AND brand = 3"
    + " AND q < (SELECT 0.4 * avg(q) FROM lines m WHERE m.p = p.p)",
    "SELECT l.o, l.word, x FROM lines l, parts p WHERE l.p = p.p AND brand = 3 AND l.word <> 'red'"
    + " AND q < (SELECT max(q) FROM lines m WHERE m.p = p.p AND m.word = 'blue')",
    "SELECT l.o, n FROM lines l, parts p, words w WHERE l.p = p.p AND brand = 3 AND l.word = w.word"
    + " AND q < (SELECT max(q) FROM lines m WHERE m.p = p.p)",
    "SELECT a.p, b.p, a.word, count(*) FROM lines a, lines b, parts p WHERE a.p = p.p AND b.p = p.p AND brand = 3 AND a.q < b.q"
    + " GROUP BY ALL",
    "SELECT count(*) FROM lines l, parts p WHERE l.p = p.p AND brand = 3 AND l.q > 40"
    + " AND EXISTS (FROM lines m WHERE m.o = l.o AND m.q <> l.q)"
    + " AND NOT EXISTS (FROM lines n WHERE n.o = l.o AND n.q <> l.q AND n.x < n.q)",
    "SELECT sum(x) FROM lines l, parts p WHERE l.p = p.p AND brand = -1"
    + " AND q < (SELECT 0.4 * avg(q) FROM lines m WHERE m.p = p.p)",
]


@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("batch_rows", [None, 100])
@pytest.mark.parametrize("rule", ["", "share_filtered_scans", "filter_by_runs"])
def test_answers_are_those_of_duckdb(query: str, batch_rows: int | None, rule: str) -> None:
    off = [rule] if rule else []
    assert_same_rows(_TABLES, f"{query} ORDER BY ALL", batch_rows=batch_rows, disabled_rules=off)


@pytest.mark.parametrize("query", [_QUERIES[0], _QUERIES[4]])
def test_the_table_is_filtered_once(query: str) -> None:
    with tqp.connect() as connection, tqp.connect(disabled_rules=["share_filtered_scans"]) as without:
        for name, table in _TABLES.items():
            connection.register(name, table)
            without.register(name, table)
        plan, separate = (str(c.explain(query)).partition("Physical plan")[2] for c in (connection, without))
        assert plan.count("TableScan lines") == separate.count("TableScan lines") - 1
        assert plan.count("Shared $") == 2
