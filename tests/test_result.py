"""The ways out of a result, compared with DuckDB's where it has them."""

import datetime
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import tqp
from tqp.core.datatypes import HUGEINT, VARCHAR
from tqp.core.errors import BindError, ExecutionError
from tqp.data.column import Column, Table
from tqp.data.encoding.columns import encode_column
from tqp.data.results.display import cell_texts
from tqp.data.sources.make_source import make_source
from tqp.data.strings import Strings
from tqp.result import Result

CPU = torch.device("cpu")

#: Every type that a query can give, but for TIMESTAMP WITH TIME ZONE, which DuckDB's Python client needs pytz for.
TYPED_VALUES = {
    "boolean": "true",
    "tinyint": "(-128)::TINYINT",
    "smallint": "300::SMALLINT",
    "integer": "-70000",
    "bigint": "-9223372036854775808",
    "utinyint": "255::UTINYINT",
    "usmallint": "65535::USMALLINT",
    "uinteger": "4294967295::UINTEGER",
    "ubigint": "18446744073709551615::UBIGINT",
    "hugeint": "12345678901234567890123::HUGEINT",
    "small_decimal": "(-1.50)::DECIMAL(4, 2)",
    "big_decimal": "(-123456789012345678901234567890.123)::DECIMAL(38, 3)",
    "float": "1.1::FLOAT",
    "double": "1e20::DOUBLE",
    "varchar": "'Ærø'",
    "blob": "'\\xAAab'::BLOB",
    "date": "DATE '1960-02-29'",
    "time": "TIME '01:02:03.5'",
    "timestamp_s": "TIMESTAMP_S '1960-01-01 00:00:01'",
    "timestamp_ms": "TIMESTAMP_MS '1960-01-01 00:00:01.5'",
    "timestamp": "TIMESTAMP '1960-01-01 00:00:01.000005'",
    "timestamp_ns": "TIMESTAMP_NS '1960-01-01 00:00:01.123456'",
    "interval": "INTERVAL '14 months -3 days 4.5 seconds'",
    "array": "[1.5, 2]::FLOAT[2]",
    "nothing": "NULL",
}


def result_of(table: pa.Table) -> Result:
    source = make_source("t", table, CPU)
    columns = tuple(source.column(name) for name in source.column_names)
    names = tuple(table.column_names)
    return Result(names, tuple(column.data_type for column in columns), Table(names, columns, table.num_rows))


def duckdb_query(with_null: bool) -> str:
    row = "SELECT " + ", ".join(f"{value} AS {name}" for name, value in TYPED_VALUES.items())
    return row + (" UNION ALL SELECT " + ", ".join("NULL" for _ in TYPED_VALUES) if with_null else "")


def typed_result(with_null: bool) -> Result:
    """The rows of that query in our columns; HUGEINT comes from Arrow as DECIMAL(38,0), so is made one again."""
    result = result_of(duckdb.sql(duckdb_query(with_null)).to_arrow_table())
    columns = [
        Column(HUGEINT, column.num_rows, column.values, column.validity, facts=column.facts)
        if name == "hugeint"
        else column
        for name, column in zip(result.columns, result._table.columns, strict=True)
    ]
    table = Table(result.columns, tuple(columns), len(result))
    return Result(result.columns, tuple(column.data_type for column in columns), table)


@pytest.fixture(params=[False, True], ids=["values", "values and NULL"])
def pair(request):
    return typed_result(request.param), duckdb.sql(duckdb_query(request.param))


def test_arrow_is_what_duckdb_exports(pair):
    ours, theirs = pair
    assert ours.to_arrow().schema == theirs.to_arrow_table().schema
    assert ours.to_arrow().equals(theirs.to_arrow_table())
    assert list(map(str, ours.types)) == list(map(str, theirs.types))


def test_fetchall_is_what_duckdb_fetches(pair):
    ours, theirs = pair
    assert ours.fetchall() == theirs.fetchall()
    assert [type(value) for value in ours.fetchall()[0]] == [type(value) for value in theirs.fetchall()[0]]


def test_pandas_is_what_duckdb_gives(pair):
    ours, theirs = pair[0].to_pandas(), pair[1].df()
    # Our objects are fetchall's: bytes and None, where DuckDB has bytearrays and pandas.NA.
    ours_for = {bytearray: bytes, type(pd.NA): lambda _: None}
    for name in ("blob", "array", "time"):
        values = [ours_for.get(type(value), lambda same: same)(value) for value in theirs[name]]
        theirs[name] = pd.Series(values, dtype=object)
    pd.testing.assert_frame_equal(ours, theirs)


