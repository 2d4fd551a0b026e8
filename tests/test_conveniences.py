"""Methods that DuckDB's connections and module have beside statements: the same answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import pytest

import tqp


def _chunks(con: Any) -> list[Any]:
    con.execute("SELECT i FROM range(5000) r(i)")
    first = con.fetchone()
    chunks = [con.fetch_df_chunk(), con.fetch_df_chunk(2), con.fetch_df_chunk()]
    return [first is not None, [len(each) for each in chunks], [str(each.dtypes.iloc[0]) for each in chunks]]


def _unregistered(con: Any) -> list[Any]:
    con.register("frame", pd.DataFrame({"a": [1]}))
    same = con.unregister("frame") is con, con.unregister("frame") is con, con.unregister("t") is con
    return [
        *same,
        con.execute("SELECT count(*) FROM t").fetchall(),
        "frame" in con.execute("SHOW TABLES").fetchall(),
    ]


CALLS: dict[str, Callable[[Any], Any]] = {
    "types": lambda con: [
        str(each)
        for each in (
            con.list_type("INTEGER"),
            con.array_type("INTEGER", 3),
            con.map_type("VARCHAR", "DATE"),
            con.sqltype("decimal(9, 2)"),
            con.dtype("int[]"),
            con.type("timestamptz"),
            con.string_type(),
        )
    ],
    "no type": lambda con: con.sqltype("nope nope"),
    "checkpoint": lambda con: con.checkpoint() is con,
    "duplicate": lambda con: con.duplicate().execute("FROM t").fetchall(),
    "extension": lambda con: con.load_extension("json"),
    "commit without begin": lambda con: con.commit() is con,
    "map": lambda con: con.sql("FROM t").map(lambda frame: frame * 2).fetchall(),
    "map with a schema": lambda con: (
        con.sql("SELECT 1 AS a").map(lambda frame: frame * 2, schema={"a": int}).types[0] == "BIGINT"
    ),
    "close of a relation": lambda con: con.sql("FROM t").close(),
    "unregister": _unregistered,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_calls_of_connections(call: Callable[[Any], Any]) -> None:
    with tqp.connect() as con, duckdb.connect() as oracle:
        outcomes = []
        for engine in (con, oracle):
            engine.execute("CREATE TABLE t AS SELECT i FROM range(3) r(i)")
            try:
                outcomes.append(call(engine))
            except (tqp.Error, duckdb.Error):
                outcomes.append("error")
        assert outcomes[0] == outcomes[1]


def test_chunks_of_frames() -> None:
    """DuckDB's chunks begin where a vector does, tqp's behind what was fetched."""
    with tqp.connect() as con:
        assert _chunks(con) == [True, [2048, 2951, 0], ["int64"] * 3]


def test_functions_of_the_module() -> None:
    for module in (tqp, duckdb):
        module.execute("CREATE OR REPLACE TABLE of_the_module(a INTEGER)")
        module.executemany("INSERT INTO of_the_module VALUES (?)", [[1], [2], [3]])
        module.execute("SELECT a FROM of_the_module ORDER BY a")
        assert [module.fetchone(), module.fetchmany(1), module.fetchall()] == [(1,), [(2,)], [(3,)]]
        module.execute("SELECT a FROM of_the_module ORDER BY a")
        assert module.df().a.tolist() == [1, 2, 3]
        assert str(module.sqltype("int")) == "INTEGER"
        module.execute("DROP TABLE of_the_module")


def test_functions_of_frames() -> None:
    frame = pd.DataFrame({"a": [3, 1, 3, 2], "b": list("xyxz")})
    answers = []
    for module in (tqp, duckdb):
        answers.append(
            [
                module.filter(frame, "a > 1").fetchall(),
                module.project(frame, "a + 1").fetchall(),
                sorted(module.aggregate(frame, "b, sum(a)").fetchall()),
                module.aggregate(frame, "max(a)", "").fetchall(),
                module.order(frame, "a DESC, b").fetchall(),
                module.limit(frame, 2, 1).fetchall(),
                sorted(module.distinct(frame).fetchall()),
                module.alias(frame, "q").filter("q.a = 2").fetchall(),
                module.query_df(frame, "v", "SELECT count(*) FROM v").fetchall(),
            ]
        )
    assert answers[0] == answers[1]
