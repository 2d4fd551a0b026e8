"""Names of relations' columns: those that come twice, of the sides of joins, and of files, beside DuckDB's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tqp
from tests.oracle import duckdb_database

SETUP = """
    CREATE TABLE a AS SELECT i AS id, i % 3 AS g, 'name ' || i AS s FROM range(10) r(i);
    CREATE VIEW b AS SELECT id, id * 10 AS v FROM a WHERE id > 4
"""


def _twice(con: Any) -> Any:
    return con.sql('SELECT 1 AS a, 2 AS a, 3 AS "A", 4 AS b')


def _joined(con: Any) -> Any:
    return con.table("a").join(con.table("b"), "a.id = b.id AND b.id > 7")


#: Relations in which names come twice, and joins whose sides are named behind them.
NAMED: list[Callable[[Any], Any]] = [
    _twice,
    lambda con: _twice(con).filter("a = 1"),
    lambda con: _twice(con).filter("a_1 = 2").order("A_2"),
    lambda con: _twice(con).project("*"),
    lambda con: _twice(con).project("a, b AS a"),
    lambda con: _twice(con).project("a, b AS a").limit(1),
    lambda con: con.table("a").project("1 AS id, 2 AS id").distinct().limit(1),
    lambda con: con.table("a").project("g").query("z", "PIVOT (SELECT g, 1 AS n FROM z) ON g USING sum(n)"),
    lambda con: con.table("a").filter("id > 3").order("id DESC").limit(2).filter("id < 9").project("id"),
    lambda con: con.table("a").project("-id AS id").order("id").limit(1),
    lambda con: con.table("a").project("-id AS id").filter("id < -8"),
    lambda con: con.table("a").aggregate("g, max(id) AS id", "g").filter("id > 8"),
    lambda con: con.table("a").order("id").project("g, id").limit(2, 1).order("id DESC"),
    lambda con: con.table("a").filter("id < 3 OR id > 8").filter("g = 0 OR g = 2").order("id"),
    lambda con: _twice(con).set_alias("x").filter("x.a_1 = 2"),
    lambda con: _twice(con).materialize(),
    lambda con: _twice(con).aggregate("sum(a), sum(a)"),
    lambda con: _twice(con).union(_twice(con)).distinct(),
    lambda con: _twice(con).with_columns(c=3),
    lambda con: _twice(con).filter("true").with_columns(a=9),
    lambda con: _twice(con).rename(a="q").drop("b"),
    lambda con: _twice(con).describe(),
    lambda con: _twice(con).query("q", "FROM q"),
    lambda con: _twice(con).join(con.sql("SELECT 5 AS a"), how="positional"),
    _joined,
    lambda con: _joined(con).filter("a.id < 99").filter("v > 0").order("b.id"),
    lambda con: _joined(con).project("b.id + a.g AS n").order("n"),
    lambda con: _joined(con).order("b.v DESC").limit(1),
    lambda con: _joined(con).limit(1).project("id_1").count("*"),
    lambda con: _joined(con).aggregate("count(DISTINCT b.id) AS n, min(a.s)"),
    lambda con: _joined(con).aggregate("a.g, max(b.v)", "a.g").order("g"),
    lambda con: _joined(con).filter("b.v = 80").aggregate("sum(a.id)"),
    lambda con: _joined(con).drop("s").rename(g="h").order("ALL"),
    lambda con: (
        _joined(con)
        .with_columns(w=tqp.sql_expr("b.v") if isinstance(con, tqp.Connection) else duckdb.sql_expr("b.v"))
        .order("w")
    ),
    lambda con: _joined(con).distinct().count("*"),
    lambda con: _joined(con).set_alias("j").filter("j.id_1 = 8"),
    lambda con: _joined(con).filter("b.id = 8").project("a.s").set_alias("j").project("j.s"),
    lambda con: (
        _joined(con).join(con.table("b").set_alias("c"), "c.id = a.id").project("c.v, a.id, b.id").order("v")
    ),
    lambda con: (
        con.table("b").set_alias("z").join(_joined(con), "z.id = b.id", "left").aggregate("sum(a.id)")
    ),
    lambda con: _joined(con).filter("b.id = 8").join(con.table("b").set_alias("c"), "c.id = id_1"),
    lambda con: _joined(con).join(con.table("b"), "id_1 = b.id").count("*"),
    lambda con: con.table("a").join(con.table("b"), "id").filter("a.id = b.id").order("a.id").limit(2),
    lambda con: con.table("a").join(con.table("b"), "id", "left").project("a.id, b.id").order("1"),
    lambda con: con.table("a").join(con.table("b"), "a.id = b.id", suffix="_b").order("id").limit(1),
    lambda con: con.table("a").join(con.table("b").project("id, v AS g"), "id", suffix="_b").order("id"),
    lambda con: con.table("a").join(con.table("b"), "id", suffix="_b").order("id").limit(1),
    lambda con: con.table("a").join(con.table("b"), how="natural", suffix="_b").order("id").limit(1),
    lambda con: con.table("a").join(con.table("b"), "id", "semi", suffix="_b").order("id").limit(1),
]


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_names_that_come_twice_and_sides_of_joins_are_those_of_duckdb(backend: str) -> None:
    with duckdb_database() as oracle, tqp.connect(backend=backend) as connection:
        oracle.execute(SETUP)
        connection.execute(SETUP)
        for number, chain in enumerate(NAMED):
            expected, found = chain(oracle), chain(connection)
            assert found.fetchall() == expected.fetchall(), number
            assert list(found.columns) == expected.columns, number
            assert [each[0] for each in found.description] == expected.columns, number
            assert found.df().columns.tolist() == expected.df().columns.tolist(), number
            assert found.to_arrow().column_names == expected.to_arrow_table().column_names, number


def test_relations_of_files_have_the_columns_that_a_star_leaves_out(tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    with duckdb.connect() as oracle, tqp.connect() as connection:
        oracle.execute(f"COPY (SELECT i AS a, i % 2 AS g FROM range(4) r(i)) TO '{path}'")
        answers = []
        for engine in (oracle, connection):
            files: Any = engine.read_parquet(path)
            joined = files.set_alias("l").join(files.set_alias("r"), "l.a = r.g")
            answers.append(
                [
                    files.project("filename, a").fetchall(),
                    files.filter("file_row_number > 1").project("a, file_row_number").fetchall(),
                    files.aggregate("filename, sum(a)").fetchall(),
                    files.set_alias("q").project("q.filename").fetchall(),
                    joined.project("l.filename, r.a").order("ALL").fetchall(),
                    files.fetchall(),
                ]
            )
        assert answers[1] == answers[0]
        with pytest.raises(tqp.BindError):
            connection.read_parquet(path).project("a").project("filename").fetchall()
