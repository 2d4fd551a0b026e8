"""Statements that make and change tables, beside DuckDB: the scripts of `tests/statements` are run by both, step by step."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import tqp
from tests.oracle import duckdb_database
from tests.test_slt import SETTINGS
from tqp.core.names import ObjectName

SCRIPTS = sorted((Path(__file__).parent / "statements").glob("*.sql"))

#: Names, types and rows; None of what is refused.
Answer = tuple[list[str], list[str], list[Any]] | None


def statements_of(path: Path) -> list[str]:
    """The statements of a script: each ends with a semicolon at the end of a line."""
    return [part.strip() for part in path.read_text(encoding="utf-8").split(";\n") if part.strip()]


def answer_of_duckdb(connection: duckdb.DuckDBPyConnection, statement: str) -> Answer:
    try:
        found = connection.execute(statement)
        types = [str(column[1]) for column in found.description or ()]
        return [column[0] for column in found.description or ()], types, found.fetchall()
    except duckdb.Error:
        return None


def answer_of_tqp(connection: tqp.Connection, statement: str) -> Answer:
    try:
        found = connection.sql(statement)
    except tqp.UnsupportedError as error:
        if "constraint" in str(error):  # DuckDB refuses to change such columns, too
            return None
        raise
    except tqp.Error:
        return None
    types = list(map(str, found.types))
    return list(found.columns), types, found.fetchall()


@pytest.mark.parametrize("setting", ["default", pytest.param("tiny", marks=pytest.mark.slow), "torch"])
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_scripts(path: Path, setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where COPY writes
    one_thread = {"threads": 1}  # of many, DuckDB now and then inserts a row that repeats a key
    with duckdb.connect(config=one_thread) as oracle, tqp.connect(**SETTINGS[setting]) as connection:
        oracle.execute("SET TimeZone = 'UTC'")
        for statement in statements_of(path):
            expected = answer_of_duckdb(oracle, statement)
            assert answer_of_tqp(connection, statement) == expected, statement


def test_parameters_of_statements() -> None:
    with tqp.connect() as con:
        con.sql("CREATE TABLE t(a INT, b VARCHAR)")
        con.sql("INSERT INTO t VALUES (?, ?)", [1, "x"])
        con.sql("INSERT INTO t VALUES ($a, $b)", {"a": 2, "b": "y"})
        con.executemany("INSERT INTO t VALUES (?, ?)", [[3, "z"], [4, None]])
        con.sql("UPDATE t SET b = ? WHERE a = ?", ["new", 2])
        con.sql("DELETE FROM t WHERE a = $1", [3])
        assert con.sql("FROM t").fetchall() == [(1, "x"), (2, "new"), (4, None)]
        insert = con.prepare("INSERT INTO t SELECT $1, $2 RETURNING a")
        assert insert.parameters == (1, 2)
        assert insert.execute([9, "k"]).fetchall() == [(9,)]
        with pytest.raises(tqp.BindError, match=r"does not use the parameter \$3"):
            con.sql("INSERT INTO t VALUES (?, ?)", [1, "x", 3])
        with pytest.raises(tqp.BindError, match="no value for the parameter"):
            con.sql("INSERT INTO t VALUES (?, ?)", [1])
        with pytest.raises(tqp.BindError, match="a view cannot have parameters"):
            con.sql("CREATE VIEW v AS SELECT ?", [1])


def test_parameters_of_call() -> None:
    with tqp.connect() as con:
        assert con.sql("CALL range(?)", [2]).fetchall() == [(0,), (1,)]


def test_names_of_parameters() -> None:
    """A statement and a query know a parameter by the same name, without its quotes and the "_" in a number."""
    with tqp.connect() as con:
        con.sql("CREATE TABLE t(a INT)")
        for place, key in (('$"a ""b"', 'a "b'), ("$0_1", 1), ('$"1"', 1), ("$\u00b2", "\u00b2")):
            for text in (f"SELECT {place} AS a", f"INSERT INTO t SELECT {place} RETURNING a"):
                assert con.prepare(text).parameters == (key,)
                assert con.sql(text, {str(key): 5}).fetchall() == [(5,)]
        con.sql("UPDATE t SET a = $1", {"1": 6})


def test_summarize() -> None:
    """As DuckDB's but for what is estimated there."""
    rows = "SELECT i, i % 7 AS g, 's' || (i % 5) AS s, DATE '2024-01-01' + (i % 30)::INTEGER AS dt, i % 2 = 0 AS b, CASE WHEN i % 3 > 0 THEN i END AS n FROM range(1000) r(i)"
    exact = ("column_name", "column_type", "min", "max", "avg", "count", "null_percentage")
    with duckdb_database() as oracle, tqp.connect() as con:
        for engine in (oracle, con):
            engine.execute(f"CREATE TABLE t AS {rows}; CREATE TABLE e(a INT, s VARCHAR)")
        for statement in ("SUMMARIZE t", "SUMMARIZE e", f"SUMMARIZE {rows}"):
            expected, found = oracle.execute(statement), con.sql(statement)
            assert [column[0] for column in expected.description] == list(found.columns)
            assert [str(column[1]) for column in expected.description] == [str(each) for each in found.types]
            places = [found.columns.index(name) for name in exact]
            pick = [[row[place] for place in places] for row in found.fetchall()]
            assert pick == [[row[place] for place in places] for row in expected.fetchall()]
        row = dict(zip(found.columns, con.sql("SUMMARIZE t").fetchall()[1], strict=True))
        assert (row["approx_unique"], row["q25"], row["q50"], row["q75"]) == (7, "1", "3", "5")


