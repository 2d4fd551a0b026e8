"""Window functions over many rows, and what their programs do."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa
import pytest

import tqp
from tests.oracle import duckdb_database
from tqp.operators.joins import pairs
from tqp.runtime.breakers import sorted_rows

ROWS = 300_000


def _table() -> pa.Table:
    random = np.random.default_rng(1)
    names = np.array(["a", "b", "longer than eight bytes", "é", ""])
    nulls = random.integers(0, 10, ROWS) == 0
    return pa.table(
        {
            "id": random.permutation(ROWS),
            "k": random.integers(0, 3000, ROWS),
            "v": pa.array(random.integers(-1000, 1000, ROWS), mask=nulls),
            "f": random.integers(0, 64, ROWS) / 4,
            "s": names[random.integers(0, 5, ROWS)],
        }
    )


TABLE = _table()
CALLS = (
    "rank() OVER (PARTITION BY k ORDER BY v)",
    "row_number() OVER (ORDER BY id)",
    "row_number() OVER (PARTITION BY s ORDER BY id DESC)",
    "dense_rank() OVER (ORDER BY v DESC NULLS FIRST)",
    "sum(v) OVER (PARTITION BY k ORDER BY id)",
    "sum(v) OVER (PARTITION BY k)",
    "count(DISTINCT v) OVER (PARTITION BY s ORDER BY id)",
    "count(DISTINCT v) OVER (PARTITION BY s ORDER BY id ROWS BETWEEN 100 PRECEDING AND 5 FOLLOWING)",
    "median(v) OVER (PARTITION BY k ORDER BY id)",
    "quantile_disc(s, 0.3) OVER (ORDER BY id ROWS 50 PRECEDING)",
    "mode(s) OVER (PARTITION BY k ORDER BY id)",
    "list(v) OVER (PARTITION BY k ORDER BY id ROWS 3 PRECEDING)",
    "string_agg(s, '') OVER (PARTITION BY k ORDER BY id ROWS 3 PRECEDING)",
    "arg_max(s, id) OVER (PARTITION BY k ORDER BY v DESC, id)",
    "sum(f) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 7 PRECEDING AND 3 FOLLOWING)",
    "min(v) OVER (PARTITION BY s ORDER BY id ROWS BETWEEN 1000 PRECEDING AND 1000 FOLLOWING)",
    "max(s) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)",
    "max(v) OVER (PARTITION BY k ORDER BY f)",
    "count(*) OVER (PARTITION BY k ORDER BY v RANGE BETWEEN 50 PRECEDING AND 10 FOLLOWING)",
    "sum(v) OVER (PARTITION BY s ORDER BY f GROUPS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE TIES)",
    "avg((id * 123456789 % 1000000007 * 0.001)::DECIMAL(18, 3)) OVER (ORDER BY id ROWS 6 PRECEDING)",  # rounded once
    "lag(v, 3 IGNORE NULLS) OVER (PARTITION BY k ORDER BY id)",
    "last_value(s) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN CURRENT ROW AND 5 FOLLOWING)",
)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("threads", [1, 2])
def test_many_rows(call: str, threads: int) -> None:
    query = f"SELECT id, {call} AS w FROM t ORDER BY id"
    with tqp.connect(threads=threads) as connection, duckdb_database() as oracle:
        connection.register("t", TABLE)
        oracle.register("t", TABLE)
        assert connection.sql(query).to_arrow().equals(oracle.sql(query).to_arrow_table().combine_chunks())


def test_rows_are_sorted_once_for_all_calls_and_not_for_whole_partitions() -> None:
    with tqp.connect() as connection:
        connection.register("t", TABLE)
        code = connection.compile(
            "SELECT k, rank() OVER w, sum(v) OVER w, avg(v) OVER w FROM t WINDOW w AS (PARTITION BY k ORDER BY v)"
        ).code
        assert code.count("sort the rows") == 1 and "return (num_rows, k, None, v, v_valid)" in code
        assert "compute 3 columns" in code  # the average is of the same sum, and a count
    with tqp.connect(disabled_rules=["aggregate_partitions"]) as connection:
        connection.register("t", TABLE)
        assert "group the rows" in connection.compile("SELECT v - avg(v) OVER (PARTITION BY k) FROM t").code


def test_frames_that_are_groups_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    query = (
        "SELECT k, list(v) OVER w AS l, median(v) OVER w AS m, string_agg(v::VARCHAR, ',') OVER w AS s"
        " FROM (FROM t LIMIT 200) WINDOW w AS (PARTITION BY id % 3 ORDER BY id ROWS 5 PRECEDING EXCLUDE CURRENT ROW) ORDER BY ALL"
    )
    with tqp.connect() as connection:
        connection.register("t", TABLE)
        expected = connection.sql(query).fetchall()
        for most in (1, 7, 100):
            monkeypatch.setattr(sorted_rows, "_ROWS_AT_ONCE", most)
            assert connection.sql(query).fetchall() == expected
        monkeypatch.setattr(
            pairs, "pairs_at_once", lambda *_: 1
        )  # memory is scarcer than when parts were cut
        assert connection.sql(query).fetchall() == expected
        monkeypatch.setattr(sorted_rows, "_MOST_ROWS", 800)
        with pytest.raises(tqp.UnsupportedError, match="frames of [0-9]+ rows together are not supported"):
            connection.sql(query).fetchall()


def test_memory_is_reserved() -> None:
    gc.collect()  # what tests before have left and is freed meanwhile would be room for more
    with tqp.connect(memory_limit="1MiB") as connection, pytest.raises(tqp.ResourceError):
        ranks = "SELECT rank() OVER (ORDER BY i % 1000) AS r FROM range(30000000) t(i)"
        connection.sql(f"SELECT sum(r) FROM ({ranks})").fetchall()


def test_lists_and_texts_of_frames_share_their_rows() -> None:
    with tqp.connect(memory_limit="300MiB", threads=1) as connection:
        frames = "SELECT list(i) OVER w AS l, string_agg(i, '') OVER w AS s FROM range(100000) r(i) WINDOW w AS (ORDER BY i)"
        query = f"SELECT max(len(l)), max(length(s)) FROM ({frames})"
        assert connection.sql(query).fetchall() == [(100_000, 488_890)]


@pytest.mark.parametrize("exclusion", ["", " EXCLUDE TIES"])
def test_frames_that_are_groups_where_memory_is_scarce(exclusion: str) -> None:
    frame = f"ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW{exclusion}"
    with tqp.connect(memory_limit="300MiB", threads=1) as connection:
        query = f"SELECT sum(m) FROM (SELECT median(i) OVER ({frame}) AS m FROM range(3000) r(i))"
        assert connection.sql(query).fetchall() == [(3000 * 2999 / 4,)]
        with pytest.raises(tqp.ResourceError):
            connection.sql(
                f"SELECT max(list_sum(l)) FROM (SELECT list(i) OVER ({frame}) AS l FROM range(30000) r(i))"
            ).fetchall()
