"""A query on a Parquet file that is read in pieces answers what it does on the whole, and holds no more than a piece at a time."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import tqp
from tqp import pieces
from tqp.core.process import memory_budget
from tqp.data.sources.parquet.files import ParquetSource
from tqp.runtime.memory_limit import held_bytes

ROWS, GROUP = 330, 37


def _table(rows: int = ROWS) -> pa.Table:
    draw = np.random.default_rng(3)
    words = np.array(["é", "", "𝒳y", "word", "a\0b", "long " * 9])
    return pa.table(
        {
            "id": np.arange(rows),
            "k": pa.array(draw.integers(0, 9, rows), mask=draw.random(rows) < 0.1),
            "n": pa.array(draw.integers(-(10**12), 10**12, rows), mask=draw.random(rows) < 0.1),
            "x": pa.array(np.round(draw.random(rows) * 8) / 4, mask=draw.random(rows) < 0.1),
            "s": pa.array(draw.choice(words, rows), mask=draw.random(rows) < 0.1),
            "d": pa.array(draw.integers(0, 300, rows).astype(np.int32)).cast(pa.date32()),
            "p": pa.array(draw.integers(0, 10**6, rows)).cast(pa.decimal128(19)).cast(pa.decimal128(9, 0)),
            "l": pa.array(
                [None if i % 7 == 0 else list(range(i % 4)) for i in range(rows)], pa.list_(pa.int64())
            ),
            "r": pa.array([{"a": i % 3, "b": str(i % 5)} for i in range(rows)]),
        }
    )


DIMENSION = pa.table(
    {"k": [1, 2, 3, 4, 4, None, 20], "name": ["one", "two", "three", "four", "vier", "none", None]}
)

#: Each reads `t` once.
QUERIES = [
    "SELECT * FROM t",
    "SELECT id, s, l, r FROM t WHERE n > 0 AND x < 1.5",
    "SELECT id + 1, upper(s), l[1], r.a FROM t WHERE k IS NULL",
    "SELECT id FROM t WHERE false",
    "SELECT count(*), count(n), sum(n), avg(n), min(s), max(d), sum(p), avg(p), min(p) FROM t",
    "SELECT count(*), sum(n), max(s) FROM t WHERE id < 0",
    "SELECT k, count(*), sum(n), avg(x), min(s), max(d), bool_or(x > 1), count(*) FILTER (x > 1) FROM t GROUP BY k",
    "SELECT k % 2, s, sum(p) FROM t WHERE id > 20 GROUP BY ALL HAVING count(*) > 2",
    "SELECT DISTINCT k, x FROM t",
    "SELECT count(DISTINCT s), median(n), list(id ORDER BY id) FROM t GROUP BY k",
    "SELECT arg_min(id, id), arg_max(s, id) FROM t",
    "SELECT id, s FROM t ORDER BY s NULLS FIRST, id DESC LIMIT 11",
    "SELECT id FROM t ORDER BY n % 10, id LIMIT 5 OFFSET 300",
    "SELECT id FROM t ORDER BY id DESC OFFSET 320",
    "SELECT id FROM t LIMIT 40 OFFSET 30",
    "SELECT id FROM t WHERE k = 3 LIMIT 0",
    "SELECT id, row_number() OVER (PARTITION BY k ORDER BY id), sum(n) OVER (ORDER BY id) FROM t WHERE x > 0",
    "SELECT id, name FROM t JOIN dimension USING (k)",
    "SELECT id, name FROM dimension JOIN t USING (k) WHERE n > 0",
    "SELECT id, name FROM t LEFT JOIN dimension USING (k)",
    "SELECT name, count(id) FROM dimension LEFT JOIN t USING (k) GROUP BY name",
    "SELECT id, name FROM t FULL JOIN dimension USING (k)",
    "SELECT name, count(*), sum(n) FROM dimension, t WHERE dimension.k = t.k AND id > 100 GROUP BY name",
    "SELECT id FROM t WHERE k IN (SELECT k FROM dimension)",
    "SELECT id FROM t WHERE k NOT IN (SELECT k FROM dimension WHERE k IS NOT NULL)",
    "SELECT name FROM dimension WHERE EXISTS (SELECT 1 FROM t WHERE t.k = dimension.k AND n > 0)",
    "SELECT name, (SELECT sum(n) FROM t WHERE t.k = dimension.k) FROM dimension",
    "SELECT id FROM t WHERE n > (SELECT avg(k) FROM dimension) ORDER BY id",
    "SELECT u, count(*) FROM t, unnest(l) AS q(u) GROUP BY u",
    "SELECT unnest(l), id FROM t WHERE id < 90",
    "SELECT k, count(*) FROM t GROUP BY ROLLUP (k)",
    "SELECT id FROM t UNION ALL SELECT k FROM dimension",
    "SELECT k FROM t EXCEPT SELECT k FROM dimension",
    "WITH a AS (SELECT k, sum(n) AS m FROM t GROUP BY k) SELECT x.k, y.m FROM a x JOIN a y ON x.k = y.k + 1",
    "WITH RECURSIVE r AS (SELECT 0 AS v UNION ALL SELECT id FROM r, t WHERE id = v + 50) SELECT v FROM r",
    "SELECT r, count(*), max(l) FROM t GROUP BY r",
    "SELECT s::INTEGER, count(*) FROM t WHERE s = 'word' GROUP BY ALL HAVING 1 > 2",
    "SELECT NULL AS a, 'constant' AS b, id FROM t WHERE id % 50 = 1",
    "SELECT min(id), max(id) FROM (SELECT id FROM t ORDER BY d, id LIMIT 20)",
]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ParquetSource]]:
    """Every row group is a piece; those that were read."""
    monkeypatch.setattr(memory_budget, "_SHARE_OF_FILES", 1e-12)
    found: list[ParquetSource] = []
    rows_of = pieces.QueryInPieces._rows_of

    def noted(self: Any, piece: Any, names: Any) -> Any:
        found.append(piece)
        return rows_of(self, piece, names)

    monkeypatch.setattr(pieces.QueryInPieces, "_rows_of", noted)
    yield found


def _file(folder: Path, table: pa.Table | None = None) -> str:
    path = folder / "t.parquet"
    pq.write_table(
        _table() if table is None else table, path, row_group_size=GROUP, store_decimal_as_integer=True
    )
    return str(path)


def _answer(connection: Any, query: str) -> list[str]:
    rows = [str(tuple(row)) for row in connection.sql(query).fetchall()]
    return rows if "ORDER BY id" in query and "OVER" not in query and "list(" not in query else sorted(rows)


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_answers_are_those_of_duckdb(tmp_path: Path, read: list[ParquetSource], backend: Any) -> None:
    oracle = duckdb.connect()
    oracle.register("dimension", DIMENSION)
    oracle.execute(f"CREATE VIEW t AS FROM '{_file(tmp_path)}'")
    for query in QUERIES:
        with tqp.connect(backend=backend, threads=2) as connection:
            connection.register("dimension", DIMENSION)
            connection.register("t", _file(tmp_path))
            assert _answer(connection, query) == _answer(oracle, query), query
    assert len(read) > 200


def test_pieces_are_merged_on_the_way(
    tmp_path: Path, read: list[ParquetSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "_MERGED_ROWS", 5)
    test_answers_are_those_of_duckdb(tmp_path, read, "host")


def test_empty_files(tmp_path: Path, read: list[ParquetSource]) -> None:
    path = tmp_path / "many"
    path.mkdir()
    for number, rows in enumerate((0, 3, 0)):
        pq.write_table(
            _table(rows) if rows else _table().slice(0, 0), path / f"{number}.parquet", row_group_size=2
        )
    rows = tqp.sql(f"SELECT count(*), sum(id) FROM '{path}/*.parquet'").fetchall()
    assert rows == [(3, 3)]
    assert sum(piece.num_rows for piece in read) == 3


def test_a_limit_reads_no_more_pieces_than_it_needs(tmp_path: Path, read: list[ParquetSource]) -> None:
    assert tqp.sql(f"SELECT id FROM '{_file(tmp_path)}' LIMIT 40").fetchall() == [(i,) for i in range(40)]
    assert len(read) == 2


def test_row_groups_that_are_not_wanted_are_not_read(tmp_path: Path, read: list[ParquetSource]) -> None:
    query = f"SELECT count(s) FROM '{_file(tmp_path)}' WHERE id BETWEEN 40 AND 80"
    assert tqp.sql(query).fetchall() == duckdb.sql(query).fetchall()
    assert len(read) == 2


def test_the_rule_can_be_switched_off(tmp_path: Path, read: list[ParquetSource]) -> None:
    with tqp.connect(disabled_rules=["in_pieces"]) as connection:
        assert connection.sql(f"SELECT count(s) FROM '{_file(tmp_path)}'").fetchone() is not None
    assert not read


def test_errors_are_those_of_the_whole(tmp_path: Path, read: list[ParquetSource]) -> None:
    with pytest.raises(tqp.ExecutionError, match="word"):
        tqp.sql(f"SELECT sum(s::INTEGER) FROM '{_file(tmp_path)}' WHERE s = 'word'")
    assert read


@pytest.mark.parametrize(
    "form", ["csv", "json", "parquet", "parquet (row_group_size 50)", "json, array true"]
)
def test_copy_writes_piece_by_piece(tmp_path: Path, read: list[ParquetSource], form: str) -> None:
    source, target = _file(tmp_path), tmp_path / "out"
    options = form.replace(" (", ", ").replace(")", "")
    copied = (
        tqp.connect()
        .execute(f"COPY (SELECT id, s, x, d FROM '{source}' WHERE n > 0) TO '{target}' (FORMAT {options})")
        .fetchone()
    )
    assert len(read) == -(-ROWS // GROUP)
    function = form.partition(" ")[0].rstrip(",")
    expected = duckdb.sql(f"SELECT id, s, x, d FROM '{source}' WHERE n > 0 ORDER BY id").fetchall()
    found = duckdb.sql(f"SELECT id, s, x, d::DATE FROM read_{function}('{target}') ORDER BY id").fetchall()
    assert copied == (len(expected),)
    assert found == expected or (
        function == "csv" and [row[0] for row in found] == [row[0] for row in expected]
    )
    if "50" in form:
        groups = pq.ParquetFile(target).metadata
        assert [groups.row_group(g).num_rows for g in range(groups.num_row_groups - 1)] == [50] * (
            groups.num_row_groups - 1
        )


def test_copy_into_partitions(tmp_path: Path, read: list[ParquetSource]) -> None:
    source, target = _file(tmp_path), tmp_path / "partitions"
    query = f"SELECT id, s, k FROM '{source}' WHERE n > 0"
    tqp.connect().execute(f"COPY ({query}) TO '{target}' (FORMAT parquet, PARTITION_BY (k))")
    assert len(read) == -(-ROWS // GROUP)
    found = duckdb.sql(f"SELECT id, s, k FROM read_parquet('{target}/*/*.parquet') ORDER BY id").fetchall()
    assert found == duckdb.sql(f"{query} ORDER BY id").fetchall()


def test_copy_without_rows(tmp_path: Path, read: list[ParquetSource]) -> None:
    for form in ("csv", "json", "parquet"):
        target = tmp_path / f"none.{form}"
        tqp.connect().execute(
            f"COPY (SELECT id, s FROM '{_file(tmp_path)}' WHERE n > 10 ** 15) TO '{target}'"
        )
        duckdb.sql(f"COPY (SELECT 1::BIGINT AS id, 's' AS s WHERE false) TO '{target}2' (FORMAT {form})")
        if form != "parquet":
            assert target.read_bytes() == Path(f"{target}2").read_bytes()
        else:
            assert pq.read_table(target).num_rows == 0


def test_a_file_that_is_replaced_meanwhile_is_read_anew(
    tmp_path: Path, read: list[ParquetSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _file(tmp_path)
    rows_of = pieces.QueryInPieces._rows_of

    def replacing(self: Any, piece: Any, names: Any) -> Any:
        if len(read) == 3:
            time.sleep(0.01)
            pq.write_table(_table(50), tmp_path / "new", row_group_size=GROUP)
            os.replace(tmp_path / "new", path)
        return rows_of(self, piece, names)

    monkeypatch.setattr(pieces.QueryInPieces, "_rows_of", replacing)
    assert tqp.sql(f"SELECT count(*), max(id) FROM '{path}'").fetchall() == [(50, 49)]
    target = tmp_path / "out.parquet"
    read.clear()
    path = _file(tmp_path)
    tqp.connect().execute(f"COPY (SELECT id FROM '{path}') TO '{target}'")
    assert pq.read_table(target).num_rows == 50


@pytest.mark.cpu
def test_memory_is_that_of_a_piece(tmp_path: Path) -> None:
    """40 MB of text, of which a query may hold 24, in row groups of one."""
    path, draw = tmp_path / "large.parquet", random.Random(4)
    texts = pa.array(["".join(draw.choices("abcdefgh ", k=100)) for _ in range(10_000)])
    with pq.ParquetWriter(
        path, pa.schema({"s": pa.string(), "n": pa.int64()}), use_dictionary=False
    ) as writer:
        for group in range(40):
            numbers = np.arange(10_000) + group * 10_000
            writer.write_table(pa.table({"s": texts, "n": numbers}))
    queries = {
        f"SELECT count(*), max(s), sum(n) FROM '{path}'": [
            (400_000, max(texts.to_pylist()), 399_999 * 200_000)
        ],
        f"SELECT n FROM '{path}' ORDER BY s DESC, n LIMIT 1": None,
        f"COPY (SELECT s || n::VARCHAR AS t FROM '{path}') TO '{tmp_path / 'out.csv'}'": [(400_000,)],
    }
    with tqp.connect(threads=2, memory_limit="24MB") as connection:
        for query, expected in queries.items():
            rows, held = _held_by(lambda query=query: connection.execute(query).fetchall())
            assert expected is None or rows == expected
            assert held < 40 << 20, query


def _held_by(run: Callable[[], Any]) -> tuple[Any, int]:
    """What `run` gives, and the most bytes by which the process grew meanwhile."""
    before, peak = _held(), [0]
    stop = threading.Event()
    sampler = threading.Thread(target=_sample, args=(peak, stop))
    sampler.start()
    try:
        return run(), peak[0] - before
    finally:
        stop.set()
        sampler.join()


def _held() -> int:
    return held_bytes(torch.device("cpu")) or 0


def _sample(peak: list[int], stop: threading.Event) -> None:
    while not stop.wait(0.002):
        peak[0] = max(peak[0], _held())
