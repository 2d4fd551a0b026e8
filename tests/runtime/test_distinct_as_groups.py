"""Aggregates of distinct values by way of groups of these; answers are DuckDB's."""

from __future__ import annotations

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import tqp
from tests.runtime.split_aggregates import assert_split, num_aggregates
from tqp.planner.rules import distinct_as_groups as rule

_ROWS = 3_000


def _table() -> pa.Table:
    chance = random.Random(0)
    wide = [chance.randrange(-(2**62), 2**62) for _ in range(50)]
    floats = [0.5, -2.25, float("nan"), float("inf"), float("-inf"), 1e300, None]
    return pa.table(
        {
            "w": pa.array([chance.choice([None, *wide]) for _ in range(_ROWS)], pa.int64()),
            "u": [chance.randrange(-(2**62), 2**62) for _ in range(_ROWS)],
            "f": pa.array([chance.choice(floats) for _ in range(_ROWS)], pa.float64()),
            "s": pa.array([chance.choice([None, "", "é" * 30]) or str(row) for row in range(_ROWS)]),
            "h": pa.array(
                [Decimal(chance.choice(wide)) * 10**15 for _ in range(_ROWS)], pa.decimal128(38, 0)
            ),
            "k": pa.array([chance.choice([None, *range(9)]) for _ in range(_ROWS)], pa.int32()),
        }
    )


TABLES = {"t": _table(), "none": _table().slice(0, 0)}
QUERIES = [
    "SELECT count(DISTINCT w) FROM {0}",
    "SELECT count(DISTINCT f) FROM {0}",
    "SELECT count(DISTINCT h), count(*), count(k), sum(k), avg(k), min(f), max(s) FROM {0}",
    "SELECT sum(DISTINCT w), count(DISTINCT w), max(DISTINCT w), min(DISTINCT w) FROM {0}",
    "SELECT count(DISTINCT w + 1), sum(u) FILTER (WHERE k > 3) FROM {0}",
    "SELECT count(DISTINCT u) + 1 AS n, bool_or(k > 7) FROM {0} WHERE k IS NOT NULL HAVING count(*) >= 0",
]
#: With how many aggregates there are in the plan.
SEVERAL = {
    "SELECT count(DISTINCT w), count(DISTINCT u) FROM {0}": 4,
    "SELECT count(DISTINCT w), count(DISTINCT u), count(DISTINCT k), sum(k), median(k) FROM {0}": 5,
    "SELECT sum(DISTINCT w), count(DISTINCT f), count(DISTINCT w), count(*) FROM {0} WHERE k > 3": 5,
    "SELECT count(DISTINCT w + k), count(DISTINCT w), count(DISTINCT w) FILTER (k > 3) FROM {0}": 5,
    "SELECT count(DISTINCT w), median(DISTINCT u), list_sort(list(DISTINCT w)) FROM (SELECT w, u FROM {0}) q": 5,
}
UNCHANGED = [
    "SELECT count(DISTINCT k) FROM {0}",
    "SELECT count(DISTINCT w) FILTER (WHERE k > 3) FROM {0}",
    "SELECT count(DISTINCT w), median(k) FROM {0}",
    "SELECT k, count(DISTINCT w) FROM {0} GROUP BY k ORDER BY k",
    "SELECT list_sort(list(DISTINCT w)) FROM {0}",
]


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("table", ["t", "none"])
def test_answers(monkeypatch: pytest.MonkeyPatch, backend: str, table: str) -> None:
    monkeypatch.setattr(rule, "_FEWEST_ROWS", -1.0)
    expected = {query: 1 + (query in QUERIES) for query in (*QUERIES, *UNCHANGED)}
    assert_split(TABLES, table, expected | SEVERAL, backend)


def test_only_of_many_rows_and_values_without_small_numbers() -> None:
    with tqp.connect() as connection:
        values = np.random.default_rng(0).integers(-(2**62), 2**62, 120_000)
        connection.register("t", {"w": values, "k": values % 1000})
        for query, is_split in (
            ("SELECT count(DISTINCT w) FROM t", True),
            ("SELECT count(DISTINCT k) FROM t", False),
            ("SELECT count(DISTINCT w) FROM t WHERE k < 5", False),
        ):
            assert num_aggregates(connection, query) == 1 + is_split, query
