"""Text that is not UTF-8, in Arrow or Parquet, which look at no byte: an error that names the column, whatever is asked."""

import itertools
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tqp

WAYS_OUT: tuple[Callable[[Any], object], ...] = (
    lambda r: r.fetchall(),
    repr,
    lambda r: r.to_pandas(),
    lambda r: r.to_arrow(),
)
QUERIES = ("SELECT s FROM t", "SELECT upper(s) FROM t", "SELECT s || 'x' FROM t", "SELECT count(s) FROM t")


def strings(values: list[bytes], arrow_type: pa.DataType) -> pa.Array:
    """An array of text that nobody checked."""
    binary = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}[arrow_type]
    made = pa.array(values, binary)
    return pa.Array.from_buffers(arrow_type, len(values), made.buffers())


BAD = [b"fine", b"\xff\xfe", "é".encode()]
HALVES = [b"\xc3", b"\xa9", b"a"]  # together they would be an e with an accent

COLUMNS: dict[str, pa.Array] = {
    "string": strings(BAD, pa.string()),
    "large_string": strings(BAD, pa.large_string()),
    "halves": strings(HALVES, pa.string()),
    "many": strings([b"row %d" % row for row in range(20_000)] + BAD, pa.string()),
    "few": strings(BAD * 5_000, pa.string()),
    "dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1]), strings(BAD, pa.string())),
    "view": pa.Array.from_buffers(
        pa.string_view(), 1, [None, pa.py_buffer(struct.pack("<i12s", 2, b"\xff\xfe"))]
    ),
}  # fmt: skip


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS.keys())
@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_text_that_is_not_utf8_is_an_error_that_names_the_column(
    tmp_path: Path, column: pa.Array, form: str
) -> None:
    table: Any = pa.table({"s": column, "n": pa.array(range(len(column)))})
    if form == "parquet":
        pq.write_table(table, tmp_path / "t.parquet")
        table = tmp_path / "t.parquet"
    with tqp.connect(threads=1) as connection:
        connection.register("t", table)
        for query, way_out in itertools.product(QUERIES, WAYS_OUT):
            with pytest.raises(
                tqp.ExecutionError, match='column "s" (holds text that is not UTF-8|.* Invalid UTF8)'
            ):
                way_out(connection.sql(query))
        assert connection.sql("SELECT count(*) FROM t WHERE n >= 0").fetchall() == [(len(column),)]


def test_bytes_that_belong_to_no_value_do_not_matter() -> None:
    values = strings([*BAD, "ü".encode()], pa.string())
    hidden = pa.Array.from_buffers(pa.string(), 4, [pa.py_buffer(b"\x0d"), *values.buffers()[1:]])
    for array, expected in (
        (hidden, ["fine", None, "é", "ü"]),
        (values[2:], ["é", "ü"]),
        (values[:1], ["fine"]),
    ):
        assert tqp.sql("FROM t", {"t": pa.table({"s": array})}).fetchall() == [(text,) for text in expected]


def test_any_bytes_are_a_blob() -> None:
    assert tqp.sql("FROM t", {"t": pa.table({"b": pa.array(BAD)})}).fetchall() == [(value,) for value in BAD]


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame({"s": pd.Series(["\ud800"], dtype=object)}),
        pd.DataFrame({"s": pd.Series(pd.array(["\ud800"], dtype="string[python]"))}),
        {"s": ["a", "\udcff"]},
        pd.DataFrame({"s": pd.Series([b"x", "\ud800"], dtype=object)}),
        pd.DataFrame({"s": pd.Categorical.from_codes([0, 0], pd.Index(["\ud800"], dtype=object))}),
    ],
)
def test_half_of_a_character_is_named(data: object) -> None:
    with pytest.raises(tqp.BindError, match='column "s" of table "t" holds text with .* half of a character'):
        tqp.sql("SELECT s FROM t", {"t": data})


def test_names_that_are_no_unicode() -> None:
    with pytest.raises(tqp.BindError, match="half of a character"):
        tqp.sql("SELECT 1 FROM t", {"t": {"\ud800": [1]}})
