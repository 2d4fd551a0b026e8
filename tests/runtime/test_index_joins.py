"""Joins that look few rows up in a table's stored index, against DuckDB."""

from __future__ import annotations

import pyarrow as pa
import pytest
import torch

import tqp
from tests.oracle import assert_same_rows
from tqp.core.datatypes import BIGINT
from tqp.data.encoding.columns import encode_chunks
from tqp.data.encoding.sorted_columns import KeySet, key_index
from tqp.operators.joins.perfect_hash_join import build_of_index

_ORDERS = 2000
_TABLES = {
    "orders": pa.table(
        {
            "k": [i * 3 + 5000 for i in range(_ORDERS)],
            "day": [i * 7 % 1000 for i in range(_ORDERS)],
            "c": [None if i % 11 == 0 else i % 300 for i in range(_ORDERS)],
            "note": [None if i % 13 == 0 else f"note {i * i}" for i in range(_ORDERS)],
        }
    ),
    # sorted by `k`, up to seven rows each, some keys without an order
    "lines": pa.table(
        {
            "k": [i * 3 + 5000 + (i % 10 == 0) for i in range(_ORDERS) for _ in range(i % 8)],
            "a": [i * j % 97 for i in range(_ORDERS) for j in range(i % 8)],
            "b": [None if j == 2 else i * j % 89 for i in range(_ORDERS) for j in range(i % 8)],
            "text": [f"{i * j}" * (j + 1) for i in range(_ORDERS) for j in range(i % 8)],
        }
    ),
    "customers": pa.table(
        {"c": list(range(300)), "s": [i % 20 for i in range(300)], "name": [f"c{i}" for i in range(300)]}
    ),
    # not sorted, with keys that no order has, and NULLs
    "asked": pa.table(
        {"k": [None if i % 7 == 0 else 5000 + i * 37 % 5995 for i in range(60)], "v": range(60)}
    ),
    "none": pa.table({"k": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}),
}
_QUERIES = [
    "SELECT l.k, a, b, day FROM lines l JOIN orders o ON l.k = o.k WHERE day < 50",
    "SELECT l.k, a, b, text, note FROM lines l JOIN orders o ON l.k = o.k WHERE day < 50 AND a > 20 AND b < 80",
    "SELECT l.k, sum(a), any_value(day) FROM lines l JOIN orders o ON l.k = o.k WHERE day < 50 AND a < b GROUP BY l.k",
    "SELECT s, sum(a) FROM lines l JOIN orders o ON l.k = o.k JOIN customers c ON o.c = c.c WHERE s = 3 GROUP BY s",
    "SELECT v, o.k, day, note, name FROM asked a JOIN orders o ON a.k = o.k LEFT JOIN customers c ON o.c = c.c",
    "SELECT v, o.k, note FROM asked a JOIN orders o ON a.k = o.k AND o.day > v * 10 WHERE note LIKE '%4%'",
    "SELECT v, o.k, note FROM asked a LEFT JOIN orders o ON a.k = o.k",
    "SELECT v, l.k, text FROM asked a LEFT JOIN lines l ON a.k = l.k",
    "SELECT v, l.k, text FROM asked a LEFT JOIN (FROM lines WHERE a < b) l ON a.k = l.k",
    "SELECT v, l.k, text FROM asked a LEFT JOIN lines l ON a.k = l.k AND l.b > a.v",
    "SELECT v FROM asked a WHERE EXISTS (FROM lines l WHERE l.k = a.k AND l.a < l.b AND l.b > a.v)",
    "SELECT v FROM asked a WHERE NOT EXISTS (FROM lines l WHERE l.k = a.k AND l.a < l.b)",
    "SELECT v FROM asked a WHERE NOT EXISTS (FROM orders o WHERE o.k = a.k)",
    "SELECT v FROM asked WHERE k IN (SELECT k FROM orders WHERE day < 500)",
    "SELECT v FROM asked WHERE k NOT IN (SELECT k FROM orders WHERE day < 500)",
    "SELECT v, k IN (SELECT k FROM orders WHERE day < 500) FROM asked",
    "SELECT v, (SELECT note FROM orders o WHERE o.k = a.k) FROM asked a",
    "SELECT a.v, note, n.k FROM asked a JOIN orders o ON a.k = o.k JOIN none n ON n.k = o.k",
    "SELECT n.v, note FROM none n JOIN orders o ON n.k = o.k",
    "SELECT l.k, m.a FROM lines l JOIN orders o ON l.k = o.k JOIN lines m ON m.k = o.k WHERE day < 20 AND m.b > l.b",
    "SELECT v, a.k, o.k FROM asked a FULL JOIN (FROM orders WHERE day < 9) o ON a.k = o.k",
    "SELECT day, count(*) FROM orders o WHERE day < 50 AND EXISTS (FROM lines l WHERE l.k = o.k AND a < b) GROUP BY day",
    "SELECT o.* FROM orders o WHERE day < 50 AND EXISTS (FROM lines l WHERE l.k = o.k AND l.a > o.day AND l.b < 80)",
    # asked for keys only: columns in no order, with NULLs, on either side
    "SELECT name FROM customers a WHERE EXISTS (FROM orders o WHERE o.c = a.c)",
    "SELECT name FROM customers a WHERE NOT EXISTS (FROM orders o WHERE o.c = a.c)",
    "SELECT v FROM asked a WHERE k IN (SELECT k FROM lines)",
    "SELECT v FROM asked a WHERE NOT EXISTS (FROM orders o WHERE o.day * 2 = a.k - 5000)",
    "SELECT o.k, day FROM orders o WHERE c IN (SELECT v FROM asked) AND NOT EXISTS (FROM asked a WHERE a.k = o.k)",
    "SELECT o.k FROM orders o WHERE NOT EXISTS (FROM none n WHERE n.k = o.c)",
    "SELECT o.k FROM orders o WHERE c IN (SELECT k FROM none)",
    "SELECT v FROM asked a WHERE NOT EXISTS (FROM orders o WHERE o.day = a.v) OR v IN (SELECT c FROM orders)",
    "SELECT DISTINCT name FROM customers a, orders o, asked b WHERE a.c = o.c AND a.c = b.v",
    "SELECT s, max(a.c) FROM customers a, orders o WHERE a.c = o.c GROUP BY s",
    "SELECT v, 100 // (b - 1000) FROM asked a JOIN lines l ON a.k = l.k WHERE b > 3 AND 10 % (b + 1) > 1",
]


