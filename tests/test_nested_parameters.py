"""Lists and dicts given for parameters are the lists, structs and maps that DuckDB makes of them."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import duckdb
import numpy as np
import pytest

import tqp
from tests.test_slt import SETTINGS

_DAY = datetime.date(2020, 1, 1)
_VALUES: list[Any] = [
    {"a": 1, "b": "x"},
    {"a": {"b": [1, None]}},
    {"a": None},
    {"a b": _DAY},
    {1: 2},
    {None: 1},
    {},
    {"key": [1, 2], "value": ["a", "b"]},
    {"key": [], "value": []},
    {"key": [1], "value": 2},
    {"key": [1], "value": [1, 2]},
    {"k": [1], "value": [2]},
    {"a": [{"b": 1}], "c": (1,)},
    [{"a": 1}, {"a": 2}],
    [{"a": 1}, {"b": 2}],
    [],
    [None],
    [1, None],
    (1, 2),
    [1, 2.5],
    [1, 2**40],
    [True, 2],
    [1, "a"],
    ["a", None],
    [[1], [], [2.5, None]],
    [_DAY],
    [decimal.Decimal("1.50"), 2],
    [b"a"],
    np.array([1, 2]),
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_they_are_values_of_duckdb(setting: str) -> None:
    with duckdb.connect() as oracle, tqp.connect(**SETTINGS[setting]) as connection:
        for value in _VALUES:
            for query in ("SELECT ?, typeof(?)", "SELECT [?], typeof({'x': ?})"):
                found = connection.execute(query, [value, value]).fetchall()
                assert found == oracle.execute(query, [value, value]).fetchall(), (query, value)
            prepared = connection.prepare("SELECT $v AS v")
            assert prepared.execute({"v": value}).fetchall() == [
                tuple(oracle.execute("SELECT ?", [value]).fetchone() or ())
            ]


@pytest.mark.parametrize("setting", SETTINGS)
def test_they_are_inserted(setting: str) -> None:
    rows: list[list[Any]] = [
        [{"a": 1, "b": "x"}, {"key": ["k"], "value": [3]}, [2**24 + 1, 2], [1.5, 2]],
        [{"a": 2, "b": None}, {"k": 3, "l": None}, [], [0, 0]],
        [None, None, None, None],
    ]
    answers = []
    with duckdb.connect() as oracle, tqp.connect(**SETTINGS[setting]) as connection:
        for engine in (oracle, connection):
            engine.execute(
                "CREATE TABLE t (s STRUCT(a INT, b VARCHAR), m MAP(VARCHAR, INT), l BIGINT[], v FLOAT[2])"
            )
            engine.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
            answers.append(
                engine.execute(
                    "SELECT *, s.a, m['k'], len(l) FROM t WHERE l IS DISTINCT FROM ?", [[7]]
                ).fetchall()
            )
    assert answers[1] == answers[0]


def test_long_ones_differ_by_what_is_in_the_middle() -> None:
    with tqp.connect() as connection:
        for middle in range(3):
            values = np.arange(5000)
            values[2500] = middle
            for given in ([values], {"a": values}):
                text = "SELECT ?[1][2501]" if isinstance(given, list) else "SELECT ?.a[2501]"
                assert connection.execute(text, [given]).fetchall() == [(middle,)]


def test_numbers_beside_vectors_are_vectors() -> None:
    with tqp.connect() as connection:
        for near in ([1.0, 2.0], np.array([1, 2], np.float32)):
            assert connection.execute(
                "SELECT array_distance([1, 4]::FLOAT[2], ?), ? <-> [1, 2]::FLOAT[2]", [near, near]
            ).fetchall() == [(2.0, 0.0)]


def test_what_is_no_value() -> None:
    with tqp.connect() as connection:
        with pytest.raises(tqp.BindError, match="two keys that are one name"):
            connection.execute("SELECT ?", [{"A": 1, "a": 2}])
        with pytest.raises(tqp.BindError, match="is a set"):
            connection.execute("SELECT ?", [[{1}]])
        with pytest.raises(tqp.BindError, match="mixes"):
            connection.execute("SELECT ?", [[1, _DAY]])
