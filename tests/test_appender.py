"""Appenders and executemany: rows of Python values, which are inserted at once, beside DuckDB's."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pytest
import torch

import tqp
from tests.test_slt import SETTINGS
from tqp import dbapi
from tqp.statements.many_rows import table_of

TABLE = """
    CREATE TABLE t (a INTEGER PRIMARY KEY, b VARCHAR DEFAULT 'x', d DATE, l INTEGER[]);
    INSERT INTO t VALUES (1, 'one', NULL, [1]), (2, 'two', '2020-01-01', NULL)
"""


def _tried(call: Callable[[], Any]) -> str:
    try:
        call()
    except (tqp.Error, duckdb.Error) as error:
        kinds = (
            (tqp.ConstraintException, duckdb.ConstraintException),
            (tqp.ConversionException, duckdb.ConversionException),
        )
        return next((each[0].__name__ for each in kinds if isinstance(error, each)), "error")
    return "done"


def _inserted(con: Any) -> list[str]:
    rows = con.appender("t")
    rows.append_row(3, "three", datetime.date(2021, 1, 1), [1, None])
    rows.append_rows([(4, None, None, None), ("5", "five", "2022-02-02", [])])
    done = [_tried(rows.flush), _tried(lambda: rows.append_row(6, "six")), _tried(rows.flush)]
    rows.append_row(7, "seven", None, None)
    rows.clear()
    rows.append_row(1, "again", None, None)
    return [*done, _tried(rows.flush), _tried(lambda: con.appender("nowhere"))]


def _some_columns(con: Any) -> list[str]:
    with con.appender("t", columns=["d", "a"]) as rows:
        for number in range(10, 30):
            rows.append_row(None, number)
    return [_tried(lambda: con.appender("t", columns=["zz"]))]


def _upserted(con: Any) -> list[str]:
    with con.appender("t", columns=["a", "b"], action="upsert") as rows:
        rows.append_rows([(1, "uno"), (9, "nine")])
    return [
        _tried(lambda: con.appender("t", action="upsert", key=["a"])),
        _tried(lambda: con.appender("t", action="replace")),
    ]


def _updated(con: Any) -> list[str]:
    with con.appender("t", columns=["b", "a"], action="update", key=["a"]) as rows:
        rows.append_rows([("uno", 1), ("none", 9)])
    return [
        _tried(lambda: con.appender("t", action="update")),
        _tried(lambda: con.appender("t", action="update", key=["a"], columns=["b"])),
    ]


def _deleted(con: Any) -> list[str]:
    with con.appender("t", action="delete", key=["a"]) as rows:
        rows.append_rows([(1,), (9,)])
    return [_tried(lambda: con.appender("t", action="delete"))]


def _with_a_statement(con: Any) -> list[str]:
    text = "INSERT INTO t BY NAME SELECT x AS a, u::VARCHAR AS b FROM appender_data"
    with con.query_appender(text, {"x": "INTEGER", "u": "UUID"}) as rows:
        rows.append_row(8, uuid.UUID(int=8))
    return []


def _failed(con: Any) -> list[str]:
    with pytest.raises(ValueError), con.appender("t") as rows:
        rows.append_row(3, None, None, None)
        raise ValueError
    return []


def _many(con: Any) -> list[str]:
    text = "INSERT INTO t (a, b) VALUES (?, ?)"
    con.executemany(text, [[number, str(number)] for number in range(10, 40)])
    con.executemany(text, [[number, Decimal(number) / 4] for number in range(40, 60)])
    con.executemany(text, [[number, None] for number in range(200, 220)])
    mixed: list[list[Any]] = [[number, number if number % 2 else None] for number in range(60, 80)]
    con.executemany(text, mixed)
    twice = [[number % 15 + 100, "twice"] for number in range(20)]
    return [
        _tried(lambda: con.executemany(text, twice)),
        _tried(lambda: con.executemany(text, [[300, "x"], ["y", "z"]] * 5)),
    ]


def _many_in_a_transaction(con: Any) -> list[str]:
    con.execute("BEGIN")
    con.executemany("INSERT INTO t (a) VALUES (?)", [[number] for number in range(10, 40)])
    done = [
        _tried(
            lambda: con.executemany(
                "INSERT INTO t (a) VALUES (?)", [[number % 4 + 50] for number in range(9)]
            )
        )
    ]
    after = _tried(lambda: con.executemany("INSERT INTO t (a) VALUES (?)", [[n] for n in range(90, 99)]))
    assert after != "done"  # the transaction has failed
    con.execute("ROLLBACK")
    con.execute("BEGIN")
    con.executemany("INSERT INTO t (a) VALUES (?)", [[number] for number in range(10, 40)])
    con.execute("COMMIT")
    return done


CALLS = (
    _inserted, _some_columns, _upserted, _updated, _deleted, _with_a_statement, _failed, _many, _many_in_a_transaction,
)  # fmt: skip


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("call", CALLS)
def test_the_rows_are_those_of_duckdb(call: Callable[[Any], list[str]], setting: str) -> None:
    answers = []
    with duckdb.connect(config={"threads": 1}) as oracle, tqp.connect(**SETTINGS[setting]) as connection:
        for engine in (oracle, connection):
            engine.execute(TABLE)
            answers.append((call(engine), engine.execute("FROM t ORDER BY a").fetchall()))
    assert answers[1] == answers[0]


def test_rows_of_values_are_one_table() -> None:
    """Also where a column is NULL in all of them; where types meet, each value keeps its own."""
    cpu = torch.device("cpu")
    for row, is_table in (
        ((1, None), True),
        ((None, None), True),
        ((1, Decimal("nan")), False),
        ((1, {}), False),
    ):
        assert (table_of([row] * 3, "t", cpu) is not None) == is_table
    mixed = table_of([(1, "x"), (1.5, None), (Decimal("1.50"), "y"), (Decimal("1.5"), "z")], "t", cpu)
    assert mixed is not None and [len(each) for each in mixed.columns] == [4, 1]
    assert mixed.value(1, "DATE") == "CAST(c1_0 AS DATE)"


_ZONE = datetime.timezone(datetime.timedelta(hours=2))
_MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 15, 500)
VALUES = {
    "DECIMAL(18, 4)": [Decimal("1.25"), Decimal(-3), 7, 2.5, "4.125", None, Decimal("1E+3"), True],
    "DOUBLE": [1, 2.5, Decimal("0.1"), "nan", float("inf"), 2**70, None, np.float64(0.1)],
    "VARCHAR": [
        1,
        2.5,
        Decimal("1.50"),
        Decimal("1.5"),
        "é",
        True,
        datetime.date(2024, 1, 1),
        _MOMENT,
        2**64,
        None,
    ],
    "HUGEINT": [1, 2**64, -(2**100), "5", Decimal("2.5"), 1.5, False],
    "TIMESTAMP": [_MOMENT, datetime.date(2024, 1, 1), "2024-01-01 00:00:01", None],
    "TIMESTAMPTZ": [_MOMENT.replace(tzinfo=_ZONE), _MOMENT, "2024-01-01 00:00:01+01"],
    "DATE": [datetime.date(2024, 1, 1), "2024-01-02", datetime.date(1, 1, 1), None],
    "TIME": [datetime.time(1, 2, 3, 4), "04:05", None],
    "TIMETZ": [datetime.time(1, 2, 3, 4, tzinfo=_ZONE), datetime.time(1, 2), "04:05:00+01"],
    "INTERVAL": [datetime.timedelta(1, 2, 3), datetime.timedelta(-1), "1 month", None],
    "UUID": [uuid.UUID(int=8), str(uuid.UUID(int=9)), None],
    "BLOB": [b"\0x", "y", None],
    "BIT": [5, "101", 2**40],
    "BIGINT[]": [[1, 2], [], None, [None], ["3"]],
    "FLOAT[2]": [[1, 2.5], [1, 2], [float("nan"), None]][:2],
    "ENUM('a', 'b')": ["a", "b", None],
    "STRUCT(x INTEGER)": [{"x": 1}, None],
}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_several_types_are_those_of_duckdb(name: str) -> None:
    rows = [(number, value) for number, value in enumerate(VALUES[name] * 8)]
    answers = []
    with duckdb.connect() as oracle, tqp.connect() as connection, dbapi.connect() as other:
        oracle.execute("SET TimeZone = 'UTC'")
        for engine in (oracle, connection, other.cursor()):
            engine.execute(f"CREATE TABLE t (i INTEGER, v {name})")
            engine.executemany("INSERT INTO t VALUES (?, ?)", rows)
            answers.append(engine.execute("SELECT i, v::VARCHAR FROM t ORDER BY i").fetchall())
    assert answers[0] == answers[1] == answers[2]


def test_what_executemany_answers() -> None:
    with tqp.connect() as connection:
        connection.execute("CREATE TABLE t (x DOUBLE, y BLOB)")
        answers = connection.executemany("INSERT INTO t VALUES (?, ?)", [[float("nan"), b"\0"]] * 20)
        assert [each.fetchall() for each in answers] == [[(1,)]] * 20
        assert connection.execute("SELECT count(x), count(DISTINCT y) FROM t WHERE isnan(x)").fetchall() == [
            (20, 1)
        ]
        returned = connection.executemany(
            "INSERT INTO t VALUES (?, NULL) RETURNING x", [[number] for number in range(20)]
        )
        assert [each.fetchall() for each in returned] == [[(number,)] for number in range(20)]


def test_the_module_has_them() -> None:
    tqp.execute("CREATE OR REPLACE TABLE of_the_module (a INTEGER)")
    with tqp.appender("of_the_module") as rows:
        rows.append_row(1)
    with tqp.query_appender("INSERT INTO of_the_module FROM more", {"a": int}, source="more") as rows:
        rows.append_row(2)
    assert tqp.execute("FROM of_the_module").fetchall() == [(1,), (2,)]
    tqp.execute("DROP TABLE of_the_module")


def test_errors_have_the_names_of_duckdb() -> None:
    with tqp.connect() as connection, duckdb.connect() as oracle:
        for text in (
            "SELEC",
            "SELECT a",
            "FROM nowhere",
            "SELECT 'a'::INT",
            "SELECT 9223372036854775807 + 1",
            "COMMIT",
        ):
            with pytest.raises(duckdb.Error) as theirs:
                oracle.execute(text)
            with pytest.raises(getattr(tqp, theirs.type.__name__)):
                connection.execute(text)
