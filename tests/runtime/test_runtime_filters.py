"""Where runtime filters are worth their look-ups; answers are DuckDB's."""

from __future__ import annotations

import numpy as np
import pytest

import tqp
from tests.oracle import duckdb_database

_ROWS = 200_000
_RANDOM = np.random.default_rng(5)
TABLES = {
    "sales": {
        "item": _RANDOM.integers(0, 1000, _ROWS),
        "day": _RANDOM.permutation(np.arange(_ROWS) % 2000),
        "customer": _RANDOM.integers(0, 5000, _ROWS),
    },
    "items": {"item_id": np.arange(1000), "kind": np.arange(1000) % 10},
    "days": {"day_id": np.arange(2000), "week": np.arange(2000) // 7},
    "customers": {"customer_id": np.arange(5000), "city": np.arange(5000) % 50},
}
_INNER = (
    "sales JOIN items ON item = item_id JOIN days ON day = day_id JOIN customers ON customer = customer_id"
)
_GROUPED = "(SELECT item, customer AS city, day AS week FROM sales GROUP BY ALL) JOIN items ON item = item_id"


@pytest.mark.parametrize(
    ("tables", "condition", "num_filters"),
    [
        # one join drops nearly all rows: the others look up what is left
        (_INNER, "kind < 3 AND week = 5", 0),
        (_INNER, "kind < 3 AND week = 5 AND city < 20", 0),
        # fewer rows are grouped
        (_GROUPED, "kind < 3", 1),
    ],
)
def test_where_they_save_look_ups(tables: str, condition: str, num_filters: int) -> None:
    query = f"SELECT count(*), sum(item), min(city), max(week) FROM {tables} WHERE {condition}"
    with tqp.connect(threads=2) as connection, duckdb_database() as oracle:
        for name, columns in TABLES.items():
            connection.register(name, columns)
            oracle.register(name, columns)
        assert connection.sql(query).fetchall() == oracle.sql(query).fetchall()
        assert connection.explain(query).partition("Physical plan")[2].count("RuntimeFilter") == num_filters
