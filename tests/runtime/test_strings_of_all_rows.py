"""The least and greatest string of all rows, and all of them joined: each batch leaves one, and no others are kept."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import tqp
from tqp.runtime import executor

_QUERIES = (
    "SELECT max(s || 'a'), min(s || 'b'), count(*), sum(k) FROM t",
    "SELECT min(reverse(s)) FILTER (WHERE k % 3 = 0), max(reverse(s)) FILTER (WHERE k < 0) FROM t",
    "SELECT max(s), min(s) FROM t WHERE k % 5 = 1",
    "SELECT min('' || s), max(s || ''), count(DISTINCT k % 10) FROM t WHERE k % 5 = 1",
    "SELECT max(s || '') FROM t WHERE k > 100000",
    "SELECT max(DISTINCT s || 'q'), median(k) FROM t WHERE k BETWEEN 3 AND 1000",
    "SELECT min(CASE WHEN k > 5 THEN '' ELSE s END), max(CASE WHEN k > 8 THEN '' END) FROM t WHERE k % 7 = 0",
    "SELECT min(s || 'x'), max(s || 'x'), count(s) FROM t WHERE s IS NULL",
    "SELECT max('x'), min('y' || k) FROM t",
    "SELECT string_agg(s, ', '), string_agg(s || k, ''), count(*), max(s) FROM t",
    "SELECT string_agg(s, '') FILTER (WHERE k % 3 = 0), string_agg(k::VARCHAR) FILTER (WHERE k > 6990) FROM t WHERE k % 5 = 1",
    "SELECT string_agg(CASE WHEN k > 6990 THEN '' END, ';'), string_agg(CASE WHEN k < 3 THEN s END, ';') FROM t",
    "SELECT string_agg(s, ','), string_agg(s, NULL), string_agg(DISTINCT s[:1], ',') FROM t WHERE k > 100000 OR k % 7 = 0",
    "SELECT string_agg(s || 'ü', '–' ORDER BY k DESC), string_agg(s || 'ü', '–') FROM t",
)


@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("threads", [1, 3])
def test_strings_of_all_rows(query: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "_TEXT_BATCH", 500)
    monkeypatch.setattr(executor, "_TEXT_SECONDS", 1e-9)
    monkeypatch.setattr(executor, "_FEW_ROWS", 500)
    rows = np.arange(7_000)
    values = [None if row % 7 == 0 else f"x{row * 7919 % 3001}" for row in rows]
    t = pa.table({"s": pa.array(values), "k": rows})
    con = tqp.connect(threads=threads)
    con.register("t", t)
    oracle = duckdb.connect()
    oracle.execute("SET threads = 1")
    oracle.register("t", t)
    assert con.sql(query).fetchall() == oracle.execute(query).fetchall()


def test_batches_leave_one_string() -> None:
    con = tqp.connect()
    con.register("t", {"k": [1, 2**60, 3]})
    assert "greatest_of_all" in con.compile("SELECT max('a' || k) FROM t").code
    assert "join_all" in con.compile("SELECT string_agg('a' || k, ',') FROM t").code
    assert "join_all" not in con.compile("SELECT string_agg('a' || k, ',' ORDER BY k) FROM t").code
