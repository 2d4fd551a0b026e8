"""Lists given for a parameter: IN $list, = ANY($list), <> ALL($list) and their like answer as DuckDB does."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from datetime import time as clock
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

import tqp
from tests.oracle import duckdb_database

_NAN = float("nan")
_TABLES: dict[str, pa.Array] = {
    "integers": pa.array([1, 2, None, 4], pa.int32()),
    "bytes": pa.array([1, 2, None, 4, -5], pa.int8()),
    "unsigned": pa.array([2**64 - 1, 1, None], pa.uint64()),
    "texts": pa.array(["a", "b", None, "2020-01-01", "1", "é"]),
    "words": pa.array(["a", "b", None]).dictionary_encode(),
    "blobs": pa.array([b"a", None, b"b"]),
    "days": pa.array([date(2020, 1, 1), None], pa.date32()),
    "instants": pa.array([datetime(2020, 1, 1), None, datetime(2020, 1, 1, 1)], pa.timestamp("us")),
    "decimals": pa.array([Decimal("1.50"), Decimal("2.00"), None], pa.decimal128(10, 2)),
    "wide": pa.array([Decimal("1.50"), Decimal(10) ** 30, None], pa.decimal128(38, 2)),
    "doubles": pa.array([1.5, _NAN, None, 1.0, 0.0]),
    "floats": pa.array([1.5, _NAN, None, 0.1], pa.float32()),
    "flags": pa.array([True, False, None]),
    "empty": pa.array([], pa.int64()),
}
_LISTS: list[Any] = [
    [],
    [None],
    None,
    [1],
    [1, 2],
    (2, 1),
    [1, None],
    [300, 1, -5],
    list(range(-50, 50)),
    [2**40, 1],
    [2**64 - 1, 3],
    [2**70, 1],
    [True],
    [True, 2],
    [True, 1.5],
    [1, 1.5],
    [_NAN, 1.5, 0.1],
    [-0.0, 1.0, None],
    [number / 2 for number in range(40)] + [_NAN],
    [1, Decimal("1.5")],
    [Decimal("1.50"), 2],
    [Decimal(10) ** 30, *[Decimal(number) / 2 for number in range(30)]],
    ["a"],
    ["a", "é", "日本", None],
    [1, "a"],
    ["2020-01-01"],
    [b"a", b"x"],
    [date(2020, 1, 1)],
    [date(2020, 1, 1), datetime(2020, 1, 1, 1)],
    [clock(1)],
    [timedelta(1)],
    [[1]],
    np.array([1, 2], np.uint8),
    np.array([1.5, 2.0], np.float32),
    np.array([], np.int64),
    np.array(["a", None], object),
    np.array(["2020-01-01", "NaT"], "datetime64[us]"),
    5,
]
#: DuckDB refuses, or answers, all of a group.
_CONDITIONS = [
    ("x IN $l", "x NOT IN $l"),
    ("x = ANY($l)", "x <> ALL($l)", "x = SOME(($l))"),
    ("x <> ANY $l", "x < ANY($l)", "x >= ALL($l)"),
    ("1 IN $l", "1 = ANY($l)"),
    ("'2020-01-01' NOT IN $l", "'2020-01-01' = ANY($l)"),
    ("NULL IN $l", "NULL = ANY($l)"),
]


@pytest.fixture(params=["host", "torch"])
def con(request: pytest.FixtureRequest) -> Iterator[tqp.Connection]:
    with tqp.connect(threads=1, backend=request.param) as connection:
        for name, column in _TABLES.items():
            connection.register(name, pa.table({"x": column}))
        yield connection


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb_database() as connection:
        for name, column in _TABLES.items():
            connection.register(name, pa.table({"x": column}))
        yield connection


def _answer(connection: Any, query: str, values: object) -> str:
    """What it says, or that it refuses."""
    try:
        return repr(
            (connection.sql if isinstance(connection, tqp.Connection) else connection.execute)(
                query, {"l": values}
            ).fetchall()
        )
    except (duckdb.Error, tqp.Error):
        return "an error"


@cache
def _expected(oracle: duckdb.DuckDBPyConnection, query: str, place: int) -> str:
    """DuckDB's answer for one of `_LISTS`, which both backends are held against."""
    return _answer(oracle, query, _LISTS[place])


@pytest.mark.parametrize("conditions", _CONDITIONS)
def test_answers_are_those_of_duckdb(
    con: tqp.Connection, oracle: duckdb.DuckDBPyConnection, conditions: tuple[str, ...]
) -> None:
    answered = 0
    tables = _TABLES if conditions[0].startswith(("x IN", "x =")) else ["integers", "texts"]
    for table in tables:
        query = f"SELECT x, {', '.join(conditions)} FROM {table}"
        for place, values in enumerate(_LISTS):
            if conditions[0].startswith("NULL") and (values is None or repr(values) == "[[1]]"):
                continue  # ambiguous, and of a type that is not supported
            expected = _expected(oracle, query, place)
            assert _answer(con, query, values) == expected, (query, values)
            answered += expected != "an error"
    assert answered > 10


