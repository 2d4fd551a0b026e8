"""Options of read_csv(), read_json() and read_parquet(), and JSON files, beside DuckDB."""

from __future__ import annotations

from pathlib import Path

import pytest

import tqp
from tests.oracle import duckdb_database

FILES = {
    "empty.csv": 'a,b,c\n1,x,2.5\n2,,3.5\n3,"",\n',
    "c.csv": "# made by hand\na|b|c\n1|x|13/02/2024\n2|NA|\n",
    "v.csv": "i;s;x\n1;007;1.5\n2;1.50;\n3;NA;9\n",
    "u1.csv": "a,b\n1,x\n",
    "u2.csv": "b,c\ny,2.5\n",
    "comments.csv": '# made\n#by hand\na,b\n1,x\n  # in between\n2,y# tail\n"3","#z"\n',
    "remarks.csv": "# made\n#by hand\na,b\n1,x\n# in between\n2,y# tail\n",
    "first.csv": "# made by hand\na,b\n1,x\n2,y\n",
    "tags.csv": "#id,name\n1,x\n#2,y\n",
    "short.csv": 'a,b,c\n1,2,3\n4,"5\n5"\n6\n\n7,8,9\n',
    "bad.csv": "a,b\n1,2\n3,4,5\n6\nx,7\n8,\n,9\n",
    "wide.csv": "a,b\n1,2,3\n4\n",
    "dates.csv": "d,n\n2024-01-01,1\nx,2\n,300\n2024-02-30,4\n2024-03-01,\n",
    "german.csv": "x;y;z\n1.234,5;1.000;1,5\n-2.000;3;-,25\n12;4;1e3\n",
    "names.csv": "My Col,SELECT,1st,a.b,Ä ö,a b,A-B,\n1,2,3,4,5,6,7,8\n",
    "nulls.csv": 'a,b\n"",1\n,2\n"NA",3\nNA,4\n',
    "escaped.csv": 'a,b\n"x\\"y",1\n"p",2\n',
    "array.json": '[{"a":1,"d":"2024-01-01","t":"2024-01-01 01:02:03","s":"123"},{"a":2.5,"b":true}]',
    "lines.ndjson": '{"a":1,"big":99999999999999999999}\n{"a":null,"x":{"y":1},"l":[1,null]}\n',
    "later.json": '[{"k": "v"}, {"k": "w", "l": [1, {"a": 3}]}]',
    "one.json": '{"a":1,\n "n": null}',
    "mixed.json": '{"a":1}\n{"a":"x"}\n',
    "numbers.json": "[1, 2]",
    "empty.json": "",
    "broken.json": '{"a": 1',
}

