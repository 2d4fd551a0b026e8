"""PEP 249: the public suite of tests for it, and what it says no test of."""

from __future__ import annotations

import warnings
from decimal import Decimal
from typing import Any, ClassVar

import dbapi20
import pandas as pd
import polars as pl
import pytest

from tqp import dbapi


class TestOfThePublicSuite(dbapi20.DatabaseAPI20Test):  # type: ignore[misc]
    driver = dbapi
    connect_kw_args: ClassVar[dict[str, Any]] = {"threads": 1}

    def test_nextset(self) -> None:
        """Optional, and not there: a text of several statements answers the last."""
        assert not hasattr(dbapi.Cursor, "nextset")

    def test_setoutputsize(self) -> None:
        """To be said by each driver: nothing is cut here."""
        with dbapi.connect(threads=1) as connection, connection.cursor() as cursor:
            cursor.setoutputsize(1)
            cursor.setinputsizes([1])
            assert cursor.execute("SELECT repeat('x', 1000)").fetchone() == ("x" * 1000,)


def test_dbapi() -> None:
    connection = dbapi.connect(threads=1)
    cursor = connection.cursor()
    with pytest.raises(dbapi.ProgrammingError, match="no query"):
        cursor.fetchone()
    cursor.execute("CREATE TABLE t(a INTEGER UNIQUE, s VARCHAR)")
    connection.commit()
    cursor.executemany("INSERT INTO t VALUES (?, ?)", [(1, "x"), (2, None)])
    assert cursor.rowcount == 2
    for sets in (None, 3, "x", [3]):
        with pytest.raises(dbapi.ProgrammingError, match="params is a"):
            cursor.executemany("INSERT INTO t VALUES (?, ?)", sets)  # type: ignore[arg-type]
    cursor.executemany("INSERT INTO t VALUES (?, ?)", [])
    assert cursor.rowcount == 0
    cursor.executemany("INSERT INTO t VALUES (?, ?)", [(number, Decimal(number)) for number in range(10, 30)])
    assert cursor.rowcount == 20 and cursor.description is None
    cursor.executemany("DELETE FROM t WHERE a >= ?", [(20,), (10,)])
    assert cursor.rowcount == 20
    assert cursor.executemany("SELECT a FROM t WHERE a = ?", [(2,), (1,)]).fetchall() == [(1,)]
    with pytest.raises(dbapi.IntegrityError):
        cursor.executemany("INSERT INTO t VALUES (?, NULL)", [(number % 15,) for number in range(20)])
    connection.rollback()
    cursor.execute("CREATE TABLE IF NOT EXISTS t(a INTEGER UNIQUE, s VARCHAR)")
    connection.rollback()
    assert cursor.execute("SELECT * FROM t").fetchall() == [] and cursor.rowcount == 0
    cursor.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, NULL)")
    connection.commit()
    cursor.execute("SELECT a, s FROM t ORDER BY a")
    assert cursor.description is not None
    assert [column[0] for column in cursor.description] == ["a", "s"]
    assert (
        cursor.description[0][1] == dbapi.NUMBER and cursor.description[1][1] == dbapi.STRING != dbapi.NUMBER
    )
    cursor.arraysize = 2
    assert (
        cursor.fetchmany() == [(1, "x"), (2, "y")]
        and cursor.fetchone() == (3, None)
        and cursor.fetchall() == []
    )
    assert [row[0] for row in cursor.execute("SELECT a FROM t WHERE a > ? ORDER BY a", [1])] == [2, 3]
    for statement, kind in (
        ("INSERT INTO t VALUES (1, 'again')", dbapi.IntegrityError),
        ("SELEC 1", dbapi.ProgrammingError),
        ("SELECT nope FROM t", dbapi.ProgrammingError),
        ("SELECT CAST('x' AS INTEGER)", dbapi.DataError),
        ("CREATE TRIGGER i", dbapi.NotSupportedError),
    ):
        with pytest.raises(kind):
            cursor.execute(statement)
        connection.rollback()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas has not been tried with it
        found = pd.read_sql("SELECT count(*) AS n FROM t", connection)
    assert found["n"].tolist() == [3]
    assert (
        issubclass(dbapi.IntegrityError, dbapi.DatabaseError)
        and connection.NotSupportedError is dbapi.NotSupportedError
    )
    cursor.close()
    with pytest.raises(dbapi.InterfaceError):
        cursor.execute("SELECT 1")
    connection.close()
    with pytest.raises(dbapi.InterfaceError):
        connection.cursor()
    assert (dbapi.apilevel, dbapi.paramstyle) == ("2.0", "qmark")


def test_errors_beside_statements_are_those_of_the_interface() -> None:
    with pytest.raises(dbapi.ProgrammingError, match="at least one thread"):
        dbapi.connect(threads=0)
    with dbapi.connect(threads=1) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT INTERVAL 100000000 MONTH")
        with pytest.raises(dbapi.DataError, match="timedelta cannot hold"):
            cursor.fetchone()
        with pytest.raises(dbapi.DataError, match="timedelta cannot hold"):
            cursor.fetchall()
        with pytest.raises(dbapi.ProgrammingError, match="size='x': give an integer"):
            cursor.fetchmany("x")  # type: ignore[arg-type]


def test_what_has_rows_and_how_many() -> None:
    with dbapi.connect(threads=1) as connection, connection.cursor() as cursor:
        for statement, count, has_rows in (
            ("CREATE TABLE t(a INTEGER)", -1, False),
            ("INSERT INTO t VALUES (1), (2)", 2, False),
            ("INSERT INTO t VALUES (3) RETURNING a", 1, True),
            ("UPDATE t SET a = a + 1 WHERE a > 1", 2, False),
            ('SELECT 7 AS "Count"', 1, True),
            ("SHOW TABLES", 1, True),
            ("DELETE FROM t", 3, False),
            ("DROP TABLE t", -1, False),
        ):
            cursor.execute(statement)
            assert cursor.rowcount == count and (cursor.description is not None) == has_rows, statement
            if not has_rows:
                with pytest.raises(dbapi.ProgrammingError, match="there are no rows"):
                    cursor.fetchall()


def test_frames_are_read_through_it() -> None:
    with dbapi.connect(threads=1) as connection:
        connection.engine.register("t", {"a": [1, 2], "s": ["x", None]})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas has not been tried with it
            frame = pd.read_sql("SELECT * FROM t WHERE a > ?", connection, params=[0])
        assert frame["a"].tolist() == [1, 2] and frame["s"].tolist()[0] == "x"
        assert pl.read_database("SELECT a FROM t", connection).rows() == [(1,), (2,)]