@pytest.mark.parametrize("count", [0, 1, 2, 3, 6])
def test_summarize_of_few_rows_is_all_as_in_duckdb(count: int) -> None:
    numbers = "TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT UBIGINT UHUGEINT FLOAT DOUBLE DECIMAL(4,1) DECIMAL(18,3) VARCHAR"
    items = [f"(i * 7 % 5)::{each}" for each in numbers.split()]
    items += ["DATE '2024-02-27' + i::INTEGER", "TIME '09:00:00.5' + i * INTERVAL 3 HOUR"]
    for each in ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_NS", "TIMESTAMPTZ"):
        items.append(f"(TIMESTAMP '2024-01-31' + i * INTERVAL 7 HOUR)::{each}")
    items += ["i % 2 = 0", "[i]", "CASE i WHEN 1 THEN 'inf' WHEN 2 THEN 'nan' ELSE i::DOUBLE END"]
    query = f"SUMMARIZE SELECT {', '.join(items)} FROM range({count}) r(i)"
    with duckdb_database() as oracle, tqp.connect() as con:
        assert con.sql(query).fetchall() == oracle.execute(query).fetchall()


def test_what_there_is_of_databases_and_extensions() -> None:
    with tqp.connect() as con:
        assert con.sql("PRAGMA database_list").fetchall() == [(0, "memory", None)]
        assert con.sql("PRAGMA database_list").columns == ("seq", "name", "file")
        assert con.sql("PRAGMA version").fetchall() == con.sql("FROM pragma_version()").fetchall()
        # DuckDB downloads these.
        con.sql("INSTALL json; INSTALL 'icu' FROM core; FORCE INSTALL parquet")
        for statement in ("INSTALL httpfs", "LOAD 'httpfs'", "FORCE INSTALL httpfs FROM 'a place'"):
            with pytest.raises(
                tqp.UnsupportedError, match='extension "httpfs" is not supported; built in is'
            ):
                con.sql(statement)
        with pytest.raises(tqp.BindError, match='no schema "nope"; CREATE SCHEMA makes one'):
            con.sql("USE nope")
        con.sql("PRAGMA enable_progress_bar")
        assert con.sql("SELECT current_setting('enable_progress_bar')").fetchall() == [(True,)]
        con.sql("PRAGMA disable_progress_bar")
        assert con.sql("SELECT current_setting('enable_progress_bar')").fetchall() == [(False,)]


