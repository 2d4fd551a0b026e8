"""Groups of strings that come from a table with a key: by the key first, then by the strings; answers are DuckDB's."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

import tqp
from tests.oracle import duckdb_database
from tests.runtime.split_aggregates import num_aggregates
from tqp.planner.rules import group_in_two_steps as rule

_CUSTOMERS, _ORDERS = 6_000, 40_000  # more names than always get a dictionary


def _tables() -> dict[str, pa.Table]:
    chance = random.Random(0)
    keys = list(range(10, _CUSTOMERS + 10))
    names = [None if key % 97 == 0 else f"näme {key // 2:05d}" for key in keys]  # two customers have one name
    cities = [f"city {key % 5000:05d}" if key % 3 else None for key in keys]
    customer = pa.array([chance.choice([None, 3, *keys[:4000]]) for _ in range(_ORDERS)], pa.int64())
    quantity = pa.array([chance.choice([None, *range(9)]) for _ in range(_ORDERS)], pa.int32())
    price = pa.array([Decimal(chance.randrange(10_000)) / 100 for _ in range(_ORDERS)], pa.decimal128(9, 2))
    year = pa.array([chance.randrange(2000, 2003) for _ in range(_ORDERS)])
    orders = pa.table({"customer": customer, "quantity": quantity, "price": price, "year": year})
    customers = pa.table({"id": keys, "name": names, "city": pa.array(cities, pa.string())})
    return {"customers": customers, "orders": orders, "none": orders.slice(0, 0)}


TABLES = _tables()
JOINED = "FROM {0} JOIN customers ON customer = id"
QUERIES = [
    f"SELECT name, count(*), sum(price), min(quantity), max(city) {JOINED} GROUP BY name",
    f"SELECT name, city, year, count(quantity), sum(quantity) {JOINED} GROUP BY name, city, year",
    f"SELECT name, year + 1 AS y, bool_or(quantity > 7), sum(price) FILTER (WHERE quantity > 3) {JOINED} GROUP BY name, y",
    f"SELECT name, city {JOINED} GROUP BY name, city",
    f"SELECT name, avg(quantity), avg(price), max(year) {JOINED} GROUP BY name",
    "SELECT name, count(*), count(quantity) FROM {0} LEFT JOIN customers ON customer = id GROUP BY name",
]
UNCHANGED = [
    f"SELECT name, count(DISTINCT year) {JOINED} GROUP BY name",
    f"SELECT name, median(quantity) {JOINED} GROUP BY name",
    f"SELECT name || 'x' AS n, count(*) {JOINED} GROUP BY n",
    "SELECT name, count(*) FROM customers GROUP BY name",
]


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("table", ["orders", "none"])
def test_answers(monkeypatch: pytest.MonkeyPatch, backend: str, table: str) -> None:
    monkeypatch.setattr(rule, "_FEWEST_SAVED", -1.0)
    monkeypatch.setattr(rule, "_LARGEST_SHARE", float("inf"))
    with tqp.connect(threads=2, backend=backend) as connection, duckdb_database() as oracle:
        for name, data in TABLES.items():
            connection.register(name, data)
            oracle.register(name, data)
        for query in QUERIES + UNCHANGED:
            text = f"{query.format(table)} ORDER BY ALL"
            assert connection.sql(text).fetchall() == oracle.sql(text).fetchall(), text
            if table == "orders":
                assert num_aggregates(connection, text) == 1 + (query in QUERIES), text


def test_only_where_it_leaves_fewer_strings() -> None:
    with tqp.connect() as connection:
        for name, data in TABLES.items():
            connection.register(name, data)
        few = QUERIES[0].format("orders")
        assert num_aggregates(connection, few) == 1  # 40 thousand rows
        connection.register("orders", pa.concat_tables([TABLES["orders"]] * 4))
        assert num_aggregates(connection, few) == 2
        assert num_aggregates(connection, QUERIES[1].format("orders")) == 2


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_keys_with_too_many_combinations_for_a_table(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    monkeypatch.setattr(rule, "_FEWEST_SAVED", 1000.0)
    chance = random.Random(1)
    keys = list(range(2000))
    items = pa.table(
        {
            "id": keys,
            "brand": pa.array([None if key % 9 == 0 else key % 300 * 7919 for key in keys], pa.int64()),
            "class": pa.array([chance.randrange(-(10**6), 10**6) // 10**4 * 10**4 for _ in keys]),
        }
    )
    sold = pa.table(
        {
            "item": pa.array([chance.choice([None, *keys]) for _ in range(_ORDERS)], pa.int32()),
            "quantity": pa.array([chance.choice([None, *range(9)]) for _ in range(_ORDERS)], pa.int32()),
        }
    )
    with tqp.connect(threads=2, backend=backend) as connection, duckdb_database() as oracle:
        for name, data in {"items": items, "sold": sold}.items():
            connection.register(name, data)
            oracle.register(name, data)
        joined = "FROM sold JOIN items ON item = id GROUP BY"
        for query, aggregates in (
            (f"SELECT brand, class, sum(quantity), count(*), avg(quantity) {joined} brand, class", 2),
            (f"SELECT brand, class, max(quantity) {joined} ROLLUP (brand, class)", 4),
            (f"SELECT brand, class, median(quantity) {joined} brand, class", 1),
            (f"SELECT brand % 4 AS b, class % 3 AS c, count(*) {joined} b, c", 1),
        ):
            text = f"{query} ORDER BY ALL"
            assert connection.sql(text).fetchall() == oracle.sql(text).fetchall(), text
            assert num_aggregates(connection, text) == aggregates, text
