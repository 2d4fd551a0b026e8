"""Column chunks that Snappy compressed: decompressed beside Arrow's reader, they are what that reads of them."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tqp
from tqp.data.sources.parquet import one_file, pages
from tqp.data.sources.parquet.one_file import ParquetFile, Way

pytest.importorskip("cramjam")

ROWS = 5_000
INSTANT = datetime.datetime(2020, 1, 1, 12, 30, 1, 5000)

COLUMNS: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "boolean": (pa.bool_(), lambda chance: chance.random() < 0.3),
    "int8": (pa.int8(), lambda chance: chance.randint(-128, 127)),
    "int32": (pa.int32(), lambda chance: chance.randint(-(2**31), 2**31 - 1)),
    "int64": (pa.int64(), lambda chance: chance.randint(-(2**63), 2**63 - 1)),
    "few": (pa.int64(), lambda chance: chance.randint(0, 9)),
    "uint64": (pa.uint64(), lambda chance: chance.randint(0, 2**64 - 1)),
    "float": (pa.float32(), lambda chance: chance.choice([0.5, -0.0, float("nan"), float("inf")])),
    "double": (pa.float64(), lambda chance: chance.gauss(0, 1)),
    "text": (pa.string(), lambda chance: "é😀"[: chance.randint(0, 2)] * chance.randint(0, 20)),
    "large": (pa.large_string(), lambda chance: str(chance.randint(0, 99))),
    "view": (pa.string_view(), lambda chance: str(chance.randint(0, 10**15))),
    "bytes": (pa.binary(), lambda chance: chance.randbytes(chance.randint(0, 4))),
    "fixed": (pa.binary(5), lambda chance: chance.randbytes(5)),
    "date": (
        pa.date32(),
        lambda chance: datetime.date(2020, 1, 1) + datetime.timedelta(chance.randint(0, 999)),
    ),
    "time": (pa.time64("us"), lambda chance: datetime.time(chance.randint(0, 23))),
    "milliseconds": (
        pa.timestamp("ms"),
        lambda chance: INSTANT + datetime.timedelta(milliseconds=chance.randint(0, 10**9)),
    ),
    "zone": (pa.timestamp("ns", "Europe/Berlin"), lambda chance: INSTANT),
    "decimal5": (pa.decimal128(5, 2), lambda chance: Decimal(chance.randint(-99999, 99999)).scaleb(-2)),
    "decimal18": (pa.decimal128(18, 3), lambda chance: Decimal(chance.randint(-(10**17), 10**17)).scaleb(-3)),
    "decimal30": (
        pa.decimal128(30, 3),
        lambda chance: Decimal(chance.randint(-(10**20), 10**20)).scaleb(-3),
    ),
}


def table(share_of_nulls: float) -> pa.Table:
    chance = random.Random(7)
    return pa.table(
        {
            name: pa.array(
                [None if chance.random() < share_of_nulls else make(chance) for _ in range(ROWS)], arrow_type
            )
            for name, (arrow_type, make) in COLUMNS.items()
        }
    )


@pytest.fixture
def decompressed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether what is read of a column in one step was decompressed by us: all is meant to be."""
    found: list[bool] = []
    ours = pages.decompressed

    def watched(*arguments: Any) -> pa.Buffer | None:
        content = ours(*arguments)
        found.append(content is not None)
        return content

    monkeypatch.setattr(pages, "pays", lambda chunk: chunk.compression == "SNAPPY")
    monkeypatch.setattr(pages, "decompressed", watched)
    return found


@pytest.mark.parametrize("share_of_nulls", [0, 0.3, 1])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_chunks_are_what_arrow_reads(
    tmp_path: Path, decompressed: list[bool], share_of_nulls: float, version: str, dictionary: bool
) -> None:
    file, written = tmp_path / "t.parquet", table(share_of_nulls)
    pq.write_table(
        written,
        file,
        compression="snappy",
        row_group_size=2_000,
        data_page_size=900,
        use_dictionary=dictionary,
        data_page_version=version,
        store_decimal_as_integer=True,
        write_page_checksum=True,
    )
    parquet = ParquetFile.open(str(file))
    expected = pq.read_table(file)
    for position, name in enumerate(written.column_names):
        ways = [Way.TYPED]
        if parquet.is_stored_decimal(position):
            ways.append(Way.STORED)
        if dictionary and pa.types.is_string(written.schema.field(name).type):
            ways.append(Way.DICTIONARY)
        for way in ways:
            decompressed.clear()
            found = pa.chunked_array(list(parquet.read(position, parquet.groups, way)))
            assert decompressed == [True]
            column = expected.column(name)
            if way is Way.STORED:
                assert pa.types.is_integer(found.type)
                scale = column.type.scale
                values = [None if each is None else int(each.scaleb(scale)) for each in column.to_pylist()]
                assert found.to_pylist() == values
            elif way is Way.DICTIONARY:
                assert pa.types.is_dictionary(found.type)
                assert found.cast(column.type).equals(column)
            else:
                assert found.type == column.type
                assert found.equals(column) or name == "float"
                assert list(map(repr, found.to_pylist())) == list(map(repr, column.to_pylist()))


