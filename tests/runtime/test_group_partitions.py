"""Group-bys in partitions give the groups of one partition, for every type of key, and the same bits for any number of threads."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import tqp
from tqp.data.strings import Strings
from tqp.operators.groups import distinct_pairs
from tqp.operators.strings.layout import from_list
from tqp.runtime.breakers import collect_groups, reduced_batches

_QUERIES = (
    "SELECT i, count(*), sum(x), avg(x), count(DISTINCT s), median(x) FROM t GROUP BY i",
    "SELECT i, n, s, min(s), max(d), any_value(x) FROM t GROUP BY i, n, s",
    "SELECT f, count(*), sum(DISTINCT n), stddev_samp(x) FROM t GROUP BY f",
    "SELECT h, count(DISTINCT f) FROM t WHERE i <> 5 GROUP BY h",
    "SELECT v, count(*), min(s) FROM t GROUP BY v",
    "SELECT concat(s, i) AS k, sum(n) FROM t GROUP BY k",
    "SELECT text, count(*), sum(n), min(i) FROM t GROUP BY text",
    "SELECT CASE WHEN i < 290 THEN concat('a', i) ELSE concat(text, i) END AS k, count(*) FROM t GROUP BY k",
    "SELECT late, count(*), sum(n) FROM t GROUP BY late",
    "SELECT concat(text, '!') AS k, count(*), count(n), sum(n), sum(d), min(i), max(d), bool_or(b), bit_xor(i) FROM t GROUP BY k",
    "SELECT text || s AS k, count(*), avg(i), max(x), min(f), min(n) FROM t WHERE i <> 5 GROUP BY k",
    "SELECT DISTINCT upper(s) || text FROM t",
    "SELECT text, f, count(*) FROM t WHERE i < 5 OR i > 200 GROUP BY text, f",
    "SELECT CASE WHEN i > 20 THEN concat(s, 'x', x) END AS k, i, sum(x) FROM t GROUP BY k, i",
    "SELECT DISTINCT n, f FROM t",
    "SELECT DISTINCT s, b FROM t WHERE i < 1000",
    "SELECT i * 1000000007000 AS k, count(DISTINCT n), bool_or(b) FROM t GROUP BY k",
    "SELECT i, sum(DISTINCT x) FROM t WHERE i < 0 GROUP BY i",
    "SELECT count(DISTINCT s) FROM t",
)


@cache
def _table() -> pa.Table:
    rows = 4000
    random = np.random.default_rng(3)
    late = enumerate(random.integers(0, 50, rows))
    floats = random.choice([0.0, -0.0, 1.5, np.nan, -np.inf, 7.25], rows)
    table = pa.table(
        {
            "i": random.integers(0, 300, rows),
            "n": pa.array(random.integers(-5, 5, rows) * 10**15, mask=random.random(rows) < 0.2),
            "x": random.normal(size=rows) * 10.0 ** random.integers(-8, 8, rows),
            "f": pa.array(floats, mask=random.random(rows) < 0.1),
            "s": pa.array(
                [None if k % 7 == 0 else f"value {k % 90}" for k in random.integers(0, 1000, rows)]
            ),
            "d": pa.array(random.integers(0, 9, rows), pa.int32()).cast(pa.decimal128(20, 2)),
            "text": [
                "q" * int(k % 80) + f"{k}\0"[: 3 + k % 3] for k in random.integers(0, 700, rows)
            ],  # long and short, some with zero bytes at the end
            # the first batches fit integers, of other bits each, and the last ones do not
            "late": [
                ("x" * 40 + f"{k} of many" if row > 3200 else f"{row // 1000} of {k}") for row, k in late
            ],
            "b": random.random(rows) < 0.5,
            "v": pa.array(random.integers(0, 4, rows).astype("timedelta64[D]").astype("timedelta64[us]")),
        }
    )
    h = pa.array([int(k) * 10**25 for k in table["i"].to_pylist()], pa.decimal128(38, 0))
    return table.append_column("h", h)


def _answers(query: str, threads: int) -> list[tuple[object, ...]]:
    with tqp.connect(threads=threads, batch_rows=500) as connection:
        connection.register("t", _table())
        return sorted(connection.sql(query).fetchall(), key=repr)


@pytest.mark.parametrize("query", _QUERIES)
def test_partitions_change_no_group(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _answers(query, 1)
    monkeypatch.setattr(collect_groups, "_PARTITION_ROWS", 20)
    monkeypatch.setattr(collect_groups, "_PARTITIONED_ROWS", 40)
    monkeypatch.setattr(distinct_pairs, "_SORTED_ROWS", 1)
    for rows_of_a_piece in (1, 100_000):  # distributed batch by batch, and at the end
        monkeypatch.setattr(collect_groups, "_ROWS_OF_A_PIECE", rows_of_a_piece)
        for threads in (1, 3):
            assert [repr(row) for row in _answers(query, threads)] == [repr(row) for row in expected]


@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("which", ["all", "some"])
def test_batches_that_are_reduced_change_no_group(
    query: str, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = _answers(query, 1)
    monkeypatch.setattr(reduced_batches, "_ROWS", 1)
    monkeypatch.setattr(reduced_batches, "_repeats", lambda key: which == "all" or not _is_odd(key))
    for most in (40, 1 << 20):  # distributed over partitions, and all in one
        monkeypatch.setattr(collect_groups, "_PARTITION_ROWS", min(most, 20))
        monkeypatch.setattr(collect_groups, "_PARTITIONED_ROWS", most)
        monkeypatch.setattr(collect_groups, "_ROWS_OF_A_PIECE", 1)
        for threads in (1, 3):
            assert [repr(row) for row in _answers(query, threads)] == [repr(row) for row in expected]


def _is_odd(key: Strings) -> bool:
    return int(key.lengths[0]) % 2 == 1


def test_texts_that_repeat_are_told_by_a_sample() -> None:
    def texts(values: int) -> Strings:
        return from_list([f"text {k}" for k in np.random.default_rng(4).integers(0, values, 65_536)])

    assert reduced_batches._repeats(texts(100)) and reduced_batches._repeats(texts(2000))
    assert not reduced_batches._repeats(texts(20_000)) and not reduced_batches._repeats(texts(10**9))
