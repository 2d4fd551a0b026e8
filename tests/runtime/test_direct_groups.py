"""Many direct groups are merged and read by all workers, each taking a range of them: what DuckDB says, for any number."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import tqp
from tqp.runtime.breakers import aggregate

_QUERIES = (
    "SELECT k, count(*), sum(n), min(n), max(d), avg(n) FROM facts GROUP BY k",
    "SELECT k, sum(h) FROM facts GROUP BY k",
    "SELECT k, bool_or(n > 90), bool_and(n > 5), count(n) FROM facts WHERE n > 0 GROUP BY k",
    "SELECT k, sum(n) FROM facts WHERE n < 0 GROUP BY k",
    "SELECT maybe, count(*), sum(d) FROM facts GROUP BY maybe",
    # columns that the key determines: which groups there are is known from the rows that these refer to
    "SELECT id, name, place, sum(n) FROM facts JOIN names ON id = k GROUP BY id, name, place",
    "SELECT id, name, place, sum(n) FROM names LEFT JOIN facts ON id = k AND n > 50 GROUP BY id, name, place",
    "SELECT id, name, place, sum(n) FROM facts LEFT JOIN names ON id = k GROUP BY id, name, place",
    "SELECT id, name FROM facts JOIN names ON id = k WHERE n > 95 GROUP BY id, name",
)


@pytest.mark.cpu
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_groups_of_all_workers(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregate, "_GROUPS_OF_A_WORKER", 100)
    random, rows = np.random.default_rng(8), 6_000
    keys = random.integers(0, 700, rows) * (random.random(rows) < 0.9) + 20  # gaps; one key has many rows
    facts = pa.table(
        {
            "k": keys,
            "maybe": pa.array(keys, mask=random.random(rows) < 0.1),
            "n": pa.array(random.integers(-9, 100, rows), mask=random.random(rows) < 0.1),
            "d": pa.array(random.integers(-(10**9), 10**9, rows)),
            "h": pa.array(random.integers(-(2**62), 2**62, rows)),
        }
    )
    ids = np.arange(40, 800)
    names = pa.table({"id": ids, "name": [f"name {i}" for i in ids], "place": [f"{i % 40}" for i in ids]})
    connection, oracle = tqp.connect(threads=threads, batch_rows=500), duckdb.connect()
    divided = []
    for name, table in (("facts", facts), ("names", names)):
        connection.register(name, table)
        oracle.register(name, table)
    merge = aggregate.FoldGroups._merge_direct

    def counted(self: aggregate.FoldGroups, states: list[object]) -> object:
        divided.append(self._divides)
        return merge(self, states)  # type: ignore[arg-type]

    monkeypatch.setattr(aggregate.FoldGroups, "_merge_direct", counted)
    for query in _QUERIES:
        divided.clear()
        found = [tuple(row.values()) for row in connection.sql(query).to_arrow().to_pylist()]
        assert sorted(found, key=repr) == sorted(oracle.execute(query).fetchall(), key=repr), query
        assert divided == [True] * min(threads, 7), query
