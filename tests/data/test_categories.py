"""Categoricals of pandas, Arrow and Polars: text here; DuckDB makes an ENUM of pandas' alone, which has an order of its own."""

from __future__ import annotations

from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tqp

_VALUES = ["low", "high", None, "mid", "low"]
_CATEGORIES = ["low", "mid", "high"]
_CODES = pa.array([0, 2, None, 1, 0], pa.int8())

_TEXT: dict[str, Any] = {
    "arrow": pa.table({"s": pa.DictionaryArray.from_arrays(_CODES, _CATEGORIES)}),
    "arrow, ordered": pa.table({"s": pa.DictionaryArray.from_arrays(_CODES, _CATEGORIES, ordered=True)}),
    "polars": pl.DataFrame({"s": pl.Series(_VALUES, dtype=pl.Categorical)}),
    "polars, enum": pl.DataFrame({"s": pl.Series(_VALUES, dtype=pl.Enum(_CATEGORIES))}),
}
_ENUM = {
    name: pd.DataFrame({"s": pd.Categorical(_VALUES, categories=_CATEGORIES, ordered=ordered)})
    for name, ordered in (("pandas", False), ("pandas, ordered", True))
}
#: By the text of the values in both.
_BY_TEXT = [
    "SELECT s, s < 'low', 'low' > s, s BETWEEN 'low' AND 'mid' FROM t",
    "SELECT s FROM t WHERE s IN ('low', 'other') OR s = 'other'",
    "SELECT s FROM t WHERE s > ALL (SELECT 'low')",
    "SELECT s || '!', upper(s), greatest(s, 'low'), coalesce(s, 'none') FROM t",
    "SELECT s FROM t UNION SELECT 'a text' ORDER BY 1",
    "SELECT s FROM t ORDER BY s::VARCHAR",
    "SELECT s, count(*) FROM t GROUP BY s ORDER BY count(*) DESC, s::VARCHAR",
    "SELECT a.s FROM t AS a JOIN (SELECT 'low' AS x) AS b ON a.s < b.x",
]
#: By the positions of the categories, where DuckDB makes an ENUM of them.
_BY_POSITION = [
    "SELECT s FROM t ORDER BY s",
    "SELECT s FROM t ORDER BY s DESC NULLS LAST",
    "SELECT min(s), max(s) FROM t",
    "SELECT a.s, b.s FROM t AS a JOIN t AS b ON a.s < b.s ORDER BY 1, 2",
    "SELECT s FROM t WHERE s > (SELECT min(s) FROM t) ORDER BY s",
]


def _both(query: str, data: Any) -> tuple[list[Any], list[Any]]:
    with tqp.connect(threads=1) as ours, duckdb.connect() as theirs:
        theirs.register("t", data)
        return ours.register("t", data).sql(query).fetchall(), theirs.sql(query).fetchall()


@pytest.mark.parametrize("query", [*_BY_TEXT, *_BY_POSITION, "SELECT typeof(s) FROM t"])
@pytest.mark.parametrize("kind", _TEXT)
def test_dictionaries_are_text(kind: str, query: str) -> None:
    ours, theirs = _both(query, _TEXT[kind])
    assert ours == theirs


@pytest.mark.parametrize("query", _BY_TEXT)
@pytest.mark.parametrize("kind", _ENUM)
def test_categoricals_meet_text_as_text(kind: str, query: str) -> None:
    ours, theirs = _both(query, _ENUM[kind])
    assert ours == theirs


@pytest.mark.parametrize("query", _BY_POSITION)
@pytest.mark.parametrize("kind", _ENUM)
def test_categoricals_sort_by_their_text(kind: str, query: str) -> None:
    """An intended difference (docs/semantics.md): DuckDB sorts them by position, whether they are ordered or not."""
    ours, theirs = _both(query, _ENUM[kind])
    assert ours != theirs and ours == _both(query, _TEXT["arrow"])[0]


def test_categories_in_the_order_of_their_text_are_no_difference() -> None:
    frame = pd.DataFrame({"s": pd.Series(_VALUES).astype("category")})
    for query in (*_BY_TEXT, *_BY_POSITION):
        ours, theirs = _both(query, frame)
        assert ours == theirs, query


def test_a_table_of_positions_sorts_categories() -> None:
    frame = _ENUM["pandas, ordered"]
    categories = frame["s"].cat.categories
    positions = {"s": list(categories), "position": range(len(categories))}
    with tqp.connect(threads=1) as connection:
        connection.register("t", frame).register("positions", pd.DataFrame(positions))
        rows = connection.sql("SELECT s FROM t LEFT JOIN positions USING (s) ORDER BY position").fetchall()
    assert rows == _both("SELECT s FROM t ORDER BY s", frame)[1]