@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("batch_rows", [None, 7])
@pytest.mark.parametrize("rule", ["", "index_join", "filter_order", "reorder_joins"])
def test_answers_are_those_of_duckdb(query: str, batch_rows: int | None, rule: str) -> None:
    off = [rule] if rule else []
    assert_same_rows(_TABLES, f"{query} ORDER BY ALL", batch_rows=batch_rows, disabled_rules=off)


def _plan(query: str, *off: str) -> tuple[str, str]:
    with tqp.connect(disabled_rules=off) as connection:
        for name, table in _TABLES.items():
            connection.register(name, table)
        return str(connection.explain(query)).partition("Physical plan")[2], connection.compile(query).code


def test_the_plan_says_so_and_nothing_is_built() -> None:
    plan, code = _plan(_QUERIES[0])
    assert "index of the table" in plan
    assert code.count("# pipeline") == 1  # orders with their lines
    assert "index of the table" not in _plan(_QUERIES[0], "index_join")[0]


def test_keys_of_a_table_in_any_order_are_asked_where_they_are() -> None:
    for query in (
        "SELECT name FROM customers a WHERE NOT EXISTS (FROM orders o WHERE o.c = a.c)",
        "SELECT DISTINCT s FROM customers a JOIN orders o ON a.c = o.c",
    ):
        plan, code = _plan(query)
        assert "keys of the table" in plan
        assert code.count("build side") == 0
        assert "keys of the table" not in _plan(query, "index_join")[0]
    for query in (
        "SELECT name FROM customers a WHERE NOT EXISTS (FROM orders o WHERE o.c = a.c AND day < 9)",
        "SELECT name FROM customers a WHERE a.c NOT IN (SELECT c FROM orders)",
        "SELECT s, count(*) FROM customers a JOIN orders o ON a.c = o.c GROUP BY s",
    ):
        assert "keys of the table" not in _plan(query)[0]


def test_many_rows_do_not_use_it() -> None:
    assert "index of the table" not in _plan("SELECT a, day FROM lines l JOIN orders o ON l.k = o.k")[0]


def test_keys_far_beyond_the_table_do_not_use_it() -> None:
    for shift, used in ((900, True), (-800, True), (90_000, False)):
        query = f"SELECT v FROM (SELECT v, k + {shift} AS k FROM asked) a JOIN orders o ON a.k = o.k"
        assert ("index of the table" in _plan(query)[0]) is used
        assert_same_rows(_TABLES, query)


