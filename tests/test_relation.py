"""Relations: queries made of each other by methods, beside DuckDB's; one connection behind `tqp.sql`."""

from __future__ import annotations

import inspect
import io
import os
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tqp
from tests.oracle import duckdb_database

SETUP = """
    CREATE TABLE a AS SELECT i AS id, i % 3 AS g, 'name ' || i AS s FROM range(10) r(i);
    CREATE VIEW b AS SELECT id, id * 10 AS v FROM a WHERE id > 4
"""


def _summary(name: str, column: str) -> Callable[[Any], Any]:
    """An aggregate of all rows, by the name of its method."""
    return lambda con: getattr(con.table("a"), name)(column)


CHAINS: list[Callable[[Any], Any]] = [
    lambda con: con.table("a").filter("id > 3").order("id DESC").limit(2, offset=1),
    lambda con: con.table("a").project("id + 1 AS n, s").filter("n < 3").order("n"),
    lambda con: con.table("a").aggregate("g, sum(id) AS total", "g").order("g"),
    lambda con: con.table("a").aggregate("sum(id), count(*)"),
    lambda con: con.table("a").project("g").distinct().order("g"),
    lambda con: (
        con.table("a")["s"].limit(1)
        if isinstance(con, tqp.Connection)
        else con.table("a").project("s").limit(1)
    ),
    lambda con: con.table("a").join(con.view("b"), "id").order("id"),
    lambda con: con.table("a").join(con.view("b"), "a.id = b.id", how="left").project("s, v").order("s"),
    lambda con: (
        con.table("a").set_alias("x").join(con.table("a").set_alias("y"), "x.id = y.id + 1").count("*")
    ),
    lambda con: con.table("a").union(con.table("a")).count("*"),
    lambda con: con.table("a").project("g").except_(con.table("a").filter("g = 1").project("g")).order("g"),
    lambda con: con.table("a").project("g").intersect(con.table("b").project("id % 2 AS g")).order("g"),
    lambda con: con.table("a").query("z", "SELECT max(z.id) AS m FROM z, b"),
    lambda con: con.sql("SELECT id, s FROM a").filter("id = (SELECT max(id) FROM b)"),
    lambda con: (
        con.table("a").head(3).cross(con.table("b").project("v").set_alias("c").limit(2)).order("ALL")
    ),
    lambda con: con.sql("SELECT 1 AS g").join(con.sql("SELECT 1 AS g, 'w' AS w"), "g"),
    lambda con: con.sql("SELECT 1 AS g").join(con.sql("SELECT 1 AS g, 'w' AS w"), ["g"], "semi"),
    lambda con: con.sql("SELECT 1 AS g").join(con.sql("SELECT 2 AS h"), "g < h"),
    lambda con: con.sql("SELECT 1 AS g").set_alias("x").join(con.sql("SELECT 2 AS h"), "x.g < 2", "left"),
    lambda con: con.sql("SELECT 1 AS g").join(con.sql("SELECT 1 AS g, 'w' AS w"), how="natural"),
    lambda con: con.sql("SELECT 1 AS g").join(con.sql("SELECT 2 AS h"), None, "cross"),
    lambda con: con.sql("SELECT 1 AS g").join(con.sql("SELECT 2 AS h"), how="positional"),
    lambda con: con.sql("SELECT 3 AS g").join(con.sql("SELECT 2 AS g, 'w' AS w"), "g", "asof"),
    lambda con: (
        con.sql("SELECT 1 AS g").join(con.sql("SELECT 2 AS h"), "g < h").join(con.sql("SELECT 2 h"), "h")
    ),
    lambda con: con.from_df(pd.DataFrame({"x": [1]})).join(con.from_df(pd.DataFrame({"x": [1]})), "x"),
    lambda con: con.table("a").sum("id", groups="g").order("1"),
    lambda con: con.table("a").max("id + 1"),
    lambda con: con.table("a").mode("g"),
    lambda con: con.table("a").quantile("id", 0.3).project("#1 AS q"),
    *(_summary(name, "id") for name in "mean avg median std stddev var variance product".split()),
    *(_summary(name, "s") for name in "min first last any_value".split()),
    lambda con: con.table("a").string_agg("s", sep="; "),
    lambda con: con.table("a").value_counts("g").order("g"),
    lambda con: con.table("a").unique("g").order("g"),
    lambda con: con.table("b").describe(),
    lambda con: con.sql("SELECT DATE '2024-01-01' AS d, [1] AS l, true AS b").describe(),
    lambda con: con.values([1, "x", 2.5]),
    lambda con: con.values((1, "x"), (2, None)),
    lambda con: con.table_function("range", [2, 9, 3]),
    lambda con: con.from_query("SELECT 1 AS x").filter("x > 0"),
    lambda con: con.table("main.a").filter("a.id + main.a.id > 16").project("rowid, id").order("id"),
    lambda con: con.table("a").apply("sum", "id, g", "g", projected_columns="g").order("g"),
    lambda con: con.table("a").apply("string_agg", "s", function_parameter="'|'"),
    lambda con: con.from_df(pd.DataFrame({"x": [1, 2]})).filter("x > 1"),
    lambda con: con.from_arrow(pa.table({"x": [1, 2]})).sum("x"),
    lambda con: con.table("a").filter("id IN (SELECT id FROM b)").sort("id").limit(2),
]


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_chains_answer_what_they_do_in_duckdb(backend: str) -> None:
    with duckdb_database() as oracle, tqp.connect(backend=backend) as connection:
        oracle.execute(SETUP)
        connection.execute(SETUP)
        for number, chain in enumerate(CHAINS):
            expected, found = chain(oracle), chain(connection)
            assert found.fetchall() == expected.fetchall(), number
            assert list(found.columns) == expected.columns, number
            assert [str(each) for each in found.types] == [str(each) for each in expected.types], number


