"""What is read for one query only: lazy frames, datasets and generators among the caller's variables."""

from __future__ import annotations

from collections.abc import Iterator
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
    from tqp.data.sources.objects.lazy_tables import LazyTable

    found: list[list[str]] = []
    make = LazyTable.__init__

    def watched(self: Any, name: str, empty: Any, read: Any, device: Any) -> None:
        make(self, name, empty, lambda names: (found.append(list(names)), read(names))[1], device)

    monkeypatch.setattr(LazyTable, "__init__", watched)
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
