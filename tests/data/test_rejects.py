"""store_rejects of read_csv(): the tables that it fills, beside DuckDB."""

from __future__ import annotations

from pathlib import Path

import pytest

import tqp
from tests.oracle import duckdb_database

FILES = {
    "a.csv": "a,b,c\n1,2,3\nx,2,3\n1,2\n1,2,3,4\n5,y,z\n7,8,9\n",
    "returns.csv": "a;b;c\r\n1;2;3\r\nx;2;3\r\n1;2\r\né;y;3.5\r\n1;2;3;4;5\r\n1\r\n7;8;9",
    "quotes.csv": 'a,b,c\n1,"2,2",3\nx,"a""b\nnew",3\n"9",2,3\n1,"2\n2"\n1,2,3,4,5\n"1",2\nq,2,3,"4\n"\n',
    "dates.csv": "1,2024-01-01,z\n2,2024-13-01,z\n3,foo,z\n,,\n",
    "one.csv": "a\n1\nx\n\n3\n",
    "numbers.csv": "a;b\n1.000,5;1\n2,x;2\n3;y\n4,5;9999999999\n",
    "good.csv": "a,b\n1,2\n3,4\n",
    "bad.csv": "a,b\nx,2\n3,4\n",
    "skipped.csv": "title\n\na,b\n1,2\nx,4\n",
}
COLUMNS = "columns = {'a': 'INTEGER', 'b': 'INTEGER', 'c': 'INTEGER'}"
QUOTED = "delim = ',', quote = '\"', escape = '\"', header = true"
NUMBERS = "store_rejects = true, delim = ';', decimal_separator = ',', thousands = '.'"
READS = [
    f"'a.csv', {COLUMNS}, store_rejects = true",
    f"'a.csv', {COLUMNS}, store_rejects = true, rejects_limit = 2",
    f"'a.csv', {COLUMNS}, store_rejects = true, rejects_limit = 0",
    "'a.csv', store_rejects = true",
    f"'a.csv', {COLUMNS}, rejects_scan = 'reject_scans'",
    "['a.csv', 'a.csv'], types = {'a': 'INTEGER'}, store_rejects = true, rejects_limit = 2, filename = true",
    f"'quotes.csv', columns = {{'a': 'INTEGER', 'b': 'VARCHAR', 'c': 'INTEGER'}}, {QUOTED}, store_rejects = true",
    "'dates.csv', store_rejects = true, columns = {'a': 'INTEGER', 'd': 'DATE', 'z': 'VARCHAR'}, nullstr = 'NA'",
    "'dates.csv', store_rejects = true, types = ['INTEGER', 'DATE', 'VARCHAR']",
    "'dates.csv', store_rejects = true, types = {'column1': 'DATE'}, dateformat = '%Y-%d-%m', header = false",
    "'one.csv', store_rejects = true, types = {'a': 'INTEGER'}, header = true",
    f"'numbers.csv', {NUMBERS}, types = {{'a': 'DECIMAL(9, 2)', 'b': 'INTEGER'}}",
    "'good.csv', types = {'a': 'INTEGER'}, store_rejects = true",
    "['good.csv', 'bad.csv', 'good.csv'], types = {'a': 'INTEGER'}, store_rejects = true",
    "'skipped.csv', types = {'a': 'INTEGER'}, skip = 2, header = true, store_rejects = true",
]
ERRORS = "SELECT * EXCLUDE (scan_id) FROM reject_errors ORDER BY ALL"
SCANS = "SELECT * EXCLUDE (scan_id) FROM reject_scans ORDER BY ALL"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content.encode())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("read", READS)
def test_tables_are_those_of_duckdb(files: Path, read: str) -> None:
    answers = []
    with duckdb_database() as oracle, tqp.connect() as connection:
        for engine in (oracle, connection):
            rows = engine.execute(f"SELECT * FROM read_csv({read})").fetchall()
            told = [engine.execute(query).fetchall() for query in (ERRORS, SCANS)]
            types = engine.execute("SELECT column_name, column_type FROM (DESCRIBE reject_errors)").fetchall()
            more = engine.execute("SELECT column_name, column_type FROM (DESCRIBE reject_scans)").fetchall()
            answers.append((rows, told, types, more))
    assert answers[0] == answers[1]


