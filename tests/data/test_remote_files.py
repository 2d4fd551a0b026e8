"""Files that fsspec finds by their addresses; in memory here, elsewhere where a package for them is installed."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable, Iterator

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.exceptions import FSTimeoutError

import tqp

Put = Callable[[str, bytes], None]


@pytest.fixture
def put() -> Iterator[Put]:
    """Writes a file in memory."""
    system = fsspec.filesystem("memory")
    yield system.pipe_file
    system.rm("/", recursive=True)


def _parquet(rows: int) -> bytes:
    table = pa.table({"i": range(rows), "s": [f"text {row % 7}" for row in range(rows)]})
    stream = io.BytesIO()
    pq.write_table(table, stream, row_group_size=1_000)
    return stream.getvalue()


def _ipc(table: pa.Table) -> bytes:
    stream = io.BytesIO()
    with pa.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_files_of_each_kind(put: Put, backend: str) -> None:
    put("/d/a.csv", b"a,b\n1,x\n2,y\n")
    put("/d/b.csv", b"a,b\n3,z\n")
    put("/d/c.csv.gz", gzip.compress("a,b\n9,ä\n".encode()))
    put("/d/lines.json", b'{"a":1}\n{"a":2}\n')
    put("/d/table.arrow", _ipc(pa.table({"q": [1, 2]})))
    put("/d/plain", _parquet(3))
    for part in (1, 2):
        put(f"/p/x={part}/f.parquet", _parquet(5_000))
    answers = {
        "FROM 'memory://d/a.csv'": [(1, "x"), (2, "y")],
        "SELECT a, d.b FROM 'memory://d/*.csv' d": [(1, "x"), (2, "y"), (3, "z")],
        "FROM 'memory://d/c.csv.gz'": [(9, "ä")],
        "SELECT a + 1 FROM read_csv('memory://d/b.csv', types = {'a': 'INTEGER'})": [(4,)],
        "SELECT sum(a) FROM 'memory://d/lines.json'": [(3,)],
        "FROM 'memory://d/table.arrow'": [(1,), (2,)],
        "SELECT count(*) FROM read_parquet('memory://d/plain')": [(3,)],
        "SELECT x, count(*), sum(i), min(s) FROM 'memory://p/*/*.parquet' p WHERE i >= 4_990 GROUP BY x ORDER BY x": [
            (1, 10, 49_945, "text 0"),
            (2, 10, 49_945, "text 0"),
        ],
        "SELECT count(*) FROM read_parquet('memory://p') p": [(10_000,)],
    }
    with tqp.connect(backend=backend) as connection:
        for query, rows in answers.items():
            assert connection.sql(query).fetchall() == rows, query


def test_what_changes_is_read_again(put: Put) -> None:
    put("/d/a.csv", b"a\n1\n")
    put("/d/f.parquet", _parquet(10))
    with tqp.connect() as connection:
        connection.register("files", "memory://d/*.csv")
        assert connection.sql("SELECT sum(a), count(*) FROM files").fetchall() == [(1, 1)]
        put("/d/a.csv", b"a\n5\n")
        assert connection.sql("SELECT sum(a), count(*) FROM files").fetchall() == [(5, 1)]
        put("/d/b.csv", b"a\n7\n")
        assert connection.sql("SELECT sum(a), count(*) FROM files").fetchall() == [(12, 2)]
        fsspec.filesystem("memory").rm("/d/b.csv")
        assert connection.sql("SELECT sum(a), count(*) FROM files").fetchall() == [(5, 1)]
        assert connection.sql("SELECT max(i) FROM 'memory://d/f.parquet'").fetchall() == [(9,)]
        put("/d/f.parquet", _parquet(20))
        assert connection.sql("SELECT max(i) FROM 'memory://d/f.parquet'").fetchall() == [(19,)]


def test_a_file_that_is_replaced_while_it_is_read_is_not_mixed(
    put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("/d/f.parquet", _parquet(10))
    read = pq.ParquetFile.__enter__

    def replaced(file: pq.ParquetFile) -> pq.ParquetFile:
        monkeypatch.undo()
        put("/d/f.parquet", _parquet(20))
        return read(file)

    with tqp.connect() as connection:
        monkeypatch.setattr(pq.ParquetFile, "__enter__", replaced)
        query = "SELECT count(*), count(DISTINCT i), max(i) FROM 'memory://d/f.parquet'"
        assert connection.sql(query).fetchall() == [(20, 20, 19)]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("memory://d/none.csv", "no file matches memory://d/none.csv"),
        ("memory://d/*.csv", "no file matches"),
        ("nope://d/none.csv", "cannot open nope://d/none.csv: Protocol not known: nope"),
        ("memory://d/broken.parquet", "cannot read memory:///d/broken.parquet"),
    ],
)
def test_what_cannot_be_read_is_named(put: Put, address: str, message: str) -> None:
    put("/d/broken.parquet", b"PAR1")
    with tqp.connect() as connection, pytest.raises(tqp.Error, match=message.replace("*", ".")):
        connection.sql(f"FROM '{address}' f")


def test_a_file_system_that_fails_is_named(put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("the credentials have expired")

    put("/d/a.csv", b"a\n1\n")
    with tqp.connect() as connection:
        connection.register("t", "memory://d/a.csv")
        monkeypatch.setattr("fsspec.spec.AbstractFileSystem.checksum", fails)
        with pytest.raises(tqp.ExecutionError, match="the credentials have expired"):
            connection.sql("SELECT sum(a) FROM t")


WRITTEN = """
    CREATE TABLE t AS SELECT i, 'text ' || i AS s, i % 2 AS g FROM range(9) r(i);
    COPY t TO 'memory://out/t.parquet';
    COPY t TO 'memory://out/t.csv.gz';
    COPY t TO 'memory://out/t.json' (ARRAY);
    COPY t TO 'memory://out/by' (FORMAT csv, PARTITION_BY g);
    EXPORT DATABASE 'memory://out/all' (FORMAT parquet)
