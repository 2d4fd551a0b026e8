"""Options of read_csv(), read_json() and read_parquet(), and JSON files, beside DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import tqp

FILES = {
    "c.csv": "# made by hand\na|b|c\n1|x|13/02/2024\n2|NA|\n",
    "v.csv": "i;s;x\n1;007;1.5\n2;1.50;\n3;NA;9\n",
    "u1.csv": "a,b\n1,x\n",
    "u2.csv": "b,c\ny,2.5\n",
    "array.json": '[{"a":1,"d":"2024-01-01","t":"2024-01-01 01:02:03","s":"123"},{"a":2.5,"b":true}]',
    "lines.ndjson": '{"a":1,"big":99999999999999999999}\n{"a":null,"x":{"y":1},"l":[1,null]}\n',
    "one.json": '{"a":1,\n "n": null}',
    "mixed.json": '{"a":1}\n{"a":"x"}\n',
    "numbers.json": "[1, 2]",
    "empty.json": "",
    "broken.json": '{"a": 1',
}

SAME = [
    "FROM 'array.json'",
    "FROM 'lines.ndjson'",
    "SELECT a FROM 'one.json'",
    "SELECT a + 1 FROM read_json('array.json')",
    "FROM read_ndjson('lines.ndjson')",
    "FROM read_json('array.json', columns = {'s': 'INTEGER', 'a': 'DOUBLE'})",
    "SELECT x.y, l[1] FROM read_json_auto('lines.ndjson', format = 'newline_delimited')",
    "FROM read_csv('c.csv', skip = 1, header = false)",
    "FROM read_csv('c.csv', skip = 1, dateformat = '%d/%m/%Y')",
    "FROM read_csv('c.csv', skip = 1, dateformat = '%d/%m/%Y', nullstr = ['NA', ''])",
    "FROM read_csv('c.csv', skip = 1, all_varchar = true)",
    "FROM read_csv('c.csv', skip = 1, types = {'a': 'VARCHAR', 'C': 'VARCHAR'})",
    "FROM read_csv('c.csv', skip = 1, columns = {'x': 'INTEGER', 'y': 'VARCHAR', 'z': 'VARCHAR'})",
    "FROM read_csv('c.csv', skip = 1, types = ['DOUBLE', 'VARCHAR', 'VARCHAR'])",
    "FROM read_csv('c.csv', skip = 1, dtypes = {'c': 'DATE'}, dateformat = '%d/%m/%Y')",
    "FROM read_csv('c.csv', skip := 1, delim := ',', sample_size := -1)",
    "FROM read_csv('c.csv', skip = 1, names = ['x', 'y'], types = {'c': 'VARCHAR'}, filename = true)",
    "SELECT count(*), sum(x) FROM read_csv('v.csv', types = {'x': 'DECIMAL(5, 2)'}) WHERE x > 2",
    "SELECT a, b, c FROM read_csv('u*.csv', union_by_name = true) ORDER BY b",
    "FROM read_csv(['u2.csv', 'u1.csv'], union_by_name = true, filename = true) ORDER BY b",
    "FROM read_parquet('u*.parquet', union_by_name = true, filename = true) ORDER BY b",
    "FROM read_parquet('u1.parquet', hive_partitioning = true)",
    "SELECT v.s FROM 'v.csv' v JOIN read_csv('v.csv') w USING (i) ORDER BY i",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    with duckdb.connect() as engine:
        engine.execute(f"COPY (SELECT 1 AS a, 'x' AS b) TO '{tmp_path}/u1.parquet'")
        engine.execute(f"COPY (SELECT 'y' AS b, 2 AS c) TO '{tmp_path}/u2.parquet'")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_answers_are_those_of_duckdb(folder: Path, backend: str) -> None:
    with duckdb.connect() as oracle, tqp.connect(backend=backend) as connection:
        for query in SAME:
            expected, found = oracle.execute(query), connection.execute(query)
            assert list(found.columns) == [column[0] for column in expected.description], query
            assert [str(each) for each in found.types] == [
                str(column[1]) for column in expected.description
            ], query
            assert found.fetchall() == expected.fetchall(), query


@pytest.mark.parametrize(
    ("query", "kind", "message"),
    [
        ("FROM 'nope.json'", tqp.BindError, "no file matches nope.json"),
        ("FROM 'mixed.json'", tqp.UnsupportedError, "several types under one key"),
        ("FROM 'numbers.json'", tqp.UnsupportedError, "anything but objects"),
        ("FROM 'empty.json'", tqp.ExecutionError, "empty.json: the file holds no objects"),
        ("FROM 'broken.json'", tqp.ExecutionError, "cannot read broken.json"),
        ("FROM read_csv('c.csv', comment = '#')", tqp.UnsupportedError, "the option comment of read_csv"),
        ("FROM read_csv('c.csv', heeder = true)", tqp.UnsupportedError, 'did you mean "header"'),
        ("FROM read_csv('c.csv', skip = 'x')", tqp.BindError, "takes a whole number, not 'x'"),
        ("FROM read_csv('c.csv', types = {'nope': 'DATE'})", tqp.BindError, 'a column "nope"'),
        ("FROM read_csv('c.csv', types = {'a': 'NOPE'})", tqp.UnsupportedError, "the type NOPE"),
        ("FROM read_csv('c.csv', delim = '||')", tqp.UnsupportedError, "one character"),
        ("FROM read_csv('v.csv', names = ['a', 'b', 'c', 'd'])", tqp.ExecutionError, "4 names are given"),
        (
            "FROM read_csv('v.csv', types = {'s': 'INTEGER'})",
            tqp.ExecutionError,
            "Could not convert string 'NA'",
        ),
        ("FROM read_csv('c.csv', ignore_errors = true)", tqp.UnsupportedError, "not supported"),
        ("FROM read_parquet('u1.parquet', hive_partitioning = false)", tqp.UnsupportedError, "not supported"),
    ],
)
def test_what_is_refused(folder: Path, query: str, kind: type[tqp.Error], message: str) -> None:
    with tqp.connect() as connection, pytest.raises(kind, match=message):
        connection.sql(query)


def test_a_changed_file_is_read_again_with_its_options(folder: Path) -> None:
    with tqp.connect() as connection:
        query = "SELECT a FROM read_csv('c.csv', skip = 1, types = {'a': 'VARCHAR'})"
        assert connection.sql(query).fetchall() == [("1",), ("2",)]
        Path("c.csv").write_text("# again\na|b|c\n07|x|\n")
        assert connection.sql(query).fetchall() == [("07",)]
        assert connection.sql(
            "SELECT a FROM read_csv('c.csv', skip = 2, header = false, names = ['a'])"
        ).fetchall() == [("07",)]


def test_copy_from_takes_the_types_of_the_table(folder: Path) -> None:
    with duckdb.connect() as oracle, tqp.connect() as connection:
        for engine in (oracle, connection):
            engine.execute("CREATE TABLE u(i INT, s VARCHAR, x DECIMAL(5, 2))")
            engine.execute("COPY u FROM 'v.csv'")
        assert connection.sql("FROM u").fetchall() == oracle.sql("FROM u").fetchall()
        connection.sql("COPY (FROM u) TO 'again.json'; CREATE TABLE w AS FROM 'again.json'")
        assert connection.sql("SELECT count(*), sum(i), max(s) FROM w").fetchall() == [(3, 6, "NA")]
