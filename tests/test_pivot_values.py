"""PIVOT whose values the rows have: each run finds them anew, and is planned with what it found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import tqp

_ROWS = "(VALUES (1, 'a', 10), (1, 'b', 20), (2, 'a', 30), (2, NULL, 40), (3, 'é', 50)) v(k, s, i)"


@pytest.fixture(params=["host", "torch"])
def con(request: pytest.FixtureRequest) -> Iterator[tqp.Connection]:
    with tqp.connect(threads=1, backend=request.param) as connection:
        connection.sql(f"CREATE TABLE t AS FROM {_ROWS}")
        yield connection


def _oracle(*statements: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for each in (f"CREATE TABLE t AS FROM {_ROWS}", *statements):
        connection.execute(each)
    return connection


def _both(con: tqp.Connection, oracle: duckdb.DuckDBPyConnection, query: str, values: Any = None) -> None:
    expected = oracle.execute(query, values)
    assert expected.description is not None
    names = [each[0] for each in expected.description]
    answer = con.sql(query, params=values)
    assert list(answer.columns) == names
    assert sorted(map(repr, answer.fetchall())) == sorted(map(repr, expected.fetchall()))


def test_columns_follow_the_rows(con: tqp.Connection) -> None:
    query = "PIVOT t ON s USING sum(i) GROUP BY k"
    oracle = _oracle()
    for change in (
        "SELECT 1",
        "INSERT INTO t VALUES (4, 'c', 60)",
        "DELETE FROM t WHERE s = 'a'",
        "UPDATE t SET s = 'x'",
        "DELETE FROM t",
        "INSERT INTO t VALUES (1, '', 1)",
    ):
        oracle.execute(change)
        con.sql(change)
        for _ in range(3):
            _both(con, oracle, query)


def test_texts_that_differ_in_constants_have_columns_of_their_own(con: tqp.Connection) -> None:
    oracle = _oracle()
    for _ in range(2):
        for most in (5, 10, 20, 30, 50, 15):
            _both(con, oracle, f"PIVOT (FROM t WHERE i <= {most}) ON s USING sum(i) GROUP BY k")
        for value in ("a", "b", "x", "é", ""):
            _both(con, oracle, f"PIVOT t ON s IN ('{value}') USING sum(i) GROUP BY k")
            _both(con, oracle, f"FROM t PIVOT (sum(i) FOR s IN ('{value}', 'b c') k IN (1, 3))")
        for value in (10, 20, 35):
            _both(
                con, oracle, f"PIVOT t ON i > {value} USING sum(CASE WHEN i > {value} THEN i END), count(*)"
            )


def test_parameters_may_stand_in_it(con: tqp.Connection) -> None:
    oracle = _oracle()
    for values in (["a", "é"], ["b", "x"], [1, 2]):
        _both(con, oracle, "PIVOT t ON s IN (?, ?) USING sum(i) GROUP BY k", values)
    statement = con.prepare("PIVOT (FROM t WHERE i < ?) ON s USING sum(i) GROUP BY k")
    for most, names in ((15, ["k", "a"]), (25, ["k", "a", "b"]), (99, ["k", "a", "b", "é"]), (0, ["k"])):
        assert list(statement.execute([most]).columns) == names
    with pytest.raises(tqp.UnsupportedError, match="PIVOT without written values"):
        _ = statement.types
    with pytest.raises(tqp.BindError, match="value"):
        statement.execute([])


def test_statements_take_such_queries(con: tqp.Connection) -> None:
    query = "PIVOT t ON s USING sum(i) GROUP BY k"
    oracle = _oracle(f"CREATE TABLE p AS {query}")
    con.sql(f"CREATE TABLE p AS {query}")
    oracle.execute(f"INSERT INTO p {query}")
    con.sql(f"INSERT INTO p {query}")
    _both(con, oracle, "FROM p ORDER BY ALL")
    _both(con, oracle, f"DESCRIBE {query}")
    con.sql(f"PREPARE q AS {query}")
    con.sql("INSERT INTO t VALUES (9, 'z', 9)")
    oracle.execute("INSERT INTO t VALUES (9, 'z', 9)")
    assert con.sql("EXECUTE q").fetchall() == con.sql(query).fetchall()
    _both(con, oracle, query)
    assert "Aggregate" in con.explain(query)
    assert "Aggregate" in str(con.sql(f"EXPLAIN {query}").fetchall())


def test_views_and_macros_take_none(con: tqp.Connection) -> None:
    for statement in (
        "CREATE VIEW v AS PIVOT t ON s USING sum(i) GROUP BY k",
        "CREATE VIEW v AS FROM (PIVOT t ON s IN (SELECT 'a') USING sum(i))",
    ):
        with pytest.raises(tqp.UnsupportedError, match="PIVOT without written values") as raised:
            con.sql(statement)
        assert raised.value.span is not None
    con.sql("CREATE VIEW v AS PIVOT t ON s IN ('a') USING sum(i) GROUP BY k")
    assert con.sql("FROM v").columns == ("k", "a")


def test_what_is_wrong_is_pointed_at(con: tqp.Connection) -> None:
    for query, pointed_at in (
        ("PIVOT t ON nope USING sum(i)", "nope"),
        ("PIVOT t ON s USING sum(nope)", "nope"),
        ("PIVOT nope ON s", "nope"),
        ("PIVOT t ON s GROUP BY nope", "nope"),
        ("PIVOT t ON i // 0", None),
        ("PIVOT t ON s IN (SELECT k // 0 FROM t)", "k // 0"),
        ("PIVOT t ON s IN ('a', 'a')", "'a'"),
    ):
        with pytest.raises(tqp.Error) as raised:
            con.sql(query)
        if pointed_at is not None:
            assert raised.value.span is not None
            start, stop = raised.value.span
            assert query[start:stop] == pointed_at


def test_many_values(con: tqp.Connection) -> None:
    oracle = _oracle("CREATE TABLE m AS SELECT range % 300 AS x, range AS y, range % 7 AS k FROM range(5000)")
    con.sql("CREATE TABLE m AS SELECT range % 300 AS x, range AS y, range % 7 AS k FROM range(5000)")
    _both(con, oracle, "PIVOT m ON x USING sum(y), count(*) GROUP BY k")
    with pytest.raises(tqp.UnsupportedError, match="more than 4096 columns"):
        con.sql("PIVOT m ON y USING sum(x) GROUP BY k")


def test_rows_may_be_grouped_before(con: tqp.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are for many values; what an aggregate of no rows is then is written out."""
    monkeypatch.setattr("tqp.planner.binder.from_clause.pivots._MOST_FILTERS", 0)
    oracle = _oracle()
    for query in (
        "PIVOT t ON s USING count(*), count(i) + 1 AS c, sum(i), coalesce(min(i), -1) GROUP BY k",
        "PIVOT t ON s, i > 20 USING entropy(i), list(i ORDER BY i) GROUP BY k",
        "PIVOT t ON s IN ('a', NULL, 'x') USING count(DISTINCT i), sum(i)",
        "FROM t PIVOT (count(*), max(i) FOR s IN ('a', 'é') k IN (1, 3, NULL))",
        "FROM t PIVOT (count(*), max(s) FOR s IN ('a', 'b') GROUP BY s)",
        "PIVOT (FROM t WHERE false) ON s IN ('a') USING count(*), sum(i) GROUP BY k",
        "FROM (SELECT s, i FROM t WHERE false) PIVOT (count(*), sum(i) FOR s IN ('a'))",
        "FROM (SELECT i::DOUBLE / 4 AS x, k FROM t) PIVOT (count(*) FOR x IN (2.5, '5.0', 7.5) GROUP BY k)",
    ):
        _both(con, oracle, query)


def test_many_columns_become_rows(con: tqp.Connection) -> None:
    columns = ", ".join(f"range + {number} AS c{number}" for number in range(40))
    make = f"CREATE TABLE wide AS SELECT range AS k, {columns} FROM range(5)"
    oracle = _oracle(make)
    con.sql(make)
    _both(con, oracle, "UNPIVOT wide ON COLUMNS(* EXCLUDE k) INTO NAME n VALUE v")