"""


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_files_are_written_to_addresses(put: Put, backend: str) -> None:
    with tqp.connect(backend=backend) as connection:
        connection.sql(WRITTEN)
        rows = connection.sql("FROM t ORDER BY i").fetchall()
        for file in ("t.parquet", "t.csv.gz", "t.json", "by/*/*.csv"):
            assert (
                connection.sql(f"SELECT i, s, g FROM 'memory://out/{file}' f ORDER BY i").fetchall() == rows
            )
        connection.sql(
            "COPY t TO 'memory://out/t.parquet' (COMPRESSION zstd)"
        )  # in place of the one that is there
        connection.sql("COPY t FROM 'memory://out/t.parquet'")
        assert connection.sql("SELECT count(*) FROM t").fetchall() == [(18,)]
        with pytest.raises(tqp.ExecutionError, match="memory://out/by: the directory is not empty"):
            connection.sql("COPY t TO 'memory://out/by' (FORMAT csv, PARTITION_BY g)")
        result = connection.sql("SELECT 1 AS a")
        result.write_parquet("memory://out/a.parquet")
        result.write_csv("memory://out/a.csv")
        result.write_json("memory://out/a.json")
        for kind in ("parquet", "csv", "json"):
            assert connection.sql(f"FROM 'memory://out/a.{kind}'").fetchall() == [(1,)]
    with tqp.connect(backend=backend) as connection:
        connection.sql("IMPORT DATABASE 'memory://out/all'")
        assert connection.sql("FROM t ORDER BY i").fetchall() == rows


def test_what_fails_while_it_is_written_leaves_what_was_there(put: Put) -> None:
    put("/d/a.csv", b"before")
    with tqp.connect() as connection, pytest.raises(tqp.ExecutionError, match="'x'"):
        connection.sql(
            "COPY (SELECT CAST(s AS INTEGER) FROM (VALUES ('1'), ('x')) t(s)) TO 'memory://d/a.csv'"
        )
    assert fsspec.filesystem("memory").cat_file("/d/a.csv") == b"before"


class _Silent(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """A computer that answers nothing; what it is asked times out."""

    protocol = "silent"

    def _answer(self, *_: object, **__: object) -> None:
        raise FSTimeoutError

    info = ls = open = put_file = cat_file = checksum = _answer


@pytest.mark.parametrize(
    "statement",
    [
        "FROM 'silent://host/t.csv'",
        "FROM 'silent://host/*.parquet' t",
        "FROM read_json('silent://host/t.json')",
        "FROM read_text('silent://host/t')",
        "COPY (SELECT 1 AS a) TO 'silent://host/t.csv'",
        "COPY (SELECT 1 AS a, 2 AS b) TO 'silent://host/t' (FORMAT parquet, PARTITION_BY a)",
    ],
)
def test_what_times_out_is_named(statement: str) -> None:
    fsspec.register_implementation("silent", _Silent, clobber=True)
    with tqp.connect() as connection:
        with pytest.raises(tqp.Error, match="silent://host/.*has not answered in time"):
            connection.sql(statement)
        assert connection.sql("SELECT 1").fetchall() == [(1,)]


def test_without_fsspec_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with tqp.connect() as connection:
        for statement in ("FROM 's3://bucket/t.csv'", "COPY (SELECT 1 AS a) TO 's3://bucket/t.csv'"):
            with pytest.raises(tqp.BindError, match="s3://bucket/t.csv takes fsspec.*pip install fsspec"):
                connection.sql(statement)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_package(path: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr("fsspec.core.url_to_fs", without_package)
    with tqp.connect() as connection, pytest.raises(tqp.BindError, match="Install s3fs to access S3"):
        connection.register("t", "s3://bucket/t.parquet")