def test_text_is_what_duckdb_prints(pair):
    ours, theirs = pair
    cast = theirs.project(", ".join(f'"{name}"::VARCHAR' for name in TYPED_VALUES)).fetchall()
    texts = [cell_texts(column) for column in ours._table.columns]
    assert list(zip(*texts, strict=True)) == cast


def test_text_of_dates_that_python_lacks():
    query = "SELECT DATE 'infinity', DATE '-infinity', DATE '0044-03-01 (BC)', DATE '12345-06-07'"
    answer = tqp.sql(query)
    texts = [text for column in answer._table.columns for text in cell_texts(column)]
    assert tuple(texts) == duckdb.sql(query.replace(", DATE", "::VARCHAR, DATE") + "::VARCHAR").fetchall()[0]


def test_shape_and_cursor():
    result = result_of(pa.table({"a": [1, 2], "b": ["x", None]}))
    assert result.columns == ("a", "b") and result.shape == (2, 2) and len(result) == 2
    assert result.fetchall() == result.fetchall() == [(1, "x"), (2, None)]
    assert result.fetchone() == (1, "x") and result.fetchall() == [(2, None)]  # the rows that are left
    assert result.fetchone() == (2, None)
    assert result.fetchone() is None and result.fetchall() == []
    assert list(result) == [(1, "x"), (2, None)]


def test_repeated_names():
    result = result_of(pa.table([[1], [2], [3]], names=["a", "a", "A"]))
    assert result.to_arrow().column_names == ["a", "a", "A"]
    assert list(result.to_pandas().columns) == ["a", "a_1", "A_2"]
    assert result.to_polars().columns == list(result.to_torch()) == ["a", "a_1", "A_2"]


def test_empty():
    result = result_of(typed_result(True).to_arrow().slice(0, 0))
    assert result.fetchall() == [] and len(result.to_pandas()) == 0
    assert "0 rows, 25 columns" in repr(result)
    assert result.to_arrow().num_rows == 0
    assert result.to_torch(strings="codes")["varchar"].shape == (0,)


def test_no_rows_and_no_columns():
    result = Result((), (), Table((), (), 3))
    assert result.fetchall() == [(), (), ()]
    assert "no columns" in repr(result)


def test_polars_has_every_type(pair):
    frame = pair[0].to_polars()
    assert frame.width == len(TYPED_VALUES)
    assert frame["interval"][0] == datetime.timedelta(days=14 * 30 - 3, seconds=4.5)


def test_polars_and_stream():
    table = pa.table(
        {"a": [1, None], "d": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)), "s": ["x", None]}
    )
    result = result_of(table)
    assert result.to_polars().rows() == [(1, Decimal("1.50"), "x"), (None, None, None)]
    assert pa.table(result).equals(table)
    assert pl.DataFrame(result).shape == (2, 3)
    assert duckdb.sql("SELECT sum(a) FROM result").fetchall() == [(1,)]


def test_torch():
    table = pa.table(
        {
            "i": pa.array([1, 2], pa.int32()),
            "n": pa.array([5, None], pa.int64()),
            "u": pa.array([7, 8], pa.uint64()),
            "m": pa.array([Decimal("1.25"), Decimal("-0.50")], pa.decimal128(15, 2)),
            "d": pa.array([datetime.date(1970, 1, 2), datetime.date(1969, 12, 31)]),
            "f": pa.array([1.5, 2.5]),
            "b": [True, False],
            "e": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        }
    )
    tensors = result_of(table).to_torch()
    assert list(tensors) == ["i", "n", "n__validity", "u", "m", "d", "f", "b", "e"]
    assert tensors["i"].dtype == torch.int32 and tensors["n"].dtype == tensors["u"].dtype == torch.int64
    assert tensors["n__validity"].tolist() == [True, False] and tensors["n"][0] == 5
    assert tensors["m"].tolist() == [1.25, -0.5] and tensors["d"].tolist() == [1, -1]
    tensors["f"].fill_(0)
    assert table["f"].to_pylist() == [1.5, 2.5]  # a copy
    assert tensors["e"].shape == (2, 2)
    assert result_of(table).to_torch(decimals="scaled")["m"].tolist() == [125, -50]