def test_lines_may_end_with_a_carriage_return(files: Path) -> None:
    """DuckDB counts the line feed to the row behind it."""
    read = f"'returns.csv', {COLUMNS}, delim = ';', header = true, store_rejects = true"
    columns = "line, column_idx, column_name, error_type, ltrim(csv_line, chr(10)), error_message"
    columns += ", CASE error_type WHEN 'MISSING COLUMNS' THEN NULL ELSE byte_position END"
    answers = []
    with duckdb_database() as oracle, tqp.connect() as connection:
        for engine in (oracle, connection):
            rows = engine.execute(f"SELECT * FROM read_csv({read})").fetchall()
            told = engine.execute(f"SELECT {columns} FROM reject_errors ORDER BY ALL").fetchall()
            answers.append((rows, told, engine.execute(SCANS).fetchall()))
        starts = "SELECT DISTINCT line, line_byte_position FROM reject_errors ORDER BY ALL"
        content = FILES["returns.csv"].encode()
        for line, start in connection.execute(starts).fetchall():
            assert content[:start].count(b"\n") == line - 1
            assert content[start - 2 : start - 1] == b"\n"
    assert answers[0] == answers[1]


def test_statements_that_read_files_store_their_errors(files: Path) -> None:
    read = f"read_csv('a.csv', {COLUMNS}, store_rejects = true)"
    statements = [
        f"CREATE TABLE x AS FROM {read} WHERE a = 7",
        f"INSERT INTO x FROM {read}",
        "COPY x FROM 'a.csv' (STORE_REJECTS, REJECTS_TABLE 'reject_errors', REJECTS_LIMIT 3)",
        f"COPY (FROM {read}) TO 'copy.csv'",
        f"FROM {read} u, {read} v",
        f"PREPARE p AS FROM {read}",
        "EXECUTE p",
        "EXECUTE p",
        f"SELECT count(a + b + c) FROM {read}",
        f"SELECT count(a + b + c) FROM {read}",
    ]
    answers = []
    with duckdb_database() as oracle, tqp.connect() as connection:
        for engine in (oracle, connection):
            for statement in statements:
                engine.execute(statement).fetchall()  # DuckDB stores them when rows are asked for
            counts = "SELECT count(*), count(DISTINCT scan_id), max(file_id) FROM"
            told = [
                engine.execute(f"{counts} {each}").fetchall() for each in ("reject_errors", "reject_scans")
            ]
            temporary = "SELECT table_name FROM duckdb_tables() WHERE temporary ORDER BY ALL"
            answers.append((told, engine.execute(temporary).fetchall()))
    assert answers[0] == answers[1]


def test_a_transaction_takes_them_back(files: Path) -> None:
    with tqp.connect() as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM read_csv('a.csv', store_rejects = true)")
        assert connection.execute("SELECT count(*) FROM reject_errors").fetchall() == [(2,)]
        connection.execute("ROLLBACK")
        assert connection.execute("SELECT * FROM duckdb_tables()").fetchall() == []


def test_a_query_that_only_is_explained_stores_nothing(files: Path) -> None:
    with tqp.connect() as connection:
        connection.execute("EXPLAIN SELECT * FROM read_csv('a.csv', store_rejects = true)")
        relation = connection.read_csv("a.csv", store_rejects=True)
        assert relation.columns == ("a", "b", "c")
        assert connection.execute("SELECT * FROM duckdb_tables()").fetchall() == []
        assert len(relation.fetchall()) == 4
        assert connection.execute("SELECT count(*) FROM reject_scans").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("store_rejects = true, ignore_errors = false", "does not go with ignore_errors = false"),
        ("store_rejects = true, union_by_name = true", "does not go with union_by_name"),
        ("store_rejects = false, rejects_table = 'x'", "stores no rejects"),
        ("rejects_limit = 3", "rejects_limit of read_csv() goes with store_rejects"),
        ("store_rejects = true, rejects_limit = -1", "not negative"),
        ("store_rejects = true, rejects_table = ''", "the name of a table"),
        ("rejects_table = 'x', rejects_scan = 'x'", "names of their own"),
        ("rejects_table = 'other'", "there is a temporary table"),
    ],
)
def test_what_does_not_go_together(files: Path, options: str, message: str) -> None:
    with duckdb_database() as oracle, tqp.connect() as connection:
        for engine in (oracle, connection):
            engine.execute("CREATE TEMPORARY TABLE other (i INTEGER)")
        query = f"SELECT * FROM read_csv('a.csv', {options})"
        with pytest.raises(tqp.BindError) as raised:
            connection.execute(query)
        assert message in raised.value.message
        with pytest.raises(Exception, match="Error"):
            oracle.execute(query)


@pytest.mark.parametrize("options", ["comment = '#'", "encoding = 'latin-1'", "delim = '||'"])
def test_what_is_not_supported(files: Path, options: str) -> None:
    with tqp.connect() as connection, pytest.raises(tqp.UnsupportedError):
        connection.execute(f"SELECT * FROM read_csv('a.csv', store_rejects = true, {options})")
