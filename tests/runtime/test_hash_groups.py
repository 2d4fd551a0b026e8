"""Group-bys through a hash table of the groups give what collected ones do, also where the table has to grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tqp
from tqp.operators.rows import hash_table
from tqp.planner.physical import aggregate_planning
from tqp.runtime.breakers.hash_groups import HashGroups

_QUERIES = (
    "SELECT k, count(*), count(n), sum(n), avg(n), min(n), max(d), sum(d) FROM t GROUP BY k",
    "SELECT k, sum(x), avg(x), min(x), max(x) FROM t GROUP BY k",
    "SELECT few, count(*), bool_and(b), bool_or(b), min(x), max(s) FROM t GROUP BY few",
    "SELECT n, count(*), sum(w), min(w) FROM t WHERE b GROUP BY n",
    "SELECT few FROM t WHERE k IS NULL GROUP BY few",
    "SELECT DISTINCT k FROM t",
    "SELECT few, n, s, count(*) FROM t GROUP BY few, n, s",
    "SELECT n * 1000 AS m, day, count(*) FROM t GROUP BY m, day",
    "SELECT f, count(*), sum(n), min(d), avg(n) FROM t GROUP BY f",
    "SELECT g, count(*), max(n) FROM t WHERE b GROUP BY g",
    "SELECT f * 2 AS h, count(*) FROM t GROUP BY h",
    "SELECT close, count(*), sum(n), min(x) FROM t GROUP BY close",
    "SELECT close::FLOAT AS c, count(*), max(s) FROM t WHERE b GROUP BY c",
    "SELECT later, count(*), sum(n), min(d) FROM t GROUP BY later",
)


def _table(rows: int) -> pa.Table:
    random = np.random.default_rng(4)
    domain = random.integers(-(2**63), 2**63 - 1, 1000)
    few = random.choice(domain, rows)
    close = random.integers(-20, 20, rows) / 2
    later = np.where(
        np.arange(rows) < rows * 2 // 3, close, random.choice([0.0, -0.0, np.nan, 1e300, 0.3], rows)
    )
    floats = random.choice(np.array([0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-40, -2.5, *range(30)]), rows)
    return pa.table(
        {
            "k": random.choice(domain, rows),
            "few": pa.array(few, mask=random.random(rows) < 0.2),
            "n": pa.array(random.integers(-5, 5, rows) * 10**9, mask=random.random(rows) < 0.2),
            "f": floats,
            "close": pa.array(close, mask=random.random(rows) < 0.2),
            "later": later,
            "g": pa.array(floats.astype(np.float32), mask=random.random(rows) < 0.2),
            "x": random.normal(size=rows) * 10.0 ** random.integers(-8, 8, rows),
            "d": pa.array(random.integers(0, 9, rows), pa.int32()).cast(pa.decimal128(20, 2)),
            "w": random.integers(-(2**62), 2**62, rows),
            "s": pa.array([f"value {number % 9}" for number in range(rows)]),
            "b": random.random(rows) < 0.5,
            "day": pa.array(random.integers(0, 4, rows).astype(np.int32) * 100_000, pa.int32()).cast(
                pa.date32()
            ),
        }
    )


def _answers(query: str, threads: int, *disabled: str) -> list[str]:
    rules = ("dictionary_encoded_keys", *disabled)
    with tqp.connect(threads=threads, batch_rows=500, disabled_rules=rules) as connection:
        connection.register("t", _table(4000))
        return sorted(map(repr, connection.sql(query).fetchall()))


@pytest.mark.parametrize("query", _QUERIES)
def test_the_table_changes_no_group(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _answers(query, 1, "hash_aggregate")
    monkeypatch.setattr(aggregate_planning, "_ROWS_PER_HASHED_GROUP", 0.0)
    monkeypatch.setattr(aggregate_planning, "_ALWAYS_DIRECT", 4)
    monkeypatch.setattr(hash_table, "_LEAST_KEY_BITS", 6)
    monkeypatch.setattr(hash_table, "_MORE_BITS", 0)
    monkeypatch.setattr(hash_table, "_ROWS_AT_ONCE", 100)
    make = HashGroups.__init__

    def growing(self: HashGroups, *arguments: Any) -> None:
        make(self, *arguments)
        self.expected_groups = 1.0

    for initialise in (make, growing):
        monkeypatch.setattr(HashGroups, "__init__", initialise)
        answers = [_answers(query, threads) for threads in (1, 3)]
        assert answers[0] == answers[1]
        if "sum(x)" not in query:  # sums of floats in the order of batches, not of rows
            assert answers[0] == expected


def test_zeros_are_one_group_under_the_first_of_them() -> None:
    for zeros in ([0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0]):
        for dtype in (np.float32, np.float64):
            keys = np.array([1.5, *zeros, np.nan, *zeros, -1.0] * 100, dtype)
            with tqp.connect(threads=1, disabled_rules=("dictionary_encoded_keys",)) as connection:
                connection.register("t", {"k": keys, "v": np.arange(len(keys))})
                query = "SELECT k, count(*), min(v), max(v) FROM t GROUP BY k"
                answer = sorted(connection.sql(query).fetchall(), key=lambda row: row[2])
                expected = [("1.5", 100, 0, 693), (repr(zeros[0]), 400, 1, 698), ("None", 100, 3, 696)]
                assert [(repr(row[0]), *row[1:]) for row in answer[:3]] == expected


@pytest.mark.cpu
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
def test_few_groups_of_any_key_are_hashed(dtype: type) -> None:
    with tqp.connect(disabled_rules=("dictionary_encoded_keys",)) as connection:
        keys = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 20).astype(dtype)
        connection.register("t", {"k": np.repeat(keys, 500), "v": np.arange(10_000)})
        assert "hash group-by" in str(connection.explain("SELECT k, sum(v) FROM t GROUP BY k"))
