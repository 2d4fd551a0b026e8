"""What a pipeline leaves in parts is read batch by batch, with the same rows as if it had been put together."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
import torch

import tqp
from tqp.data.strings import Strings
from tqp.operators.strings import layout as string_layout
from tqp.runtime import frame
from tqp.runtime.frame import Frame, FrameColumn, FrameParts, joined_frames, object_bytes

_SHARED = "WITH g AS (SELECT k, min(n) AS low, max(n) AS high, count(*) AS c, sum(n) AS s FROM t GROUP BY k) "
_QUERIES = (
    "SELECT k, sum(n) AS s FROM t GROUP BY k HAVING sum(n) > 20 ORDER BY k",
    "SELECT count(*) FROM t WHERE k IN (SELECT k FROM t GROUP BY k HAVING count(*) > 2)",
    _SHARED + "SELECT a.k, a.low, b.high FROM g a JOIN g b ON a.k = b.k + 1000 ORDER BY a.k",
    _SHARED + "SELECT c, sum(s), count(low) FROM g GROUP BY c ORDER BY c",
    # sums of doubles, in the order of the batches
    "WITH u AS (SELECT k, s, x FROM t WHERE n > 0) SELECT s, sum(x) FROM u GROUP BY s UNION ALL SELECT 'all', sum(x) FROM u",
    (
        "WITH u AS (SELECT k, s, x FROM t WHERE n > 0) SELECT u.s, sum(u.x), count(v.k) "
        "FROM u LEFT JOIN u v ON u.k = v.k AND v.s < u.s GROUP BY u.s ORDER BY u.s"
    ),
    # row numbers of the rows in parts
    "WITH u AS (SELECT * FROM t WHERE n > 0) SELECT s, x, k FROM u ORDER BY x LIMIT 20",
    "SELECT s, x FROM (SELECT * FROM t WHERE n > 0 UNION ALL SELECT * FROM t WHERE n < -2) ORDER BY x, s LIMIT 30",
    "SELECT sum(n), count(s) FROM (SELECT n, s FROM t UNION ALL SELECT n + 1, upper(s) FROM t WHERE n < 0)",
    # row limits
    "SELECT * FROM (SELECT k, count(s) AS c FROM t GROUP BY k) WHERE c > 1 LIMIT 11",
    "SELECT n, count(*) FROM (SELECT DISTINCT n, s FROM t) GROUP BY n ORDER BY n",
)


def _table(rows: int) -> pa.Table:
    random = np.random.default_rng(7)
    texts = [None if number % 5 == 0 else f"text {number % 40}" for number in random.integers(0, 999, rows)]
    return pa.table(
        {
            "k": np.sort(random.integers(0, 3 * rows, rows)) // 9 * 1000,
            "n": pa.array(random.integers(-5, 30, rows), mask=random.random(rows) < 0.2),
            "x": random.normal(size=rows),
            "s": pa.array(texts),
        }
    )


@pytest.fixture
def tiny_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "_ROWS_OF_A_PART", 1)


def _answers(query: str, rows: int, threads: int, batch_rows: int | None) -> list[tuple[object, ...]]:
    con = tqp.connect(threads=threads, batch_rows=batch_rows)
    con.register("t", _table(rows))
    return [con.sql(query).fetchall() for _ in range(2)][1]


@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("rows", [0, 500])
def test_queries(query: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = (7, 64)
    expected = [_answers(query, rows, 1, batch_rows) for batch_rows in sizes]
    monkeypatch.setattr(frame, "_ROWS_OF_A_PART", 1)
    for threads in (1, 3):
        assert [_answers(query, rows, threads, batch_rows) for batch_rows in sizes] == expected


@pytest.mark.usefixtures("tiny_parts")
def test_analyze_and_traces_read_parts() -> None:
    con = tqp.connect(threads=2, batch_rows=16)
    con.register("t", _table(300))
    for query in _QUERIES:
        expected = sorted(con.sql(query).fetchall(), key=str)
        assert "ms" in str(con.sql(f"EXPLAIN ANALYZE {query}").fetchall())
        with con.trace():
            assert sorted(con.sql(query).fetchall(), key=str) == expected


def test_who_reads_whole_columns_gets_them() -> None:
    con = tqp.connect()
    con.register("t", _table(2000))
    streamed = "WITH g AS (SELECT k, count(*) AS c FROM t GROUP BY k) SELECT c, count(*) FROM g GROUP BY c"
    assert "into groups, in parts" in con.compile(streamed).code
    assert "in parts" not in con.compile("SELECT k, count(*) FROM t GROUP BY k").code
    union = "SELECT sum(n) FROM (SELECT n FROM t UNION ALL SELECT n + 1 FROM t)"
    assert "into union, in parts" in con.compile(union).code


def _frames(*sizes: int) -> list[Frame]:
    """Row numbers, which of them are even, and as text."""
    frames, first = [], 0
    for size in sizes:
        numbers = torch.arange(first, first + size)
        texts = string_layout.from_list([str(number) for number in numbers.tolist()])
        frames.append(Frame(size, (FrameColumn(numbers, numbers % 2 == 0), FrameColumn(texts, None))))
        first += size
    return frames


def test_parts_give_the_rows_of_any_batch_and_never_change() -> None:
    parts = FrameParts(_frames(3, 1, 4))
    assert parts.num_rows == 8 and object_bytes(parts) == sum(map(object_bytes, parts.parts))
    before = [column.values for part in parts.parts for column in part.columns]
    for start in range(8):
        for stop in range(start + 1, 9):
            pieces = parts.pieces(start, stop)
            numbers, texts = (parts.cut(column.values, pieces) for column in parts.columns)
            expected = list(range(start, stop))
            assert numbers.tolist() == expected
            assert isinstance(texts, Strings)
            assert string_layout.to_list(texts) == [str(number).encode() for number in expected]
            even = parts.cut(parts.columns[0].validity, pieces)
            assert even.tolist() == [number % 2 == 0 for number in expected]
            assert parts.cut(parts.columns[1].validity, pieces) is None
            arrays = tuple(values.numpy() for values in parts.columns[0].values)
            assert parts.cut(arrays, pieces).tolist() == expected
    assert parts.cut(parts.columns[0].values, parts.pieces(4, 8)) is parts.parts[2].columns[0].values
    after = [column.values for part in parts.parts for column in part.columns]
    assert all(a is b for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("sizes", [(5, 5), (1, 1, 1, 1, 1, 1, 9), (100, 3, 40), (7,) * 20])
@pytest.mark.parametrize("least", [1, 4, 1000])
def test_batches_end_with_parts_and_are_not_too_long(
    sizes: tuple[int, ...], least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame, "_ROWS_OF_A_PART", least)
    parts = FrameParts(_frames(*sizes))
    for step in (1, 3, 7, 10, 1000):
        for most in (step, 2 * step):
            bounds = parts.bounds(step, most)
            assert bounds[0] == 0 and bounds[-1] == sum(sizes)
            lengths = [stop - start for start, stop in itertools.pairwise(bounds)]
            assert all(0 < length <= most for length in lengths)
    monkeypatch.setattr(frame, "_ROWS_OF_A_PART", 1)
    assert FrameParts(_frames(5, 6, 7)).bounds(8, 10) == [0, 5, 11, 18]


def test_small_parts_and_single_frames_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(joined_frames(_frames(3, 4), None, True), Frame)  # of so few rows
    monkeypatch.setattr(frame, "_ROWS_OF_A_PART", 3)
    parts = joined_frames(_frames(3, 0, 4), None, True)
    assert isinstance(parts, FrameParts) and [part.num_rows for part in parts.parts] == [3, 4]
    again = joined_frames([parts, *_frames(5)], None, True)
    assert isinstance(again, FrameParts) and [part.num_rows for part in again.parts] == [3, 4, 5]
    for whole in (joined_frames([parts], None, False), joined_frames(_frames(0, 7), None, True)):
        assert isinstance(whole, Frame) and whole.columns[0].values is not None
        assert whole.columns[0].values.tolist() == list(range(7))  # type: ignore[union-attr]
    empty = joined_frames(_frames(0, 0), None, True)
    assert isinstance(empty, Frame) and empty.num_rows == 0