def test_relations_are_lazy_and_tables_by_their_names() -> None:
    with tqp.connect() as con:
        con.sql(SETUP)
        large = con.table("a").filter("id > 7")
        assert con.sql("SELECT count(*), max(b.v) FROM large JOIN b USING (id)").fetchall() == [(2, 90)]
        con.sql("INSERT INTO a VALUES (99, 0, 'new')")
        assert len(large) == 3 and con.sql("SELECT max(id) FROM large").fetchall() == [(99,)]
        answer = con.sql("SELECT id FROM a WHERE id < 3")  # noqa: F841 (the next query reads it)
        assert con.sql("SELECT sum(id) FROM answer").fetchall() == [(3,)]
        large.create("kept")
        large.create_view("seen")
        con.sql("DELETE FROM a WHERE id = 99")
        assert con.sql("SELECT (SELECT count(*) FROM kept), (SELECT count(*) FROM seen)").fetchall() == [
            (3, 2)
        ]
        with pytest.raises(tqp.BindError, match='there is a table "kept" already'):
            large.create("kept")
        assert (
            large.fetchone() == (8, 2, "name 8")
            and large.fetchmany(5) == [(9, 0, "name 9")]
            and large.fetchone() is None
        )
        assert large.df().equals(large.execute().to_pandas()) and large.pl().shape == (2, 3)
        assert large.arrow().num_rows == 2 and np.asarray(large["id"]).tolist() == [8, 9]


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_rows_of_tables_are_inserted_and_changed_by_methods(backend: str) -> None:
    changes: list[Callable[[Any, Any], Any]] = [
        lambda m, con: con.table("s.t").insert([1, "it's"]),
        lambda m, con: con.table("s.t").insert((None, "z")),
        lambda m, con: con.table('"s"."of one"').insert(5),
        lambda m, con: con.table("s.t").update({"a": m.col("a") + 1}, condition="b <> 'z'"),
        lambda m, con: con.table("s.t").update({"b": None, "A": m.lit(7)}, condition=m.col("a").is_null()),
        lambda m, con: con.table("s.t").update({"b": m.DefaultExpression()}, condition="a = 7"),
        lambda m, con: con.table('s."of one"').update({'a "b': 6}),
    ]
    reads = ["FROM s.t ORDER BY a", 'FROM s."of one"']
    with duckdb_database() as oracle, tqp.connect(backend=backend) as connection:
        for con in (oracle, connection):
            con.execute(
                """CREATE SCHEMA s; CREATE TABLE t (a BIGINT); CREATE TABLE s.t (a INTEGER, b VARCHAR DEFAULT 'none');
                CREATE TABLE s."of one" ("a ""b" INTEGER); CREATE VIEW v AS FROM t"""
            )
        for number, change in enumerate(changes):
            assert change(duckdb, oracle) is change(tqp, connection) is None
            for read in reads:
                assert connection.sql(read).fetchall() == oracle.sql(read).fetchall(), number
        rows = connection.table("s.t")
        for wrong, message in (
            (lambda: rows.update({"a": "b"}), "becomes .b.; say whether that is col"),
            (lambda: rows.update({}), "a dict from columns"),
            (lambda: rows.insert([1]), "1 value"),
            (lambda: connection.table("v").insert([1]), "is a view"),
            (lambda: rows.update({"nope": 1}), "nope"),
        ):
            with pytest.raises(tqp.Error, match=message):
                wrong()


