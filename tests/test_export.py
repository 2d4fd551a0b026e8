"""EXPORT DATABASE and IMPORT DATABASE: tqp reads what DuckDB has exported, and the other way round."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tqp
from tests.oracle import duckdb_database

SETUP = """
    CREATE TYPE mood AS ENUM ('sad', 'ok''x');
    CREATE TYPE pair AS STRUCT(a INTEGER, "b c" VARCHAR);
    CREATE TABLE t(i INTEGER PRIMARY KEY, s VARCHAR DEFAULT 'x' NOT NULL, d DECIMAL(9,2) CHECK (d > 0), m mood, UNIQUE (s, d));
    CREATE TABLE "order by"("a b" INTEGER[], c pair);
    CREATE TABLE order_by(x DOUBLE);
    CREATE TABLE empty(a INTEGER, b VARCHAR);
    CREATE TABLE "Texts"(d DATE, n VARCHAR, b BLOB);
    CREATE TABLE lines(i INTEGER, n INTEGER);
    CREATE TABLE orders(i INTEGER PRIMARY KEY);
    CREATE OR REPLACE TABLE lines(i INTEGER REFERENCES orders, n INTEGER);
    CREATE TEMP TABLE passing(i INTEGER);
    CREATE MACRO f(a, b := 2) AS a + b;
    CREATE MACRO g(x) AS TABLE (SELECT x AS y, i FROM t), (x, z) AS TABLE (SELECT x AS y, z);
    CREATE VIEW v AS SELECT i, s || 'a' AS b, f(i) AS c FROM t WHERE i > 1;
    CREATE VIEW "w x"(p) AS SELECT count(*) FROM v;
    INSERT INTO t VALUES (1, '', 1, 'sad'), (2, 'b', 2, 'ok''x'), (3, 'é"|,', 7.25, NULL);
    INSERT INTO "order by" VALUES ([1, NULL], {'a': 1, 'b c': 'q, "r"'}), (NULL, NULL);
    INSERT INTO orders VALUES (1), (2);
    INSERT INTO lines VALUES (1, 10), (1, 11), (NULL, 12);
    INSERT INTO order_by VALUES (0.1), ('inf'), (NULL);
    INSERT INTO "Texts" VALUES ('2024-01-02', NULL, 'a'), (NULL, '', NULL), ('0044-03-15 (BC)', 'NULL', '\\xFF')
"""
QUERIES = [
    "FROM t ORDER BY i",
    'FROM "order by" ORDER BY ALL',
    "FROM order_by ORDER BY x",
    "FROM empty",
    "FROM lines ORDER BY ALL",
    "SELECT constraint_text FROM duckdb_constraints() WHERE table_name = 'lines'",
    'FROM "Texts" ORDER BY d',
    "FROM v",
    'FROM "w x"',
    "SELECT f(1), f(1, b := 5)",
    "FROM g(7)",
    "FROM g(7, 8)",
    "SELECT 'sad'::mood, {'a': 1, 'b c': 'x'}::pair",
    """SELECT table_name, column_name, data_type, is_nullable FROM duckdb_columns()
        WHERE database_name = 'memory' AND schema_name = 'main' ORDER BY ALL""",
]


def _filled(module: Any) -> Any:
    connection = module.connect()
    for statement in SETUP.split(";\n"):
        connection.execute(statement)
    return connection


@pytest.mark.parametrize(
    "options", ["", "(FORMAT parquet, COMPRESSION zstd)", "(DELIMITER '|', NULLSTR 'na')"]
)
@pytest.mark.parametrize(("source", "target"), [(tqp, duckdb), (duckdb, tqp), (tqp, tqp)])
def test_what_one_exports_another_imports(tmp_path: Path, source: Any, target: Any, options: str) -> None:
    exporting, importing, expected = _filled(source), target.connect(), _filled(duckdb)
    answer = exporting.execute(f"EXPORT DATABASE '{tmp_path}/a folder' {options}")
    assert answer.fetchall() == []
    importing.execute(f"IMPORT DATABASE '{tmp_path}/a folder'")
    for query in QUERIES:
        assert importing.execute(query).fetchall() == expected.execute(query).fetchall(), query
    for statement in (
        "INSERT INTO t(i, d) VALUES (1, 5)",
        "INSERT INTO t(i, d) VALUES (9, -5)",
        "INSERT INTO t VALUES (9, NULL, 1, NULL)",
        "INSERT INTO t VALUES (9, 'b', 2, NULL)",
        "FROM passing",
    ):
        with pytest.raises((tqp.Error, duckdb.Error)):
            importing.execute(statement)
    importing.execute("INSERT INTO t(i) VALUES (9)")
    assert importing.execute("SELECT s FROM t WHERE i = 9").fetchall() == [("x",)]


NUMBERED = """
    CREATE SEQUENCE "My numbers" START 5 INCREMENT 2;
    CREATE SEQUENCE downwards INCREMENT -1 MINVALUE -2 CYCLE;
    CREATE TEMP SEQUENCE passing;
    CREATE TABLE t(n BIGINT DEFAULT nextval('"My numbers"'), d INTEGER DEFAULT (nextval('downwards') * 10), s VARCHAR, c BIGINT DEFAULT currval('downwards'));
    CREATE UNIQUE INDEX "By name" ON t(s, n);
    CREATE INDEX by_length ON t(length(s), (n + 1));
    CREATE TEMP TABLE gone(a INTEGER);
    CREATE INDEX of_gone ON gone(a);
    CREATE MACRO drawn() AS nextval('downwards');
    CREATE VIEW v AS SELECT nextval('"My numbers"') AS n;
    INSERT INTO t(s, c) VALUES ('a', 1), ('b', 2)