def test_errors_point_at_the_statement() -> None:
    with tqp.connect() as con:
        con.sql("CREATE TABLE orders(a INT)")
        with pytest.raises(tqp.BindError, match='"ordrs"; did you mean "orders"') as raised:
            con.sql("SELECT 1; INSERT INTO ordrs VALUES (1)")
        assert "INSERT INTO ordrs VALUES (1)\n" in str(raised.value) and "^^^^^" in str(raised.value)
        with pytest.raises(tqp.BindError, match='no column "b"') as raised:
            con.sql("UPDATE orders SET a = b + 1")
        assert raised.value.span == (22, 23)
        with pytest.raises(tqp.ParseError, match="expected"):
            con.sql("CREATE TABLE x(a INT); INSERT INTO x VALUES (1")
        with pytest.raises(tqp.BindError, match='"coalesce" is syntax of SQL'):
            con.sql("CREATE MACRO coalesce(a, b) AS a")
        assert con.table_names() == ["orders"]  # nothing of a text that is not SQL is executed
        con.register("frame", {"a": [1]})
        with pytest.raises(tqp.UnsupportedError, match='CREATE TABLE ... AS FROM "frame"'):
            con.sql("INSERT INTO frame VALUES (1)")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE UNIQUE INDEX i ON t((a + 1))",
        "CREATE OR REPLACE INDEX i ON t(a)",
        "CREATE INDEX i ON t(a) WHERE a > 1",
        "INSTALL json VERSION 'v1'",
        "VACUUM FULL",
        "ANALYZE VERBOSE t",
        "PREPARE p AS CALL range(2)",
        "CREATE SEQUENCE s; SELECT (SELECT nextval('s') + a) FROM t",
        "CREATE SEQUENCE s; SELECT nextval('s'), unnest([1, 2])",
        "CREATE SEQUENCE s; SELECT nextval('s'), (SELECT currval('s'))",
        "CREATE SEQUENCE s; WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT nextval('s') FROM r) FROM r",
        "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES t",
        "ALTER TABLE t ADD COLUMN w INT REFERENCES t",
        "MERGE INTO t USING t u ON true WHEN MATCHED AND random() < 1 THEN DELETE WHEN MATCHED THEN DO NOTHING",
        "WITH x AS (COPY t TO 'x.csv') FROM t",
        "SET TimeZone = 'Europe/Berlin'",
        "SET enable_external_access = false",
        "SET enable_profiling = 'json'",
        "CREATE TABLE z(a INT, b AS (random()))",
        "CREATE TABLE z(a INT, b INT AS (a) STORED)",
        "ALTER TABLE t ADD COLUMN z INT AS (1)",
        "ATTACH 'x.db'",
        "ATTACH ':memory:' AS x",
        "DETACH x",
        "PRAGMA enable_profiling",
    ],
)
def test_what_is_not_supported_says_so(statement: str) -> None:
    with (
        tqp.connect() as con,
        pytest.raises(tqp.UnsupportedError, match="not supported|its number of threads"),
    ):
        con.sql("CREATE TABLE t(a INT)")
        con.sql(statement)


