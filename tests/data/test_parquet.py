"""Parquet files read as what pyarrow reads of them, however they were written, and with footers that are wrong."""

import datetime
import decimal
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tqp
from tqp.data.sources.parquet.footer import with_stored_integers

ROWS = 23
WIDTHS = (1, 4, 9, 10, 18, 19, 38)


def decimals(precision: int, scale: int) -> pa.Array:
    chance = random.Random(precision)
    most = 10**precision - 1
    numbers = [most, -most, 0, *(chance.randint(-most, most) for _ in range(ROWS - 3))]
    with decimal.localcontext(prec=60):
        return pa.array([Decimal(each).scaleb(-scale) for each in numbers], pa.decimal128(precision, scale))


def table_of_all_types() -> pa.Table:
    numbers = range(ROWS)
    day = datetime.date(2020, 1, 1)
    instant = datetime.datetime(2020, 1, 1, 12, 30, 1, 5000)
    columns: dict[str, pa.Array] = {
        "boolean": pa.array([number % 3 == 0 for number in numbers]),
        "int8": pa.array(numbers, pa.int8()),
        "int16": pa.array([number - 300 for number in numbers], pa.int16()),
        "int64": pa.array([(-7) ** number for number in numbers], pa.int64()),
        "uint8": pa.array([255 - number for number in numbers], pa.uint8()),
        "uint32": pa.array([2**32 - 1 - number for number in numbers], pa.uint32()),
        "uint64": pa.array([2**64 - 1 - number for number in numbers], pa.uint64()),
        "float": pa.array([number / 8 for number in numbers], pa.float32()),
        "double": pa.array([float("nan"), *(number / 3 for number in numbers[1:])], pa.float64()),
        "text": pa.array([f"text {number % 5}" for number in numbers]),
        "long": pa.array(["x" * number for number in numbers], pa.large_string()),
        "bytes": pa.array([bytes([number, 0]) for number in numbers]),
        "date": pa.array([day + datetime.timedelta(number) for number in numbers]),
        "time": pa.array([datetime.time(number) for number in numbers], pa.time64("us")),
        "milliseconds": pa.array([instant] * ROWS, pa.timestamp("ms")),
        "zone": pa.array([instant] * ROWS, pa.timestamp("ns", "UTC")),
    }
    for precision in WIDTHS:
        columns[f"decimal{precision}"] = decimals(precision, precision // 2)
    return pa.table(columns)


def with_nulls(table: pa.Table, which: Callable[[int], bool]) -> pa.Table:
    """The rows that `which` says are NULL in all columns."""
    rows = pa.array([None if which(row) else row for row in range(table.num_rows)], pa.int64())
    return table.take(rows)


def answers(table: object, query: str, threads: int = 2) -> Any:
    with tqp.connect(threads=threads) as connection:
        return connection.register("t", table).sql(query).to_arrow()


NULLS: dict[str, Callable[[int], bool]] = {
    "none": lambda row: False,
    "some": lambda row: row % 3 == 0,
    "first": lambda row: row < 12,
    "all": lambda row: True,
}


@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("row_group", [1, 5, ROWS])
@pytest.mark.parametrize(
    "written",
    [
        {},
        {"store_decimal_as_integer": True},
        {"store_decimal_as_integer": True, "store_schema": False, "write_statistics": False},
        {"store_decimal_as_integer": True, "use_dictionary": False, "data_page_version": "2.0"},
        {"write_statistics": False, "use_dictionary": False, "compression": "zstd"},
    ],
)
def test_all_types_as_pyarrow_reads_them(
    tmp_path: Path, nulls: str, row_group: int, written: dict[str, Any]
) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(with_nulls(table_of_all_types(), NULLS[nulls]), file, row_group_size=row_group, **written)
    query = "SELECT * FROM t"
    # As text: NaN equals nothing.
    assert str(answers(file, query).to_pylist()) == str(answers(pq.read_table(file), query).to_pylist())
    assert answers(file, query).schema == answers(pq.read_table(file), query).schema


@pytest.mark.parametrize("written", [{}, {"store_decimal_as_integer": True}])
def test_no_rows_and_empty_row_groups(tmp_path: Path, written: dict[str, Any]) -> None:
    table = table_of_all_types()
    empty, gaps = tmp_path / "empty.parquet", tmp_path / "gaps.parquet"
    pq.write_table(table.slice(0, 0), empty, **written)
    with pq.ParquetWriter(gaps, table.schema, **written) as writer:
        for start, count in ((0, 0), (0, 4), (4, 0), (4, 1), (5, 0)):
            writer.write_table(table.slice(start, count))
    assert pq.read_metadata(gaps).num_rows == 5
    assert answers(empty, "SELECT * FROM t").num_rows == 0
    query = "SELECT decimal4, decimal18, decimal38, text, int64, double FROM t WHERE int8 > 0"
    assert answers(gaps, query).to_pylist() == answers(table.slice(0, 5), query).to_pylist()
    together = answers([empty, gaps, empty], query)
    assert together.to_pylist() == answers(table.slice(0, 5), query).to_pylist()


def test_row_groups_read_by_several_threads(tmp_path: Path) -> None:
    """More row groups than one thread takes at a time, of several files, narrower and wider values in each."""
    parts = []
    for number in range(3):
        rows = 150_000 + number
        scale = 10 ** (3 * number)
        parts.append(
            pa.table(
                {
                    "d": pa.array([Decimal(row % 97 * scale) for row in range(rows)], pa.decimal128(15, 0)),
                    "s": pa.array([f"{number} {row % 11}" for row in range(rows)]),
                    "f": pa.array([row / 2 for row in range(rows)]),
                }
            )
        )
        pq.write_table(
            parts[-1],
            tmp_path / f"{number}.parquet",
            row_group_size=40_000,
            store_decimal_as_integer=number != 1,
        )
    query = "SELECT s, count(*), sum(d), max(d), sum(f) FROM t GROUP BY s ORDER BY s"
    expected = answers(pa.concat_tables(parts), query).to_pylist()
    for threads in (1, 2, 3):
        assert answers(tmp_path, query, threads).to_pylist() == expected
    first = "SELECT d, s, f FROM t LIMIT 200000"
    assert answers(tmp_path, first).equals(answers(pa.concat_tables(parts), first))


def test_names_that_repeat_and_decimals_in_lists(tmp_path: Path) -> None:
    """Columns are read by their position, which nested ones before them move."""
    file = tmp_path / "t.parquet"
    money = pa.array([Decimal("1.25"), Decimal("-3.50")], pa.decimal128(9, 2))
    nested = pa.array([[Decimal("1.1"), Decimal("2.2")], None], pa.list_(pa.decimal128(9, 1)))
    table = pa.Table.from_arrays([nested, money, pa.array([1, 2])], names=["nested", "a", "a"])
    pq.write_table(table, file, store_decimal_as_integer=True)
    assert answers(file, "SELECT a, a_1 FROM t").to_pylist() == [
        {"a": Decimal("1.25"), "a_1": 1},
        {"a": Decimal("-3.50"), "a_1": 2},
    ]


def test_only_decimals_stored_as_integers_are_integers_in_the_footer(tmp_path: Path) -> None:
    table = table_of_all_types()
    for written in ({"store_decimal_as_integer": True}, {"store_decimal_as_integer": False}):
        pq.write_table(table, tmp_path / "t.parquet", **written)
        changed = with_stored_integers(pq.read_metadata(tmp_path / "t.parquet"))
        types = changed.schema.to_arrow_schema()
        for field in pq.read_schema(tmp_path / "t.parquet"):
            expected = field.type
            if (
                pa.types.is_decimal(expected)
                and expected.precision <= 18
                and written["store_decimal_as_integer"]
            ):
                expected = pa.int32() if expected.precision <= 9 else pa.int64()
            assert types.field(field.name).type == expected
        assert changed.num_rows == ROWS


@pytest.mark.parametrize("said", [9, 10**9, -(2**62)])
def test_statistics_that_are_wrong_change_no_answer(tmp_path: Path, said: int) -> None:
    """They only tell which width to try first."""
    file, largest = tmp_path / "t.parquet", 123_456_789
    values = [*range(100), largest, None]
    pq.write_table(pa.table({"x": values}), file, row_group_size=30)
    content = file.read_bytes()
    changed = content.replace(largest.to_bytes(8, "little"), said.to_bytes(8, "little", signed=True))
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    assert changed[footer:] != content[footer:]
    file.write_bytes(content[:footer] + changed[footer:])
    assert answers(file, "SELECT sum(x), max(x), count(x), count(*) FROM t").to_pydict() == {
        "sum(x)": [sum(range(100)) + largest],
        "max(x)": [largest],
        "count(x)": [101],
        "count_star()": [102],
    }


def test_a_footer_that_says_too_many_rows_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": range(300)}), file, use_dictionary=False)
    content = file.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    rows, more = b"\x16\xd8\x04", b"\x16\xda\x04"  # an i64 of 300, of 301
    assert content[footer:].count(rows) == 3
    parts = content[footer:].split(rows)
    # The rows of the file and of the row group, not the values of the column.
    file.write_bytes(content[:footer] + parts[0] + more + parts[1] + rows + parts[2] + more + parts[3])
    with pytest.raises(tqp.Error, match=r"t\.parquet"):
        answers(file, "SELECT sum(x) FROM t")


def test_json_keeps_its_type(tmp_path: Path) -> None:
    ours, theirs = str(tmp_path / "ours.parquet"), str(tmp_path / "theirs.parquet")
    query = """SELECT x::JSON AS j FROM (VALUES ('{"a": [1, 2]}'), (NULL), ('"é"')) t(x)"""
    tqp.sql(query).write_parquet(ours)
    duckdb.sql(query).write_parquet(theirs)
    for file in (ours, theirs):
        read = f"SELECT j, typeof(j), j->'$.a[1]' FROM '{file}'"
        assert tqp.sql(read).fetchall() == duckdb.sql(read).fetchall()
