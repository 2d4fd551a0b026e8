"""Categoricals of pandas, Arrow and Polars: an ENUM where the order of the categories is declared, else text as in DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import tqp
from tests.oracle import duckdb_database

_VALUES = ["low", "high", None, "mid", "low"]
_CATEGORIES = ["low", "mid", "high"]
_CODES = pa.array([0, 2, None, 1, 0], pa.int8())
_ENUM_TYPE = "ENUM('low', 'mid', 'high')"


def _arrow(ordered: bool, indices: pa.Array = _CODES, entries: Any = _CATEGORIES) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(indices, pa.array(entries), ordered=ordered)


def _pandas(ordered: bool = True) -> pd.DataFrame:
    return pd.DataFrame({"s": pd.Categorical(_VALUES, categories=_CATEGORIES, ordered=ordered)})


#: Text in DuckDB too.
_TEXT: dict[str, Any] = {
    "arrow": pa.table({"s": _arrow(False)}),
    "polars": pl.DataFrame({"s": pl.Series(_VALUES, dtype=pl.Categorical)}),
    "arrow in pandas": pd.DataFrame({"s": pd.Series(_arrow(False), dtype=pd.ArrowDtype(_arrow(False).type))}),
}
#: Of which DuckDB makes an ENUM.
_PANDAS = {"pandas": _pandas(ordered=False), "pandas, ordered": _pandas()}
#: With an order that DuckDB forgets.
_ORDERED: dict[str, Any] = {
    "arrow, ordered": pa.table({"s": _arrow(True)}),
    "arrow in pandas, ordered": pd.DataFrame(
        {"s": pd.Series(_arrow(True), dtype=pd.ArrowDtype(_arrow(True).type))}
    ),
    "arrow, views": pa.table({"s": _arrow(True, entries=pa.array(_CATEGORIES, pa.string_view()))}),
    "arrow, more and more": pa.table(
        {
            "s": pa.chunked_array(
                [_arrow(True, _CODES[:1], _CATEGORIES[:1]), _arrow(True, _CODES[1:], _CATEGORIES)]
            )
        }
    ),
    "polars, enum": pl.DataFrame({"s": pl.Series(_VALUES, dtype=pl.Enum(_CATEGORIES))}),
    "polars, lazy": pl.LazyFrame({"s": pl.Series(_VALUES, dtype=pl.Enum(_CATEGORIES))}),
    "dict of pandas": {"s": _pandas()["s"]},
    "dict of polars": {"s": pl.Series(_VALUES, dtype=pl.Enum(_CATEGORIES))},
}
_QUERIES = [
    "SELECT typeof(s) FROM t",
    "SELECT s, s < 'low', 'low' > s, s BETWEEN 'low' AND 'mid' FROM t",
    "SELECT s FROM t WHERE s IN ('low', 'other') OR s = 'other'",
    "SELECT s FROM t WHERE s > ALL (SELECT 'low')",
    "SELECT s || '!', upper(s), greatest(s, 'low'), coalesce(s, 'none') FROM t",
    "SELECT s FROM t UNION SELECT 'a text' ORDER BY 1",
    "SELECT s, count(*) FROM t GROUP BY s ORDER BY s",
    "SELECT a.s FROM t AS a JOIN (SELECT 'low' AS x) AS b ON a.s < b.x",
    "SELECT s FROM t ORDER BY s DESC NULLS LAST",
    "SELECT min(s), max(s) FROM t",
    "SELECT a.s, b.s FROM t AS a JOIN t AS b ON a.s < b.s ORDER BY 1, 2",
    "SELECT s FROM t WHERE s > (SELECT min(s) FROM t) ORDER BY s",
]


def _ours(query: str, data: Any, **options: Any) -> list[Any]:
    with tqp.connect(threads=1, **options) as connection:
        return connection.register("t", data).sql(query).fetchall()


def _theirs(query: str, data: Any) -> list[Any]:
    with duckdb_database() as connection:
        connection.register("t", data)
        return connection.sql(query).fetchall()


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("kind", [*_TEXT, *_PANDAS])
def test_categories_are_what_they_are_in_duckdb(kind: str, query: str, backend: str) -> None:
    data = {**_TEXT, **_PANDAS}[kind]
    assert _ours(query, data, backend=backend) == _theirs(query, data)


@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("kind", _ORDERED)
def test_a_declared_order_is_kept(kind: str, query: str) -> None:
    """An intended difference (docs/semantics.md): as of a pandas categorical, where DuckDB has text."""
    assert _ours(query, _ORDERED[kind]) == _theirs(query, _pandas())


@pytest.mark.parametrize("data", [*_PANDAS.values(), *_ORDERED.values()])
def test_before_the_column_is_read_its_type_is_known(data: Any) -> None:
    with tqp.connect(threads=1) as connection:
        result = connection.register("t", data).sql("SELECT s FROM t WHERE false")
        assert str(result.types[0]) == _ENUM_TYPE and result.fetchall() == []


_NOT_ONE_ORDER = {
    "two orders": pa.chunked_array([_arrow(True), _arrow(True, entries=_CATEGORIES[::-1])]),
    "NULL": _arrow(True, entries=["low", None, "high"]),
    "twice": _arrow(True, entries=["low", "low", "high"]),
    "no dictionary at all": pa.chunked_array([], _arrow(True).type),
}


@pytest.mark.parametrize("kind", _NOT_ONE_ORDER)
def test_ordered_dictionaries_without_one_order_are_text(kind: str) -> None:
    data = pa.table({"s": _NOT_ONE_ORDER[kind]})
    for query in ("SELECT typeof(s), s FROM t", "SELECT s FROM t ORDER BY s"):
        assert _ours(query, data) == _theirs(query, data)


def test_categories_of_anything_but_text_are_their_values() -> None:
    frame = pd.DataFrame({"s": pd.Categorical([3, 1, 2], categories=[3, 1, 2], ordered=True)})
    assert _ours("SELECT typeof(s), s FROM t ORDER BY s", frame) == _theirs(
        "SELECT typeof(s), s FROM t ORDER BY s", frame
    )


@pytest.mark.parametrize("num_categories", [1, 255, 256, 257, 65_535, 65_536, 70_000])
def test_many_categories(num_categories: int) -> None:
    """The positions need more bytes, and more values than a table over all of them is made for."""
    words = [f"w{number * 7919 % num_categories:06}é" for number in range(num_categories)]
    assert len(set(words)) == num_categories
    codes = np.arange(0, num_categories, max(1, num_categories // 1000))
    codes = np.concatenate([codes, [num_categories - 1, -1]])
    frame = pd.DataFrame({"s": pd.Categorical.from_codes(codes, words)})
    for query in (
        "SELECT s, enum_code(s), typeof(enum_code(s)) FROM t ORDER BY s",
        "SELECT min(s), max(s), max(s::VARCHAR), count(DISTINCT s), count(*) FROM t",
        "SELECT s::VARCHAR, count(*) FROM t WHERE s LIKE '%1%' AND s > 'w0001' GROUP BY s ORDER BY 1",
        "SELECT count(*) FROM t AS a JOIN t AS b ON a.s = b.s::VARCHAR",
    ):
        expected = _theirs(query, frame)
        for backend in ("host", "torch"):
            assert _ours(query, frame, backend=backend) == expected
    with tqp.connect(threads=1) as connection, duckdb_database() as oracle:
        oracle.register("t", frame)
        ours, theirs = (each.sql("SELECT s FROM t") for each in (connection.register("t", frame), oracle))
        index_type = theirs.to_arrow_table().schema.field(0).type.index_type
        assert ours.to_arrow().schema.field(0).type == pa.dictionary(index_type, pa.string(), ordered=True)
        pd.testing.assert_frame_equal(ours.to_pandas(), theirs.df())


@pytest.mark.parametrize(
    "categories",
    [pd.Index([], dtype="str"), pd.Index([], dtype=object), ["a\0b", "a", ""], ["é", "e\u0301", "日本", "'"]],
)
def test_strange_categories(categories: Any) -> None:
    frame = pd.DataFrame({"s": pd.Categorical([*categories, None], categories=categories)})
    for query in (
        "SELECT typeof(s), s FROM t ORDER BY s DESC",
        "SELECT s, s = 'a', s::VARCHAR || 'x', enum_first(s), enum_last(s), enum_code(s) FROM t",
        "SELECT min(s), max(s), count(s), count(DISTINCT s) FROM t",
        "SELECT s, count(*) FROM t GROUP BY s ORDER BY s",
        "SELECT s FROM t UNION SELECT 'z' ORDER BY 1",
    ):
        assert _ours(query, frame) == _theirs(query, frame)
    for data in (frame, frame.iloc[:0]):
        with tqp.connect(threads=1) as connection, duckdb_database() as oracle:
            oracle.register("t", data)
            ours = connection.register("t", data).sql("FROM t").to_pandas()
            pd.testing.assert_frame_equal(ours, oracle.sql("FROM t").df())


def test_ways_out_and_in_again() -> None:
    with tqp.connect(threads=1) as connection:
        connection.register("t", _pandas())
        result = connection.sql("SELECT s, min(s) AS least FROM t GROUP BY s ORDER BY s")
        rows = [("low", "low"), ("mid", "mid"), ("high", "high"), (None, None)]
        assert result.fetchall() == rows and result.to_polars().rows() == rows
        frame, table = result.to_pandas(), result.to_arrow()
        assert frame["s"].dtype == pd.CategoricalDtype(_CATEGORIES, ordered=True)
        assert table.schema.field("s").type == pa.dictionary(pa.uint8(), pa.string(), ordered=True)
        assert table["least"].chunk(0).dictionary.to_pylist() == _CATEGORIES
        with pytest.raises(tqp.ExecutionError, match="has no tensor form"):
            result.to_torch()
        assert result.to_torch(strings="codes")["s"].tolist()[:3] == [0, 1, 2]
        assert f"│ {_ENUM_TYPE} │" in repr(result)
        for again in (frame, table):
            connection.register("u", again)
            assert connection.sql("SELECT s FROM u ORDER BY s DESC NULLS LAST LIMIT 1").fetchall() == [
                ("high",)
            ]


def test_files(tmp_path: Path) -> None:
    """Arrow files hold the categories; Parquet files hold text."""
    table = pa.table({"s": _arrow(True)})
    feather, parquet = str(tmp_path / "t.arrow"), str(tmp_path / "t.parquet")
    with pa.ipc.new_file(feather, table.schema) as file:
        file.write_table(table)
    pq.write_table(table, parquet)
    query = "SELECT typeof(s), s FROM t WHERE s IS NOT NULL ORDER BY s LIMIT 1"
    assert _ours(query, feather) == [(_ENUM_TYPE, "low")]
    assert _ours(query, parquet) == [("VARCHAR", "high")]


def test_programs_say_their_types() -> None:
    with tqp.connect(threads=1, backend="torch") as connection:
        connection.register("t", _pandas())
        program = connection.compile("SELECT CAST(s || '' AS ENUM('low', 'high', 'mid')) FROM t")
        assert "enum(('low', 'high', 'mid'))" in program.code
        exec(program.code, {})  # noqa: S102 - it is what the program says of itself


def test_constants_are_compared_as_positions() -> None:
    with tqp.connect(threads=1) as connection:
        connection.register("t", _pandas())
        for condition, planned in (
            ("s = 'low'", "Filter s = 'low' "),
            ("'low' <> s", "Filter s <> 'low' "),
            ("s IN ('low', 'other', 'mid')", "Filter s IN ('low', 'mid') "),
            ("s = 'low' OR s = 'mid'", "Filter s IN ('low', 'mid') "),
            ("s < 'low'", "Filter CAST(s AS VARCHAR) < 'low' "),
            ("s = 'other'", "Filter CAST(s AS VARCHAR) = 'other' "),
        ):
            assert planned in connection.explain(f"SELECT count(*) FROM t WHERE {condition}")


def test_gradients_end_at_enums() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with tqp.connect(threads=1, backend="torch") as connection:
        connection.register("t", {"x": x, "s": pd.Series(pd.Categorical(["a", "b"]))})
        with pytest.raises(tqp.UnsupportedError, match='the output "s" is ENUM'):
            connection.compile("SELECT s, x FROM t", differentiable=True)


def test_the_texts_are_part_of_what_a_table_takes() -> None:
    long, short = (pd.DataFrame({"s": pd.Categorical([letter * 9_000])}) for letter in ("ab", "c"))
    with tqp.connect(threads=1) as connection:
        taken = []
        for frame in (long, short):
            connection.register("t", frame).sql("SELECT s FROM t")
            taken.append(connection._snapshot().lookup("t").memory_bytes)
    assert taken[0] - taken[1] == 9_000
