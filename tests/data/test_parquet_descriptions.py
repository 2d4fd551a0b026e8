"""parquet_schema(), parquet_metadata(), parquet_file_metadata() and parquet_kv_metadata(): what DuckDB says of the same files."""

from __future__ import annotations

import datetime
import random
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tqp
from tests.oracle import duckdb_database
from tqp.data.sources.parquet.thrift import CompactReader

_FUNCTIONS = ("parquet_schema", "parquet_metadata", "parquet_file_metadata", "parquet_kv_metadata")
_NAN, _INF = float("nan"), float("inf")
_TABLE = pa.table(
    {
        "i8": pa.array([-128, 127, None], pa.int8()),
        "i64": pa.array([-(2**63), 2**63 - 1, None]),
        "u8": pa.array([1, 2, 255], pa.uint8()),
        "u32": pa.array([1, 2, 2**32 - 1], pa.uint32()),
        "u64": pa.array([1, 2, 2**64 - 1], pa.uint64()),
        "e f": ["x" * 300, "é" * 300, "a"],
        "ü😀": ["\n", "\t\x00", "\U0001f600"],
        "words": pa.array(["a", "b", "a"]).dictionary_encode(),
        "bytes": [b"a'\\\x00", b"z\xff", None],
        "three": pa.array([b"abc"] * 3, pa.binary(3)),
        "truth": [True, False, None],
        "f16": pa.array([1.5, 65504.0, None], pa.float16()),
        "f32": pa.array([16777217.0, 1e-10, 3.4e38], pa.float32()),
        "f64": [-0.0, 1e-300, 1e22],
        "no_number": pa.array([_NAN, _INF, 0.1], pa.float32()),
        "no_numbers": pa.array([_NAN, -_INF, 0.1]),
        "d8": pa.array([Decimal("-1.5"), Decimal("9999999.9"), None], pa.decimal128(8, 1)),
        "d38": pa.array([Decimal(-5), Decimal(0), None], pa.decimal128(38, 0)),
        "d5": pa.array([Decimal("0.00001"), Decimal("-0.00001"), None], pa.decimal128(5, 5)),
        "day": pa.array([-719_162, 2_932_896, 0], pa.date32()),
        "s": pa.array([-1, 10**9, None], pa.timestamp("s")),
        "us": pa.array([-1, 2**61, None], pa.timestamp("us")),
        "ns": pa.array([-1, 2**61, None], pa.timestamp("ns")),
        "ms at UTC": pa.array([-1, 2**40, None], pa.timestamp("ms", "UTC")),
        "ns at UTC": pa.array([-1, 2**61, None], pa.timestamp("ns", "UTC")),
        "t_ms": pa.array([datetime.time(1, 2, 3)] * 3, pa.time32("ms")),
        "t_ns": pa.array([1, 86_399_999_999_999, None], pa.time64("ns")),
        "lists": [[[1]], [[], None], None],
        "structs": [[{"x y": 1, "z": [Decimal("1.5")]}], None, []],
        "maps": pa.array([[("k", {"q": [1]})], [], None], pa.map_(pa.string(), pa.struct([("q", pa.list_(pa.int64()))]))),
        "select": [1, 2, 3],
        "nothing": pa.nulls(3),
        "all_null": pa.nulls(3, pa.string()),
        "uuid": pa.array([uuid.UUID(int=each).bytes for each in (1, 2, 2**127)], pa.uuid()),
        "json": pa.array(['{"a":1}', "2", None], pa.json_()),
    }
).replace_schema_metadata({"own": "völ😀", "empty": ""})  # fmt: skip
_NUMBERS = _TABLE.select(["i64", "f64"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")

    def write(name: str, table: pa.Table = _TABLE, **options: object) -> None:
        pq.write_table(table, folder / f"{name}.parquet", **options)

    write("groups", row_group_size=2)
    write("old", version="1.0", coerce_timestamps="ms", allow_truncated_timestamps=True)
    write("int96", _TABLE.select(["us", "ns"]), use_deprecated_int96_timestamps=True)
    write("names", use_compliant_nested_type=False)
    write("pages", data_page_version="2.0", compression="brotli", use_dictionary=False, use_byte_stream_split=["f64"])  # fmt: skip
    write("integers", _TABLE.select(["d8", "d38"]), store_decimal_as_integer=True)
    write("no_statistics", write_statistics=False, store_schema=False, compression="none")
    write("index", write_page_index=True, sorting_columns=[pq.SortingColumn(0)])
    write("delta", _NUMBERS, use_dictionary=False, column_encoding={"i64": "DELTA_BINARY_PACKED"})
    write("no_rows", _NUMBERS.slice(0, 0))
    for codec in ("lz4", "gzip", "zstd"):
        write(codec, _NUMBERS, compression=codec)
    pq.ParquetWriter(folder / "no_groups.parquet", _TABLE.schema).close()
    ids = pa.schema(
        [
            pa.field("i", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "7"}),
            pa.field("l", pa.list_(pa.field("item", pa.int64(), nullable=False)), metadata={"PARQUET:field_id": "-3"}),
        ]
    )  # fmt: skip
    write("ids", pa.table([[1, 2], [[1], None]], schema=ids))
    (folder / "no_orders.parquet").write_bytes(_without_orders((folder / "lz4.parquet").read_bytes()))
    (folder / "y=1").mkdir()
    pq.write_table(_NUMBERS, folder / "y=1" / "part.parquet")
    with duckdb_database() as oracle:
        oracle.execute(f"""
            COPY (
                SELECT range i, range::DOUBLE d, (range % 3)::VARCHAR s, {{'a b': range, 'c': [range]}} st, MAP {{'a': [1.5]}} m,
                    [[(range % 200)::UTINYINT]] ll, TIMESTAMP_NS '2020-01-01 00:00:00.000000001' ns, DATE '-infinity' di,
                    TIMESTAMP 'infinity' ti, 'nan'::FLOAT nn, '1'::JSON j, (-1.5)::DECIMAL(38, 2) dc, 12.5::DECIMAL(18, 3) d18,
                    '2020-01-01 01:02:03+02'::TIMETZ tz, BLOB 'a\\xFF' b, 'b'::ENUM('a', 'b') e, INTERVAL 1 DAY iv, NULL::INTEGER n,
                    '550e8400-e29b-41d4-a716-446655440000'::UUID u, range::HUGEINT h, TIMESTAMPTZ '2020-01-01 00:00:00+00' tt
                FROM range(3000)
            ) TO '{folder}/duckdb.parquet'
            (ROW_GROUP_SIZE 2048, PARQUET_VERSION v2, FIELD_IDS 'auto', COMPRESSION lz4_raw, KV_METADATA {{k: 'v', other: 'w'}})
        """)
    return folder


def _without_orders(content: bytes) -> bytes:
    """A file whose footer does not say how values are ordered, as those of old writers."""
    length = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - length : -8]
    reader, previous = CompactReader(footer), 0
    while previous != 7:
        start = reader.at
        field = reader.field(previous)
        assert field is not None
        previous, kind = field
        reader.skip(kind)
    assert footer[reader.at :] == b"\0"
    shorter = footer[:start] + b"\0"
    return content[: -8 - length] + shorter + len(shorter).to_bytes(4, "little") + b"PAR1"


