"""glob(), read_text() and read_blob(): what DuckDB gives of the same files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import fsspec
import pytest

import tqp
from tests.oracle import duckdb_database

_FILES = {
    "a.txt": b"hello\nworld",
    "b.txt": b"",
    "Ü😀.txt": "ünï😀\0x".encode(),
    ".hidden.txt": b"h",
    "[z].txt": b"z",
    "bad.bin": b"\xff\xfe",
    "sub/c.txt": b"c",
    "sub/zz.txt": b"zz",
    "sub/ab/2.txt": b"2",
    "sub/deep/e.txt": b"e",
    ".away/x.txt": b"x",
    "p/y=1/q.txt": b"q",
    "p/y=20/q.txt": b"r",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, content in _FILES.items():
        path = tmp_path / "d" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "d" / "link").symlink_to("sub")
    os.utime(tmp_path / "d" / "a.txt", ns=(0, 1_234_567_890_987_654_321))
    return tmp_path


@pytest.fixture(params=["host", "torch"])
def connection(folder: Path, request: pytest.FixtureRequest) -> Iterator[tqp.Connection]:
    with tqp.connect(backend=request.param) as connection:
        yield connection


_PATTERNS = """
d/* d/** d/**/*.txt d/a.txt d d/nope* d/nope.txt nope/* d/[ab].txt d/[!a].txt d/[^a].txt d/?.txt d/??????.txt d/link/*
d/**/e.txt d/*/* d/*/*/* d/**/*/* d/{a,b}.txt d/[[]z].txt d/[z].txt ./d/a.txt ./d/a* d//a.txt d//a* d/../d/a* d/.*
d/sub/**/*.txt **/e.txt d/**/c.txt/ d/link/z*/ d/link/a*/2.txt/ **/ d/s*/../a* d/s** d/*/ d/**/ d/a*/ d/a.txt/ d/[ d/a\\.tx? d/**.txt d/*/deep d/**/sub/* D/A*
""".split()


def test_patterns(connection: tqp.Connection) -> None:
    with duckdb_database() as oracle:
        for pattern in (*_PATTERNS, "", os.path.abspath("d/**"), f"file://{os.path.abspath('d')}/a*"):
            expected = oracle.execute("FROM glob(?)", [pattern]).fetchall()
            assert connection.sql("FROM glob(?)", [pattern]).fetchall() == expected, pattern


@pytest.mark.parametrize(
    "query",
    [
        "FROM glob(['d/a*', 'd/b*', 'd/nope', 'd/a.txt'])",
        "FROM glob([])",
        "SELECT g FROM glob('d/a*') g",
        "SELECT x FROM glob('d/a*') g(x)",
        "SELECT * EXCLUDE (last_modified) FROM read_text('d/*.txt')",
        "SELECT * EXCLUDE (last_modified) FROM read_blob('d/*')",
        "SELECT * EXCLUDE (last_modified) FROM read_text(['d/b.txt', 'd/nope', 'd/a.txt', 'd/b.txt'])",
        "SELECT * EXCLUDE (last_modified) FROM read_text('d/p/*/*')",
        "SELECT y + 1, content FROM read_text('d/p/y=20/q.txt')",
        "SELECT * EXCLUDE (last_modified) FROM read_text('d/nope*')",
        "SELECT * EXCLUDE (last_modified) FROM read_blob([])",
        "SELECT * EXCLUDE (last_modified) FROM read_text('d')",
        "SELECT filename, size FROM read_text('d/*')",
        "SELECT count(*), sum(size), max(filename) FROM read_text('d/**')",
        "SELECT read_text.content, upper(content) FROM read_text('d/' || 'a.txt')",
        "SELECT epoch_us(last_modified), typeof(last_modified), typeof(content) FROM read_blob('d/a.txt')",
        "SELECT a.content FROM read_text('d/*.txt') a JOIN glob('d/a*') g ON a.filename = g.file",
        "SELECT octet_length(content), content FROM read_blob('d/bad.bin')",
        "DESCRIBE FROM read_text('d/a.txt')",
        "DESCRIBE FROM read_blob('d/p/*/*')",
        "DESCRIBE FROM glob('d/a.txt')",
        "FROM read_csv(['d/a.txt', 'd/a.txt'])",
        "FROM read_csv('d/sub/**/*.txt', header = false, columns = {'t': 'VARCHAR'})",
    ],
)
def test_queries(connection: tqp.Connection, query: str) -> None:
    with duckdb_database() as oracle:
        expected = oracle.execute(query)
        names = [column[0] for column in expected.description or ()]
        result = connection.sql(query)
        assert list(result.columns) == names
        assert list(map(str, result.types)) == [str(column[1]) for column in expected.description or ()]
        assert result.fetchall() == expected.fetchall()


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("FROM read_text('d/bad.bin')", tqp.ExecutionError, "d/bad.bin does not hold text in UTF-8; read_blob"),
        ("FROM glob('d/**/sub/**')", tqp.BindError, r"\*\* may stand once in a pattern"),
        ("FROM glob()", tqp.BindError, "takes a path, or a list of paths"),
        ("FROM glob('a', 'b')", tqp.BindError, "takes a path, or a list of paths"),
        ("FROM read_text(NULL)", tqp.BindError, "as text, not NULL"),
        ("FROM read_text(['a', NULL])", tqp.BindError, "as text, not NULL"),
        ("FROM read_blob(1)", tqp.BindError, "as text, not INTEGER"),
        ("FROM read_blob([1])", tqp.BindError, r"as text, not INTEGER\[\]"),
        ("FROM (VALUES ('d/a.txt')) v(p), read_text(p)", tqp.UnsupportedError, "columns or subqueries"),
        ("FROM read_text((SELECT 'd/a.txt'))", tqp.UnsupportedError, "columns or subqueries"),
        ("FROM read_text('d/a.txt', allow_empty := true)", tqp.UnsupportedError, "the option allow_empty"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(
    connection: tqp.Connection, query: str, error: type[tqp.Error], message: str
) -> None:
    with pytest.raises(error, match=message):
        connection.sql(query).fetchall()


def test_what_is_no_plain_file(connection: tqp.Connection, folder: Path) -> None:
    (folder / "odd" / "x.txt").mkdir(parents=True)
    (folder / "odd" / "broken.txt").symlink_to("nowhere")
    os.mkfifo(folder / "odd" / "fifo.txt")
    (folder / "odd" / "ok.txt").write_text("ok")
    with duckdb_database() as oracle:
        for pattern in (
            "odd/*",
            "odd/**",
            "o*/x.txt",
            "o*/broken.txt",
            "o*/fifo.txt",
            "odd/broken.txt",
            "odd/*/",
        ):
            expected = oracle.execute("FROM glob(?)", [pattern]).fetchall()
            assert connection.sql("FROM glob(?)", [pattern]).fetchall() == expected, pattern
    Path(os.fsdecode(bytes(folder) + b"/odd/\xff.txt")).write_text("?")
    assert connection.sql("SELECT sum(size) FROM read_text('odd/*')").fetchall() == [(3,)]
    for query in ("FROM glob('odd/*')", "SELECT filename FROM read_text('odd/*')"):
        with pytest.raises(tqp.ExecutionError, match="udcff.* is not text in UTF-8"):
            connection.sql(query)


def test_changes_are_seen(connection: tqp.Connection, folder: Path) -> None:
    def names(pattern: str) -> list[str]:
        return [file for (file,) in connection.sql("FROM glob(?)", [pattern]).fetchall()]

    def texts() -> list[str]:
        return [text for (text,) in connection.sql("SELECT content FROM read_text('d/new/*/t.txt')").fetchall()]  # fmt: skip

    assert names("d/new/**") == names("d/*/*/t.txt") == names("d/new/1/t.txt") == texts() == []
    (folder / "d" / "new" / "1").mkdir(parents=True)
    assert texts() == []
    path = folder / "d" / "new" / "1" / "t.txt"
    path.write_text("one")
    assert names("d/new/**") == names("d/*/*/t.txt") == names("d/new/1/t.txt") == ["d/new/1/t.txt"]
    assert texts() == ["one"]
    path.write_text("two😀")
    assert texts() == ["two😀"]
    path.unlink()
    assert names("d/new/**") == texts() == []


def test_files_elsewhere(connection: tqp.Connection) -> None:
    system = fsspec.filesystem("memory")
    try:
        system.pipe_file("/d/a.txt", "ä😀".encode())
        system.pipe_file("/d/b.bin", b"\xff")
        assert connection.sql("FROM glob('memory://d/*.txt')").fetchall() == [("memory:///d/a.txt",)]
        assert connection.sql("SELECT content, size FROM read_text('memory://d/a.txt')").fetchall() == [("ä😀", 6)]  # fmt: skip
        query = "SELECT content, last_modified > TIMESTAMPTZ '2020-01-01' FROM read_blob('memory://d/*') ORDER BY size"
        assert connection.sql(query).fetchall() == [(b"\xff", True), ("ä😀".encode(), True)]
        assert connection.sql("FROM glob(['memory://d', 'memory://nope*'])").fetchall() == []
    finally:
        system.rm("/", recursive=True)


def test_only_what_is_asked_for_is_read(connection: tqp.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original: Callable[[str], bytes] = tqp.data.sources.whole_files.bytes_of
    monkeypatch.setattr("tqp.data.sources.whole_files.bytes_of", lambda path: read.append(path) or original(path))  # fmt: skip
    assert connection.sql("SELECT count(*), sum(size) FROM read_blob('d/*.txt')").fetchall() == [(5, 24)]
    assert read == []
    assert connection.sql("SELECT sum(octet_length(content)) FROM read_blob('d/*.txt')").fetchall() == [(24,)]
    assert len(read) == 5


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_of_files_have_numbers(tmp_path: Path, threads: int) -> None:
    for ending, options in (("csv", ""), ("parquet", " (ROW_GROUP_SIZE 2048)"), ("json", "")):
        path = tmp_path / f"rows.{ending}"
        duckdb.sql(
            f"COPY (SELECT i AS a, 'é' || i % 7 AS ordinality FROM range(9000) r(i)) TO '{path}'{options}"
        )
        rows = f"FROM read_{ending}('{path}') WITH ORDINALITY"
        with tqp.connect(threads=threads) as connection:
            for query in (
                f"SELECT * {rows} WHERE a > 8990",
                f"SELECT count(*), sum(ordinality0), sum(a - ordinality0) {rows} WHERE ordinality = 'é3'",
                f"SELECT a, o {rows} t(a, b, o) WHERE o BETWEEN 4096 AND 4100",
            ):
                assert connection.sql(query).fetchall() == duckdb.sql(query).fetchall()
