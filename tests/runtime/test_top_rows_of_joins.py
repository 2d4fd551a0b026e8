"""Top-k after joins and group-bys: columns of the other side are read for the rows of the result alone."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tqp
from tests.oracle import assert_same_rows

_ROWS = 6_000
_TABLES = {
    "f": pa.table(
        {
            "id": list(range(_ROWS)),
            "k": [None if i % 11 == 0 else i * 7 % 90 for i in range(_ROWS)],
            "v": [None if i % 13 == 0 else i * 37 % 1_009 for i in range(_ROWS)],
        }
    ),
    "d": pa.table(
        {
            "k": list(range(60)),
            "name": [None if i % 9 == 0 else f"näme {i} {'x' * (i % 17)}" for i in range(60)],
            "low": [["red", "green", None][i % 3] for i in range(60)],
            "price": [None if i % 8 == 0 else i * 1.5 for i in range(60)],
            "e": [i % 5 for i in range(60)],
        }
    ),
    "e": pa.table({"e": [0, 1, 2, 3, 4], "title": ["null", "one", None, "", "four"]}),
    "none": pa.table({"k": pa.array([], pa.int64()), "name": pa.array([], pa.string())}),
}
_QUERIES = [
    "SELECT id, name, low, price FROM f JOIN d ON f.k = d.k ORDER BY v DESC, id LIMIT 7",
    "SELECT id, name, low, title FROM f JOIN d ON f.k = d.k JOIN e ON d.e = e.e ORDER BY v, id LIMIT 5 OFFSET 90",
    "SELECT id, name, low, price FROM f LEFT JOIN d ON f.k = d.k ORDER BY v DESC NULLS FIRST, id LIMIT 40",
    "SELECT id, d.name, none.name FROM f JOIN d ON f.k = d.k LEFT JOIN none ON f.k = none.k ORDER BY v, id LIMIT 3",
    "SELECT id, name, price FROM f JOIN d ON f.k = d.k ORDER BY price, id LIMIT 9",
    "SELECT id, v, k FROM f WHERE v > 500 ORDER BY id DESC LIMIT 11",
    "SELECT name, price, low, sum(v) AS s FROM f JOIN d ON f.k = d.k GROUP BY d.k, name, price, low ORDER BY s DESC LIMIT 4",
    "SELECT id, name FROM f JOIN d ON f.k = d.k WHERE v < 0 ORDER BY id LIMIT 4",
    "SELECT id, name FROM f JOIN d ON f.k = d.k ORDER BY id LIMIT 0",
    "SELECT upper(name), price * 2 FROM (SELECT name, price, id FROM f JOIN d ON f.k = d.k ORDER BY v, id LIMIT 8) AS t ORDER BY id",
]


@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("batch_rows", [None, 1_000])
def test_answers_are_those_of_duckdb(query: str, batch_rows: int | None) -> None:
    assert_same_rows(_TABLES, query, batch_rows=batch_rows)


def test_columns_of_the_other_side_wait_for_the_end() -> None:
    with tqp.connect(threads=1) as connection:
        for name, table in _TABLES.items():
            connection.register(name, table)
        sort, result = connection.compile(_QUERIES[0]).steps()[-2:]
        assert "name" not in sort.record.parameters()
        assert {"name", "low", "price"} <= set(result.record.parameters())