def test_torch_strings():
    result = result_of(pa.table({"s": ["b", None, "a", "b"]}))
    with pytest.raises(ExecutionError, match='column "s" is VARCHAR'):
        result.to_torch()
    tensors = result.to_torch(strings="codes")
    assert tensors["s"][[0, 2, 3]].tolist() == [1, 0, 1]
    with pytest.raises(BindError, match="strings='bytes'"):
        result.to_torch(strings="bytes")


def test_torch_beyond_64_bits():
    result = result_of(pa.table({"m": pa.array([Decimal(2**70), Decimal(-3)], pa.decimal128(38, 0))}))
    assert result.to_torch()["m"].tolist() == [2.0**70, -3.0]
    with pytest.raises(ExecutionError, match='column "m".*beyond 64 bits'):
        result.to_torch(decimals="scaled")


def test_out_of_pythons_range_is_text():
    days = encode_column("d", pa.array([-800_000, 3_000_000], pa.int32()).view(pa.date32()), CPU)
    times = encode_column("t", pa.array([86_400_000_000], pa.int64()).view(pa.time64("us")), CPU)
    assert (
        Result(("d",), (days.data_type,), Table(("d",), (days,), 2)).fetchall()
        == duckdb.sql(
            "SELECT DATE '1970-01-01' + x::INTEGER FROM (VALUES (-800000), (3000000)) t(x)"
        ).fetchall()
    )
    assert Result(("t",), (times.data_type,), Table(("t",), (times,), 1)).fetchone() == ("24:00:00",)


def test_writing_to_a_data_frame_leaves_the_registered_table_alone():
    table = pa.table({"f": [1.5, 2.5], "i": [2**40, 5], "t": pa.array([2**40, 7], pa.timestamp("us"))})
    result = result_of(table)
    frame = result.to_pandas()
    frame.loc[0, "f"] = frame.loc[0, "i"] = 0
    frame.loc[0, "t"] = pd.Timestamp(0)
    assert result.to_arrow().equals(table)


def test_infinite_and_far_times_leave_as_in_duckdb():
    queries = [
        "SELECT DATE 'infinity', DATE '-infinity', TIMESTAMP 'infinity', TIMESTAMP_S '-infinity', TIMESTAMP_NS 'infinity'",
        "SELECT DATE '5881580-07-10', TIMESTAMP '0044-03-15 (BC) 01:00:00', INTERVAL '2562047788 hours'",
    ]
    for query in queries:
        assert tqp.sql(query).fetchall() == duckdb.sql(query).fetchall()
    with pytest.raises(tqp.ExecutionError, match="timedelta"):
        tqp.sql("SELECT INTERVAL '178956970 years'").fetchall()
    for date in ("5881580-07-10", "infinity"):
        with pytest.raises(duckdb.Error):
            duckdb.sql(f"SELECT DATE '{date}'").df()
        with pytest.raises(tqp.ExecutionError, match=f"pandas has no date {date}"):
            tqp.sql(f"SELECT DATE '{date}' AS d").to_pandas()
    assert tqp.sql("SELECT DATE '9999-12-31' + 1 AS d").to_pandas()["d"][0].year == 10_000


def test_nanoseconds_that_python_does_not_have():
    moments = pa.table({"t": pa.array([-1, -315619199999998500, 1999], pa.timestamp("ns"))})
    assert result_of(moments).fetchall() == duckdb.sql("SELECT t FROM moments").fetchall()
    assert "1969-12-31 23:59:59.999999999" in repr(result_of(moments))


def test_time_zone():
    moment = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC)
    result = result_of(pa.table({"z": pa.array([moment, None], pa.timestamp("us", "Europe/Oslo"))}))
    assert result.fetchall() == [(moment,), (None,)]
    assert result.to_pandas()["z"][0] == pd.Timestamp(moment)
    assert "2020-01-01 12:00:00+00" in repr(result)


def test_repr():
    text = repr(result_of(pa.table({"n": [1, None], "s": ["a\nb", "日本"]})))
    assert text.splitlines() == [
        "┌────────┬─────────┐",
        "│   n    │    s    │",
        "│ BIGINT │ VARCHAR │",
        "├────────┼─────────┤",
        "│      1 │ a\\nb    │",
        "│   NULL │ 日本    │",
        "└────────┴─────────┘",
        "2 rows, 2 columns",
    ]


def test_repr_of_many_rows_and_columns():
    table = pa.table({f"column_{i}": np.arange(1000) for i in range(30)})
    lines = repr(result_of(table)).splitlines()
    assert len({len(line) for line in lines[:-1]}) == 1 and len(lines[0]) <= 100
    assert lines[-1].startswith("1,000 rows (20 shown), 30 columns (")
    assert "column_0" in lines[1] and "column_29" in lines[1] and "…" in lines[1]
    assert sum("·" in line for line in lines) == 3
    assert "999" in lines[-3]