def test_files_as_relations(tmp_path: Path) -> None:
    path = os.fspath(tmp_path / "t")
    duckdb.sql(f"COPY (SELECT i AS a, '0' || i AS b FROM range(3) r(i)) TO '{path}.csv'")
    duckdb.sql(f"COPY (FROM '{path}.csv') TO '{path}.parquet'; COPY (FROM '{path}.csv') TO '{path}.json'")
    calls: list[Callable[[Any], Any]] = [
        lambda con: con.read_csv(f"{path}.csv"),
        lambda con: con.read_csv(f"{path}.csv", header=False, skiprows=1, dtype=["INTEGER", "VARCHAR"]),
        lambda con: con.read_csv([f"{path}.csv"], delimiter=",", dtype={"a": "DOUBLE"}, na_values="02"),
        lambda con: con.read_parquet(f"{path}.parquet").sum("a"),
        lambda con: con.read_parquet([f"{path}.parquet", f"{path}.parquet"], filename=True),
        lambda con: con.read_json(f"{path}.json").filter("a > 0"),
    ]
    with duckdb_database() as oracle, tqp.connect() as connection:
        for number, call in enumerate(calls):
            expected, found = call(oracle), call(connection)
            assert found.fetchall() == expected.fetchall(), number
            assert list(map(str, found.types)) == list(map(str, expected.types)), number
        assert tqp.read_parquet(f"{path}.parquet").fetchall() == tqp.read_csv(Path(f"{path}.csv")).fetchall()
        for wrong, message in (
            (lambda: connection.read_csv(f"{path}.nope"), "no file matches"),
            (lambda: connection.read_csv(f"{path}.csv", nope=1), '"nope"'),
            (lambda: connection.read_csv(object()), "nor the path of a file"),
            (lambda: connection.from_df(7), "cannot read a builtins.int"),
            (lambda: connection.table("a")[0], "columns by their names"),
        ):
            with pytest.raises(tqp.Error, match=message):
                connection.sql("CREATE OR REPLACE TABLE a AS SELECT 1 AS x")
                wrong()


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_rows_are_put_into_tables(backend: str) -> None:
    with tqp.connect(backend=backend) as con:
        con.sql("CREATE TABLE t(a INTEGER, b VARCHAR DEFAULT 'none')")
        con.append("t", pd.DataFrame({"b": ["x"], "a": [1]}), by_name=True)
        con.append("t", {"x": [2], "y": ["z"]})
        con.table("t").filter("a = 1").project("a + 9, b").insert_into("t")
        con.sql("SELECT 5 AS a").insert_into("t", by_name=True)
        assert con.sql("FROM t ORDER BY a").fetchall() == [(1, "x"), (2, "z"), (5, "none"), (10, "x")]
        con.table("t").to_table("copied")
        con.table("t").filter("a > 4").to_view("seen")
        assert con.sql("SELECT (SELECT count(*) FROM copied), count(*) FROM seen").fetchall() == [(4, 2)]
        for wrong in (lambda: con.append("nope", {"x": [1]}), lambda: con.append("t", {"x": [1]})):
            with pytest.raises(tqp.BindError):
                wrong()


def test_a_connection_has_the_rows_of_what_it_executed() -> None:
    with tqp.connect() as con:
        with pytest.raises(tqp.BindError, match="nothing has been executed"):
            con.fetchall()
        rows = [(i, i * i) for i in range(5)]
        con.execute("SELECT i AS a, i * i AS b FROM range(5) r(i)")
        assert con.description is not None and [column[0] for column in con.description] == ["a", "b"]
        other = con.cursor().execute("SELECT 7")
        assert con.fetchone() == rows[0] and con.fetchmany(2) == rows[1:3]
        assert con.fetchall() == rows[3:] and con.fetchall() == [] and other.fetchone() == (7,)
        frames = [con.df(), con.fetchdf(), con.fetch_df(), con.to_df()]
        frames += [con.pl().to_pandas(), con.arrow().to_pandas()]
        assert all(frame["b"].tolist() == [0, 1, 4, 9, 16] for frame in frames)
        assert con.fetch_record_batch(2).read_all().num_rows == 5
        assert con.torch()["a"].tolist() == list(range(5))
        seen: list[object] = []
        thread = Thread(target=lambda: seen.append(con.execute("SELECT 1") and con.fetchall()))
        thread.start()
        thread.join()
        assert seen == [[(1,)]] and con.fetchnumpy()["a"].tolist() == [0, 1, 2, 3, 4]
        other.close()
        with pytest.raises(tqp.BindError, match="nothing has been executed"):
            other.fetchone()
    with pytest.raises(tqp.BindError, match="nothing has been executed"):
        con.fetchall()  # closed


