"""The least and greatest string of all rows: each batch leaves one, and no bytes of the others are kept."""

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
)


@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("threads", [1, 3])
def test_extremes_of_all_rows(query: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "_TEXT_BATCH", 500)
    monkeypatch.setattr(executor, "_TEXT_SECONDS", 1e-9)
    monkeypatch.setattr(executor, "_FEW_ROWS", 500)
    rows = np.arange(7_000)
    values = [None if row % 7 == 0 else f"x{row * 7919 % 3001}" for row in rows]
    t = pa.table({"s": pa.array(values), "k": rows})
    con = tqp.connect(threads=threads)
    con.register("t", t)
    assert con.sql(query).fetchall() == duckdb.sql(query).fetchall()


def test_batches_leave_one_string() -> None:
    con = tqp.connect()
    con.register("t", {"k": [1, 2**60, 3]})
    assert "greatest_of_all" in con.compile("SELECT max('a' || k) FROM t").code