def test_long_values_are_cut():
    lines = repr(result_of(pa.table({"s": ["x" * 500]}))).splitlines()
    assert len(lines[0]) < 80 and lines[4].endswith("x… │")


def test_html_is_escaped():
    markup = result_of(pa.table({"<b>": ["<script>alert('x')</script>", None]}))._repr_html_()
    assert "<script>" not in markup and "&lt;script&gt;" in markup and "&lt;b&gt;" in markup
    assert "2 rows, 1 column" in markup


def test_keys_of_maps_have_no_validity() -> None:
    """pyarrow before 26 ends the process where they have."""
    query = "SELECT MAP {s: 1} AS m FROM (VALUES ('a'), (NULL)) t(s) WHERE s IS NOT NULL"
    maps = tqp.sql(query).to_arrow().column("m").chunk(0)
    assert maps.keys.buffers()[0] is None


@pytest.mark.parametrize("times", [1, 1_000], ids=["few bytes", "many bytes"])
def test_strings_that_are_slices_in_any_order(times: int):
    """What string functions leave: overlapping slices, NULL rows, codes into a pool of rows."""
    data = torch.frombuffer(bytearray(b"a long string of bytes, and ends"), dtype=torch.uint8)
    pool = Strings(torch.tensor([2, 0, 0, 28]), torch.tensor([4, 20, 0, 4], dtype=torch.int32), data)
    validity = torch.tensor([True, True, True, False])

    def texts(column: Column) -> list[str | None]:
        return (
            Result(("s",), (VARCHAR,), Table(("s",), (column,), column.num_rows)).to_arrow()["s"].to_pylist()
        )

    pool_of_rows = Strings(pool.starts.repeat(times), pool.lengths.repeat(times), data)
    rows = Column(VARCHAR, 4 * times, None, validity.repeat(times), pool_of_rows)
    assert texts(rows) == ["long", "a long string of byt", "", None] * times
    numbers = torch.tensor([3, 0, 1], dtype=torch.int8).repeat(times)
    assert (
        texts(Column(VARCHAR, 3 * times, numbers, None, pool))
        == ["ends", "long", "a long string of byt"] * times
    )
    validity = torch.tensor([True, False, True]).repeat(times)
    assert (
        texts(Column(VARCHAR, 3 * times, numbers, validity, pool))
        == ["ends", None, "a long string of byt"] * times
    )
    of_one_length = Column(VARCHAR, 2 * 3 * times, torch.tensor([0, 3]).repeat(3 * times), None, pool_of_rows)
    assert texts(of_one_length) == ["long", "ends"] * 3 * times


def test_long_string_columns_share_their_bytes():
    table = pa.table(
        {"s": pa.array([None if i % 7 == 0 else f"string {i}" for i in range(6000)], pa.large_string())}
    )
    result = result_of(table)
    assert result.to_arrow()["s"].to_pylist() == table["s"].to_pylist()
    exported, original = (t["s"].chunk(0).buffers()[2] for t in (result.to_arrow(), table))
    assert exported.address == original.address


class _Operations(TorchDispatchMode):
    """The names of torch's operations on many values, views apart."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.numel() > 1_000 and not function.is_view:
            self.names.append(str(function))
        return result


def test_arrow_is_made_without_operations_that_torch_divides_among_threads() -> None:
    # its threads would go on spinning for a while, where the next query's workers need their processors
    rows = 50_000
    words = [None if i % 7 == 3 else f"word {i % 5_000} ä" for i in range(rows)]
    table = pa.table({"i": range(rows), "s": words, "u": [f"{i} is unique" for i in range(rows)]})
    columns = "i, s, u, i * 0.5::DOUBLE AS x, i > 7 AS b, (i * 1.25)::DECIMAL(12, 2) AS d, upper(u) AS c, s || u AS v"
    for query in (f"SELECT {columns} FROM t", f"SELECT {columns} FROM t WHERE i % 3 = 1 ORDER BY u DESC"):
        result = tqp.sql(query, {"t": table})
        with _Operations() as operations:
            found = result.to_arrow()
        assert operations.names == []
        assert found.num_rows in (rows, 16_667)
        assert found.column("u").to_pylist()[-1] in (f"{rows - 1} is unique", "10 is unique", "1 is unique")