def test_how_many_rows_a_statement_has_changed() -> None:
    with tqp.connect() as con, duckdb_database() as oracle:
        for text in (
            "SELECT 1",
            "CREATE TABLE t(a INTEGER)",
            "INSERT INTO t VALUES (1), (2)",
            "DELETE FROM t",
            "FROM t",
        ):
            con.execute(text)
            oracle.execute(text)
            assert con.rowcount == oracle.rowcount, text


def test_ways_out_and_descriptions_of_relations() -> None:
    with tqp.connect() as con:
        con.sql(SETUP)
        a = con.table("a").filter("id > 6")
        assert a.shape == (3, 3) and [column[0] for column in a.description] == ["id", "g", "s"]
        assert a.dtypes == a.types and repr(a.types) == "(BIGINT, BIGINT, VARCHAR)"
        assert (
            a[["s", "id"]].columns == ("s", "id") and "a" in a.explain() and "rows" in a.explain(analyze=True)
        )
        limit = 3
        asked = con.sql("FROM a LIMIT ?", [limit])
        assert "Limit 3" in asked.explain() and "rows" in asked.explain(analyze=True)
        frame = pd.DataFrame({"x": [1]})  # noqa: F841 (the query reads it)
        assert "frame" in con.sql("FROM frame").explain()
        assert a.to_df().equals(a.df()) and a.to_arrow_table().equals(a.arrow())
        assert a.to_arrow_reader(2).read_next_batch().num_rows == 2
        assert con.sql("FROM a").to_arrow_reader(4).read_all().num_rows == 10
        with pytest.raises(tqp.BindError, match="batch_size=0"):
            a.to_arrow_reader(0)


def test_the_module_has_the_methods_of_its_connection(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1, 2, 3]})
    assert tqp.query("SELECT sum(x) FROM frame").fetchone() == (6,)
    assert tqp.execute("SELECT max(x) + ? FROM frame", [1]).fetchall() == [(4,)]
    tqp.register("of_the_module", frame)
    tqp.create_function("plus_one", lambda x: x + 1, ["BIGINT"], "BIGINT", type="native")
    try:
        assert tqp.table("of_the_module").max("plus_one(x)").fetchall() == [(4,)]
        assert tqp.view("of_the_module").count().fetchall() == [(3,)]
        assert tqp.default_connection().table_names() == ["of_the_module"]
    finally:
        tqp.unregister("of_the_module")
        tqp.default_connection().remove_function("plus_one")
    assert (
        tqp.from_df(frame).count().fetchall() == tqp.from_arrow(pa.table({"x": [0] * 3})).count().fetchall()
    )
    tqp.values((1, "a")).write_json(tmp_path / "t.json")
    assert tqp.read_json(tmp_path / "t.json").fetchall() == [(1, "a")]
    with tqp.connect(":memory:") as con:
        assert con.device.type == "cpu"
    tqp.execute("CREATE OR REPLACE TABLE of_the_module AS SELECT 1 AS x")
    tqp.begin()
    tqp.append("of_the_module", {"x": [2]})
    assert tqp.cursor().execute("SELECT sum(x) FROM of_the_module").fetchone() == (3,)
    tqp.rollback()
    assert tqp.table_function("range", [2]).fetchall() == [(0,), (1,)]
    assert tqp.get_table_names("FROM of_the_module") == {"of_the_module"}
    assert tqp.extract_statements("SELECT 1; SELECT 2") == ["SELECT 1", "SELECT 2"]
    assert len(tqp.table("of_the_module")) == 1 and "`Connection.commit`" in str(tqp.commit.__doc__)
    assert list(inspect.signature(tqp.append).parameters) == ["table_name", "df", "by_name"]
    tqp.execute("DROP TABLE of_the_module")