def test_nested_columns_beside_them_and_names_that_repeat(tmp_path: Path, decompressed: list[bool]) -> None:
    file = tmp_path / "t.parquet"
    nested = pa.array([{"x": [1, 2], "y": "a"}, None, {"x": [], "y": None}])
    arrays = [nested, pa.array([1, 2, None]), pa.array(["b", None, "c"]), nested, pa.array([0.5, None, 1.5])]
    pq.write_table(pa.Table.from_arrays(arrays, ["n", "a.b", "a", "m", "a"]), file, compression="snappy")
    found = tqp.sql("SELECT * FROM t", {"t": str(file)}).to_arrow()
    assert [column.to_pylist() for column in found.columns] == [array.to_pylist() for array in arrays]
    assert decompressed == [True, True, True]


@pytest.mark.parametrize("rows_at_once", [1, 2_500, 4_500, 10_000])
def test_row_groups_that_are_read_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_at_once: int
) -> None:
    """Whether they are decompressed by us, by Arrow, or the one after the other."""
    monkeypatch.setattr(one_file, "_ROWS_AT_ONCE", rows_at_once)
    file = tmp_path / "t.parquet"
    long = list(range(5_000, 6_000))
    parts = [long, [1] * 1_000, [2] * 1_000, long, [3, None] * 500, long, long, []]
    with pq.ParquetWriter(file, pa.schema([("x", pa.int64())]), compression="snappy") as writer:
        for part in parts:
            writer.write_table(pa.table({"x": pa.array(part, pa.int64())}))
    saved = [
        chunk.total_uncompressed_size - chunk.total_compressed_size
        for chunk in (pq.read_metadata(file).row_group(group).column(0) for group in range(7))
    ]
    assert min(saved[0], saved[3]) > 1_000 > max(saved[1], saved[4])
    monkeypatch.setattr(pages, "_SAVED", 1_000)
    parquet = ParquetFile.open(str(file))
    chunks = list(parquet.read(0, parquet.groups, Way.TYPED))
    assert pa.chunked_array(chunks).to_pylist() == [value for part in parts for value in part]
    if rows_at_once == 1:
        assert [len(chunk) for chunk in chunks if len(chunk)] == [1_000] * 7


def test_other_compressions_are_left_to_arrow(tmp_path: Path, decompressed: list[bool]) -> None:
    file = tmp_path / "t.parquet"
    for compression in ("none", "zstd", "gzip", "lz4", "brotli"):
        pq.write_table(pa.table({"x": range(1_000)}), file, compression=compression)
        assert tqp.sql("SELECT sum(x) FROM t", {"t": str(file)}).fetchall() == [(499_500,)]
    assert decompressed == []


def test_pages_pay_where_they_are_much_shorter_compressed(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    rows = range(100_000)
    columns = {"long": rows, "short": [row % 7 for row in rows]}
    pq.write_table(pa.table(columns), file, compression="snappy", use_dictionary=["short"])
    group = pq.read_metadata(file).row_group(0)
    assert [pages.pays(group.column(leaf)) for leaf in range(2)] == [True, False]
    pq.write_table(pa.table(columns), file, compression="zstd", use_dictionary=["short"])
    assert not pages.pays(pq.read_metadata(file).row_group(0).column(0))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_damaged_pages_give_what_arrow_says_of_them(
    tmp_path: Path, decompressed: list[bool], version: str
) -> None:
    file, chance = tmp_path / "t.parquet", random.Random(3)
    numbers = pa.table({"x": [chance.randint(0, 99) for _ in range(3_000)]})
    pq.write_table(
        numbers,
        file,
        compression="snappy",
        data_page_size=500,
        data_page_version=version,
        use_dictionary=False,
    )
    content = file.read_bytes()
    pages_end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    refused = 0
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(3):
            damaged[chance.randrange(4, pages_end)] = chance.randrange(256)
        file.write_bytes(damaged)
        try:
            expected = pq.read_table(file, use_threads=False).column(0).to_pylist()
        except (OSError, pa.ArrowException):
            with pytest.raises(tqp.Error, match=r'column "x" of .*t\.parquet'):
                tqp.sql("SELECT x FROM t", {"t": str(file)})
            refused += 1
            continue
        assert tqp.sql("SELECT x FROM t", {"t": str(file)}).to_arrow().column(0).to_pylist() == expected
    assert refused > 20
    assert False in decompressed
