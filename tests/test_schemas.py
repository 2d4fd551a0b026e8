"""Own schemas through methods, across programs that are kept, and in EXPORT DATABASE."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd
import pytest

import tqp


@pytest.fixture
def connection() -> tqp.Connection:
    made = tqp.connect()
    made.sql("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 1 AS a; CREATE TABLE t AS SELECT 2 AS a")
    return made


def test_methods_take_names_of_schemas(connection: tqp.Connection) -> None:
    assert connection.table("s.t").fetchall() == connection.view('"s"."t"').fetchall() == [(1,)]
    assert connection.table("memory.s.t").filter("a = 1").fetchall() == [(1,)]
    assert connection.table("t").fetchall() == [(2,)]
    connection.sql("SELECT 3 AS x").create("s.c")
    connection.sql("SELECT 4 AS x").insert_into("s.c")
    assert connection.sql("FROM s.c").fetchall() == [(3,), (4,)]
    connection.append("s.c", pd.DataFrame({"x": [5]}))
    assert connection.table("s.c").aggregate("sum(x)").fetchall() == [(12,)]
    with pytest.raises(tqp.BindError, match='there is a table "c" already'):
        connection.sql("SELECT 3 AS x").create("s.c")
    with pytest.raises(tqp.BindError, match='there is no schema "nope"; CREATE SCHEMA makes one'):
        connection.sql("SELECT 3 AS x").create("nope.c")
    with pytest.raises(tqp.BindError, match='there is no table "s.nothing"'):
        connection.table("s.nothing")


def test_a_registered_name_may_hold_a_dot(connection: tqp.Connection) -> None:
    connection.register("s.t", pd.DataFrame({"b": [7]}))
    assert connection.sql('FROM "s.t"').fetchall() == connection.table("s.t").fetchall() == [(7,)]
    assert connection.sql("FROM s.t").fetchall() == [(1,)]
    connection.unregister("s.t")
    assert connection.table("s.t").fetchall() == [(1,)]


def test_things_are_made_and_found_where_use_says(connection: tqp.Connection) -> None:
    connection.register("r", pd.DataFrame({"b": [7]}))
    connection.sql("USE s")
    connection.sql("SELECT 5 AS x").create("made")
    connection.sql("SELECT 6 AS x").create_view("seen")
    assert connection.sql("SELECT m.x, v.x FROM s.made m, s.seen v").fetchall() == [(5, 6)]
    assert connection.sql("FROM r").fetchall() == [(7,)]
    assert connection.table("t").fetchall() == [(1,)]


def test_names_in_texts_may_have_schemas(connection: tqp.Connection) -> None:
    texts = ("s.t", "memory.s.t", 'S."T"', "main.t", '"t"')
    answers = [connection.sql(f"FROM query_table('{text}')").fetchall() for text in texts]
    assert answers == [[(1,)], [(1,)], [(1,)], [(2,)], [(2,)]]
    assert connection.sql("FROM query_table(s.t)").fetchall() == [(1,)]
    for text in ("", ".t", "s.", 's"t', '"s', "s..t"):
        with pytest.raises(tqp.BindError, match="takes the name of a table"):
            connection.sql(f"FROM query_table('{text}')")


@pytest.mark.parametrize("path", [None, "s", "s,main"])
@pytest.mark.parametrize("argument", ["true", "false", "NULL"])
def test_the_schemas_that_are_searched(connection: tqp.Connection, path: str | None, argument: str) -> None:
    query = f"SELECT current_schemas({argument}) AS found"
    with duckdb.connect() as oracle:
        oracle.execute("CREATE SCHEMA s")
        for each in (connection, oracle):
            if path is not None:
                each.execute(f"SET search_path = '{path}'")
        assert [str(each) for each in connection.sql(query).types] == ["VARCHAR[]"]
        assert connection.sql(query).fetchall() == oracle.sql(query).fetchall()


def test_programs_that_are_kept_know_what_is_searched(connection: tqp.Connection) -> None:
    query, other = "SELECT a + 1 AS b FROM t WHERE a < 10", "SELECT a + 2 AS b FROM t WHERE a < 11"
    for schema, value in (("main", 2), ("s", 1), ("main", 2), ("s", 1)):
        connection.sql(f"USE {schema}")
        assert connection.sql(query).fetchall() == connection.sql(query).fetchall() == [(value + 1,)]
        assert connection.sql(other).fetchall() == [(value + 2,)]
    prepared = connection.prepare("SELECT a FROM t WHERE a < ?")
    assert prepared.execute([10]).fetchall() == [(1,)]
    connection.sql("USE main")
    assert prepared.execute([10]).fetchall() == [(2,)]
    connection.sql("CREATE VIEW s.v AS SELECT a * 10 AS a FROM t")
    for schema in ("main", "s", "main"):
        connection.sql(f"USE {schema}")
        assert connection.sql("FROM s.v").fetchall() == [(10,)]
    connection.sql("DROP TABLE s.t")
    assert connection.sql("FROM s.v").fetchall() == [(20,)]


def test_duckdb_imports_schemas_that_tqp_exports_and_back(connection: tqp.Connection, tmp_path: Path) -> None:
    connection.sql("CREATE TYPE s.mood AS ENUM ('x'); CREATE TABLE s.m(i INTEGER PRIMARY KEY, m s.mood)")
    connection.sql("CREATE SEQUENCE s.q; CREATE MACRO s.f(x) AS x + 1; CREATE INDEX i ON s.m(m)")
    connection.sql(
        "USE s; CREATE TABLE d(n BIGINT DEFAULT nextval('q'), k INTEGER); INSERT INTO d(k) VALUES (5)"
    )
    connection.sql("CREATE VIEW v AS SELECT s.f(a) AS b FROM t; CREATE VIEW w AS SELECT b FROM v; USE main")
    for name in ("TABLE s.t", "COLUMN t.a", "VIEW s.v", "COLUMN s.w.b", "INDEX s.i", "MACRO s.f"):
        connection.sql(f"COMMENT ON {name} IS 'it''s {name}'")
    told = " UNION ALL ".join(
        f"SELECT comment FROM {function}() WHERE comment IS NOT NULL"
        for function in (
            "duckdb_tables",
            "duckdb_columns",
            "duckdb_views",
            "duckdb_indexes",
            "duckdb_functions",
        )
    )
    told = f"SELECT * FROM ({told}) WHERE comment LIKE 'it''s%' ORDER BY 1"
    comments = connection.sql(told).fetchall()
    assert len(comments) == 6
    connection.sql(f"EXPORT DATABASE '{tmp_path / 'ours'}'")
    asked = (
        "SELECT (SELECT a FROM s.t), (SELECT a FROM main.t), (SELECT b FROM s.w), (SELECT max(n) FROM s.d)"
    )
    with tqp.connect() as again:
        again.sql(f"IMPORT DATABASE '{tmp_path / 'ours'}'")
        assert again.sql(told).fetchall() == comments
    with duckdb.connect() as reference, tqp.connect() as again:
        reference.execute(f"IMPORT DATABASE '{tmp_path / 'ours'}'")
        assert reference.execute(asked).fetchall() == [(1, 2, 2, 1)]
        reference.execute("INSERT INTO s.d(k) VALUES (6)")
        reference.execute(f"EXPORT DATABASE '{tmp_path / 'theirs'}'")
        again.sql(f"IMPORT DATABASE '{tmp_path / 'theirs'}'")
        assert again.sql(asked).fetchall() == [(1, 2, 2, 2)]
        again.sql("INSERT INTO s.d(k) VALUES (7)")
        assert again.sql("SELECT max(n) FROM s.d").fetchall() == [(3,)]


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("FROM nope.t", tqp.BindError, 'there is no schema "nope"; CREATE SCHEMA makes one'),
        ("FROM ss.t", tqp.BindError, 'there is no schema "ss"; did you mean "s"'),
        ("FROM s.u", tqp.BindError, 'there is no table "s.u"'),
        ("FROM nodb.s.t", tqp.BindError, 'there is no database "nodb"'),
        ("SELECT nope.t.a FROM t", tqp.BindError, 'there is no schema "nope"'),
        ("INSERT INTO nope.t VALUES (1)", tqp.BindError, 'there is no schema "nope"'),
        ("DROP TABLE s.u", tqp.BindError, 'there is no table "s.u"'),
        ("DROP SCHEMA s", tqp.BindError, 'the schema "s" is not empty; DROP SCHEMA ... CASCADE'),
        ("USE nope", tqp.BindError, 'there is no schema "nope"'),
        ("USE a.b.c.d", tqp.ParseError, "a schema and a database at most"),
        ("SET schema = 's,main'", tqp.BindError, "no name of a schema"),
        ("CREATE SCHEMA memory", tqp.UnsupportedError, "the name of a database"),
        ("CREATE TEMP TABLE s.u(a INT)", tqp.BindError, 'in the database "temp"'),
        ("CREATE TABLE temp.u(a INT)", tqp.BindError, 'in the database "temp"'),
        ("CREATE TABLE pg_catalog.u(a INT)", tqp.BindError, "nothing can be made in"),
        ("SELECT 'a'::nope.mood", tqp.BindError, 'there is no schema "nope"'),
        ("SELECT nextval('nope.q')", tqp.BindError, 'there is no schema "nope"'),
    ],
)
def test_errors_name_the_schema(
    connection: tqp.Connection, statement: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        connection.sql(statement)