@pytest.mark.parametrize("table", _TABLES)
def test_rows_where_it_is_true(con: tqp.Connection, oracle: duckdb.DuckDBPyConnection, table: str) -> None:
    for condition in ("x IN $l", "x <> ALL($l)"):
        for place, values in enumerate(_LISTS):
            query = f"SELECT x FROM {table} WHERE {condition}"
            assert _answer(con, query, values) == _expected(oracle, query, place), (query, values)


@pytest.mark.parametrize(
    "values",
    [
        [1, 4, None],
        (1, 4, None),
        np.array([1, 4]),
        np.ma.array([1, 4, 2], mask=[0, 0, 1]),
        pa.array([1, 4, None]),
        pa.chunked_array([[1], [4, None]]),
        pd.Series([1, 4]),
        torch.tensor([1, 4]),
        [np.int64(1), np.int16(4), None],
    ],
    ids=lambda values: type(values).__name__,
)
def test_lists_of_every_kind(con: tqp.Connection, values: Any) -> None:
    for params in ({"l": values}, [values]):
        place = "$l" if isinstance(params, dict) else "?"
        query = f"SELECT x FROM integers WHERE x IN {place}"
        assert con.sql(query, params).fetchall() == [(1,), (4,)]
    assert con.prepare("SELECT x FROM integers WHERE x = ANY($1)").execute([values]).fetchall() == [
        (1,),
        (4,),
    ]


def test_in_every_clause(con: tqp.Connection, oracle: duckdb.DuckDBPyConnection) -> None:
    lists = {"a": [1, 4], "b": [2, None], "c": []}
    query = """
        SELECT x IN $a, count(*) FILTER (x = ANY($b)), sum(CASE WHEN x NOT IN $b THEN x ELSE 0 END)
        FROM integers LEFT JOIN (SELECT x AS y FROM bytes) ON x = y AND y IN $a
        WHERE x IN $a OR x IN $b OR x = ANY($c) GROUP BY x IN $a HAVING max(x) <> ALL($c) ORDER BY x IN $a
    """
    assert con.sql(query, lists).fetchall() == oracle.execute(query, lists).fetchall()


@pytest.mark.parametrize(
    ("query", "values", "error", "message"),
    [
        ("SELECT x FROM integers WHERE x IN ($l)", [1, 2], tqp.UnsupportedError, r"write IN \$l, without parentheses"),
        ("SELECT x FROM texts WHERE x IN ('a', $l)", ["a"], tqp.UnsupportedError, r"or = ANY\(\$l\)"),
        ("SELECT x FROM integers WHERE x = $l", [1, 2], tqp.ExecutionError, "no cast from INTEGER to INTEGER\\[\\]"),
        ("SELECT x FROM integers WHERE (x, x) IN $l", [1], tqp.UnsupportedError, "comparing a row with the values of a list"),
        ("SELECT x FROM integers WHERE x IN $l", [[1]], tqp.UnsupportedError, "a list of lists"),
        ("SELECT x FROM integers WHERE x IN $l", ["a"], tqp.BindError, "cannot compare INTEGER with the values of a list, VARCHAR"),
        ("SELECT x FROM integers WHERE x = ANY($l)", ["a"], tqp.BindError, "the values of a list, VARCHAR"),
        ("SELECT x FROM integers WHERE x IN $l", [1, date(2020, 1, 1)], tqp.BindError, "mixes INTEGER and DATE"),
        ("SELECT x FROM integers WHERE x IN $l", 5, tqp.BindError, "the value of \\$l is a int; give a list, a tuple"),
        ("SELECT x FROM integers WHERE x IN $l", {1, 2}, tqp.BindError, "the value of \\$l is a set"),
        ("SELECT x FROM integers WHERE x IN $l", [1, {}], tqp.BindError, "mixes INTEGER and MAP"),
        ("SELECT x FROM texts WHERE x IN $l", ["a", "\ud800"], tqp.BindError, "half of a character"),
        ("SELECT x FROM integers WHERE x IN $l", [2**200], tqp.BindError, "does not fit a HUGEINT"),
    ],
)  # fmt: skip
def test_what_is_refused(
    con: tqp.Connection, query: str, values: Any, error: type[tqp.Error], message: str
) -> None:
    with pytest.raises(error, match=message):
        con.sql(query, {"l": values})


