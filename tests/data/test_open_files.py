"""Files that queries name in FROM: what DuckDB gives, and never the contents of before."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tqp
from tests.oracle import duckdb_database
from tqp.data.sources import open_files


def write(path: Path, numbers: Sequence[int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"i": numbers, "s": [f"é{number}" for number in numbers]}), path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, numbers in {"x": [1, 2, 3], "a-b": [4, 5], "d/q": [6], "d/r": [7, 8], "h/y=1/f": [9]}.items():
        write(tmp_path / f"{name}.parquet", numbers)
    write(tmp_path / "empty.PARQUET", [])
    (tmp_path / "c.csv").write_text("i,s\n1,a\n2,b\n")
    (tmp_path / "c.x.csv").write_text("i,s\n3,a\n")
    (tmp_path / "n.dat").write_text("i,s\n1,a\n")
    return tmp_path


@pytest.fixture
def connection(folder: Path) -> Iterator[tqp.Connection]:
    with tqp.connect() as connection:
        yield connection


@pytest.mark.parametrize(
    "query",
    [
        "FROM 'x.parquet'",
        "SELECT x.i FROM 'x.parquet'",
        'SELECT s FROM "x.parquet" WHERE x.i > 1',
        "SELECT q.i FROM 'd/q.parquet'",
        "SELECT \"a-b\".i FROM 'a-b.parquet'",
        "SELECT c.i FROM 'c.x.csv'",
        "SELECT count(*), sum(i) FROM 'empty.PARQUET'",
        "SELECT sum(i) FROM 'd/*.parquet'",
        "SELECT i, y FROM 'h/**/*.parquet'",
        "FROM 'c.csv'",
        "SELECT a.s, b.i FROM 'x.parquet' a JOIN 'c.csv' b USING (i)",
        "SELECT (SELECT max(i) FROM 'x.parquet') + 1",
        "WITH \"x.parquet\" AS (SELECT 5 AS i) FROM 'x.parquet'",
        "FROM read_parquet('x.parquet')",
        "SELECT read_parquet.i FROM read_parquet('x' || '.parquet')",
        "SELECT t.a FROM parquet_scan('x.parquet') t(a)",
        "SELECT sum(i) FROM read_parquet(['d/q.parquet', 'x.parquet'])",
        "FROM read_csv('n.dat')",
        "SELECT read_csv_auto.i FROM read_csv_auto('c.csv')",
    ],
)
def test_files_in_from(connection: tqp.Connection, query: str) -> None:
    with duckdb_database() as oracle:
        expected = oracle.execute(query)
        names = [column[0] for column in expected.description or ()]
        for _ in range(2):
            result = connection.sql(query)
            assert list(result.columns) == names
        assert sorted(result.fetchall()) == sorted(expected.fetchall())


def test_a_path_may_be_a_parameter(connection: tqp.Connection) -> None:
    assert connection.sql("SELECT sum(i) FROM read_parquet($1)", ["x.parquet"]).fetchall() == [(6,)]
    assert connection.sql("SELECT sum(i) FROM read_parquet($1)", ["d/r.parquet"]).fetchall() == [(15,)]
    assert connection.sql("SELECT sum(i) FROM read_parquet([$a, $b])", {"a": "x.parquet", "b": "a-b.parquet"}).fetchall() == [(15,)]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("FROM 'none.parquet'", tqp.BindError, "no file matches none.parquet"),
        ("FROM 'none'", tqp.BindError, 'there is no table "none"'),
        ("FROM 'd'", tqp.BindError, 'there is no table "d"'),
        ("SELECT \"x.parquet\".i FROM 'x.parquet'", tqp.BindError, 'no table "x.parquet" in FROM'),
        ("SELECT q.i FROM 'd/*.parquet'", tqp.BindError, 'no table "q" in FROM'),
        ("FROM 'x.parquet' JOIN 'x.parquet' USING (i)", tqp.BindError, 'the name "x" stands twice'),
        ("FROM read_parquet('c.csv')", tqp.ExecutionError, "cannot read c.csv"),
        ("FROM read_parquet()", tqp.BindError, "takes a path, or a list of paths"),
        ("FROM read_parquet('x.parquet', 'c.csv')", tqp.BindError, "takes a path, or a list of paths"),
        ("FROM read_parquet([])", tqp.BindError, "needs at least one file"),
        ("FROM read_parquet(NULL)", tqp.BindError, "as text, not NULL"),
        ("FROM read_parquet(1)", tqp.BindError, "as text, not INTEGER"),
        ("SELECT * FROM 'c.csv' c, read_csv(c.s)", tqp.UnsupportedError, "columns or subqueries"),
        (
            "FROM read_csv('c.csv', store_rejects = true, comment = '#')",
            tqp.UnsupportedError,
            "store_rejects",
        ),
    ],
)
def test_what_is_wrong_is_named(
    connection: tqp.Connection, query: str, error: type[tqp.Error], message: str
) -> None:
    with pytest.raises(error, match=message):
        connection.sql(query)


def test_the_place_of_a_missing_file_is_shown(connection: tqp.Connection) -> None:
    with pytest.raises(tqp.BindError, match=r"LINE 1: SELECT \* FROM 'none.csv'\n +\^+"):
        connection.sql("SELECT * FROM 'none.csv'")


def test_a_registered_table_comes_first(connection: tqp.Connection) -> None:
    assert connection.sql("SELECT count(*) FROM 'x.parquet'").fetchall() == [(3,)]
    connection.register("x.parquet", {"i": pa.array([1])})
    assert connection.sql("SELECT count(*) FROM 'x.parquet'").fetchall() == [(1,)]
    connection.unregister("x.parquet")
    assert connection.sql("SELECT count(*) FROM 'x.parquet'").fetchall() == [(3,)]


def test_sql_without_tables_reads_files(folder: Path) -> None:
    assert tqp.sql("SELECT sum(i) FROM 'x.parquet'").fetchall() == [(6,)]
    assert tqp.sql("SELECT sum(i) FROM 'x.parquet'", {}).fetchall() == [(6,)]


def test_a_file_that_changed_is_read_again(connection: tqp.Connection, folder: Path) -> None:
    def answers() -> list[Any]:
        texts = [f"SELECT sum(i) FROM '{name}.parquet' WHERE i > {least}" for name in ("x", "a-b") for least in range(4)]  # fmt: skip
        return [connection.sql(text).fetchall()[0][0] for text in texts]

    assert answers() == [6, 5, 3, None, 9, 9, 9, 9]
    write(folder / "a-b.parquet", [1, 2, 50])
    assert answers() == [6, 5, 3, None, 53, 52, 50, 50]
    write(folder / "x.parquet", [3, 100])
    assert answers() == [103, 103, 103, 100, 53, 52, 50, 50]
    (folder / "x.parquet").unlink()
    with pytest.raises(tqp.Error, match=r"x\.parquet"):
        answers()
    write(folder / "x.parquet", [7])
    assert answers() == [7, 7, 7, 7, 53, 52, 50, 50]


def test_a_file_that_comes_to_a_pattern_is_read(connection: tqp.Connection, folder: Path) -> None:
    assert connection.sql("SELECT sum(i) FROM 'd/*.parquet'").fetchall() == [(21,)]
    write(folder / "d" / "s.parquet", [100])
    assert connection.sql("SELECT sum(i) FROM 'd/*.parquet'").fetchall() == [(121,)]


def test_the_files_opened_last_are_kept(connection: tqp.Connection, folder: Path) -> None:
    kept: list[weakref.ref[Any]] = []
    for number in range(open_files._MOST + 3):
        write(folder / f"f{number}.parquet", [number])
        assert connection.sql(f"SELECT sum(i) FROM 'f{number}.parquet'").fetchall() == [(number,)]
        kept.append(weakref.ref(list(connection._catalog.files.tables().values())[-1]))
    names = {row[0] for row in connection.memory().fetchall()}
    assert names == {f"f{number}.parquet" for number in range(3, open_files._MOST + 3)}
    connection.sql("SELECT 1")
    gc.collect()
    assert [table() is None for table in kept] == [True] * 3 + [False] * open_files._MOST
    assert connection.sql("SELECT sum(i) FROM 'f0.parquet'").fetchall() == [(0,)]


def test_tables_whose_names_are_written_as_text_are_told_apart() -> None:
    """The words of such queries are the same: what is kept of one is not the other's."""
    with tqp.connect() as connection:
        for name, least in (("a b", 0), ("c d", 10)):
            connection.register(name, {"i": pa.array(range(least, least + 10))})

        def answers(name: str, first: int) -> list[int]:
            texts = [f"SELECT sum(i) FROM '{name}' WHERE i > {least}" for least in range(first, first + 4)]
            return [connection.sql(text).fetchall()[0][0] for text in texts]

        assert answers("a b", 0) == [45, 44, 42, 39]
        assert answers("c d", 0) == [145, 145, 145, 145]
        connection.register("c d", {"i": pa.array([5, 6, 7, 8])})
        assert answers("c d", 4) == [26, 21, 15, 8]
        assert answers("a b", 4) == [35, 30, 24, 17]