@pytest.fixture
def connection(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tqp.Connection]:
    monkeypatch.chdir(folder)
    with tqp.connect() as connection:
        yield connection


def _check(connection: tqp.Connection, query: str) -> None:
    with duckdb_database() as oracle:
        oracle.execute("SET TimeZone = 'UTC'")
        expected = oracle.execute(query)
        columns = expected.description or ()
        result = connection.sql(query)
        assert list(result.columns) == [column[0] for column in columns]
        assert list(map(str, result.types)) == [str(column[1]) for column in columns]
        for row, other in zip(result.fetchall(), expected.fetchall(), strict=True):
            assert dict(zip(result.columns, row, strict=True)) == dict(
                zip(result.columns, other, strict=True)
            )


@pytest.mark.parametrize("function", _FUNCTIONS)
def test_all_files(connection: tqp.Connection, folder: Path, function: str) -> None:
    names = sorted(path.name for path in folder.glob("*.parquet"))
    assert len(names) == 17
    for name in names:
        _check(connection, f"FROM {function}('{name}')")


@pytest.mark.parametrize(
    "query",
    [
        "FROM parquet_schema('y=1/*.parquet')",
        "FROM parquet_kv_metadata(['groups.parquet', 'ids.parquet', 'groups.parquet'])",
        "SELECT file_name, num_rows FROM parquet_file_metadata('*.parquet')",
        "SELECT path_in_schema, sum(total_compressed_size), max(stats_max_value) FROM parquet_metadata('*.parquet') GROUP BY 1 ORDER BY 1",
        "SELECT s.name, s.type FROM parquet_schema('ids.parquet') s JOIN (VALUES (7)) v(x) ON s.field_id = v.x",
        "SELECT q.x FROM parquet_schema('ids.parquet') q(x)",
        "SELECT len(encoding_stats), encoding_stats[1].page_type FROM parquet_metadata('zstd.parquet')",
        "DESCRIBE FROM parquet_metadata('zstd.parquet')",
    ],
)
def test_queries(connection: tqp.Connection, query: str) -> None:
    _check(connection, query)


@pytest.mark.parametrize("function", _FUNCTIONS)
def test_what_is_wrong_is_named(connection: tqp.Connection, folder: Path, function: str) -> None:
    (folder / "empty.txt").write_bytes(b"")
    (folder / "text.txt").write_text("no footer of Parquet at all")
    for argument, message in {
        "'nothing*.parquet'": "no file matches nothing",
        "['ids.parquet', 'nothing']": "no file matches nothing",
        "'empty.txt'": "cannot read empty.txt: the file is too small",
        "'text.txt'": "cannot read text.txt: no footer of Parquet ends the file",
        "[]": "needs at least one file",
        "NULL": "as text, not NULL",
        "'ids.parquet', filename = true": "the option filename",
    }.items():
        with pytest.raises(tqp.Error, match=message):
            connection.sql(f"FROM {function}({argument})")


def test_damaged_footers(connection: tqp.Connection, folder: Path) -> None:
    content = (folder / "ids.parquet").read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    drawn = random.Random(1)
    for _ in range(25):
        damaged = bytearray(content)
        for _ in range(drawn.randint(1, 8)):
            damaged[-8 - drawn.randint(1, length)] = drawn.randrange(256)
        (folder / "damaged.bin").write_bytes(damaged)
        for function in _FUNCTIONS:
            try:
                connection.sql(f"FROM {function}('damaged.bin')").fetchall()
            except tqp.Error as error:
                assert "damaged.bin" in str(error)


def test_changes_are_seen_and_files_elsewhere_read(connection: tqp.Connection, folder: Path) -> None:
    query = "SELECT num_rows FROM parquet_file_metadata('changed.bin')"
    for rows in (1, 3):
        pq.write_table(_NUMBERS.slice(0, rows), folder / "changed.bin")
        assert connection.sql(query).fetchall() == [(rows,)]
    system = fsspec.filesystem("memory")
    try:
        system.pipe_file("/d/x.parquet", (folder / "changed.bin").read_bytes())
        elsewhere = connection.sql(query.replace("changed.bin", "memory://d/*.parquet"))
        assert elsewhere.fetchall() == [(3,)]
    finally:
        system.rm("/", recursive=True)
