"""What tools ask a database for: settings, types, functions, constraints and the tables of PostgreSQL, with DuckDB's columns."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

import tqp

SETUP = (
    "CREATE TABLE t(i INTEGER PRIMARY KEY, s VARCHAR DEFAULT 'x', d DECIMAL(9,2), UNIQUE (s, d))",
    'CREATE TABLE "Parts"(id INTEGER REFERENCES t(i), name VARCHAR, price DECIMAL(9,2), FOREIGN KEY (name, price) REFERENCES t(s, d))',
    "CREATE TABLE checked(u INTEGER CHECK (u > 0), v VARCHAR, CHECK (length(v) > u), CHECK (1 = 1), CHECK ('u' < v))",
    "CREATE VIEW v AS SELECT i FROM t",
    "CREATE TYPE mood AS ENUM ('a', 'b')",
    "CREATE MACRO f(a) AS a + 1",
    "CREATE TEMP TABLE passing(x DATE NOT NULL)",
    "INSERT INTO t VALUES (1, 'a', 1)",
    "CREATE SEQUENCE counted START 3 INCREMENT 2",
    'CREATE TEMP SEQUENCE "Back wards" INCREMENT -1 MINVALUE -5 MAXVALUE 3 CYCLE',
    "CREATE TABLE numbered(n BIGINT DEFAULT nextval('counted'), \"a b\" INTEGER)",
    'INSERT INTO numbered("a b") VALUES (1), (2)',
    "CREATE INDEX by_n ON numbered(n)",
    'CREATE UNIQUE INDEX "B y" ON numbered("a b", n DESC)',
    'CREATE INDEX by_sum ON numbered((n + "a b"), abs(n))',
    "CREATE UNIQUE INDEX by_x ON passing(x)",
    "COMMENT ON TABLE t IS 'of t'",
    "COMMENT ON COLUMN t.d IS 'of d'",
    "PREPARE p AS SELECT 1",
    "PREPARE q AS INSERT INTO passing VALUES ($1)",
    "SET VARIABLE a = 1",
    "SET VARIABLE b = 'x'",
    "SET VARIABLE c = NULL",
    "SET VARIABLE d = 1.50",
    "SET VARIABLE e = INTERVAL 1 DAY",
    "SET VARIABLE f = TIMESTAMP '2024-01-02 03:04:05'",
    "SET VARIABLE g = DATE '2024-01-02'",
    "SET VARIABLE h = TIME '01:02:03'",
    "SET VARIABLE i = 0.1::DOUBLE",
    "SET VARIABLE j = true",
)
#: With the columns that are missing: of a type that there is not, VARIANT.
TABLES = {
    "duckdb_settings()": ["typed_value"],
    "duckdb_tables()": [],
    "duckdb_columns()": [],
    "duckdb_views()": [],
    "duckdb_databases()": [],
    "duckdb_schemas()": [],
    "duckdb_secrets()": [],
    "duckdb_temporary_files()": [],
    "duckdb_types()": [],
    "duckdb_types": [],
    "duckdb_functions()": [],
    "duckdb_constraints()": [],
    "duckdb_constraints": [],
    "information_schema.table_constraints": [],
    "information_schema.key_column_usage": [],
    "information_schema.referential_constraints": [],
    "information_schema.constraint_column_usage": [],
    "information_schema.constraint_table_usage": [],
    "duckdb_indexes()": [],
    "duckdb_indexes": [],
    "duckdb_sequences()": [],
    "duckdb_variables()": [],
    "duckdb_keywords()": [],
    "duckdb_optimizers()": [],
    "duckdb_extensions()": [],
    "pragma_version()": [],
    "pragma_database_size()": [],
    "pragma_platform()": [],
    "pragma_user_agent()": [],
    "duckdb_memory()": [],
    "duckdb_prepared_statements()": [],
    "duckdb_logs()": [],
    "duckdb_log_contexts()": [],
    "duckdb_dependencies()": [],
    "duckdb_connection_count()": [],
    "duckdb_secret_types()": [],
    "information_schema.check_constraints": [],
    "pg_catalog.pg_tables": [],
    "pg_tables": [],
    "pg_views": [],
    "pg_class": [],
    "pg_attribute": [],
    "pg_namespace": [],
    "pg_database": [],
    "pg_type": [],
    "pg_settings": [],
    **{
        f"pg_{name}": []
        for name in "am attrdef collation constraint depend description enum index indexes proc sequence sequences tablespace".split()
    },
    "pg_prepared_statements": [],
    "sqlite_master": [],
    "sqlite_schema": [],
}
QUERIES = [
    """SELECT * EXCLUDE (database_oid, schema_oid, table_oid, estimated_size, sql) FROM duckdb_tables() ORDER BY ALL""",
    """SELECT * EXCLUDE (database_oid, schema_oid, table_oid, data_type_id, column_default) FROM duckdb_columns()
        WHERE NOT internal ORDER BY ALL""",
    """SELECT * EXCLUDE (database_oid, schema_oid, view_oid, sql) FROM duckdb_views() WHERE NOT internal ORDER BY ALL""",
    "SELECT * EXCLUDE (database_oid) FROM duckdb_databases() ORDER BY ALL",
    """SELECT * EXCLUDE (oid, database_oid, parent_schema_oid) FROM duckdb_schemas() WHERE database_name = 'memory'
        AND schema_name NOT IN ('information_schema', 'pg_catalog') ORDER BY ALL""",
    "SELECT type, name, tbl_name, rootpage FROM sqlite_master WHERE name IN ('t', 'v') ORDER BY name",
    "FROM pg_tables WHERE tablename IN ('t', 'numbered', 'passing') ORDER BY tablename",
    "SELECT * EXCLUDE (database_oid, schema_oid, sequence_oid) FROM duckdb_sequences() ORDER BY sequence_name",
    """SELECT * EXCLUDE (database_oid, schema_oid, index_oid, table_oid, expressions, sql) FROM duckdb_indexes()
        ORDER BY index_name""",
    "SELECT expressions, sql FROM duckdb_indexes() ORDER BY index_name",
    "SELECT * FROM sqlite_master WHERE type = 'index' ORDER BY name",
    """SELECT * EXCLUDE (oid, relnamespace) FROM pg_class WHERE relkind IN ('S', 'i') ORDER BY relname""",
    "SELECT count(DISTINCT oid) = count(*) FROM pg_class",
    "SELECT schemaname, viewname, viewowner FROM pg_views WHERE viewname = 'v'",
    """SELECT relname, relkind, relnatts, relchecks, relhaspkey, relhasindex, relpersistence FROM pg_catalog.pg_class
        WHERE relname IN ('t', 'v') ORDER BY 1""",
    """SELECT attname, attnum, attnotnull, atthasdef, atttypid, atttypmod, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attname IN ('s', 'd') ORDER BY 2""",
    """SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON c.oid = a.attrelid
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = 't' AND n.nspname = 'main' ORDER BY attnum""",
    """SELECT table_name, constraint_type, constraint_text, constraint_column_indexes, constraint_column_names,
        constraint_name FROM duckdb_constraints() WHERE constraint_type <> 'CHECK' ORDER BY ALL""",
    """SELECT constraint_column_indexes, constraint_column_names, constraint_name FROM duckdb_constraints()
        WHERE constraint_type = 'CHECK' ORDER BY ALL""",
    "FROM information_schema.table_constraints ORDER BY ALL",
    "FROM information_schema.key_column_usage ORDER BY ALL",
    "FROM information_schema.referential_constraints ORDER BY ALL",
    "SELECT * EXCLUDE (constraint_text) FROM information_schema.constraint_column_usage ORDER BY ALL",
    "FROM information_schema.constraint_table_usage ORDER BY ALL",
    """SELECT constraint_name, check_clause FROM information_schema.check_constraints
        WHERE constraint_name NOT LIKE 'checked%' ORDER BY ALL""",
    """SELECT c.relname, n.nspname, k.* EXCLUDE (oid, connamespace, conrelid, conbin, conkey) FROM pg_constraint k
        JOIN pg_class c ON k.conrelid = c.oid JOIN pg_namespace n ON n.oid = k.connamespace
        WHERE contype <> 'c' AND c.relname <> 'passing' ORDER BY ALL""",
    """SELECT i.relname, t.relname, x.* EXCLUDE (indexrelid, indrelid) FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
        JOIN pg_class t ON t.oid = x.indrelid ORDER BY ALL""",
    "FROM pg_indexes ORDER BY indexname",
    """SELECT c.relname, a.attname, d.adbin FROM pg_attrdef d JOIN pg_class c ON c.oid = d.adrelid
        JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum WHERE a.attname = 's' ORDER BY ALL""",
    """SELECT c.relname, d.objsubid, d.description FROM pg_description d JOIN pg_class c ON c.oid = d.objoid
        WHERE description IS NOT NULL ORDER BY ALL""",
    """SELECT t.typname, t.typtype, e.enumsortorder, e.enumlabel FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid
        ORDER BY ALL""",
    "SELECT c.relname, s.* EXCLUDE (seqrelid) FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid ORDER BY ALL",
    "FROM pg_sequences ORDER BY sequencename",
    """SELECT o.relname, r.relname, d.deptype FROM pg_depend d JOIN pg_class o ON o.oid = d.objid
        JOIN pg_class r ON r.oid = d.refobjid WHERE o.relkind = 'r' AND o.relname NOT IN ('t', 'passing') ORDER BY ALL""",
    "FROM pg_am",
    "FROM pg_tablespace",
    "SELECT proname, prokind, proretset, pronargs, proisagg FROM pg_proc WHERE proname IN ('f', 'bit_count') ORDER BY ALL",
    "SELECT name, parameter_types, result_types FROM duckdb_prepared_statements() ORDER BY name",
    "SELECT name, parameter_types, result_types FROM pg_prepared_statements ORDER BY name",
    "SELECT tag, temporary_storage_bytes FROM duckdb_memory() ORDER BY ALL",
    "SELECT * EXCLUDE (memory_usage, memory_limit) FROM pragma_database_size()",
    "FROM pragma_platform()",
    "FROM duckdb_connection_count()",
    "FROM duckdb_logs()",
    "FROM duckdb_variables() ORDER BY name",
    "FROM duckdb_keywords() ORDER BY ALL",
    "SELECT library_version, codename FROM pragma_version()",
    "SELECT datname FROM pg_database ORDER BY datname",
    """SELECT DISTINCT type_name, logical_type, type_size, type_category, internal FROM duckdb_types()
        WHERE type_name IN ('int', 'text', 'dec', 'timestamptz', 'hugeint', 'uint128', 'timetz') ORDER BY 1""",
    "SELECT labels, logical_type, internal FROM duckdb_types() WHERE type_name = 'mood'",
    """SELECT DISTINCT function_name, function_type FROM duckdb_functions()
        WHERE function_name IN ('abs', 'sum', 'row_number', 'f') ORDER BY 1""",
    """SELECT return_type, parameter_types FROM duckdb_functions()
        WHERE function_name = 'bit_count' AND parameter_types != ['BIT'] ORDER BY ALL""",
    "SELECT parameters, macro_definition FROM duckdb_functions() WHERE function_name = 'f'",
    """SELECT name, value, input_type FROM duckdb_settings()
        WHERE name IN ('threads', 'schema', 'default_order', 'TimeZone') ORDER BY 1""",
    """SELECT version(), current_setting('threads'), typeof(current_setting('threads')), current_setting('TimeZone'),
        current_setting('SCHEMA'), current_setting('preserve_insertion_order')""",
    """SELECT in_search_path('memory', 'main'), in_search_path('x', 'main'), in_search_path('memory', s),
        in_search_path(NULL, 'main') FROM t""",
    "SELECT typeof(txid_current()), txid_current() = txid_current()",
]


@pytest.fixture(scope="module")
def both() -> tuple[tqp.Connection, Any]:
    mine, oracle = tqp.connect(threads=2), duckdb.connect(config={"threads": 2})
    for statement in SETUP:
        mine.execute(statement)
        oracle.execute(statement).fetchall()
    oracle.execute("SET TimeZone = 'Etc/UTC'").fetchall()
    return mine, oracle


@pytest.mark.parametrize("table", TABLES)
def test_columns_are_those_of_duckdb(both: tuple[tqp.Connection, Any], table: str) -> None:
    mine, oracle = (connection.sql(f"FROM {table}") for connection in both)
    expected = [
        (name, str(data_type))
        for name, data_type in zip(oracle.columns, oracle.types, strict=True)
        if name not in TABLES[table]
    ]
    assert list(zip(mine.columns, map(str, mine.types), strict=True)) == expected
    mine.fetchall()


@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_those_of_duckdb(both: tuple[tqp.Connection, Any], query: str) -> None:
    mine, oracle = both
    assert mine.sql(query).fetchall() == oracle.sql(query).fetchall()


def test_types_have_the_numbers_of_columns(both: tuple[tqp.Connection, Any]) -> None:
    query = """SELECT a.attname, y.typname FROM pg_class c JOIN pg_attribute a ON c.oid = a.attrelid
        JOIN pg_type y ON y.oid = a.atttypid WHERE c.relname = 't' ORDER BY a.attnum"""
    assert both[0].sql(query).fetchall() == [("i", "int4"), ("s", "varchar"), ("d", "numeric")]


def test_every_function_has_types_that_are_named(both: tuple[tqp.Connection, Any]) -> None:
    rows = (
        both[0].sql("SELECT function_name, return_type, parameter_types FROM duckdb_functions()").fetchall()
    )
    assert len(rows) > 500
    assert all(name and isinstance(types, list) for name, _, types in rows)


def test_settings_are_those_of_now() -> None:
    with tqp.connect(threads=1, memory_limit="2GiB") as connection:
        query = "SELECT current_setting('memory_limit'), current_setting('worker_threads')"
        assert connection.sql(query).fetchall() == [("2.0 GiB", 1)]
        connection.execute("SET memory_limit = '512MiB'")
        assert connection.sql(query).fetchall() == [("512.0 MiB", 1)]
        assert connection.sql("SELECT value FROM duckdb_settings() WHERE name = 'max_memory'").fetchall() == [
            ("512.0 MiB",)
        ]


def test_a_transaction_has_one_number() -> None:
    with tqp.connect() as connection:
        connection.execute("BEGIN")
        numbers = {connection.sql("SELECT txid_current()").fetchone() for _ in range(3)}
        connection.execute("COMMIT")
        assert len(numbers) == 1
        assert connection.sql("SELECT txid_current()").fetchone() not in numbers


@pytest.mark.parametrize(
    ("query", "error", "words"),
    [
        ("SELECT current_setting('thread')", tqp.BindError, '"thread".*did you mean'),
        ("SELECT current_setting(NULL)", tqp.BindError, "constant text"),
        ("SELECT current_setting(s) FROM t", tqp.BindError, "constant text"),
        ("SELECT version(1)", tqp.BindError, "version"),
        ("FROM pg_catalog.nope", tqp.UnsupportedError, "pg_catalog.nope is not supported"),
        ("FROM pg_nope", tqp.BindError, 'no table "pg_nope"'),
        ("FROM duckdb_nope()", tqp.UnsupportedError, "duckdb_nope"),
        ("FROM duckdb_keywords", tqp.BindError, 'no table "duckdb_keywords"'),
    ],
)
def test_errors(both: tuple[tqp.Connection, Any], query: str, error: type[tqp.Error], words: str) -> None:
    with pytest.raises(error, match=words):
        both[0].sql(query)
