"""What is read for one query only: lazy frames, datasets and generators among the caller's variables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.parquet as pq
import pytest

import tqp
from tqp.data.sources.objects import lazy_tables

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"], "c": [0.5, 1.5, 2.5]})


@pytest.fixture(params=["lazy frame", "dataset"])
def lazy(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "lazy frame":
        return pl.DataFrame(TABLE).lazy()
    pq.write_table(TABLE, tmp_path / "t.parquet")
    return pds.dataset(tmp_path)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The columns of each time that some are read."""
    found: list[list[str]] = []
    make = lazy_tables.LazyTable.__init__

    def watched(self: Any, name: str, empty: Any, read: Any, device: Any, *wanted: Any) -> None:
        def seen(names: list[str], wanted: Any) -> pa.Table:
            found.append(list(names))
            return read(names, wanted)

        make(self, name, empty, read if wanted else seen, device, *wanted)

    monkeypatch.setattr(lazy_tables.LazyTable, "__init__", watched)
    return found


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize(
    ("query", "rows", "columns"),
    [
        ("SELECT sum(a) FROM lazy", [(6,)], [["a"]]),
        ("SELECT b FROM lazy WHERE a > 1", [(None,), ("z",)], [["a", "b"]]),
        ("SELECT count(*) FROM lazy", [(3,)], [["a"]]),
        ("SELECT sum(x.a + y.a) FROM lazy x JOIN lazy y USING (c)", [(12,)], [["a", "c"]]),
        ("FROM lazy LIMIT 1", [(1, "x", 0.5)], [["a", "b", "c"]]),
        ("SELECT column_name FROM (DESCRIBE lazy)", [("a",), ("b",), ("c",)], []),
    ],
)
def test_what_a_query_does_not_name_is_not_read(
    lazy: Any, read: list[list[str]], backend: str, query: str, rows: list[Any], columns: list[list[str]]
) -> None:
    with tqp.connect(backend=backend) as connection:
        assert connection.sql(query).fetchall() == rows
    assert list(map(sorted, read)) == columns


