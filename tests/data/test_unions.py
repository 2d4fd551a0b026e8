"""Unions on their way in and out: Arrow of both modes, pandas, NumPy, Polars, Parquet, CSV, JSON and exported databases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tqp
from tests.oracle import duckdb_database

TYPE = "UNION(n INTEGER, s VARCHAR)"
#: A member of each kind, a union that is NULL, and members that are.
MAKE = f"""
    CREATE TABLE t AS SELECT i, CASE i WHEN 1 THEN 7::{TYPE} WHEN 2 THEN 'é, x' WHEN 4 THEN union_value(n := NULL)
    WHEN 5 THEN union_value(s := NULL) END AS u FROM range(1, 6) r(i)
"""
TOLD_APART = "SELECT u, union_tag(u), u IS NULL FROM {} ORDER BY i"


def _sparse(tags: list[int]) -> pa.UnionArray:
    members = [pa.array([1, None, 5, 2], pa.int32()), pa.array(["x", "y", "z", None])]
    return pa.UnionArray.from_sparse(pa.array(tags, pa.int8()), members, ["n", "s"])


SPARSE = _sparse([0, 1, 1, 0])


def _nested(union: pa.Array) -> dict[str, pa.Array]:
    some = pa.array([False, True, False, False])
    return {
        "whole": union,
        "slice": union.slice(1, 2),
        "chunks": pa.chunked_array([union, union.slice(2)]),
        "none": union.slice(0, 0),
        "struct": pa.StructArray.from_arrays([union, pa.array([1, 2, 3, 4])], ["u", "i"], mask=some),
        "structs": pa.StructArray.from_arrays([pa.StructArray.from_arrays([union], ["u"])], ["s"], mask=some),
        "list": pa.ListArray.from_arrays(pa.array([0, 2, None, 4], pa.int32()), union),
        "array": pa.FixedSizeListArray.from_arrays(union, 2),
        "map": pa.MapArray.from_arrays([0, 2, 4], pa.array([1, 2, 3, 4]), union),
        "union": pa.UnionArray.from_sparse(
            pa.array([0, 0, 1, 0], pa.int8()), [union, pa.array([1.5] * 4)], ["a", "b"]
        ),
    }


@pytest.mark.parametrize("tags", [[0, 1, 1, 0], [1, 0, 0, 1], [1, 1, 1, 1]])
def test_sparse_unions_of_arrow(tags: list[int]) -> None:
    for name, values in _nested(_sparse(tags)).items():
        given = pa.table({"x": values})
        result = tqp.sql("FROM t", {"t": given})
        expected = duckdb.sql("FROM given")
        assert list(result.types) == list(map(str, expected.types)), name
        assert result.fetchall() == expected.fetchall(), name
        assert result.to_arrow().to_pylist() == expected.to_arrow_table().to_pylist(), name
        assert result.to_arrow().schema.types == expected.to_arrow_table().schema.types, name
        assert tqp.sql("FROM t", {"t": result.to_arrow()}).fetchall() == expected.fetchall(), name


def test_tags_and_offsets_of_arrow() -> None:
    members = [pa.array([1, None, 9], pa.int32()), pa.array(["x", "y"])]
    dense = pa.UnionArray.from_dense(
        pa.array([7, 5, 7, 5, 5], pa.int8()),
        pa.array([0, 0, 1, 1, 2], pa.int32()),
        members,
        ["n", "s"],
        [5, 7],
    )
    for values, rows in (
        (dense, ["x", 1, "y", None, 9]),
        (dense.slice(2), ["y", None, 9]),
        (dense.slice(1, 2), [1, "y"]),
        (dense.slice(5), []),
    ):
        result = tqp.sql(
            "SELECT u, union_tag(u) AS tag, u IS NULL AS is_null FROM t", {"t": pa.table({"u": values})}
        )
        assert list(result.types) == [TYPE, "ENUM('n', 's')", "BOOLEAN"]
        tags = [None if row is None else "s" if isinstance(row, str) else "n" for row in rows]
        assert result.fetchall() == [(row, tag, row is None) for row, tag in zip(rows, tags, strict=True)]
        lists = pa.ListArray.from_arrays([0, len(values)], values)
        assert tqp.sql("SELECT l FROM t", {"t": pa.table({"l": lists})}).fetchall() == [(rows,)]


def test_ways_out() -> None:
    with tqp.connect() as connection, duckdb_database() as oracle:
        for each in (connection, oracle):
            each.execute(MAKE)
        ours, theirs = (each.sql("SELECT u FROM t ORDER BY i") for each in (connection, oracle))
        assert ours.fetchall() == theirs.fetchall() == [(7,), ("é, x",), (None,), (None,), (None,)]
        mine, other = ours.to_arrow()["u"].chunk(0), theirs.to_arrow_table()["u"].chunk(0)
        assert mine.type == other.type and mine.type_codes == other.type_codes
        assert [mine.field(place).to_pylist() for place in range(2)] == [
            other.field(place).to_pylist() for place in range(2)
        ]
        assert ours.to_pandas()["u"].tolist() == [7, "é, x", None, None, None]
        assert ours.fetchnumpy()["u"].tolist() == [7, "é, x", None, None, None]
        assert "│ é, x " in str(ours) and "UNION(n INTEGER, s VARCHAR)" in str(ours)
        with pytest.raises(tqp.UnsupportedError, match='column "u" is UNION.*Polars has no unions'):
            ours.to_polars()
        with pytest.raises(tqp.UnsupportedError, match="Polars has no unions"):
            connection.sql("SELECT [u] AS u FROM t").to_polars()
        with pytest.raises(tqp.ExecutionError, match="has no tensor form"):
            ours.to_torch()
        nested = (
            "SELECT [u, u], {'u': u}, MAP {i: u}, union_value(w := u), [u]::" + TYPE + "[1] FROM t ORDER BY i"
        )
        assert connection.sql(nested).fetchall() == oracle.sql(nested).fetchall()
        keys = "SELECT MAP {u: i} FROM t WHERE i < 3 ORDER BY i"
        assert connection.sql(keys).fetchall() == oracle.sql(keys).fetchall()
        keys = "SELECT MAP {union_value(l := [i]): i} FROM t ORDER BY i"
        assert connection.sql(keys).fetchall() == oracle.sql(keys).fetchall()


def test_more_members_than_arrow_has() -> None:
    many = f"UNION({', '.join(f'a{place} INTEGER' for place in range(200))})"
    result = tqp.sql(f"SELECT u, union_tag(u) FROM (SELECT union_value(a150 := 5)::{many} AS u) ORDER BY u")
    assert result.fetchall() == [(5, "a150")]
    with pytest.raises(tqp.UnsupportedError, match="at most 128 members"):
        result.to_arrow()
    with pytest.raises(tqp.BindError, match="at most 255 members"):
        tqp.sql(f"SELECT NULL::UNION({', '.join(f'a{place} INTEGER' for place in range(256))})")


def test_parquet(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.parquet", tmp_path / "theirs.parquet"
    query = "SELECT i, u, [u] AS l, {'u': u} AS s FROM t"
    with tqp.connect() as connection, duckdb_database() as oracle:
        for each, file in ((connection, ours), (oracle, theirs)):
            each.execute(MAKE)
            each.execute(f"COPY ({query}) TO '{file}'")
        assert pq.read_schema(ours).field("u").type == pq.read_schema(theirs).field("u").type
        for file in (ours, theirs):
            read = f"SELECT u, l, s, u::{TYPE}, l::{TYPE}[] FROM '{file}' ORDER BY i"
            assert connection.sql(read).fetchall() == oracle.sql(read).fetchall()
            for each in (connection, oracle):
                each.execute(f"CREATE OR REPLACE TABLE back (i INTEGER, u {TYPE})")
                each.execute(f"INSERT INTO back SELECT i, u FROM '{file}'")
            told_apart = TOLD_APART.format("back")
            assert connection.sql(told_apart).fetchall() == oracle.sql(told_apart).fetchall()
            assert oracle.sql(told_apart).fetchall()[2:] == [
                (None, None, True),
                (None, "n", False),
                (None, "s", False),
            ]


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_files_of_text(tmp_path: Path, kind: str) -> None:
    ours, theirs = tmp_path / f"ours.{kind}", tmp_path / f"theirs.{kind}"
    query = "SELECT i, u, [u] AS l, {'u': u} AS s, union_value(d := DATE '2020-01-31') AS d FROM t ORDER BY i"
    with tqp.connect() as connection, duckdb_database() as oracle:
        for each, file in ((connection, ours), (oracle, theirs)):
            each.execute(MAKE)
            each.execute(f"COPY ({query}) TO '{file}'")
        assert ours.read_text() == theirs.read_text()
        for each in (connection, oracle):
            each.execute(f"COPY (SELECT i, u FROM t ORDER BY i) TO '{ours}'")
            each.execute(f"CREATE TABLE back (i INTEGER, u {TYPE})")
            each.execute(f"COPY back FROM '{ours}'")
        told_apart = TOLD_APART.format("back")
        assert connection.sql(told_apart).fetchall() == oracle.sql(told_apart).fetchall()
        typed = f"SELECT * FROM read_{kind}('{ours}', columns = {{'i': 'INTEGER', 'u': '{TYPE}'}}) ORDER BY i"
        if kind == "csv":
            assert connection.sql(typed).fetchall() == oracle.sql(typed).fetchall()
        else:
            with pytest.raises(tqp.UnsupportedError, match=r"UNION as the type of a column of read_json\(\)"):
                connection.sql(typed)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_exported_databases(tmp_path: Path, form: str) -> None:
    with tqp.connect() as connection:
        connection.execute(MAKE)
        connection.execute(f"EXPORT DATABASE '{tmp_path}' (FORMAT {form})")
    with tqp.connect() as connection, duckdb_database() as oracle:
        for each in (connection, oracle):
            each.execute(f"IMPORT DATABASE '{tmp_path}'")
        told_apart = TOLD_APART.format("t")
        assert connection.sql(told_apart).fetchall() == oracle.sql(told_apart).fetchall()


def test_json_of_results(capsys: pytest.CaptureFixture[str]) -> None:
    from tqp.data.results.formats import write_table

    result: Any = tqp.sql("SELECT 'x'::UNION(n INTEGER, s VARCHAR) AS u, [union_value(n := NULL)] AS l")
    import sys

    write_table(result._table, "json", sys.stdout)
    assert capsys.readouterr().out == '[{"u": {"s": "x"}, "l": [{"n": null}]}]\n'


def test_frames_of_nested_unions_and_bits() -> None:
    bits = "SELECT {'k': '01'::BIT}, [{'k': '01'::BIT}], [['01'::BIT], [], NULL]"
    unions = f"SELECT [7::{TYPE}, 'x'], {{'k': [7::{TYPE}]}}, [[7::{TYPE}]], [7::{TYPE}]::{TYPE}[1], MAP {{1: 7::{TYPE}}}"
    for query in (
        bits,
        unions,
        f"{unions} UNION ALL SELECT NULL, NULL, NULL, NULL, NULL",
        f"{unions} LIMIT 0",
    ):
        ours, theirs = (_plain(each.sql(query).df().values.tolist()) for each in (tqp, duckdb))
        assert ours == theirs, query


def _plain(value: Any) -> Any:
    """Arrays as lists, and one sort of NULL and of bytes."""
    if value is pd.NA or value is np.ma.masked:
        return None
    if isinstance(value, (list, np.ndarray)):
        return [_plain(each) for each in value]
    return bytes(value) if isinstance(value, bytearray) else value