def test_columns_are_attributes() -> None:
    with tqp.connect() as con:
        rows = con.sql('SELECT i AS a, i * 2 AS "count", i AS _b FROM range(3) r(i)')
        assert rows.a.fetchall() == rows.filter("true").A.fetchall() == [(0,), (1,), (2,)]
        assert rows.a.max("a").fetchall() == [(2,)]
        assert "A" in rows and "nope" not in rows and "a" in rows.filter("true") and 0 not in rows
        assert rows.count().fetchall() == [(3,)]  # what there is of that name comes first
        for name in ("nope", "_b", "__dataframe__"):
            assert not hasattr(rows, name)
        with pytest.raises(AttributeError, match="its rows no column, 'nope'"):
            rows.filter("a > 1").nope  # noqa: B018


def test_texts_may_end_in_comments() -> None:
    with tqp.connect() as con:
        rows = con.sql("SELECT i AS a FROM range(3) r(i)")
        assert rows.filter("a > 1 -- note").fetchall() == [(2,)]
        assert rows.project("a -- note", "a + 1 AS b -- note").limit(1).fetchall() == [(0, 1)]
        assert rows.aggregate("a % 2 AS g, sum(a) -- note", "g -- note").order("g -- note").fetchall() == [
            (0, 2),
            (1, 1),
        ]
        assert rows.sort("a % 2 -- note", "a").fetchall() == [(0,), (2,), (1,)]
        assert rows.max("a -- note").fetchall() == [(2,)]
        assert rows.count("a -- note").fetchall() == [(3,)]
        assert rows.value_counts("a -- note").count().fetchall() == [(3,)]
        other = rows.set_alias("other")
        assert rows.join(other, "relation.a < other.a -- note").count().fetchall() == [(3,)]


def test_rows_that_are_left() -> None:
    with tqp.connect() as con:
        relation = con.sql("FROM range(4)").filter("true")
        assert relation.fetchone() == (0,)
        assert relation.fetchmany(2) == [(1,), (2,)]
        assert relation.fetchall() == [(3,)]


def test_lazy_frames_out() -> None:
    with tqp.connect() as con:
        for rows in (
            con.sql("SELECT 1 AS a"),
            con.sql("SELECT 1 AS a").filter("true"),
            con.execute("SELECT 1 AS a"),
        ):
            assert rows.pl(lazy=True).collect().equals(rows.pl())


def test_shown_rows_and_columns(capsys: pytest.CaptureFixture[str]) -> None:
    with tqp.connect() as con:
        con.sql("SELECT i, i AS other, i AS another FROM range(9) r(i)").filter("true").show(
            max_rows=3, max_width=30
        )
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines[:-1])) <= 30
    assert [line.split("│")[1].strip() for line in lines[4:-2]] == ["0", "1", "·", "·", "·", "8"]
    with tqp.connect() as con:
        con.sql("FROM range(2)").show(max_rows=1)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("│")[1].strip() for line in lines[4:-2]] == ["0", "·", "·", "·"]


def test_errors_show_the_relation() -> None:
    with tqp.connect() as con:
        con.sql(SETUP)
        with pytest.raises(tqp.BindError, match='no column "nope"') as raised:
            con.table("a").filter("nope > 1").limit(1).fetchall()
        assert 'SELECT * FROM "a" WHERE (nope > 1)' in str(raised.value)
        with pytest.raises(tqp.BindError, match='no table "nope"'):
            con.table("nope")
        with pytest.raises(tqp.BindError, match="give one another name"):
            con.table("a").join(con.table("a"), "id")
        with pytest.raises(tqp.BindError, match="choose one of"):
            con.table("a").join(con.table("b"), "id", how="sideways")
        with pytest.raises(tqp.ParseError):
            con.table("a").filter("id >")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda con: con.table("a").limit("x"), "count='x': give an integer, not a str"),
        (lambda con: con.table("a").limit(1, None), "offset=None: give an integer"),
        (lambda con: con.table("a").fetchmany(None), "size=None: give an integer"),
        (lambda con: con.table("a").project(None).columns, "None is neither SQL text nor an expression"),
        (lambda con: con.table("a").sort(None).columns, "None is neither SQL text nor an expression"),
        (lambda con: con.table("a").quantile("id", "nope"), "q='nope': give a share from 0 to 1"),
        (lambda con: con.table("a").string_agg("s", None), "the separator is text, not a NoneType"),
        (
            lambda con: con.table("a").join(con.table("b"), None),
            'how="inner": this join needs a condition',
        ),
        (lambda con: con.table("a").join(con.table("b"), "id", None), "how=None: choose one of inner"),
        (lambda con: con.table("a").join(con.table("b"), "id", "cross"), "cross join has no condition"),
        (lambda con: con.table("a").join(con.table("b"), [1]), "the name of a column is text, not a int"),
        (lambda con: con.table("a").join("b", "id"), "with another, not with a str"),
        (lambda con: con.table("a").union([1]), "with another, not with a list"),
        (lambda con: con.table("a").query(1, "FROM a"), "the name of a relation is text, not a int"),
        (lambda con: con.table("a").query("q", 1), "the query is text, not a int"),
        (lambda con: con.table_function("range", 3), "give a list of values"),
        (lambda con: con.read_csv(b"nope.csv"), "no file matches nope.csv"),
    ],
)
def test_wrong_arguments_are_named(wrong: Callable[[Any], Any], message: str) -> None:
    with tqp.connect() as con:
        con.sql(SETUP)
        with pytest.raises(tqp.BindError, match=message):
            wrong(con)


