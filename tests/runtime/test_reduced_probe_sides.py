"""Joins by one of three keys that make no integer, whose probe side is asked for another first; answers are DuckDB's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import tqp
from tests.oracle import duckdb_database

_STOCK, _ORDERS, _ITEMS, _DAYS = 400_000, 100_000, 20_000, 70_000


def _tables() -> dict[str, pa.Table]:
    chance = np.random.default_rng(0)

    def column(values: np.ndarray) -> pa.Array:
        return pa.array(values, mask=chance.random(len(values)) < 0.01)

    days = np.arange(0, _DAYS, 233)
    stock = {
        "s_day": column(days[chance.integers(0, len(days), _STOCK)]),
        "s_item": column(chance.integers(0, _ITEMS, _STOCK)),
        "s_weight": column(chance.integers(0, 2, _STOCK) / 2),
        "s_quantity": column(chance.integers(0, 100, _STOCK)),
    }
    orders = {
        "o_day": column(days[chance.integers(0, 40, _ORDERS)]),
        "o_item": column(chance.integers(0, _ITEMS * 2 // 5, _ORDERS)),
        "o_weight": column(chance.integers(0, 2, _ORDERS) / 2),
        "o_quantity": column(chance.integers(0, 100, _ORDERS)),
        "o_name": pa.array([f"näme {number % 7}" for number in range(_ORDERS)]),
        "o_shop": column(chance.integers(0, 1000, _ORDERS)),
        "o_clerk": column(chance.integers(0, 1000, _ORDERS)),
    }
    shops = {"shop": np.arange(1000), "kind": np.arange(1000) % 2}
    clerks = {"clerk": np.arange(1000), "grade": np.arange(1000) % 2}
    tables = {"stock": stock, "orders": orders, "shops": shops, "clerks": clerks}
    made = {name: pa.table(columns) for name, columns in tables.items()}
    return {**made, "nothing": made["orders"].slice(0, 0)}


TABLES = _tables()
PAIRS = "count(*), sum(s_quantity), sum(o_quantity * s_quantity), min(o_name)"
KEYS = "s_item = o_item AND s_day = o_day AND s_weight = o_weight"
QUERIES = [
    f"SELECT {PAIRS} FROM stock JOIN orders ON {KEYS}",
    (
        f"SELECT o_name, {PAIRS} FROM stock JOIN orders ON {KEYS} AND s_quantity < o_quantity "
        "GROUP BY o_name ORDER BY o_name"
    ),
    # the build side has a filter by one of its own joins
    (
        f"SELECT {PAIRS}, sum(grade) FROM stock JOIN orders ON {KEYS} "
        "JOIN clerks ON o_clerk = clerk JOIN shops ON o_shop = shop WHERE kind = 1 AND grade = 1"
    ),
]


def _connect(backend: str, *disabled: str) -> tqp.Connection:
    connection = tqp.connect(threads=2, backend=backend, disabled_rules=disabled)
    for name, data in TABLES.items():
        connection.register(name, data)
    return connection


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_answers(backend: str) -> None:
    with (
        _connect(backend) as reduced,
        _connect(backend, "reduce_probe") as whole,
        duckdb_database() as oracle,
    ):
        for name, data in TABLES.items():
            oracle.register(name, data)
        for query in QUERIES:
            rows = oracle.sql(query).fetchall()
            assert reduced.sql(query).fetchall() == whole.sql(query).fetchall() == rows, query
            _, _, plan = reduced.explain(query).partition("Physical plan")
            assert " semi " in plan and " semi " not in whole.explain(query), query
            query = query.replace("orders", "nothing")
            assert reduced.sql(query).fetchall() == oracle.sql(query).fetchall(), query


def test_only_where_it_drops_many_pairs() -> None:
    with _connect("host") as connection:
        every_day = TABLES["stock"].select(["s_day", "s_item", "s_weight", "s_quantity"]).slice(0, _ORDERS)
        connection.register("orders", every_day.rename_columns(["o_day", "o_item", "o_weight", "o_quantity"]))
        query = f"SELECT sum(s_quantity * o_quantity) FROM stock JOIN orders ON {KEYS}"
        assert " semi " not in connection.explain(query)