def test_arrays_of_floats_stay_lists_of_numbers(con: tqp.Connection) -> None:
    query = "SELECT array_distance($l, [1, 2]::FLOAT[2])"
    assert con.sql(query, {"l": [1, 2]}).fetchall() == [(0.0,)]
    assert con.sql(query, {"l": pa.array([1.0, 2.0])}).fetchall() == [(0.0,)]


def test_long_lists_that_print_alike_are_told_apart(con: tqp.Connection) -> None:
    query = "SELECT count(*) FROM integers WHERE x IN $l"
    far = np.arange(1000, 20_000)
    for make in (list, np.array, pa.array, pd.Series, lambda values: np.array(values, object)):
        for middle, expected in ((1, 1), (999, 0), (2, 1)):
            values = np.concatenate([far[:9000], [middle], far[9000:]]).tolist()
            assert con.sql(query, {"l": make(values)}).fetchall() == [(expected,)]


_LONG: dict[str, tuple[pa.DataType, Any]] = {
    "near": (pa.int64(), lambda number: number),
    "far": (pa.int64(), lambda number: number << 40),
    "small": (pa.int16(), lambda number: number % 30_000),
    "double": (pa.float64(), lambda number: number / 8),
    "wide": (pa.decimal128(38, 2), lambda number: Decimal(number) * 10**25),
    "day": (pa.date32(), lambda number: date.fromordinal(number % 900_000 + 1)),
    "instant": (pa.timestamp("us"), lambda number: datetime(2000, 1, 1) + timedelta(minutes=number)),
    "text": (pa.string(), lambda number: f"row {number} é"),
    "word": (pa.string(), lambda number: f"word {number % 500}"),
}


@pytest.mark.parametrize("kind", _LONG)
def test_long_lists(con: tqp.Connection, oracle: duckdb.DuckDBPyConnection, kind: str) -> None:
    data_type, make = _LONG[kind]
    numbers = np.random.default_rng(1).integers(0, 40_000, 3_000).tolist()
    column = pa.array(
        [None if number % 7 == 0 else make(number) for number in range(0, 40_000, 5)], data_type
    )
    listed = [make(number) for number in numbers]
    con.register("long", pa.table({"x": column}))
    oracle.register("long", pa.table({"x": column}))
    for condition in ("x IN $l", "x <> ALL($l)"):
        for values in (listed, [*listed, None]):
            query = f"SELECT count(*), count({condition}), count(*) FILTER ({condition}) FROM long"
            assert con.sql(query, {"l": values}).fetchall() == oracle.execute(query, {"l": values}).fetchall()


@pytest.fixture
def without_collections() -> Iterator[None]:
    """One of the garbage of all tests before takes a second."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collections")
@pytest.mark.parametrize("kind", ["far", "double", "text"])
def test_planning_is_linear_in_the_length(con: tqp.Connection, kind: str) -> None:
    data_type, make = _LONG[kind]
    con.register("long", pa.table({"x": pa.array([make(number) for number in range(1000)], data_type)}))
    con.sql("SELECT count(*) FROM long WHERE x IN $l", {"l": [make(1), make(3)]})

    def seconds(length: int) -> float:
        values = [make(number) for number in range(length)]
        start = time.thread_time()
        assert con.sql("SELECT count(*) FROM long WHERE x IN $l", {"l": values}).fetchall() == [(1000,)]
        return time.thread_time() - start

    short = min(seconds(4_000 + extra) for extra in range(3))
    assert min(seconds(40_000 + extra) for extra in range(2)) < 30 * short + 0.1


def test_intervals(con: tqp.Connection, oracle: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT x, INTERVAL (x) DAY IN $l FROM integers ORDER BY x"
    values = [timedelta(days) for days in range(2, 40)]
    assert con.sql(query, {"l": values}).fetchall() == oracle.execute(query, {"l": values}).fetchall()


def test_lists_are_compared_in_the_type_of_the_column(con: tqp.Connection) -> None:
    text = con.explain("SELECT x FROM bytes WHERE x IN $l", params={"l": [1, 2, 300, -129]})
    assert "Filter x IN (1, 2)" in text
    text = con.explain(
        "SELECT x FROM days WHERE x IN $l", params={"l": [datetime(2020, 1, 1), datetime(2020, 1, 2, 3)]}
    )
    assert "Filter x = DATE '2020-01-01'" in text


def test_infinite_days_stay_in_a_list(con: tqp.Connection) -> None:
    query = "SELECT x::VARCHAR FROM (VALUES (DATE 'infinity'), (DATE '2020-01-01')) v(x) WHERE x IN (TIMESTAMP 'infinity', TIMESTAMP '2020-01-02')"
    with duckdb_database() as oracle:
        expected = oracle.execute(query).fetchall()
    assert con.sql(query).fetchall() == expected == [("infinity",)]
