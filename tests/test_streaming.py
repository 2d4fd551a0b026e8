"""First queries on large Parquet files, whose columns are read batch by batch: answers are those of whole columns."""

from __future__ import annotations

import datetime
import itertools
import random
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tqp
import tqp.data.sources.parquet.files
import tqp.streaming
from tests.oracle import duckdb_database
from tqp.data.batches import StreamedColumn
from tqp.data.encoding import zones
from tqp.data.sources import streamed
from tqp.data.sources.parquet.files import ParquetSource
from tqp.data.sources.parquet.one_file import ColumnReader, ParquetFile
from tqp.data.sources.streamed import Parts
from tqp.runtime.lowering import zones as lowered_zones

ROWS = 10_000
DAY = datetime.date(2020, 1, 1)


def table(first: int = 0) -> pa.Table:
    chance = random.Random(first)

    def some(value: Any) -> Any:
        return None if chance.random() < 0.1 else value

    rows = range(first, first + ROWS)
    return pa.table(
        {
            "k": pa.array([row % 7 for row in rows], pa.int8()),
            "id": pa.array([chance.randint(-(10**12), 10**12) for _ in rows], pa.int64()),
            "maybe": pa.array([some(row % 300) for row in rows], pa.int32()),
            "day": pa.array([DAY + datetime.timedelta(row % 900) for row in rows]),
            "seen": pa.array([some(row * 1_000) for row in rows], pa.timestamp("ms")),
            "x": pa.array([chance.gauss(0, 1) for _ in rows]),
            "y": pa.array([some(chance.random()) for _ in rows], pa.float32()),
            "price": pa.array([Decimal(row % 5_000).scaleb(-2) for row in rows], pa.decimal128(15, 2)),
            "wide": pa.array([Decimal(row).scaleb(10) for row in rows], pa.decimal128(38, 2)),
            "name": pa.array([some(f"name {row % 11}") for row in rows]),
            "note": pa.array([some(f"größe {row * row % 9_973} 𝄞" if row % 5 else "") for row in rows]),
            "raw": pa.array([some(b"\xff%d" % row) for row in rows], pa.binary()),
            "no": pa.array([None] * ROWS, pa.int64()),
            "unsigned": pa.array([2**32 - 1 - row for row in rows], pa.uint32()),
            "flag": pa.array([some(row % 3 == 0) for row in rows]),
        }
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("streamed")
    for number in range(3):
        pq.write_table(
            table(number * ROWS),
            directory / f"{number}.parquet",
            row_group_size=3_000,
            store_decimal_as_integer=number != 1,
        )
    return f"{directory}/*.parquet"


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tqp.streaming, "_LARGE", 0)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The rows that are read batch by batch, and how often."""
    found: list[tuple[int, int]] = []

    def record(column_class: type[StreamedColumn]) -> None:
        ours = column_class.read

        def recorded(column: StreamedColumn, start: int, stop: int) -> Any:
            found.append((start, stop))
            return ours(column, start, stop)

        monkeypatch.setattr(column_class, "read", recorded)

    record(streamed.NumberColumn)
    record(streamed.TextColumn)
    return found


def assert_alike(found: Sequence[Sequence[Any]], expected: Sequence[Sequence[Any]]) -> None:
    """The same rows, but for what sums of floats owe to where batches end."""
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        for mine, other in zip(ours, theirs, strict=True):
            assert mine == (pytest.approx(other, rel=1e-12) if isinstance(other, float) else other)


QUERIES = [
    "SELECT k, count(*), sum(id), min(day), max(seen), avg(x), sum(y), sum(price) FROM t GROUP BY k ORDER BY k",
    "SELECT count(maybe), count(*), sum(maybe), min(id), max(id) FROM t WHERE maybe > 100 OR maybe IS NULL",
    "SELECT sum(price * (1 - k / 10)), count(no), max(no) FROM t WHERE day BETWEEN DATE '2020-03-01' AND DATE '2021-02-01'",
    "SELECT name, count(DISTINCT maybe), sum(wide), bool_or(flag) FROM t GROUP BY ALL ORDER BY name NULLS FIRST",
    "SELECT * FROM t WHERE k = 3 LIMIT 3 OFFSET 4",
    "SELECT day, sum(x) FROM t GROUP BY day HAVING sum(x) > 3 ORDER BY ALL",
    "SELECT median(id), quantile_cont(x, 0.3), mode(k), string_agg(name, ',' ORDER BY id) FILTER (maybe = 5) FROM t",
    "SELECT sum(s) FROM (SELECT k, maybe, sum(id) AS s FROM t GROUP BY k, maybe)",
    "SELECT k, s, rank() OVER (ORDER BY s) FROM (SELECT k, sum(x) AS s FROM t GROUP BY k) ORDER BY k",
    "SELECT count(*) FROM t WHERE x > 100",
    "SELECT count(*), max(unsigned), sum(x) FROM t WHERE unsigned > 4294967200",
    "SELECT approx_count_distinct(id) > 0, histogram(k) FROM t",
    "SELECT count(*) FROM t WHERE note LIKE '%77%'",
    "SELECT k, min(note), max(note), count(note), sum(length(note)) FROM t WHERE note > 'größe 3' OR note IS NULL GROUP BY k ORDER BY k",
    "SELECT name, min(note) FROM t WHERE contains(note, '𝄞') GROUP BY name ORDER BY name",
    "SELECT length(note) AS n, count(*) FROM t GROUP BY n ORDER BY n",
    "SELECT note FROM t ORDER BY note DESC NULLS LAST, id LIMIT 4",
    "SELECT max(CASE WHEN k = 3 THEN note ELSE name END), min(raw), max(octet_length(raw)) FROM t WHERE raw IS NOT NULL",
    "SELECT any_value(note) IS NULL, count(note) FROM t WHERE k > 10",
    "SELECT k, id, maybe, price FROM t WHERE maybe = 77 ORDER BY id LIMIT 5",
    "SELECT note || '!', * EXCLUDE (wide) FROM t WHERE note <> '' ORDER BY seen DESC, id LIMIT 5",
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(
    "options", [{}, {"batch_rows": 1_237}, {"threads": 1}, {"backend": "torch"}], ids=str
)
def test_answers_are_those_of_whole_columns(
    files: str, read: list[Any], query: str, options: dict[str, Any]
) -> None:
    with tqp.connect(**options) as connection:
        connection.register("t", files)
        found = connection.sql(query).to_arrow()
    assert read
    read.clear()
    with tqp.connect(**options, disabled_rules=["streaming"]) as connection:
        connection.register("t", files)
        expected = connection.sql(query).to_arrow()
    assert not read
    assert found.schema == expected.schema
    assert_alike(
        [tuple(row.values()) for row in found.to_pylist()],
        [tuple(row.values()) for row in expected.to_pylist()],
    )


@pytest.mark.parametrize("query", QUERIES[:5])
def test_answers_are_those_of_duckdb(files: str, query: str) -> None:
    with duckdb_database() as oracle, tqp.connect() as connection:
        oracle.execute(f"CREATE VIEW t AS FROM '{files}'")
        connection.register("t", files)
        found, expected = connection.sql(query).fetchall(), oracle.execute(query).fetchall()
        assert_alike(found, expected)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.k, sum(b.x) FROM t AS a JOIN t AS b ON a.id = b.id GROUP BY ALL ORDER BY ALL",
        "SELECT id FROM t ORDER BY id",
        "SELECT id, row_number() OVER (ORDER BY id) AS n FROM t QUALIFY n < 4",
        "SELECT x FROM t WHERE k = 1",
        "SELECT sum(x) FROM t GROUP BY ROLLUP (k, maybe) ORDER BY ALL",
        "SELECT count(name) FROM t",
        "SELECT note, count(*) FROM t GROUP BY note ORDER BY ALL",
        "SELECT count(DISTINCT note) FROM t",
        "SELECT upper(note) AS u, count(*) FROM t GROUP BY u ORDER BY ALL",
        "SELECT string_agg(note, ',' ORDER BY note) FROM t",
        "SELECT DISTINCT [note] FROM t ORDER BY ALL",
        "FROM t LIMIT 200000",
    ],
)
def test_what_does_not_reduce_one_tables_numbers_reads_columns_whole(
    files: str, read: list[Any], query: str
) -> None:
    with tqp.connect() as connection:
        connection.register("t", files)
        assert connection.sql(query).fetchall()
    assert not read


def test_a_second_query_encodes_what_it_reads(files: str, read: list[Any]) -> None:
    with tqp.connect() as connection:
        connection.register("t", files)

        def kept() -> set[str]:
            return set(connection.sql("SELECT column_name FROM tqp_memory() WHERE name = 't'").fetchall())

        first = connection.sql("SELECT sum(id), sum(x) FROM t").fetchall()
        assert read
        read.clear()
        second = connection.sql("SELECT sum(id), sum(x) FROM t").fetchall()
        assert not read
        assert_alike(second, first)
        connection.sql("SELECT sum(maybe) FROM t").fetchall()  # which was not read yet
        assert read
        read.clear()
        connection.sql("SELECT sum(maybe) + sum(price) FROM t").fetchall()
        assert not read


def test_of_restricted_tables_too(files: str, read: list[Any]) -> None:
    query = "SELECT sum(x), count(*) FROM t WHERE day < DATE '2020-01-05'"
    with tqp.connect() as connection:
        connection.register("t", files)
        answers = [connection.sql(query).fetchall() for _ in range(3)]
    assert_alike(answers[1], answers[0])
    assert answers[1] == answers[2]


@pytest.mark.parametrize(
    ("order", "first"), [("seen", 0), ("seen DESC", 2 * ROWS + 9_000), ("seen DESC NULLS FIRST", None)]
)
def test_of_the_first_rows_of_an_order_few_row_groups_are_read(
    files: str, read: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch, order: str, first: int | None
) -> None:
    monkeypatch.setattr(tqp.data.sources.parquet.files, "_STREAMED_ROWS", 1)
    monkeypatch.setattr(lowered_zones, "FEWEST_ZONED_ROWS", 100)
    monkeypatch.setattr(zones, "ZONE_ROWS", 100)
    query = f"SELECT * FROM t WHERE note LIKE '%7%' ORDER BY {order}, id LIMIT 5"
    with duckdb_database() as oracle, tqp.connect(threads=1) as connection:
        oracle.execute(f"CREATE VIEW t AS FROM '{files}'")
        connection.register("t", files)
        found = connection.sql(query).fetchall()
        assert_alike(found, oracle.execute(query).fetchall())
    starts = {start // 1_000 * 1_000 for start, _ in read}
    assert starts == {first} if first is not None else len(starts) > 10


def test_a_limit_reads_no_more_than_it_wants(files: str, read: list[tuple[int, int]]) -> None:
    with tqp.connect() as connection:
        connection.register("t", files)
        assert connection.sql("SELECT id, x FROM t LIMIT 5").fetchall()
    assert max(stop for _, stop in read) <= 2048


def test_each_row_group_is_decoded_once(files: str, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[tuple[str, int]] = []
    chunks = ColumnReader.chunks

    def recorded(reader: ColumnReader, groups: Sequence[int]) -> list[pa.Array]:
        decoded.extend((reader._file.path, group) for group in groups)
        return chunks(reader, groups)

    monkeypatch.setattr(ColumnReader, "chunks", recorded)
    with tqp.connect(batch_rows=700, threads=1) as connection:
        connection.register("t", files)
        connection.sql("SELECT sum(id) FROM t").fetchall()
    assert len(decoded) == len(set(decoded)) == 12  # with more threads, some may be twice


def test_batches_end_with_row_groups(
    files: str, read: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tqp.data.sources.parquet.files, "_STREAMED_ROWS", 5_000)  # two row groups
    with tqp.connect(batch_rows=6_500) as connection:
        connection.register("t", files)
        connection.sql("SELECT sum(id), sum(x) FROM t")
    ends = [6_000, 10_000, 16_000, 20_000, 26_000, 30_000]
    assert sorted(set(read)) == list(itertools.pairwise([0, *ends]))


def test_columns_of_a_part_are_read_by_several_threads() -> None:
    together = threading.Barrier(2, timeout=60)

    def read(number: int) -> list[pa.Array]:
        together.wait()  # until another thread reads a column, too
        return [pa.array([number])]

    parts = Parts([1, 1, 1], most=2)
    columns = [parts.add_column(read) for _ in range(2)]
    for column in columns:
        parts.want(column)

    def rows() -> list[Any]:
        return [[piece for _, piece in parts.pieces(column, 1, 2)] for column in columns]

    with ThreadPoolExecutor(2) as threads:
        found = [each.result() for each in [threads.submit(rows) for _ in range(2)]]
    assert found == [[[pa.array([1])]] * 2] * 2


@pytest.mark.parametrize("wrong", ["bounds", "nulls"])
def test_where_footers_are_wrong_columns_are_read_whole(
    files: str, read: list[Any], monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    if wrong == "bounds":
        monkeypatch.setattr(ParquetSource, "_expected", lambda source, position: (0, 5))
    else:
        monkeypatch.setattr(ParquetFile, "may_hold_null", lambda file, position: False)
    query = "SELECT sum(maybe), count(maybe), count(*), sum(y), count(note) FROM t"
    with tqp.connect() as connection:
        connection.register("t", files)
        found = connection.sql(query).fetchall()
        assert read
    monkeypatch.undo()
    with tqp.connect() as connection:
        connection.register("t", files)
        assert_alike(found, connection.sql(query).fetchall())


def test_errors_name_the_place_in_the_query(files: str, read: list[Any]) -> None:
    with tqp.connect() as connection:
        connection.register("t", files)
        with pytest.raises(tqp.Error, match="CAST"):
            connection.sql("SELECT sum(CAST(id AS TINYINT)) FROM t")
        assert read
        assert connection.sql("SELECT count(*) FROM t").fetchall() == [(3 * ROWS,)]


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[Sequence[Path]]:
    pq.write_table(table(), tmp_path / "t.parquet", row_group_size=3_000)
    content = bytearray((tmp_path / "t.parquet").read_bytes())
    for place in range(20_000, 60_000):
        content[place] ^= 0x55
    (tmp_path / "t.parquet").write_bytes(content)
    yield [tmp_path / "t.parquet"]


def test_a_damaged_file_is_named(damaged: Sequence[Path], read: list[Any]) -> None:
    with tqp.connect() as connection:
        connection.register("t", str(damaged[0]))
        with pytest.raises(tqp.Error, match=r'column "id" of .*t\.parquet'):
            connection.sql("SELECT sum(id), sum(x) FROM t")
        assert connection.sql("SELECT 1").fetchall() == [(1,)]


def test_text_that_is_not_utf8_is_refused(tmp_path: Path, read: list[Any]) -> None:
    binary = pa.array([b"some text that is long enough", b"\xff text of another kind"])
    text = pa.Array.from_buffers(pa.string(), 2, binary.buffers())
    pq.write_table(pa.table({"s": text}), tmp_path / "t.parquet", use_dictionary=False)
    with tqp.connect() as connection:
        connection.register("t", str(tmp_path / "t.parquet"))
        with pytest.raises(tqp.Error, match='column "s" holds text that is not UTF-8'):
            connection.sql("SELECT count(*) FROM t WHERE s LIKE '%a%'").fetchall()
    assert read


TEXT_QUERIES = [
    "SELECT count(*) FROM t WHERE note LIKE '%77%'",
    "SELECT k, min(note), max(note), count(note), sum(length(note)) FROM t WHERE note > 'größe 3' OR note IS NULL GROUP BY k ORDER BY k",
    "SELECT note, name, k FROM t WHERE note <> '' ORDER BY id LIMIT 5",
    "SELECT max(raw), count(raw), min(name) FROM t WHERE note IS NOT NULL AND name >= 'name 3'",
    "SELECT name, max(note) FROM t GROUP BY name ORDER BY name",
]


@pytest.mark.parametrize("query", TEXT_QUERIES)
@pytest.mark.parametrize("kind", ["arrow", "large", "pieces", "pandas", "stored", "slice"])
@pytest.mark.parametrize("options", [{}, {"batch_rows": 1_237}, {"backend": "torch"}], ids=str)
def test_text_in_memory_is_sliced_the_first_time(
    read: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    kind: str,
    options: dict[str, Any],
) -> None:
    monkeypatch.setattr(streamed, "_TEXT_ROWS", 3_000)
    rows = table().drop_columns(["wide"])
    if kind == "large":
        rows = rows.cast(
            pa.schema(
                [
                    each.with_type(pa.large_string()) if each.type == pa.string() else each
                    for each in rows.schema
                ]
            )
        )
    elif kind == "pieces":
        rows = pa.concat_tables([rows.slice(0, 4_321), rows.slice(4_321, 10), rows.slice(4_331)])
    elif kind == "slice":
        rows = rows.slice(99, 8_000)
    with duckdb_database() as oracle, tqp.connect(**options) as connection:
        oracle.register("t", rows)
        if kind == "stored":
            connection.register("rows", rows)
            connection.sql(
                "CREATE TABLE t AS SELECT *, note || '' AS note FROM (SELECT * EXCLUDE (note), note FROM rows)"
            )
            read.clear()
        else:
            connection.register("t", rows.to_pandas() if kind == "pandas" else rows)
        expected = oracle.execute(query).fetchall()
        assert_alike(connection.sql(query).fetchall(), expected)
        assert read
        read.clear()
        assert_alike(connection.sql(query).fetchall(), expected)
        assert not read


def test_frames_that_are_asked_again_are_encoded(read: list[Any]) -> None:
    rows = table()
    query = "SELECT count(*) FROM t WHERE note LIKE '%77%'"
    first = tqp.sql(query, {"t": rows}).fetchall()
    assert read
    read.clear()
    assert tqp.sql(query, {"t": rows}).fetchall() == first
    assert not read


def test_text_in_memory_that_is_not_utf8_is_refused(read: list[Any]) -> None:
    binary = pa.array([b"some text that is long enough", b"\xff text of another kind"])
    text = pa.Array.from_buffers(pa.string(), 2, binary.buffers())
    with (
        tqp.connect() as connection,
        pytest.raises(tqp.Error, match='column "s" holds text that is not UTF-8'),
    ):
        connection.register("t", pa.table({"s": text}))
        connection.sql("SELECT count(*) FROM t WHERE s LIKE '%a%'").fetchall()
    assert read
