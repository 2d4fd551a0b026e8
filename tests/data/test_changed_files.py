"""Files that change, go or come after they were registered: no answer mixes two states of a file, none is stale."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tqp
from tqp.data.sources.file_identity import FileChangedError
from tqp.data.sources.file_systems import identity_of

Write = Callable[[Path, pa.Table], object]


def write_csv(path: Path, table: pa.Table) -> None:
    names = ",".join(table.column_names)
    rows = (",".join(map(str, row)) for row in zip(*table.to_pydict().values(), strict=True))
    path.write_text("\n".join([names, *rows]) + "\n")


def write_ipc(path: Path, table: pa.Table) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


KINDS: dict[str, Write] = {
    "parquet": lambda path, table: pq.write_table(table, path),
    "csv": write_csv,
    "arrow": write_ipc,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("in_place", [False, True], ids=["replaced", "written"])
def test_a_changed_file_is_read_again_whole(tmp_path: Path, kind: str, in_place: bool) -> None:
    file, write = tmp_path / f"t.{kind}", KINDS[kind]
    write(file, pa.table({"a": [1, 2, 3], "b": [1, 2, 3]}))
    with tqp.connect(threads=1) as connection:
        connection.register("t", file)
        before = connection.sql("SELECT sum(a), count(*) FROM t")
        other = file if in_place else tmp_path / "other"
        write(other, pa.table({"a": [10, 20], "b": [5, 6], "c": [7, 8]}))
        os.replace(other, file)
        assert connection.sql("SELECT sum(a), sum(b), sum(c), count(*) FROM t").fetchall() == [
            (30, 11, 15, 2)
        ]
        assert connection.sql("SELECT sum(a), count(*) FROM t").fetchall() == [(30, 2)]
        assert before.fetchall() == [(6, 3)]


def test_a_query_that_is_known_looks_at_the_files_that_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = []

    def noted(path: str) -> Any:
        looked_at.append(Path(path).stem)
        return identity_of(path)

    with tqp.connect(threads=1) as connection:
        for name in "abc":
            pq.write_table(pa.table({"x": [1]}), tmp_path / f"{name}.parquet")
            connection.register(name, tmp_path / f"{name}.parquet")
        connection.sql("CREATE VIEW v AS SELECT a.x FROM a, b")
        queries = ["SELECT x FROM v", f"SELECT x FROM '{tmp_path}/c.parquet'"]
        for query in queries:
            connection.sql(query)
        monkeypatch.setattr("tqp.data.sources.file_identity.identity_of", noted)
        for query, files in zip(queries, ("ab", "c"), strict=True):
            looked_at.clear()
            assert connection.sql(query).fetchall() == [(1,)]
            assert sorted(looked_at) == list(files)
        for name in "abc":
            pq.write_table(pa.table({"x": [2, 3]}), tmp_path / f"{name}.parquet")
        assert connection.sql(queries[0]).fetchall() == [(2,), (2,), (3,), (3,)]
        assert connection.sql(queries[1]).fetchall() == [(2,), (3,)]


def test_no_answer_mixes_two_files(tmp_path: Path) -> None:
    """A file replaced all the time: each answer is that of one of them."""
    stop = threading.Event()
    tables = [
        pa.table({"a": [number] * (1_000 * number), "b": [number] * (1_000 * number)}) for number in (1, 2)
    ]
    file = tmp_path / "t.parquet"
    pq.write_table(tables[0], file)

    def replace() -> None:
        while not stop.is_set():
            for table in tables:
                pq.write_table(table, tmp_path / "other")
                os.replace(tmp_path / "other", file)
                stop.wait(0.02)

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        seen, count = set(), 0
        deadline = time.monotonic() + 20.0  # on a busy machine it may be replaced late
        with tqp.connect(threads=2) as connection:
            connection.register("t", file)
            while count < 60 or (len(seen) < 2 and time.monotonic() < deadline):
                count += 1
                try:
                    answer = connection.sql(
                        "SELECT min(a), max(a), min(b), max(b), count(*) FROM t"
                    ).fetchall()
                except FileChangedError:  # never the same for as long as a query takes
                    continue
                assert answer in ([(1, 1, 1, 1, 1_000)], [(2, 2, 2, 2, 2_000)])
                seen.add(answer[0])
        assert len(seen) == 2
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damage", ["deleted", "truncated", "overwritten"])
def test_a_file_that_is_gone_or_damaged_is_named(tmp_path: Path, kind: str, damage: str) -> None:
    file = tmp_path / f"t.{kind}"
    KINDS[kind](file, pa.table({"a": [1, 2, 3]}))
    with tqp.connect(threads=1) as connection:
        connection.register("t", file).register("other", pa.table({"x": [1]}))
        assert connection.sql("SELECT sum(a) FROM t").fetchall() == [(6,)]
        match damage:
            case "deleted":
                file.unlink()
            case "truncated":
                os.truncate(file, 0)
            case "overwritten":
                file.write_bytes(b"\xff\xfe nothing of the kind")
        if (kind, damage) == ("csv", "truncated"):  # an empty file, which has one column without rows
            assert connection.sql("FROM t").columns == ("column0",)
            assert connection.sql("SELECT count(*) FROM t").fetchall() == [(0,)]
            return
        for query in ("SELECT sum(a) FROM t", "SELECT count(*) FROM t", "EXPLAIN SELECT a FROM t"):
            with pytest.raises(tqp.Error, match=rf"t\.{kind}"):
                connection.sql(query)
        assert connection.sql("SELECT x FROM other").fetchall() == [(1,)]
        file.unlink(missing_ok=True)
        KINDS[kind](file, pa.table({"a": [4]}))
        assert connection.sql("SELECT sum(a) FROM t").fetchall() == [(4,)]


def test_files_that_come_to_a_directory_or_pattern(tmp_path: Path) -> None:
    (tmp_path / "y=1").mkdir()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "y=1" / "1.parquet")
    with tqp.connect(threads=1) as connection:
        connection.register("directory", tmp_path).register("pattern", str(tmp_path / "**" / "*.parquet"))
        for name in ("directory", "pattern"):
            assert connection.sql(f"SELECT a, y FROM {name}").fetchall() == [(1, 1)]
        (tmp_path / "y=2").mkdir()
        pq.write_table(pa.table({"a": [2]}), tmp_path / "y=2" / "1.parquet")
        for name in ("directory", "pattern"):
            assert connection.sql(f"SELECT a, y FROM {name} ORDER BY a").fetchall() == [(1, 1), (2, 2)]


def test_a_compiled_query_keeps_what_it_was_compiled_for(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1, 2, 3]}), file)
    with tqp.connect(threads=1) as connection:
        program = connection.register("t", file).compile("SELECT sum(a) AS s FROM t")
        pq.write_table(pa.table({"a": [5]}), file)
        assert program().columns[0].values.tolist() == [6]


@pytest.mark.parametrize("register", [False, True])
def test_statements_read_files_as_they_are(tmp_path: Path, register: bool) -> None:
    path = tmp_path / "f.csv"
    with tqp.connect() as connection:
        for number in range(1, 4):
            path.write_text("i\n" + "7\n" * number)
            if register and number == 1:
                connection.register("f", path)
            source = "f" if register else f"'{path}'"
            connection.sql(f"CREATE OR REPLACE TABLE t AS FROM {source}; CREATE OR REPLACE TABLE u(i BIGINT)")
            assert connection.sql("SELECT count(*) FROM t").fetchall() == [(number,)]
            assert connection.sql(f"INSERT INTO u FROM {source}").fetchall() == [(number,)]
            assert connection.sql(f"COPY u FROM '{path}'").fetchall() == [(number,)]
            updated = f"UPDATE u SET i = (SELECT count(*) FROM {source})"
            connection.sql(updated)
            assert connection.sql("SELECT sum(i), count(*) FROM u").fetchall() == [
                (2 * number**2, 2 * number)
            ]
            merged = f"MERGE INTO u USING (SELECT count(*) AS n FROM {source}) s ON u.i = s.n WHEN MATCHED THEN DELETE"
            assert connection.sql(merged).fetchall() == [(2 * number,)]
            relation = connection.read_csv(path) if not register else connection.table("f")
            assert len(relation) == number
            relation.insert_into("u")
            assert connection.sql("SELECT count(*) FROM u").fetchall() == [(number,)]


def test_a_statement_whose_file_is_replaced_meanwhile_reads_it_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"i": range(10)}), path)
    begin = pq.ParquetFile.__init__

    def replaced(file: pq.ParquetFile, *arguments: Any, **named: Any) -> None:
        monkeypatch.undo()
        pq.write_table(pa.table({"i": range(20)}), tmp_path / "new")
        os.replace(tmp_path / "new", path)
        begin(file, *arguments, **named)

    for statement in (f"CREATE TABLE t AS FROM '{path}'", f"INSERT INTO u FROM '{path}'"):
        with tqp.connect() as connection:
            connection.sql(f"CREATE TABLE u(i BIGINT); DESCRIBE FROM '{path}'")
            monkeypatch.setattr(pq.ParquetFile, "__init__", replaced)
            connection.sql(statement)
            table = "t" if statement.startswith("CREATE") else "u"
            assert connection.sql(f"SELECT count(*), max(i) FROM {table}").fetchall() == [(20, 19)]
        pq.write_table(pa.table({"i": range(10)}), path)
