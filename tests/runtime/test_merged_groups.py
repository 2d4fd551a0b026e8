"""Moments and chosen rows, of few direct groups and of all rows, are merged batch by batch: what DuckDB says, for any batches and threads."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import tqp
from tqp.runtime.breakers import aggregate

_QUERIES = (
    # many rows have the same least and greatest n: the first of these is taken
    "SELECT k, arg_min(x, n), arg_max(x, n), first(x), last(x), first(t), any_value(t), count(*), sum(x) FROM facts GROUP BY k",
    "SELECT k, arg_min(t, x), arg_max(t, d), arg_min(n, t), arg_max_null(t, n), arg_min(i, x) FROM facts GROUP BY k",
    "SELECT maybe, arg_min(x, f), first(x ORDER BY n), first(t ORDER BY n DESC NULLS LAST), any_value(n) FROM facts GROUP BY maybe",
    "SELECT k, arg_min(x, n) FILTER (x % 3 = 0), first(n) FILTER (n > 97), count(*) FROM facts WHERE x % 10 <> 7 GROUP BY k",
    "SELECT k, arg_max(n, x) FROM facts WHERE k > 3 AND x % 10 <> 7 GROUP BY k",
    "SELECT k, arg_max(late, x), corr(f, n), stddev(f), sum(f), any_value(t) FROM facts GROUP BY k",
    "SELECT k, skewness(f), kurtosis(n), regr_r2(f, x) FROM facts WHERE x % 10 <> 7 GROUP BY k",
    "SELECT corr(f, n), stddev(f), sum(f), count(DISTINCT k), max(t), skewness(x) FILTER (n > 50), count(*) FROM facts",
    "SELECT regr_r2(n, x), var_pop(n), kurtosis(f), min(d) FROM facts WHERE x % 10 <> 7",
    "SELECT stddev(f), corr(n, x), regr_intercept(n, x) FILTER (x < 2), count(*) FROM facts WHERE x < 3",
    "SELECT arg_min(x, n), arg_max(t, d), first(t), last(x), any_value(n), count(*), sum(f), string_agg(t, ',') FROM facts",
    "SELECT arg_min(t, x) FILTER (n > 50), arg_max_null(n, x), first(i), max(t), stddev(f) FROM facts WHERE x % 10 <> 7",
    "SELECT arg_min(n, t), arg_max(late, x), first(x ORDER BY x), count(DISTINCT k) FROM facts WHERE x < 30",
    "SELECT arg_min(t, x), first(n), last(t), any_value(f), count(*) FROM facts WHERE x % 10 = 3 AND x % 20 = 4",
    "SELECT stddev(f), corr(n, x), count(*) FROM facts WHERE x % 10 = 3 AND x % 20 = 4",
)


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("threads", [1, 3])
def test_groups_of_batches(threads: int, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random, rows = np.random.default_rng(8), 6_000
    keys = random.integers(0, 12, rows) * (random.random(rows) < 0.9) + 2
    keys[: rows // 2][keys[: rows // 2] == 5] = 6  # of a group the first batches have no row
    facts = pa.table(
        {
            "k": keys,
            "maybe": pa.array(keys, mask=random.random(rows) < 0.1),
            "x": random.permutation(rows),
            "n": pa.array(random.integers(-9, 100, rows), mask=random.random(rows) < 0.1),
            "d": pa.array(random.integers(-(10**9), 10**9, rows)),
            "f": random.standard_normal(rows) + 1e4,
            "t": pa.array(
                [f"text {i % 700}" for i in random.integers(0, 10**6, rows)], mask=random.random(rows) < 0.1
            ),
            "late": pa.array(np.arange(rows), mask=np.arange(rows) < rows - 200),
            "i": pa.array(random.integers(0, 10**6, rows), pa.duration("us")),
        }
    )
    connection, oracle = tqp.connect(threads=threads, batch_rows=500, backend=backend), duckdb.connect()
    oracle.execute("SET threads = 1")
    connection.register("facts", facts)
    oracle.register("facts", facts)
    merged = []

    def watch(name: str) -> None:
        merge = getattr(aggregate.FoldGroups, name)

        def counted(self: aggregate.FoldGroups, batches: list[object]) -> object:
            merged.append(len(batches))
            return merge(self, batches)

        monkeypatch.setattr(aggregate.FoldGroups, name, counted)

    watch("_merge_batches")
    watch("_merge_single")
    for query in _QUERIES:
        merged.clear()
        found = sorted(connection.sql(query).fetchall(), key=repr)
        expected = sorted(oracle.execute(query).fetchall(), key=repr)
        assert len(merged) == 1 and merged[0] >= 4, query
        for row, wanted in zip(found, expected, strict=True):
            assert row == tuple(pytest.approx(v, rel=1e-9) if isinstance(v, float) else v for v in wanted), (
                query
            )