SAME = [
    "FROM read_json('later.json', records = false)",
    "FROM read_json('later.json')",
    "SELECT typeof(json) FROM read_json('later.json', records = false)",
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
    "FROM read_parquet('u1.parquet', hive_partitioning = false)",
    "FROM read_csv('remarks.csv', comment = '#')",
    "FROM 'first.csv'",
    "FROM 'tags.csv'",
    "FROM read_csv('tags.csv', comment = '')",
    "FROM read_csv('short.csv', parallel = false, null_padding = true)",
    "FROM read_csv('short.csv', ignore_errors = true)",
    "FROM read_csv('short.csv', parallel = false, null_padding = true, header = false)",
    "FROM read_csv('wide.csv', null_padding = true)",
    "FROM read_csv('bad.csv', ignore_errors = true)",
    "FROM read_csv('bad.csv', ignore_errors = true, all_varchar = true)",
    "FROM read_csv('bad.csv', ignore_errors = true, types = {'a': 'INTEGER'})",
    "FROM read_csv('bad.csv', ignore_errors = true, columns = {'a': 'INTEGER', 'b': 'TINYINT'})",
    "FROM read_csv('dates.csv', ignore_errors = true, types = {'d': 'DATE', 'n': 'TINYINT'})",
    "SELECT n FROM read_csv('dates.csv', ignore_errors = true, types = {'n': 'TINYINT'})",
    "FROM read_csv('german.csv', decimal_separator = ',')",
    "FROM read_csv('german.csv', decimal_separator = ',', thousands = '.')",
    "FROM read_csv('german.csv', decimal_separator = ',', thousands = '.', types = {'x': 'DECIMAL(9, 2)', 'y': 'VARCHAR'})",
    "FROM read_csv('names.csv', normalize_names = true)",
    "FROM read_csv('nulls.csv', allow_quoted_nulls = false)",
    "FROM read_csv('nulls.csv', nullstr = 'NA', allow_quoted_nulls = false)",
    "FROM read_csv('empty.csv', force_not_null = ['b'])",
    "SELECT * FROM read_csv('empty.csv', force_not_null = ['B', 'a']) WHERE b = ''",
    "FROM read_csv('empty.csv', force_not_null = ['b', 'c'], all_varchar = true)",
    "FROM read_csv('empty.csv', force_not_null = ['b'], columns = {'a': 'INT', 'b': 'VARCHAR', 'c': 'DOUBLE'})",
    "FROM read_csv('latin.csv', encoding = 'latin-1')",
    "FROM read_csv('wide16.csv', encoding = 'utf-16')",
    "FROM read_csv('escaped.csv', escape = '\\')",
    "SELECT v.s FROM 'v.csv' v JOIN read_csv('v.csv') w USING (i) ORDER BY i",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "latin.csv").write_bytes("näme,ort\nZoë,Köln\n".encode("latin-1"))
    (tmp_path / "wide16.csv").write_bytes("näme,ort\nZoë,Köln\n".encode("utf-16"))
    with duckdb_database() as engine:
        engine.execute(f"COPY (SELECT 1 AS a, 'x' AS b) TO '{tmp_path}/u1.parquet'")
        engine.execute(f"COPY (SELECT 'y' AS b, 2 AS c) TO '{tmp_path}/u2.parquet'")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_answers_are_those_of_duckdb(folder: Path, backend: str) -> None:
    with duckdb_database() as oracle, tqp.connect(backend=backend) as connection:
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
        ("FROM 'broken.json'", tqp.ExecutionError, "cannot read broken.json"),
        (
            "FROM read_csv('empty.csv', force_not_null = ['c'])",
            tqp.ExecutionError,
            '"c" holds an empty value',
        ),
        ("FROM read_csv('empty.csv', force_not_null = ['d'])", tqp.BindError, 'a column "d"'),
        ("FROM read_csv('empty.csv', force_not_null = 'b')", tqp.BindError, "a list of names"),
        (
            "FROM read_csv('empty.csv', force_not_null = ['b'], nullstr = 'x')",
            tqp.UnsupportedError,
            "beside nullstr",
        ),
        ("FROM read_csv('empty.csv', auto_detect = false)", tqp.BindError, "goes with columns"),
        ("FROM read_csv('c.csv', comment = '//')", tqp.UnsupportedError, "one character"),
        ("FROM read_json('c.csv')", tqp.ExecutionError, "cannot read c.csv"),
        ("FROM read_csv('c.csv', encoding = 'nope')", tqp.BindError, "the encoding 'nope' is not known"),
        ("FROM read_csv('german.csv', decimal_separator = 'x')", tqp.BindError, "one of '.', ','"),
        ("FROM 'short.csv'", tqp.ExecutionError, "null_padding = true fills"),
        (
            "FROM read_csv('short.csv', null_padding = true, allow_quoted_nulls = false)",
            tqp.ExecutionError,
            "cannot be filled where allow_quoted_nulls = false",
        ),
        ("FROM 'latin.csv'", tqp.ExecutionError, "say encoding = 'latin-1'"),
        ("FROM 'wide16.csv'", tqp.ExecutionError, "say encoding = 'utf-16'"),
        ("FROM read_csv('latin.csv', encoding = 'ascii')", tqp.ExecutionError, "not of the encoding 'ascii'"),
        ("FROM read_csv('c.csv', heeder = true)", tqp.UnsupportedError, 'did you mean "header"'),
        ("FROM read_csv('c.csv', skip = 'x')", tqp.BindError, "takes a number of lines, not 'x'"),
        ("FROM read_csv('c.csv', types = {'nope': 'DATE'})", tqp.BindError, 'a column "nope"'),
        ("FROM read_csv('c.csv', types = {'a': 'NOPE'})", tqp.BindError, 'no type "NOPE"'),
        ("FROM read_csv('v.csv', names = ['a', 'b', 'c', 'd'])", tqp.ExecutionError, "4 names are given"),
        (
            "FROM read_csv('v.csv', types = {'s': 'INTEGER'})",
            tqp.ExecutionError,
            "Could not convert string 'NA'",
        ),
    ],
)
def test_what_is_refused(folder: Path, query: str, kind: type[tqp.Error], message: str) -> None:
    with tqp.connect() as connection, pytest.raises(kind, match=message):
        connection.sql(query)


def test_comments_leave_what_is_in_quotes_and_what_nobody_said_is_one(folder: Path) -> None:
    with tqp.connect() as connection:
        said = connection.sql("FROM read_csv('comments.csv', comment = '#')").fetchall()
        assert said == [(1, "x"), (2, "y"), (3, "#z")]
        (folder / "found.csv").write_text("# made\na,b\n1,x\n# in between\n2,y # of it\n")
        assert connection.sql("FROM 'found.csv'").fetchall() == [(1, "x"), (2, "y # of it")]
        (folder / "short_found.csv").write_text("# made\na,b,c\n1,x,2\n# in between\n3\n")
        padded = connection.sql("FROM read_csv('short_found.csv', null_padding = true)").fetchall()
        assert padded == [(1, "x", 2), (3, None, None)]
        (folder / "heights.csv").write_text('a|b\n5" nail|1 # short\n6" nail|2 # long\n')
        found = connection.sql("FROM read_csv('heights.csv', comment = '#', delim = '|', all_varchar = true)")
        assert found.fetchall() == [('5" nail', "1 "), ('6" nail', "2 ")]


def test_rows_are_counted_after_those_that_errors_leave_out(folder: Path) -> None:
    query = "SELECT count(*) FROM read_csv('dates.csv', ignore_errors = true, types = {'d': 'DATE', 'n': 'TINYINT'})"
    with tqp.connect() as connection:
        assert connection.sql(query).fetchall() == [(2,)]


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
    with duckdb_database() as oracle, tqp.connect() as connection:
        for engine in (oracle, connection):
            engine.execute("CREATE TABLE u(i INT, s VARCHAR, x DECIMAL(5, 2))")
            engine.execute("COPY u FROM 'v.csv'")
        assert connection.sql("FROM u").fetchall() == oracle.sql("FROM u").fetchall()
        connection.sql("COPY (FROM u) TO 'again.json'; CREATE TABLE w AS FROM 'again.json'")
        assert connection.sql("SELECT count(*), sum(i), max(s) FROM w").fetchall() == [(3, 6, "NA")]
