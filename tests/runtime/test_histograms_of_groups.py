"""Histograms by way of groups by their values; answers are DuckDB's."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

import tqp
from tests.runtime.split_aggregates import assert_split, num_aggregates
from tqp.planner.rules import histograms_of_groups as rule

_ROWS = 3_000


def _table() -> pa.Table:
    chance = random.Random(0)
    return pa.table(
        {
            "k": pa.array([chance.choice([None, *range(9)]) for _ in range(_ROWS)], pa.int32()),
            "x": pa.array([chance.choice([None, -3, 0, 200]) for _ in range(_ROWS)], pa.int64()),
            "s": pa.array([chance.choice([None, "", "é", "word"]) for _ in range(_ROWS)]),
            "b": pa.array([chance.choice([None, True, False]) for _ in range(_ROWS)]),
            "d": pa.array([chance.choice([None, 19_000, 19_001]) for _ in range(_ROWS)], pa.date32()),
            "f": pa.array([chance.choice([0.0, -0.0, 1.5]) for _ in range(_ROWS)]),
            "v": [chance.randrange(-(2**40), 2**40) for _ in range(_ROWS)],
        }
    )


TABLES = {"t": _table(), "none": _table().slice(0, 0)}
QUERIES = [
    "SELECT k, histogram(x) FROM {0} GROUP BY k ORDER BY k",
    "SELECT k, s, histogram(d), count(*), count(x), avg(v), min(v), max(s) FROM {0} GROUP BY k, s ORDER BY k, s",
    "SELECT histogram(s) FROM {0}",
    "SELECT histogram(b), count(b), histogram(b) FROM {0} WHERE b IS NULL",
    "SELECT b, histogram(b), sum(k) FILTER (WHERE x > 0) FROM {0} GROUP BY b ORDER BY b",
    "SELECT k % 2 AS half, histogram(x % 3) FROM {0} GROUP BY half HAVING count(*) > 1 ORDER BY half",
]
UNCHANGED = [
    "SELECT k, histogram(v) FROM {0} WHERE v % 100 = 7 GROUP BY k ORDER BY k",
    "SELECT k, histogram(x) FILTER (WHERE b) FROM {0} GROUP BY k ORDER BY k",
    "SELECT k, histogram(DISTINCT x) FROM {0} GROUP BY k ORDER BY k",
    "SELECT k, histogram(x), histogram(s) FROM {0} GROUP BY k ORDER BY k",
    "SELECT k, histogram(x), median(v) FROM {0} GROUP BY k ORDER BY k",
    "SELECT k, cardinality(histogram(f)) FROM {0} GROUP BY k ORDER BY k",
    "SELECT k, histogram(x, [0, 100]) FROM {0} GROUP BY k ORDER BY k",
]


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("table", ["t", "none"])
def test_answers(monkeypatch: pytest.MonkeyPatch, backend: str, table: str) -> None:
    monkeypatch.setattr(rule, "_FEWEST_ROWS", -1.0)
    expected = {query: 1 + (query in QUERIES) for query in (*QUERIES, *UNCHANGED)}
    assert_split(TABLES, table, expected, backend)


def test_only_of_many_rows_and_few_combinations() -> None:
    with tqp.connect() as connection:
        values = np.random.default_rng(0).integers(0, 1000, 120_000)
        connection.register("t", {"w": values, "k": values % 6})
        for query, is_split in (
            ("SELECT histogram(w) FROM t", True),
            ("SELECT k, histogram(k) FROM t GROUP BY k", True),
            ("SELECT w, histogram(w) FROM t GROUP BY w", False),
            ("SELECT histogram(w) FROM t WHERE w < 5", False),
        ):
            assert num_aggregates(connection, query) == 1 + is_split, query