#: Statements that EXPLAIN does not execute, and what their plans name, or the text of an error.
EXPLAINED = {
    "INSERT INTO t VALUES (9)": "Values",
    "INSERT INTO t SELECT a + 1 FROM t RETURNING a": "Scan t",
    "WITH x AS (SELECT 7 AS a) INSERT INTO t FROM x": "Project",
    "UPDATE t SET a = 5 WHERE a > 1": "Filter",
    "DELETE FROM t WHERE a > 1": "Filter",
    "DELETE FROM t": "DELETE",
    "MERGE INTO t USING (VALUES (1)) s(k) ON t.a = s.k WHEN MATCHED THEN DELETE": "MERGE",
    "CREATE TABLE u AS SELECT a FROM t": "Scan t",
    "CREATE TABLE u(a INT)": "CREATE",
    "CREATE VIEW u AS SELECT 1": "CREATE",
    "CREATE SEQUENCE u": "CREATE",
    "ALTER TABLE t ADD COLUMN b INT": "ALTER",
    "DROP TABLE t": "DROP",
    "COPY t TO 'u.csv'": "Scan t",
    "SET VARIABLE x = 3": "SET",
    "BEGIN": "BEGIN",
    "CALL range(3)": "Series",
    "INSERT INTO nope VALUES (1)": "nope",
    "UPDATE t SET nope = 1": "nope",
    "DROP TABLE nope": "nope",
}