def test_relations_of_another_connection_are_not_read() -> None:
    with tqp.connect() as con, tqp.connect() as other:
        con.sql("CREATE TABLE t AS SELECT 1 AS x")
        other.sql("CREATE TABLE t AS SELECT 2 AS x")
        theirs = other.table("t")
        with pytest.raises(tqp.BindError, match='relation "t" is of another connection'):
            con.sql("FROM theirs")
        for ask in (
            lambda: con.table("t").union(theirs),
            lambda: con.table("t").set_alias("a").join(theirs, "x"),
        ):
            with pytest.raises(tqp.BindError, match='relation "t" is of another connection; from_df'):
                ask()
        rows = theirs.execute()
        assert con.sql("FROM rows").fetchall() == [(2,)]
        assert con.table("t").union(con.from_df(rows)).order("x").fetchall() == [(1,), (2,)]


def test_one_connection_is_behind_sql(tmp_path: Path) -> None:
    tqp.sql("CREATE OR REPLACE TABLE of_this_test AS SELECT 7 AS x")
    try:
        assert tqp.sql("SELECT x FROM of_this_test").fetchall() == [(7,)]
        assert tqp.sql("SELECT x FROM of_this_test").filter("x > 7").fetchall() == []
        with pytest.raises(tqp.BindError, match="no table"):
            tqp.sql("FROM of_this_test", {"t": {"a": [1]}})  # tables of its own
        path = os.fspath(tmp_path / "t.csv")
        tqp.sql("SELECT x FROM of_this_test").write_csv(path)
        assert tqp.sql(f"SELECT x + 1 FROM '{path}'").fetchall() == [(8,)]
        from tqp.session import _default

        assert not _default.connection()._catalog.files.tables()  # nothing of files stays
    finally:
        tqp.sql("DROP TABLE of_this_test")


def test_open_files_are_read() -> None:
    parquet = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2]}), parquet)
    with tqp.connect() as con:
        parquet.seek(0)
        rows = con.read_parquet(parquet)
        assert rows.fetchall() == rows.fetchall() == [(1,), (2,)]
        assert con.read_csv([io.StringIO("a,b\n1,x\n"), io.BytesIO(b"a,b\n2,y\n")]).fetchall() == [
            (1, "x"),
            (2, "y"),
        ]
        assert con.read_json(io.StringIO('{"a": 1}')).filter("a = 1").fetchall() == [(1,)]
        with pytest.raises(tqp.ExecutionError, match="cannot read"):
            closed = io.StringIO("a")
            closed.close()
            con.read_csv(closed)
        with pytest.raises(tqp.BindError, match="takes the path of a file"):
            con.read_csv(3)


def test_answers_have_names() -> None:
    with tqp.connect() as con:
        left, right = con.sql("SELECT 1 AS q", alias="l"), con.query("SELECT ? AS q", [1], alias="r")
        assert left.alias == "l" and left.join(right, "l.q = r.q").fetchall() == [(1, 1)]
        with pytest.raises(tqp.BindError, match="a relation"):
            con.sql("SELECT 1", alias=3)
    assert tqp.sql("SELECT 1 AS q", alias="z").filter("z.q = 1").fetchall() == [(1,)]


def test_what_is_shown_is_as_wide_as_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    rows = tqp.sql("SELECT 'abcdefghij' AS a, NULL AS n FROM range(9)")
    rows.show(max_rows=2, max_col_width=5, null_value="-")
    lines = capsys.readouterr().out.splitlines()
    assert lines[4] == "│ abcd… │ -     │" and lines[-1] == "9 rows (2 shown), 2 columns"
    with pytest.raises(tqp.UnsupportedError, match="render_mode"):
        rows.show(render_mode="columns")
