"""Prepared statements: parsed once, bound to the tables of the moment, and compiled programs shared as between texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

import tqp
import tqp.compiler
import tqp.planner.bind
from tests.oracle import duckdb_database

_TABLE = pa.table(
    {
        "i": pa.array([1, 2, None, 4, 5, 6, 7], pa.int32()),
        "d": [0.5, 1.5, 2.5, None, 4.5, 5.5, 6.5],
        "s": ["a", "é", None, "日本", "", "a", "zz"],
        "day": pa.array([date(2020, 1, n + 1) for n in range(7)], pa.date32()),
    }
)


@pytest.fixture(params=["host", "torch"])
def con(request: pytest.FixtureRequest) -> Iterator[tqp.Connection]:
    with tqp.connect(threads=1, backend=request.param) as connection:
        yield connection.register("t", _TABLE)


@pytest.mark.parametrize(
    ("query", "values"),
    [
        (
            "SELECT i, d FROM t WHERE i > $low AND d < $high",
            [{"low": 1, "high": 6.0}, {"low": 5, "high": 2.0}],
        ),
        ("SELECT s FROM t WHERE s = ? OR i = ?", [["é", 1], ["日本", 5], ["a", None]]),
        ("SELECT $1 + i, $2 FROM t ORDER BY i LIMIT $1", [[2, "x"], [3, None], [1, 2.5]]),
        (
            "WITH c AS (SELECT i FROM t WHERE day >= $day) SELECT count(*), sum(i) FROM c",
            [{"day": _TABLE["day"][2].as_py()}],
        ),
        ("SELECT count(*) FROM t", [None, [], {}]),
    ],
)
def test_answers_are_those_of_duckdb(con: tqp.Connection, query: str, values: list[Any]) -> None:
    statement = con.prepare(query)
    with duckdb_database() as oracle:
        oracle.register("t", _TABLE)
        for each in [*values, *values]:
            expected = oracle.execute(query, each or None).fetchall()
            assert statement.execute(each).fetchall() == expected


def test_text_is_parsed_once(con: tqp.Connection) -> None:
    statement = con.prepare("SELECT i FROM t WHERE i = $1")
    with patch.object(tqp.planner.bind, "parse", side_effect=AssertionError("parsed again")):
        assert [statement.execute([x]).fetchall() for x in (1, 2, 3)] == [[(1,)], [(2,)], []]
        assert statement.names == ("i",)
        assert "i = 2" in statement.explain(params=[2])


def test_new_values_reuse_a_program(con: tqp.Connection) -> None:
    statement = con.prepare("SELECT count(*) FROM t WHERE i >= $x")
    lowered: list[object] = []
    lower = tqp.compiler.lower_plan

    def counted(*arguments: Any) -> Any:
        lowered.append(arguments)
        return lower(*arguments)

    with patch.object(tqp.compiler, "lower_plan", counted):
        assert [statement.execute({"x": x}).fetchall() for x in (2, 3, 4, 5)] == [
            [(5,)],
            [(4,)],
            [(4,)],
            [(3,)],
        ]
        assert con.sql("SELECT count(*) FROM t WHERE i >= 3").fetchall() == [(4,)]
    assert len(lowered) == 2  # the first value's own, and one for all others


def test_tables_are_looked_up_at_each_execute(con: tqp.Connection) -> None:
    statement = con.prepare("SELECT x + $1 AS y FROM later")
    with pytest.raises(tqp.BindError, match='"later"'):
        statement.execute([1])
    with pytest.raises(tqp.BindError, match='"later"'):
        _ = statement.types
    con.register("later", pa.table({"x": pa.array([1], pa.int8())}))
    assert statement.execute([1]).fetchall() == [(2,)]
    con.register("later", pa.table({"x": pa.array([], pa.float64())}))
    assert statement.execute([1]).fetchall() == []
    assert [str(each) for each in statement.types] == ["DOUBLE"]
    con.register("later", pa.table({"x": [date(2020, 1, 1)]}))
    assert statement.types == (None,)
    con.unregister("later")
    with pytest.raises(tqp.BindError, match='"later"'):
        statement.execute([1])


@pytest.mark.parametrize(
    ("query", "parameters", "types"),
    [
        ("SELECT i, s FROM t WHERE i > $x", ("x",), ["INTEGER", "VARCHAR"]),
        ("SELECT $x", ("x",), [None]),
        ("SELECT CAST($x AS SMALLINT), i > $x, d + $x FROM t", ("x",), ["SMALLINT", "BOOLEAN", "DOUBLE"]),
        ("SELECT sum(i * $1), count($2) FROM t WHERE s IN $3", (1, 2, 3), [None, "BIGINT"]),
        ("SELECT round(CAST(d AS DECIMAL(5, 3)), ?), ? FROM t", (1, 2), [None, None]),
        ("SELECT day + $1, i FROM t UNION ALL SELECT day, $2 FROM t", (1, 2), [None, None]),
        ("SELECT i FROM t ORDER BY s LIMIT ?", (1,), ["INTEGER"]),
        ("SELECT * FROM range($n)", ("n",), ["BIGINT"]),
        ("WITH c AS (SELECT $unread) SELECT $b, $a, $b", ("unread", "b", "a"), [None, None, None]),
        ("EXPLAIN SELECT $1", (1,), ["VARCHAR", "VARCHAR"]),
    ],
)  # fmt: skip
def test_what_is_known_before_there_are_values(
    con: tqp.Connection, query: str, parameters: tuple[object, ...], types: list[str | None]
) -> None:
    statement = con.prepare(query)
    assert statement.parameters == parameters
    assert [each and str(each) for each in statement.types] == types
    assert statement.sql == query


def test_names_are_those_of_the_result(con: tqp.Connection) -> None:
    statement = con.prepare("SELECT i, $x, i + $x AS total, count(*) FROM t GROUP BY ALL")
    assert statement.names == statement.execute({"x": 1}).columns
    assert con.prepare("EXPLAIN SELECT 1").names == con.sql("EXPLAIN SELECT 1").columns
    assert repr(con.prepare("SELECT $x")) == "Statement('SELECT $x', parameters=['x'])"


@pytest.mark.parametrize(
    ("query", "params", "message"),
    [
        ("SELECT $x, $y", {"x": 1}, r"no value for the parameter \$y \(given: x\)"),
        ("SELECT $x", {"x": 1, "z": 2}, r"does not use the parameter \$z"),
        ("SELECT $x", [1], r"the parameter \$x has a name"),
        ("SELECT $x", None, r"the parameter \$x has a name"),
        ("SELECT ?, ?", [1], r"no value for the parameter \$2: 1 given"),
        ("SELECT ?", [1, 2], r"does not use the parameter \$2"),
        ("SELECT ?", None, r"no value for the parameter \$1: 0 given"),
        ("SELECT ?", 3, "params is a int"),
        ("SELECT ?", ["\ud800"], "half of a character"),
    ],
)
def test_wrong_parameters(con: tqp.Connection, query: str, params: Any, message: str) -> None:
    statement = con.prepare(query)
    with pytest.raises(tqp.BindError, match=message):
        statement.execute(params)


def test_text_that_is_no_query(con: tqp.Connection) -> None:
    for text, error in (
        ("SELEC 1", tqp.ParseError),
        ("", tqp.ParseError),
        ("SELECT 1; SELECT 2", tqp.UnsupportedError),
    ):
        with pytest.raises(error):
            con.prepare(text)
    with pytest.raises(tqp.BindError, match="the query is text"):
        con.prepare(3)  # type: ignore[arg-type]


def test_errors_show_the_place(con: tqp.Connection) -> None:
    statement = con.prepare("SELECT 1 // $x, CAST($y AS INTEGER) FROM t")
    with pytest.raises(tqp.ExecutionError, match="(?s)LINE 1: .*CAST"):
        statement.execute({"x": 1, "y": "no number"})
    assert statement.execute({"x": 1, "y": "7"}).fetchone() == (1, 7)


def test_explain_and_explain_analyze(con: tqp.Connection) -> None:
    statement = con.prepare("SELECT i FROM t WHERE i = $x")
    assert statement.explain(params={"x": 4}) == con.explain("SELECT i FROM t WHERE i = 4")
    assert "Total" in statement.explain(True, {"x": 4})
    assert con.prepare("EXPLAIN SELECT $1").execute([1]).columns == ("explain_key", "explain_value")


def test_a_closed_connection(con: tqp.Connection) -> None:
    statement = con.prepare("SELECT i FROM t WHERE i = ?")
    statement.execute([1])
    con.close()
    calls: list[Callable[[], object]] = [
        lambda: statement.execute([1]),
        lambda: statement.explain(params=[1]),
        lambda: statement.types,
        lambda: statement.names,
        lambda: con.prepare("SELECT 1"),
        lambda: con.executemany("SELECT ?", [[1]]),
    ]
    for call in calls:
        with pytest.raises(tqp.BindError, match="the connection is closed"):
            call()


def test_threads_share_a_statement(con: tqp.Connection) -> None:
    statement = con.prepare("SELECT sum(i) FROM t WHERE i BETWEEN $low AND $high AND s IN $words")

    def run(number: int) -> Any:
        return statement.execute(
            {"low": number % 5, "high": number % 5 + 2, "words": ["a", "é", "日本"]}
        ).fetchone()

    expected = [run(number) for number in range(5)] * 20
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(100))) == expected


def test_executemany(con: tqp.Connection) -> None:
    query = "SELECT i FROM t WHERE i >= $1 AND s = $2"
    results = con.executemany(query, iter([[1, "a"], (6, "a"), [7, "a"]]))
    assert [result.fetchall() for result in results] == [[(1,), (6,)], [(6,)], []]
    with duckdb_database() as oracle:  # which gives the last result only
        oracle.register("t", _TABLE)
        assert oracle.executemany(query, [[1, "a"], [6, "a"]]).fetchall() == results[1].fetchall()
    (named,) = con.executemany("SELECT $x AS y", [{"x": 1}])
    assert named.fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ([], "params is empty"),
        (None, "params is a NoneType; give a list with a list or a dict of values for each run"),
        ("ab", "params is a str"),
        ({"x": 1}, "params is a dict"),
        ([1], "params is a int"),
        ([[1], []], r"no value for the parameter \$1: 0 given"),
    ],
)
def test_executemany_of_wrong_sets(con: tqp.Connection, sets: Any, message: str) -> None:
    with pytest.raises(tqp.BindError, match=message):
        con.executemany("SELECT ?", sets)