@pytest.mark.parametrize(("statement", "shown"), EXPLAINED.items(), ids=EXPLAINED.keys())
def test_explain_changes_nothing(
    statement: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with tqp.connect() as con, duckdb_database() as oracle:
        for engine in (con, oracle):
            engine.execute("CREATE TABLE t AS SELECT 1 AS a UNION ALL SELECT 2")
        if shown == "nope":
            with pytest.raises(duckdb.Error, match=shown):
                oracle.execute(f"EXPLAIN {statement}")
            with pytest.raises(tqp.Error, match=shown):
                con.execute(f"EXPLAIN {statement}")
        else:
            columns = [each[:1] for each in oracle.execute(f"EXPLAIN {statement}").description]
            answer = con.execute(f"EXPLAIN {statement}")
            assert [each[:1] for each in answer.description] == columns
            [(_, plan)] = answer.fetchall()
            assert plan.startswith(statement.partition(" ")[0]) and shown in plan
        assert con.execute("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (2,)]
        assert con.table_names() == ["t"] and not con.in_transaction and not list(tmp_path.iterdir())


def test_explain_analyze_executes() -> None:
    with tqp.connect() as con:
        con.execute("CREATE TABLE t(a INT)")
        [(key, plan)] = con.execute("EXPLAIN ANALYZE INSERT INTO t SELECT * FROM range(3)").fetchall()
        assert key == "analyzed_plan" and "Total" in plan
        assert con.execute("SELECT count(*) FROM t").fetchall() == [(3,)]


def test_versions_share_what_does_not_change_and_die_with_their_readers() -> None:
    with tqp.connect() as con:
        con.sql("CREATE TABLE t AS SELECT i, i * 2 AS j, 'text ' || i AS s FROM range(100000) r(i)")
        con.sql("SELECT sum(i), sum(j), max(s) FROM t")
        place = ObjectName.of("t")
        first = con._catalog.state.tables[place]
        con.sql("UPDATE t SET j = j + 1 WHERE i < 10")
        second = con._catalog.state.tables[place]
        assert second.column("i") is first.column("i") and second.column("s") is first.column("s")
        assert con.sql("SELECT sum(j) FROM t").fetchall() == [(99999 * 100000 + 10,)]
        gone = weakref.ref(first)
        del first, second
        con.sql("INSERT INTO t VALUES (1, 1, 'x')")
        gc.collect()
        assert gone() is None


def test_programs_of_other_tables_stay() -> None:
    with tqp.connect() as con:
        con.sql("CREATE TABLE t AS SELECT 1 AS a; CREATE TABLE u AS SELECT 2 AS b")
        con.sql("SELECT * FROM t"), con.sql("SELECT * FROM u")
        assert len(con._queries.compiled.programs) == 2
        con.sql("INSERT INTO u VALUES (3)")
        assert len(con._queries.compiled.programs) == 1
        assert con.sql("SELECT * FROM u").fetchall() == [(2,), (3,)]


def test_a_result_is_what_it_was() -> None:
    with tqp.connect() as con:
        con.sql("CREATE TABLE t AS SELECT i FROM range(5) r(i)")
        before = con.sql("FROM t")
        con.sql("UPDATE t SET i = 0; DELETE FROM t WHERE rowid > 2")
        assert before.fetchall() == [(i,) for i in range(5)]
        assert con.sql("FROM t").fetchall() == [(0,)] * 3


def test_threads_see_whole_versions_and_lose_nothing() -> None:
    """Each statement keeps the sum at zero; readers check that."""
    seconds, errors, written = 4.0, list[str](), [0] * 3
    with tqp.connect(threads=1) as con:
        con.sql("CREATE TABLE t(writer INT, v BIGINT)")
        end = time.monotonic() + seconds

        def write(number: int) -> None:
            while time.monotonic() < end:
                step = written[number]
                con.sql(f"INSERT INTO t VALUES ({number}, {step}), ({number}, {-step})")
                if step % 5 == 4:
                    con.sql(f"UPDATE t SET v = -v WHERE writer = {number}")
                written[number] += 1

        def read() -> None:
            while time.monotonic() < end:
                total, rows = con.sql("SELECT coalesce(sum(v), 0), count(*) FROM t").fetchall()[0]
                if total != 0 or rows % 2:
                    errors.append(f"{total} of {rows} rows")

        threads = [threading.Thread(target=write, args=[number]) for number in range(3)]
        threads += [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        found = con.sql("SELECT writer, count(*) FROM t GROUP BY writer ORDER BY writer").fetchall()
        assert found == [(number, 2 * count) for number, count in enumerate(written) if count]


@pytest.mark.parametrize("seconds", [3.0, pytest.param(60.0, marks=pytest.mark.slow)])
def test_eight_threads_see_whole_versions(seconds: float) -> None:
    """Statements of every kind keep each table's sum at zero, and so does what a transaction of one of them takes back."""
    errors, done = list[str](), Counter[str]()
    begin = "CREATE TABLE t(writer INT, v BIGINT)"
    copies = [f"CREATE TABLE copy_{number} AS SELECT * FROM t" for number in range(2)]
    with tqp.connect(threads=2) as con:
        con.sql("; ".join([begin, *copies]))
        end = time.monotonic() + seconds

        def runs(work: Callable[[int], object]) -> Callable[[], None]:
            def run() -> None:
                step = 0
                while time.monotonic() < end and not errors:
                    try:
                        work(step)
                    except Exception as error:  # noqa: BLE001  (told by the test)
                        errors.append(repr(error))
                    step += 1
                    done[work.__name__] += 1

            return run

        def insert(step: int) -> None:
            con.sql(f"INSERT INTO t VALUES (0, {step}), (1, {-step})")

        def update(step: int) -> None:
            con.sql(
                "UPDATE t SET v = -v"
                if step % 2
                else "UPDATE t SET writer = 1 - writer WHERE v % 3 = 0 AND writer < 2"
            )

        def delete(step: int) -> None:
            if con.sql("SELECT count(*) FROM t").fetchall() > [(20_000,)]:
                con.sql(f"DELETE FROM t WHERE abs(v) % 4 = {step % 4}")

        def create(step: int) -> None:
            con.sql(f"CREATE OR REPLACE TABLE copy_{step % 2} AS SELECT * FROM t")

        def transact(step: int) -> None:
            con.sql(f"BEGIN; INSERT INTO t VALUES (2, {step}); INSERT INTO t VALUES (2, {-step})")
            con.sql("ROLLBACK" if step % 3 else "COMMIT")

        def read(step: int) -> None:
            table = ("t", "copy_0", "copy_1")[step % 3]
            # The transaction's own two rows come one after the other, and others see its changes.
            query = f"SELECT coalesce(sum(v), 0), count(*) FROM {table} WHERE writer <> 2"
            total, rows = con.sql(query).fetchall()[0]
            if total != 0 or rows % 2:
                errors.append(f"{total} in {rows} rows of {table}")

        works = [insert, update, delete, create, transact, read, read, read]
        threads = [threading.Thread(target=runs(work)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors and len(done) == len(set(works)) and min(done.values()) > 2, done
        for name in ("t", "copy_0", "copy_1"):
            assert con.sql(f"SELECT coalesce(sum(v), 0) FROM {name} WHERE writer <> 2").fetchall() == [(0,)]


def test_threads_draw_each_number_once() -> None:
    with tqp.connect(threads=2) as con:
        con.sql("CREATE SEQUENCE s; CREATE TABLE t AS SELECT nextval('s') AS id, i FROM range(400_000) r(i)")
        assert con.sql("SELECT count(*) FROM t WHERE id <> i + 1").fetchall() == [
            (0,)
        ]  # in the order of the rows
        drawn: list[int] = []

        def draw() -> None:
            for _ in range(20):
                drawn.extend(number for (number,) in con.sql("SELECT nextval('s') FROM range(7)").fetchall())

        threads = [threading.Thread(target=draw) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(drawn) == list(range(400_001, 400_001 + len(drawn))) and len(drawn) == 4 * 20 * 7


def test_what_is_drawn_differs_within_a_transaction() -> None:
    with tqp.connect() as con:
        con.sql("BEGIN")
        assert len({con.sql("SELECT random()").fetchone() for _ in range(3)}) == 3


def test_variables_of_the_caller_are_tables_beside_others() -> None:
    frame = pa.table({"a": [1, 2, 3]})
    with tqp.connect() as con:
        con.sql("CREATE TABLE t AS SELECT a + 1 AS a FROM frame")
        assert con.sql("SELECT count(*) FROM t JOIN frame USING (a)").fetchall() == [(2,)]
        con.sql("INSERT INTO t FROM frame")
        assert con.sql("SELECT sum(a) FROM t").fetchall() == [(15,)]
        con.sql("CREATE VIEW v AS FROM frame")
        assert con.sql("SELECT max(a) FROM v").fetchall() == [(3,)]
        frame = pa.table({"a": [10]})  # noqa: F841 (the view reads it)
        assert con.sql("SELECT max(a) FROM v").fetchall() == [(10,)]
        statement = con.prepare("SELECT a FROM frame WHERE a > ?")
        assert statement.execute([1]).fetchall() == [(10,)]
    assert tqp.sql("SELECT count(*) FROM t, frame", {"t": {"x": np.arange(3)}}).fetchall() == [(3,)]


def test_foreign_keys_are_judged_by_what_a_statement_leaves() -> None:
    """DuckDB looks at one row after the other, and refuses these."""
    with tqp.connect() as con:
        con.sql("CREATE TABLE tree(id INT PRIMARY KEY, up INT REFERENCES tree)")
        con.sql("INSERT INTO tree VALUES (1, 1), (2, 3), (3, 2)")
        con.sql("DELETE FROM tree WHERE id > 1")
        with pytest.raises(tqp.ConstraintError, match='key "id: 7"'):
            con.sql("UPDATE tree SET up = 7")
        con.sql("UPDATE tree SET id = 2, up = 2")
        assert con.sql("FROM tree").fetchall() == [(2, 2)]
        con.sql(
            "BEGIN; CREATE TABLE o(x INT REFERENCES tree); INSERT INTO o VALUES (2); DELETE FROM o; TRUNCATE tree; COMMIT"
        )
        assert con.sql("SELECT count(*) FROM tree").fetchall() == [(0,)]
        con.sql("DROP TABLE o; ALTER TABLE tree RENAME TO t; INSERT INTO t VALUES (1, 1)")
        with pytest.raises(tqp.ConstraintError, match='table "t" does not have'):
            con.sql("INSERT INTO t VALUES (2, 3)")
