"""BIT on its way in and out: Python, Arrow, frames, tensors, files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tqp
from tests.oracle import BIT_ARRAY, duckdb_database, with_bits

TEXTS = ["0", "1", "01", "0101", "11111111", "00000001", "000000001", "01" * 70, None]
_VALUES = ", ".join(f"('{text}'::BIT, {place})" for place, text in enumerate(TEXTS[:-1]))
ROWS = f"(VALUES {_VALUES}, (NULL, {len(TEXTS)})) t(b, n)"
QUERY = f"SELECT b, [b] AS l, {{'b': b}} AS s, MAP {{n: b}} AS m, [b]::BIT[1] AS a FROM {ROWS} ORDER BY n"
#: Answers whose rows lie in a dictionary, one after the other, and in another order.
QUERIES = [
    QUERY,
    "SELECT (i % 7)::TINYINT::BIT AS b FROM range(3000) r(i) ORDER BY i",
    "SELECT i::INTEGER::BIT AS b FROM range(3000) r(i) ORDER BY i",
    "SELECT CASE WHEN i % 5 > 0 THEN i::INTEGER::BIT END AS b FROM range(3000) r(i) ORDER BY i DESC",
    f"SELECT b FROM {ROWS} WHERE false",
    f"SELECT b FROM {ROWS} WHERE b IS NULL",
]


@pytest.mark.parametrize("query", QUERIES)
def test_results_are_those_of_duckdb(query: str) -> None:
    mine, other = tqp.sql(query), duckdb.sql(query)
    assert mine.fetchall() == other.fetchall()
    expected, actual = other.to_arrow_table(), mine.to_arrow()
    assert actual.schema.types == expected.schema.types
    assert actual.to_pylist() == expected.to_pylist()


def test_frames_and_tensors() -> None:
    mine, other = tqp.sql(f"SELECT b FROM {ROWS} ORDER BY n"), duckdb.sql(f"SELECT b FROM {ROWS} ORDER BY n")
    frame, expected = mine.to_pandas()["b"], other.df()["b"]
    assert frame.dtype == expected.dtype
    assert frame.tolist()[:-1] == [bytes(each) for each in expected.tolist()[:-1]] and frame.iloc[-1] is None
    assert mine.fetchnumpy()["b"].tolist() == other.fetchnumpy()["b"].tolist()
    assert mine.to_polars()["b"].to_list() == polars.from_arrow(other.to_arrow_table())["b"].to_list()  # type: ignore[index]
    assert "01" * 20 in str(tqp.sql("SELECT repeat('01', 20)::BIT"))
    with pytest.raises(tqp.ExecutionError, match="BIT, which has no tensor form"):
        mine.to_torch()
    assert mine.to_torch(strings="codes")["b"].shape == (len(TEXTS),)


def test_arrow_arrays_of_duckdbs_type_are_bits() -> None:
    table = with_bits(duckdb.sql(QUERY))
    assert table.schema.field("b").type == BIT_ARRAY
    with tqp.connect() as connection:
        for each in (table, pa.concat_tables([table, table]), table.slice(2, 5), table.slice(0, 0)):
            answer = connection.sql("FROM each")
            expected = duckdb.from_arrow(each)
            assert list(map(str, answer.types)) == list(map(str, expected.types))
            assert answer.fetchall() == expected.fetchall()
        storage = table["b"].cast(pa.binary()).cast(pa.large_binary())
        connection.register(
            "large", pa.table({"b": storage.cast(pa.opaque(pa.large_binary(), "bit", "DuckDB"))})
        )
        assert connection.sql("SELECT b FROM large").fetchall() == [(each,) for each in TEXTS]


@pytest.mark.parametrize("content", [b"", b"\x01", b"\x08\xff", b"\xff\xff\xff"])
def test_other_bytes_are_no_bits(content: bytes) -> None:
    storage = pa.array([b"\x07\xff", content], pa.binary())
    table = pa.table({"b": pa.ExtensionArray.from_storage(BIT_ARRAY, storage)})
    with pytest.raises(tqp.ExecutionError, match='column "b" holds bytes that are no BIT'):
        tqp.sql("FROM given", {"given": table})


def test_parameters_and_python_functions() -> None:
    with tqp.connect() as connection:
        for value in ("0101", b"a", 5, True):
            expected = duckdb.execute("SELECT $1::BIT", [value]).fetchall()
            assert connection.sql("SELECT $1::BIT", [value]).fetchall() == expected
        query = f"SELECT n FROM {ROWS} WHERE b IN ($1, $2) ORDER BY n"
        assert connection.sql(query, ["01", "1"]).fetchall() == [(1,), (2,)]
        connection.create_function("shown", lambda bits: f"<{bits}>", ["BIT"], "VARCHAR", type="native")
        assert connection.sql("SELECT shown('01'::BIT)").fetchall() == [("<01>",)]
        with pytest.raises(tqp.UnsupportedError, match="cannot return a BIT"):
            connection.create_function("made", str, ["VARCHAR"], "BIT", type="native")


def _rows(connection: Any, query: str) -> Sequence[Any]:
    rows: Sequence[Any] = connection.sql(query).fetchall()
    return rows


def test_files(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    query = f"(SELECT b, l, s, n FROM ({QUERY}), (SELECT 1 AS n) ORDER BY b)"
    with tqp.connect() as connection, duckdb_database() as oracle:
        for end in ("csv", "json", "parquet"):
            connection.execute(f"COPY {query} TO '{mine}.{end}'")
            oracle.execute(f"COPY {query} TO '{other}.{end}'")
            described = f"DESCRIBE FROM '{other}.{end}'"
            assert _rows(connection, described) == _rows(oracle, described)
        assert Path(f"{mine}.csv").read_text() == Path(f"{other}.csv").read_text()
        assert Path(f"{mine}.json").read_text() == Path(f"{other}.json").read_text()
        assert pq.read_table(f"{mine}.parquet").to_pylist() == pq.read_table(f"{other}.parquet").to_pylist()
        for each in (connection, oracle):
            each.execute("CREATE TABLE kept (b BIT, l BIT[], s STRUCT(b BIT), n INTEGER)")
            for end in ("csv", "parquet"):
                each.execute(f"COPY kept FROM '{other}.{end}'")
        read = f"SELECT b, typeof(b) FROM read_csv('{other}.csv', types = {{'b': 'BIT'}}) ORDER BY b"
        for same in ("SELECT *, typeof(b) FROM kept ORDER BY ALL", read):
            assert _rows(connection, same) == _rows(oracle, same)
        Path(f"{other}.csv").write_text("b\n01\n2\n")
        with pytest.raises(tqp.ExecutionError, match="'2'"):
            connection.sql(read).fetchall()
        for refused in (
            f"COPY kept FROM '{other}.json'",
            f"FROM read_json('{other}.json', columns = {{'b': 'BIT'}})",
        ):  # DuckDB cannot, either
            with pytest.raises(tqp.UnsupportedError, match="BIT"):
                connection.execute(refused)


def test_bits_in_a_parquet_file_of_arrow_are_bits(tmp_path: Path) -> None:
    table, file = with_bits(duckdb.sql(f"SELECT b FROM {ROWS} ORDER BY n")), tmp_path / "bits.parquet"
    pq.write_table(table, file)
    answer = tqp.sql(f"SELECT b, typeof(b) FROM '{file}'").fetchall()
    assert answer == [(each, "BIT") for each in TEXTS]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_database_goes_out_and_in(tmp_path: Path, form: str) -> None:
    with tqp.connect() as connection:
        connection.execute(f"CREATE TABLE t AS SELECT b, [b] AS l, n FROM {ROWS}")
        connection.execute(f"EXPORT DATABASE '{tmp_path}/db' (FORMAT {form})")
        expected = connection.sql("SELECT *, typeof(b), typeof(l) FROM t ORDER BY n").fetchall()
    for engine in (tqp.connect(), duckdb.connect()):
        with engine as connection:
            connection.execute(f"IMPORT DATABASE '{tmp_path}/db'")
            assert _rows(connection, "SELECT *, typeof(b), typeof(l) FROM t ORDER BY n") == expected


def test_few_values_of_many_rows_in_parquet(tmp_path: Path) -> None:
    rows = with_bits(duckdb.sql("SELECT (i % 7)::TINYINT::BIT AS b FROM range(9000) r(i)"))
    pq.write_table(rows, tmp_path / "t.parquet")
    found = tqp.sql(f"SELECT b, count(*) FROM '{tmp_path}/t.parquet' GROUP BY b ORDER BY b")
    assert found.fetchall() == [(f"{value:08b}", 9000 // 7 + (value < 9000 % 7)) for value in range(7)]
