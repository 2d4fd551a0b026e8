"""sniff_csv() tells of files what DuckDB tells, and its query reads them as they are read without it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import tqp

FILES = {
    "quotes": 'a,b\n1,"x"\n2,"y"\n',
    "doubled quotes": 'a,b\n1,"x ""q"" y"\n2,"y"\n',
    "backslashes": 'a,b\n1,"x \\"q\\" y"\n2,"y"\n',
    "CRLF": "a,b\r\n1,2\r\n",
    "CR": "a,b\r1,2\r3,4\r",
    "comment": "# hi\na,b\n1,2\n3,4\n",
    "no header": "1,2.5,t\n3,4.5,f\n",
    "one column": "a\n1\n2\n",
    "single quotes": "a,b\n1,'x,y'\n2,'y,z'\n",
    "header alone": "a,b\n",
    "no end of line": "a,b",
    "tabs": "a\tb\n1\t2\n",
    "leading zeros": "a,b\ntrue,01\nfalse,02\n",
    "names in quotes": 'a b,"c,d"\n1,2\n3,4\n',
    "dates": "d|t\n2024-01-02|2024-01-02 03:04:05\n",
}
OPTIONS = (
    "delim = ';'",
    "sep = ','",
    "header = false",
    "skip = 1",
    "quote = '\"'",
    "escape = '\\'",
    "comment = '#'",
    "all_varchar = true",
    "names = ['x']",
    "nullstr = 'x'",
    "ignore_errors = true",
    "delim = ',', header = true, quote = '', skip = 0",
    "hive_partitioning = true",
    "sample_size = 5",
)


def _sniffed(path: Path, options: str = "") -> str:
    query = f"FROM sniff_csv('{path}'{options})"
    found, expected = tqp.sql(query), duckdb.sql(query)
    assert list(found.columns) == expected.columns
    assert list(map(str, found.types)) == list(map(str, expected.types))
    rows = found.fetchall()
    assert rows == expected.fetchall()
    return str(rows[0][-1])


@pytest.mark.parametrize("name", FILES)
def test_files(tmp_path: Path, name: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(FILES[name].encode())
    query = _sniffed(path)
    assert tqp.sql(query).fetchall() == tqp.sql(f"FROM '{path}'").fetchall() == duckdb.sql(query).fetchall()


def test_options(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(FILES["quotes"])
    for options in OPTIONS:
        query = _sniffed(path, ", " + options)
        assert tqp.sql(query).fetchall() == duckdb.sql(query).fetchall()


def test_errors(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("a\n1\n")
    for arguments, error, words in (
        (f"'{tmp_path}/*.csv'", tqp.UnsupportedError, "one file, and 2 match"),
        (f"['{tmp_path}/a.csv']", tqp.BindError, "takes one path"),
        (f"'{tmp_path}/none.csv'", tqp.BindError, "no file matches"),
        ("NULL", tqp.BindError, "not NULL"),
        ("", tqp.BindError, "takes a path"),
        (f"'{tmp_path}/a.csv', auto_detect = false", tqp.UnsupportedError, "False"),
        (f"'{tmp_path}/a.csv', columns = {{'a': 'INT'}}", tqp.UnsupportedError, "columns"),
    ):
        with pytest.raises(error, match=words):
            tqp.sql(f"FROM sniff_csv({arguments})")