@pytest.fixture
def num_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of each time that some are read."""
    found: list[int] = []
    fetch = lazy_tables.LazyTable._fetch

    def watched(self: Any, positions: Any) -> None:
        fetch(self, positions)
        found.append(self._num_rows)

    monkeypatch.setattr(lazy_tables.LazyTable, "_fetch", watched)
    return found


@pytest.mark.parametrize(
    ("query", "rows", "most"),
    [
        ("SELECT b FROM lazy WHERE a > 1", [(None,), ("z",)], 2),
        ("SELECT a FROM lazy WHERE 1 < a AND b IS NOT NULL", [(3,)], 1),
        ("SELECT a FROM lazy WHERE b IS NULL", [(2,)], 1),
        ("SELECT a FROM lazy WHERE b IN ('x', 'y')", [(1,)], 1),
        ("SELECT a FROM lazy WHERE a = 1 OR a = 3", [(1,), (3,)], 2),
        ("SELECT a FROM lazy WHERE a > 1 AND c < 2", [(2,)], 2),  # floats are left to the engine
        ("SELECT a FROM lazy WHERE c < 2", [(1,), (2,)], 3),
        ("SELECT x.a, y.a FROM lazy x, lazy y WHERE x.a = 1 AND y.a = 2", [(1, 2)], 2),
        ("SELECT x.a, y.a FROM lazy x, lazy y WHERE x.a = 1 AND y.a = 1", [(1, 1)], 1),
        ("SELECT x.a FROM lazy x LEFT JOIN lazy y ON y.a = 2 WHERE x.a = 1", [(1,)], 2),
        ("SELECT a FROM lazy WHERE a > $least", [(3,)], 1),
        ("CREATE TABLE t AS SELECT a FROM lazy WHERE a > 2; FROM t", [(3,)], 1),
    ],
)
def test_rows_that_simple_conditions_rule_out_are_not_read(
    lazy: Any, num_rows: list[int], query: str, rows: list[Any], most: int
) -> None:
    with tqp.connect() as connection:
        assert connection.sql(query, params={"least": 2} if "$" in query else None).fetchall() == rows
    assert set(num_rows) == {most}


def test_each_query_has_its_own_constants(lazy: Any) -> None:
    with tqp.connect() as connection:
        for least in (2, 1, 0, 2):
            query = f"SELECT count(*) FROM lazy WHERE a > {least}"
            assert connection.sql(query).fetchall() == [(3 - least,)]


_MOMENTS = [datetime(1969, 7, 20), datetime(2024, 1, 1, 12, 30, 1), None, datetime(2024, 1, 2)]
_DAYS = [moment and moment.date() for moment in _MOMENTS]
_TEXTS = ["", "a", None, "Zürich", "\U0001f600", "\uffff", "a\0b"]
_TYPED = {
    **{
        f"{kind}": pa.array([-3, 0, None, 100], kind)
        for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())
    },
    **{f"{kind}": pa.array([0, 3, None, 200], kind) for kind in (pa.uint8(), pa.uint32(), pa.uint64())},
    "text": pa.array(_TEXTS),
    "large_text": pa.array(_TEXTS, pa.large_string()),
    "text_view": pa.array(_TEXTS, pa.string_view()),
    "category": pa.array(_TEXTS).dictionary_encode(),
    "day": pa.array(_DAYS, pa.date32()),
    **{f"at_{unit}": pa.array(_MOMENTS, pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    "zoned": pa.array(_MOMENTS, pa.timestamp("us", "UTC")),
    "real": pa.array([math.nan, 1.5, None, math.inf]),
    "money": pa.array([Decimal("1.50"), None, Decimal("-0.25")], pa.decimal128(9, 2)),
    "truth": pa.array([True, False, None]),
    "time": pa.array([time(1), None, time(23, 59)], pa.time64("us")),
}


@pytest.mark.parametrize("frame", ["polars", "arrow"])
@pytest.mark.parametrize("kind", _TYPED)
def test_conditions_mean_the_same_there(kind: str, frame: str) -> None:
    table = pa.table({"a": _TYPED[kind], "i": range(len(_TYPED[kind]))})
    lazy = pl.DataFrame(table).lazy() if frame == "polars" else pds.dataset(table)
    with tqp.connect() as connection:
        connection.register("whole", lazy)
        texts = [text for (text,) in connection.sql("SELECT DISTINCT a::VARCHAR FROM whole").fetchall()]
        constants = ["'" + text + "'" for text in texts if text is not None]
        conditions = [
            "a IS NULL",
            "a IS NOT NULL",
            f"a IN ({', '.join(constants)})",
            f"a NOT IN ({constants[0]})",
            *(f"a {sign} {each}" for sign in ("=", "<>", "<", "<=", ">", ">=") for each in constants),
        ]
        for condition in conditions:
            query = "SELECT i FROM {} WHERE " + condition + " ORDER BY i"
            rows = connection.sql(query.format("lazy")).fetchall()
            assert rows == connection.sql(query.format("whole")).fetchall(), condition
    assert lazy is not None


def test_what_is_registered_is_read_then(lazy: Any, read: list[list[str]]) -> None:
    with tqp.connect() as connection:
        connection.register("t", lazy)
        assert connection.sql("SELECT sum(a) FROM t").fetchall() == [(6,)] and read == []


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    frame = pl.LazyFrame({"a": ["x"]}).with_columns(pl.col("a").cast(pl.Int64))
    missing = pl.scan_parquet(tmp_path / "nope.parquet")  # noqa: F841 (the query reads it)
    for name in ("frame", "missing"):
        with pytest.raises(tqp.BindError, match=f'table "{name}" cannot be read'):
            tqp.sql(f"SELECT max(a) FROM {name}")
    assert tqp.sql("SELECT 1").fetchall() == [(1,)] and frame is not None


def test_objects_in_a_lazy_frame() -> None:
    frame = pl.DataFrame({"a": pl.Series([b"x", None], dtype=pl.Object)}).lazy()  # noqa: F841 (the query reads it)
    assert tqp.sql("FROM frame").fetchall() == [(b"x",), (None,)]


def _batches() -> Iterator[pa.RecordBatch]:
    yield from TABLE.to_batches(max_chunksize=2)


@pytest.mark.parametrize(
    ("make", "rows"),
    [
        (_batches, TABLE.num_rows),
        (lambda: ({"a": i, "b": str(i)} for i in range(4)), 4),
        (lambda: zip(range(3), "xyz", strict=True), 3),
        (lambda: iter([pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [3]})]), 3),
        (lambda: iter([np.array([1, 2, 3]), np.array([4.5, 5.5, 6.5])]), 3),
    ],
)
def test_generators(make: Any, rows: int) -> None:
    generator = make()  # noqa: F841 (the query reads it)
    assert tqp.sql("SELECT count(*) FROM generator").fetchall() == [(rows,)]
    with pytest.raises(tqp.BindError, match="the iterator gives nothing"):
        tqp.sql("SELECT count(*) FROM generator")
    with tqp.connect() as connection:
        connection.register("t", make())
        assert connection.sql("SELECT count(*) FROM t").fetchall() == [(rows,)]
        assert connection.sql("SELECT count(*) FROM t").fetchall() == [(rows,)]


def test_a_generator_that_fails_is_named() -> None:
    def fails() -> Iterator[dict[str, int]]:
        yield {"a": 1}
        raise RuntimeError("the disk is gone")

    with (
        tqp.connect() as connection,
        pytest.raises(tqp.BindError, match='"t" cannot be read: the disk is gone'),
    ):
        connection.register("t", fails())


class Dataset:
    """As those of Hugging Face are: rows that are chosen, and formats."""

    def with_format(self, name: str) -> Dataset:
        assert name == "arrow"
        return self

    def __getitem__(self, rows: slice) -> pa.Table:
        return TABLE[rows]


Dataset.__module__ = "datasets.arrow_dataset"


def test_datasets_of_hugging_face() -> None:
    frame = Dataset()  # noqa: F841 (the query reads it)
    assert tqp.sql("SELECT sum(a), min(b) FROM frame").fetchall() == [(6, "x")]
