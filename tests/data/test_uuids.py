"""UUIDs on their way in and out: Arrow, pandas, parameters, Parquet, CSV and JSON."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tqp

IDS = [
    uuid.UUID(int=number)
    for number in (0, 1, 2**127 - 1, 2**127, 2**128 - 1, 0x019482E414417AAD8127EEC99573B0A0)
]


def _array(values: list[uuid.UUID | None]) -> Any:
    content = pa.array([each and each.bytes for each in values], pa.binary(16))
    return pa.ExtensionArray.from_storage(pa.uuid(), content)


def test_arrow_in_and_out() -> None:
    values = [*IDS, None, IDS[3]]
    for given in (
        _array(values),
        _array([None, None, *values])[2:],
        pa.chunked_array([_array(values[:3]), _array(values[3:])]),
    ):
        result = tqp.sql("SELECT u FROM t", {"t": pa.table({"u": given})})
        assert list(result.types) == ["UUID"]
        assert [row[0] for row in result.fetchall()] == values
        assert result.to_arrow().column("u").to_pylist() == [each and str(each) for each in values]
    ordered = tqp.sql("SELECT u FROM t ORDER BY u", {"t": pa.table({"u": _array(values)})}).fetchall()
    assert [row[0] for row in ordered] == sorted([*IDS, IDS[3]]) + [None]


def test_nested_in_arrow() -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 5], pa.int32()), _array(IDS[:5]))
    given = pa.table({"l": lists, "s": pa.StructArray.from_arrays([_array(IDS[:3])], names=["u"])})
    result = tqp.sql("SELECT l, s, l[1] AS first, s.u FROM t", {"t": given})
    assert list(result.types) == ["UUID[]", "STRUCT(u UUID)", "UUID", "UUID"]
    assert result.fetchall()[0] == (IDS[:2], {"u": IDS[0]}, IDS[0], IDS[0])
    assert result.fetchall() == duckdb.sql("SELECT l, s, l[1] AS first, s.u FROM given").fetchall()


def test_python_objects_and_parameters() -> None:
    frame = pandas.DataFrame({"u": [IDS[1], None, IDS[2]], "n": [1, 2, 3]})
    with tqp.connect() as connection:
        connection.register("t", frame)
        assert connection.sql("SELECT typeof(u), u FROM t").fetchall() == [
            ("UUID", IDS[1]),
            ("UUID", None),
            ("UUID", IDS[2]),
        ]
        assert connection.sql("SELECT n FROM t WHERE u = ?", [IDS[2]]).fetchall() == [(3,)]
        assert connection.sql("SELECT n FROM t WHERE u IN (?, $2)", [IDS[2], IDS[1]]).fetchall() == [
            (1,),
            (3,),
        ]
        assert connection.sql("SELECT n FROM t WHERE u > ?", [str(IDS[1])]).fetchall() == [(3,)]
        assert connection.sql("SELECT $u, typeof($u)", {"u": IDS[4]}).fetchall() == [(IDS[4], "UUID")]


def test_out_to_frames() -> None:
    result = tqp.sql("SELECT u FROM t", {"t": pa.table({"u": _array([IDS[1], None])})})
    assert result.to_pandas()["u"].tolist() == [IDS[1], None]
    assert result.to_polars()["u"].to_list() == [str(IDS[1]), None]
    numbers = tqp.sql("SELECT u FROM t", {"t": pa.table({"u": _array([IDS[1]])})}).fetchnumpy()["u"]
    assert numbers.dtype == np.dtype(object) and numbers[0] == IDS[1]
    assert str(IDS[1]) in str(result)
    with pytest.raises(tqp.ExecutionError, match="UUID, which has no tensor form"):
        result.to_torch()
    assert result.to_torch(strings="codes")["u"].shape == (2,)


def test_parquet(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.parquet", tmp_path / "theirs.parquet"
    given = pa.table({"u": _array([*IDS, None]), "n": list(range(7))})
    query = "SELECT u, n, [u] AS l, {'u': u} AS s, MAP {n: u} AS m FROM t"
    tqp.sql(query, {"t": given}).write_parquet(str(ours))
    assert pq.read_schema(ours).field("u").type == pa.uuid()
    duckdb.sql(query.replace("FROM t", "FROM given")).write_parquet(str(theirs))
    for file in (ours, theirs):
        read = f"SELECT u, l, s, m FROM '{file}' ORDER BY n"
        result = tqp.sql(read)
        assert list(result.types) == ["UUID", "UUID[]", "STRUCT(u UUID)", "MAP(BIGINT, UUID)"]
        assert result.fetchall() == duckdb.sql(read).fetchall()


def test_row_groups_of_parquet(tmp_path: Path) -> None:
    file = tmp_path / "groups.parquet"
    many = [uuid.UUID(int=number << 100) for number in range(5_000)]
    pq.write_table(pa.table({"u": _array(many), "n": list(range(5_000))}), file, row_group_size=1_000)
    with tqp.connect() as connection:
        for condition in (
            f"u = '{many[4321]}'",
            f"u > '{many[4998]}'",
            f"u < '{many[2]}'",
            f"u IN ('{many[7]}', '{many[3001]}')",
        ):
            query = f"SELECT n FROM '{file}' WHERE {condition} ORDER BY n"
            assert connection.sql(query).fetchall() == duckdb.sql(query).fetchall()


def test_texts_of_files(tmp_path: Path) -> None:
    table, csv, json = pa.table({"u": _array([IDS[1], None])}), tmp_path / "t.csv", tmp_path / "t.json"
    with tqp.connect() as connection:
        connection.register("t", table)
        connection.execute(f"COPY t TO '{csv}'")
        connection.execute(f"COPY t TO '{json}'")
        assert csv.read_text() == f"u\n{IDS[1]}\n\n" or csv.read_text() == f'u\n{IDS[1]}\n""\n'
        assert json.read_text() == f'{{"u":"{IDS[1]}"}}\n{{"u":null}}\n'
        typed = f"FROM read_csv('{csv}', types = {{'u': 'UUID'}})"
        assert connection.sql(typed).fetchall() == duckdb.sql(typed).fetchall()
        connection.execute("CREATE TABLE kept (u UUID)")
        connection.execute(f"COPY kept FROM '{csv}'")
        assert connection.sql("FROM kept").fetchall() == [(IDS[1],), (None,)]


def test_tables_that_statements_change() -> None:
    with tqp.connect() as connection:
        connection.execute("CREATE TABLE t (u UUID UNIQUE DEFAULT uuid(), l UUID[], n INTEGER)")
        connection.execute("INSERT INTO t (n) SELECT range FROM range(100)")
        connection.execute("UPDATE t SET l = [u, NULL] WHERE n % 2 = 0")
        connection.execute("DELETE FROM t WHERE n > 49")
        assert connection.sql("SELECT count(DISTINCT u), count(l), bool_and(l[1] = u) FROM t").fetchall() == [
            (50, 25, True)
        ]
        with pytest.raises(tqp.Error, match="UNIQUE|unique"):
            connection.execute("INSERT INTO t (u) SELECT u FROM t WHERE n = 3")