"""
AFTERWARDS = [
    "INSERT INTO t(s, c) VALUES ('c', 3), ('a', 4)",
    "FROM t ORDER BY ALL",
    "SELECT drawn()",
    "FROM v",
    "INSERT INTO t(n, d, s) VALUES (0, 0, 'd')",
    "SELECT c FROM t WHERE s = 'd'",
    """SELECT sequence_name, start_value, min_value, max_value, increment_by, cycle, last_value, temporary
        FROM duckdb_sequences() ORDER BY ALL""",
    "SELECT index_name, table_name, is_unique FROM duckdb_indexes() ORDER BY ALL",
]


@pytest.mark.parametrize(("source", "target"), [(tqp, duckdb), (duckdb, tqp), (tqp, tqp)])
def test_sequences_go_on_and_indexes_are_there(tmp_path: Path, source: Any, target: Any) -> None:
    answers = []
    for exporting, importing in ((source.connect(), target.connect()), (duckdb.connect(), duckdb.connect())):
        for statement in NUMBERED.split(";\n"):
            exporting.execute(statement)
        exporting.execute(f"EXPORT DATABASE '{tmp_path}'")
        importing.execute(f"IMPORT DATABASE '{tmp_path}'")
        with pytest.raises((tqp.Error, duckdb.Error)):
            importing.execute("INSERT INTO t(n, d, s, c) VALUES (5, 1, 'a', 1)")
        answers.append([importing.execute(query).fetchall() for query in AFTERWARDS])
    assert answers[0] == answers[1]


def test_json_holds_what_json_can(tmp_path: Path) -> None:
    connection = tqp.connect()
    connection.execute("CREATE TABLE t(a INTEGER, b VARCHAR, c STRUCT(x DATE, y INTEGER[]), j JSON)")
    connection.execute("CREATE TABLE none(a INTEGER)")
    connection.execute(
        """INSERT INTO t VALUES (1, '"q"', {'x': '2024-01-02', 'y': [1, NULL]}, '[1, "2"]'), (NULL, NULL, NULL, NULL)"""
    )
    connection.execute(f"EXPORT DATABASE '{tmp_path}' (FORMAT json)")
    for module in (tqp, duckdb):
        other: Any = module.connect()
        other.execute(f"IMPORT DATABASE '{tmp_path}'")
        for query in ("SELECT a, b, c FROM t", "SELECT j IS NULL, j -> 1 FROM t", "FROM none"):
            assert other.execute(query).fetchall() == connection.execute(query).fetchall()


def test_an_import_is_whole_or_nothing(tmp_path: Path) -> None:
    _filled(tqp).execute(f"EXPORT DATABASE '{tmp_path}'")
    (tmp_path / "t.csv").write_text("i,s,d,m\n1,a,1,sad\n1,b,1,sad\n")
    connection = tqp.connect()
    with pytest.raises(tqp.Error, match="COPY t FROM"):
        connection.execute(f"IMPORT DATABASE '{tmp_path}'")
    assert connection.execute("SHOW TABLES").fetchall() == []
    connection.execute("BEGIN")
    connection.execute("CREATE TABLE mine(i INTEGER)")
    with pytest.raises(tqp.Error, match="COPY t FROM"):
        connection.execute(f"IMPORT DATABASE '{tmp_path}'")
    connection.execute("ROLLBACK")
    connection.execute("CREATE TABLE empty(i INTEGER)")
    with pytest.raises(tqp.BindError, match='"empty" already'):
        connection.execute(f"IMPORT DATABASE '{tmp_path}'")
    assert connection.execute("SHOW TABLES").fetchall() == [("empty",)]


def test_an_import_takes_no_work_of_other_threads_back(tmp_path: Path) -> None:
    (tmp_path / "schema.sql").write_text("CREATE TABLE t AS SELECT meanwhile(1)")
    (tmp_path / "load.sql").write_text("INSERT INTO nope VALUES (1)")
    with tqp.connect() as connection:
        connection.execute("CREATE TABLE mine(i INTEGER)")
        thread = threading.Thread(target=lambda: connection.sql("INSERT INTO mine VALUES (1)"))

        def meanwhile(values: Any) -> Any:
            thread.start()
            thread.join(timeout=0.2)  # in which it inserts, if nothing keeps it from doing so
            return values

        connection.create_function("meanwhile", meanwhile, ["BIGINT"], "BIGINT")
        with pytest.raises(tqp.BindError, match='"nope"'):
            connection.execute(f"IMPORT DATABASE '{tmp_path}'")
        thread.join()
        assert connection.sql("FROM mine").fetchall() == [(1,)]
        assert connection.sql("SHOW TABLES").fetchall() == [("mine",)]


@pytest.mark.parametrize(
    ("schema", "load", "words"),
    [
        ("CREATE TABLE t(a INTEGER); COMMIT", "", "COMMIT .* is not supported, in 'COMMIT' of .*schema.sql"),
        (
            "CREATE TABLE t(a INTEGER)",
            "ROLLBACK",
            "ROLLBACK .* is not supported, in 'ROLLBACK' of .*load.sql",
        ),
        ("BEGIN", "", "BEGIN .* is not supported"),
        ("CREATE TABLE t(a INTEGER)", "IMPORT DATABASE '{}'", "IMPORT .* is not supported"),
        ("CREATE TABLE t(a INTEGER)", "oops", 'syntax error at or near "oops".*, in .*load.sql$'),
        ("CREATE TABLE t(a INTEGER)", "\xff", "cannot read .*load.sql: .*decode"),
        ("CREATE TABLE t(a INTEGER)", "COPY t FROM '{}/t.csv'", 'no file matches .*, in "COPY'),
    ],
)
def test_folders_that_cannot_be_imported(tmp_path: Path, schema: str, load: str, words: str) -> None:
    (tmp_path / "schema.sql").write_text(schema)
    (tmp_path / "load.sql").write_bytes(load.replace("{}", str(tmp_path)).encode("latin-1"))
    with tqp.connect() as connection:
        with pytest.raises(tqp.Error, match=words) as caught:
            connection.execute(f"IMPORT DATABASE '{tmp_path}'")
        assert "LINE" not in str(caught.value)  # it is not the statement that is wrong
        assert connection.execute("SHOW TABLES").fetchall() == []
        connection.execute("BEGIN")


def test_what_is_read_is_made_before(tmp_path: Path) -> None:
    """Though it was made again, under another name or by another statement, after what reads it."""
    connection = tqp.connect()
    for statement in (
        "CREATE MACRO positive(x) AS x > 0",
        "CREATE MACRO twice(x) AS 2 * x",
        "CREATE TABLE t(a INTEGER DEFAULT twice(3) CHECK (positive(a)), b INTEGER)",
        "CREATE VIEW bottom AS SELECT a FROM t",
        "CREATE VIEW middle AS SELECT twice(a) AS a FROM bottom",
        "CREATE VIEW top AS SELECT a FROM middle",
        "DROP VIEW bottom",
        "CREATE VIEW bottom AS SELECT a FROM t",
        "ALTER VIEW middle RENAME TO renamed",
        "CREATE VIEW middle AS FROM renamed",
        "INSERT INTO t(b) VALUES (1)",
    ):
        connection.execute(statement)
    connection.execute(f"EXPORT DATABASE '{tmp_path}'")
    other = tqp.connect()
    other.execute(f"IMPORT DATABASE '{tmp_path}'")
    assert other.execute("FROM top").fetchall() == [(12,)]


def test_names_of_the_database_and_errors(tmp_path: Path) -> None:
    connection = tqp.connect()
    connection.execute(f"EXPORT DATABASE memory TO '{tmp_path}/none'")
    connection.execute(f"IMPORT DATABASE '{tmp_path}/none'")
    assert sorted(each.name for each in (tmp_path / "none").iterdir()) == ["load.sql", "schema.sql"]
    (tmp_path / "file").write_text("")
    for statement, error, words in (
        (f"EXPORT DATABASE other TO '{tmp_path}'", tqp.BindError, 'no database "other"'),
        (f"EXPORT DATABASE '{tmp_path}/file'", tqp.ExecutionError, "cannot write"),
        (f"EXPORT DATABASE '{tmp_path}/x' (FORMAT xlsx)", tqp.UnsupportedError, "xlsx"),
        (f"EXPORT DATABASE '{tmp_path}/x' (PARTITION_BY (a))", tqp.UnsupportedError, "PARTITION_BY"),
        (f"EXPORT DATABASE '{tmp_path}/x' (COMPRESSION gzip)", tqp.UnsupportedError, "COMPRESSION"),
        (f"EXPORT DATABASE '{tmp_path}/x' (FOO 1)", tqp.UnsupportedError, "FOO"),
        ("EXPORT DATABASE", tqp.ParseError, "path of a folder"),
        ("EXPORT DATABASE 5", tqp.ParseError, "path of a folder"),
        ("EXPORT DATABASE ''", tqp.BindError, "path of a file cannot be empty"),
        ("IMPORT DATABASE memory", tqp.ParseError, "path of a folder"),
        (f"IMPORT DATABASE '{tmp_path}/nothing'", tqp.ExecutionError, "schema.sql"),
    ):
        with pytest.raises(error, match=words):
            connection.execute(statement)


def test_copy_from_json_goes_by_names(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"b": "x", "A": 1}\n{"c": [1], "other": 5}\n')
    (tmp_path / "none.json").write_text("")
    answers = []
    for module in (tqp, duckdb):
        connection: Any = module.connect()
        connection.execute("CREATE TABLE t(a INTEGER, b VARCHAR, c INTEGER[])")
        connection.execute(f"COPY t FROM '{tmp_path}/t.json'")
        connection.execute(f"COPY t(b) FROM '{tmp_path}/t.json'")
        connection.execute(f"COPY t FROM '{tmp_path}/none.json'")
        answers.append(connection.execute("FROM t ORDER BY ALL").fetchall())
    assert answers[0] == answers[1]


def test_copy_from_csv_without_rows_and_with_texts_that_are_not_null(tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("")
    (tmp_path / "t.csv").write_text('1,,\n2,"",na\n')
    answers = []
    for module in (tqp, duckdb):
        connection: Any = module.connect()
        connection.execute("CREATE TABLE t(a INTEGER, b VARCHAR, c VARCHAR)")
        if module is tqp:  # DuckDB seeks rows of three columns
            connection.execute(f"COPY t FROM '{tmp_path}/none.csv' (HEADER false)")
        connection.execute(f"COPY t FROM '{tmp_path}/t.csv' (HEADER false, FORCE_NOT_NULL (b))")
        connection.execute(
            f"COPY t FROM '{tmp_path}/t.csv' (HEADER false, NULLSTR 'na', FORCE_NOT_NULL (c, b))"
        )
        answers.append(connection.execute("FROM t ORDER BY ALL").fetchall())
    assert answers[0] == answers[1]


def test_generated_columns_are_computed_again(tmp_path: Path) -> None:
    asked = "SELECT x, y, k FROM t ORDER BY x"
    with tqp.connect() as ours, duckdb_database() as reference, tqp.connect() as again:
        ours.sql("CREATE TABLE t(x INTEGER, y AS (x + 1), k INTEGER); INSERT INTO t VALUES (1, 5), (2, 6)")
        ours.sql(f"EXPORT DATABASE '{tmp_path / 'ours'}'")
        reference.execute(f"IMPORT DATABASE '{tmp_path / 'ours'}'")
        assert reference.execute(asked).fetchall() == [(1, 2, 5), (2, 3, 6)]
        again.sql(f"IMPORT DATABASE '{tmp_path / 'ours'}'")
        again.sql("INSERT INTO t VALUES (3, 7)")
        assert again.sql(asked).fetchall() == [(1, 2, 5), (2, 3, 6), (3, 4, 7)]


def test_generated_columns_may_read_others(tmp_path: Path) -> None:
    statements = (
        "CREATE TABLE t(c INTEGER AS (b * 2), a INTEGER, b TINYINT AS (a + 1), abs AS (concat(abs(c), d)), d VARCHAR)",
        "INSERT INTO t VALUES (1, 'x'), (-5, 'y'), (NULL, 'z')",
        "UPDATE t SET a = 7 WHERE b = 2",
        "DELETE FROM t WHERE c = -8",
        "ALTER TABLE t RENAME COLUMN b TO next",
    )
    asked = (
        "FROM t ORDER BY a",
        "SELECT c, next, t.rowid FROM t WHERE c > 3",
        "DESCRIBE t",
        "SELECT sum(c), max(abs) FROM t",
        "SELECT column_name, column_default FROM duckdb_columns() WHERE column_name IN ('c', 'next')",
    )
    with tqp.connect() as ours, duckdb_database() as reference, tqp.connect() as again:
        for each in (ours, reference):
            for statement in statements:
                each.execute(statement)
        ours.sql(f"EXPORT DATABASE '{tmp_path / 'ours'}'")
        again.sql(f"IMPORT DATABASE '{tmp_path / 'ours'}'")
        for query in asked:
            assert ours.sql(query).fetchall() == reference.sql(query).fetchall(), query
        assert again.sql(asked[0]).fetchall() == reference.sql(asked[0]).fetchall()
        with pytest.raises(tqp.ConstraintError, match='the generated column "next"'):
            ours.sql("INSERT INTO t VALUES (127, 'x')")
        with pytest.raises(
            tqp.UnsupportedError, match='"next" is part of a constraint or of a generated col'
        ):
            ours.sql("ALTER TABLE t DROP COLUMN next")
        ours.sql("ALTER TABLE t DROP COLUMN abs")
        assert ours.sql("FROM t WHERE a = 7").fetchall() == [(16, 7, 8, "x")]
        for columns in ("x INTEGER, a INTEGER AS (a)", "x INTEGER, a AS (b + x), b AS (a)"):
            with pytest.raises(tqp.BindError, match='the generated column "a" is computed of itself'):
                ours.sql(f"CREATE TABLE u({columns})")


def test_macros_of_generated_columns_come_before_and_what_is_temporary_stays(tmp_path: Path) -> None:
    with tqp.connect() as ours, duckdb_database() as reference, tqp.connect() as again:
        for statement in (
            "CREATE MACRO one_more(a) AS a + 1",
            "CREATE TABLE t(x INTEGER, y INTEGER AS (one_more(x)))",
            "INSERT INTO t VALUES (1)",
            "COMMENT ON COLUMN t.y IS 'made'",
            "CREATE TEMP MACRO passing(a) AS a",
            "COMMENT ON MACRO passing IS 'of this connection'",
            "CREATE TEMP TYPE mood AS ENUM ('ok')",
        ):
            ours.sql(statement)
        ours.sql(f"EXPORT DATABASE '{tmp_path / 'ours'}'")
        for con in (reference, again):
            con.execute(f"IMPORT DATABASE '{tmp_path / 'ours'}'")
            assert con.execute("FROM t").fetchall() == [(1, 2)]
            comments = "SELECT comment FROM duckdb_columns() WHERE table_name = 't' ORDER BY column_name"
            assert con.execute(comments).fetchall() == [(None,), ("made",)]
            for statement in ("SELECT passing(1)", "SELECT 'ok'::mood"):
                with pytest.raises((tqp.Error, duckdb.Error)):
                    con.execute(statement)


def test_defaults_and_types_of_generated_columns_cannot_change() -> None:
    with tqp.connect() as con:
        con.sql("CREATE TABLE t(x INTEGER, y AS (x + 1))")
        for statement, message in (
            ("INSERT INTO t(y) VALUES (1)", 'column "y" of table "t" is generated'),
            ("UPDATE t SET y = 1", 'column "y" of table "t" is generated'),
            ("ALTER TABLE t ALTER y TYPE BIGINT", 'column "y" of table "t" is generated'),
            ("ALTER TABLE t DROP COLUMN x", "part of a constraint or of a generated column"),
        ):
            with pytest.raises((tqp.BindError, tqp.UnsupportedError), match=message):
                con.sql(statement)
        con.sql("CREATE TABLE u(x VARCHAR, y INTEGER AS (x))")
        with pytest.raises(
            tqp.ConstraintError, match='the generated column "y" of table "u" cannot be computed'
        ):
            con.sql("INSERT INTO u VALUES ('a')")