def test_an_index_grows_with_what_is_asked_of_it() -> None:
    with tqp.connect() as connection:
        for name, table in _TABLES.items():
            connection.register(name, table)
        query = "SELECT count(*) FROM (SELECT v, k + {} AS k FROM asked) a JOIN orders o ON a.k = o.k"
        keys, orders = (_TABLES[name]["k"].to_pylist() for name in ("asked", "orders"))
        for shift in (0, 900, -2800, 0):
            found = sum(key is not None and key + shift in orders for key in keys)
            assert connection.sql(query.format(shift)).fetchall() == [(found,)]


@pytest.mark.parametrize("values", [[], [3], [3, 4, 9], [-5, -5, 0, 7, 7, 7]])
def test_an_index_finds_what_a_scan_finds(values: list[int]) -> None:
    column = torch.tensor(values, dtype=torch.int16)
    low, size = min(values, default=0) - 1, 20
    is_unique = len(set(values)) == len(values)
    index = key_index(column, low, size, is_unique)
    build = build_of_index(index, size)
    keys = torch.tensor([0, 2, 6, 1, 19, 13, 8, 8, 2])
    validity = torch.tensor([True] * 8 + [False])
    wanted = [
        (i, row)
        for i, key in enumerate(keys.tolist())
        for row, value in enumerate(values)
        if value - low == key
    ]
    for valid in (None, validity):
        expected = [pair for pair in wanted if valid is None or pair[0] < 8]
        probe_rows, build_rows = build.matches(keys, valid)
        assert list(zip(probe_rows.tolist(), build_rows.tolist(), strict=True)) == expected
        found = {row for row, _ in expected}
        assert build.contains(keys, valid).tolist() == [i in found for i in range(len(keys))]
        firsts = dict(reversed(expected))
        assert build.first_match(keys, valid).tolist() == [firsts.get(i, -1) for i in range(len(keys))]


@pytest.mark.parametrize("low", [-(2**63), 2**63 - 3])
@pytest.mark.parametrize("values", [[0, 2], [0, 0, 2]])
def test_an_index_at_the_ends_of_64_bits(low: int, values: list[int]) -> None:
    column = torch.tensor([low + value for value in values])
    is_unique = len(set(values)) == len(values)
    build = build_of_index(key_index(column, low, 3, is_unique), 3)
    probe_rows, build_rows = build.matches(torch.tensor([2, 1, 0]), None)
    assert list(zip(probe_rows.tolist(), build_rows.tolist(), strict=True)) == [
        (i, row) for i, key in enumerate([2, 1, 0]) for row, value in enumerate(values) if value == key
    ]


@pytest.mark.parametrize("num_rows", [65_537, 131_071, 131_072, 131_073, 262_145])
def test_an_index_of_many_blocks(num_rows: int) -> None:
    """Runs that end with a block, go over its end, and begin with the next."""
    for repeats in (1, 2, 3, 70_000):
        values = torch.arange(num_rows, dtype=torch.int32) // repeats * 2
        low, size = -3, 2 * num_rows + 5
        index = key_index(values, low, size, repeats == 1)
        keys = torch.arange(low, low + size + 1, dtype=torch.int32)
        first = torch.searchsorted(values, keys)
        if repeats == 1:
            found = values[first[:-1].clamp(max=num_rows - 1)] == keys[:-1]
            assert torch.equal(index.long(), torch.where(found, first[:-1], -1))
        else:
            assert torch.equal(index.long(), first)


def test_joins_are_ordered_so_that_indexes_are_used() -> None:
    query = (
        "SELECT sum(a) FROM lines l, orders o, customers c WHERE l.k = o.k AND o.c = c.c AND s = 3 AND a > 5"
    )
    plan, _ = _plan(query)
    assert "on k#2 = k#1" in plan  # orders of few customers look their lines up
    assert plan.count("index of the table") == 1


@pytest.mark.parametrize("low", [-(2**63), -7, 2**63 - 12])
def test_a_set_of_keys_has_the_values_of_a_column_and_grows(low: int) -> None:
    column = encode_chunks("k", [pa.array([low + 5, None, low + 3, low + 5])], BIGINT, torch.device("cpu"))
    keys = KeySet(column)
    for first, size in ((3, 3), (4, 2 + 4), (0, 10), (3, 3)):
        least = min(first, 3)
        found = keys.over(low + least, max(first + size, 6) - least)
        assert [low + least + i for i in found.nonzero().flatten().tolist()] == [low + 3, low + 5]
    assert keys.nbytes == 10
