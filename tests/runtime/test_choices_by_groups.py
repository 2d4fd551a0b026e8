"""Sums and counts of what conditions choose, by way of groups by what these read; answers are DuckDB's."""

from __future__ import annotations

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import tqp
from tests.runtime.split_aggregates import assert_split, num_aggregates
from tqp.planner.rules import choices_by_groups as rule

_ROWS = 5_000


def _table() -> pa.Table:
    chance = random.Random(1)
    of_large = random.Random(6)  # avg() of these is another DOUBLE than sum() / count()
    days = ["Sunday", "Monday", "Tuesday", "Wednesday", None]
    return pa.table(
        {
            "week": pa.array([chance.choice([None, *range(20)]) for _ in range(_ROWS)], pa.int32()),
            "day": pa.array([chance.choice(days) for _ in range(_ROWS)]),
            "b": pa.array([chance.choice([None, True, False]) for _ in range(_ROWS)]),
            "n": pa.array([chance.choice([None, *range(-3, 4)]) for _ in range(_ROWS)], pa.int64()),
            "d": pa.array([chance.choice([None, Decimal("1.25"), Decimal("-7.00")]) for _ in range(_ROWS)]),
            "large": [of_large.randrange(1 << 60) for _ in range(_ROWS)],
            "f": [chance.choice([0.5, 2.0]) for _ in range(_ROWS)],
        }
    )


TABLES = {"t": _table(), "none": _table().slice(0, 0)}
_SUMS = ", ".join(f"sum(CASE WHEN day = '{day}' THEN d END)" for day in ("Sunday", "Monday", "Friday"))
_WITH_ZEROS = ", ".join(f"sum(CASE WHEN n = {n} THEN d ELSE 0 END)" for n in range(3))
_ONES = ", ".join(f"sum(CASE WHEN n = {n} THEN 1 ELSE 0 END)" for n in range(3))
_COUNTS = ", ".join(f"count(CASE WHEN b AND n > {n} THEN d END), count(*) FILTER (n = {n})" for n in range(2))
QUERIES = [
    f"SELECT week, {_SUMS} FROM {{0}} GROUP BY week",
    f"SELECT {_SUMS}, count(*), avg(n), max(f), sum(d) FROM {{0}}",
    f"SELECT {_SUMS}, avg(large) FROM {{0}}",
    f"SELECT week, {_WITH_ZEROS} FROM {{0}} GROUP BY week",
    f"SELECT {_ONES} FROM {{0}} WHERE week > 5",
    f"SELECT week, {_COUNTS} FROM {{0}} GROUP BY week",
    f"SELECT day, {_SUMS} FROM {{0}} GROUP BY day",
    f"SELECT week + 1 AS w, {_SUMS}, {_ONES} FROM {{0}} GROUP BY w HAVING count(*) > 3",
    """SELECT week, sum(CASE WHEN b THEN n WHEN b IS NULL THEN 1 ELSE NULL END), sum(n) FILTER (b), sum(n) FILTER (NOT b),
       sum(CASE WHEN day IS NULL THEN n + 1 ELSE n - 1 END), min(n) FROM {0} GROUP BY week""",
    "SELECT sum(CASE day WHEN 'Sunday' THEN n END), sum(n) FILTER (day IN ('Monday', 'x')), count(n) FILTER (day > 'S') FROM {0}",
]
UNCHANGED = [
    "SELECT week, sum(CASE WHEN day = 'Sunday' THEN d END), sum(CASE WHEN day = 'Monday' THEN d END) FROM {0} GROUP BY week",
    f"SELECT week, {_SUMS}, median(n) FROM {{0}} GROUP BY week",
    f"SELECT {_SUMS.replace('THEN d', 'THEN f')} FROM {{0}}",
    f"SELECT {_ONES.replace('THEN 1', 'THEN 7')} FROM {{0}}",
    f"SELECT {_SUMS.replace('sum(', 'sum(DISTINCT ')} FROM {{0}}",
    f"SELECT {_ONES.replace('n =', 'f =')} FROM {{0}}",
]


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("table", ["t", "none"])
def test_answers(monkeypatch: pytest.MonkeyPatch, backend: str, table: str) -> None:
    monkeypatch.setattr(rule, "_FEWEST_ROWS", -1.0)
    monkeypatch.setattr(rule, "_ROWS_PER_GROUP", 0.0)
    expected = {query: 1 + (query in QUERIES) for query in (*QUERIES, *UNCHANGED)}
    assert_split(TABLES, table, expected, backend, " ORDER BY ALL")


def test_what_may_fail_is_asked_where_it_is_chosen() -> None:
    sums = ", ".join(f"sum(CASE WHEN k = {k} THEN v::INTEGER END) AS s{k}" for k in range(3))
    with tqp.connect() as connection:
        connection.register(
            "t", {"k": np.arange(200_000) % 4, "v": [str(k % 4) * (k % 4 < 3) for k in range(200_000)]}
        )
        assert connection.sql(f"SELECT {sums} FROM t").fetchall() == [(0, 50_000, 100_000)]


def test_only_of_many_rows_in_few_groups() -> None:
    sums = ", ".join(f"sum(v) FILTER (k = {k})" for k in range(4))
    with tqp.connect() as connection:
        connection.register(
            "t", {"k": np.arange(200_000) % 50, "u": np.arange(200_000), "v": np.arange(200_000)}
        )
        for query, is_split in (
            (f"SELECT {sums} FROM t", True),
            (f"SELECT {sums} FROM t WHERE v < 50", False),
            (f"SELECT u, {sums} FROM t GROUP BY u", False),
            (f"SELECT {sums.replace('k =', 'u =')} FROM t", False),
        ):
            assert num_aggregates(connection, query) == 1 + is_split, query
