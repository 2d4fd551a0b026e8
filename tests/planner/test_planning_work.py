"""Planning is linear: a query of twice the length takes about twice the work, counted in calls of functions."""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tqp
from tqp.core.process.deep_recursion import call_deep
from tqp.data.encoding.value_dictionary import ValueDictionary
from tqp.data.sources.base import EncodedColumns
from tqp.planner.algebra.cardinality import Estimator
from tqp.planner.algebra.logical_plan import LogicalPlan
from tqp.planner.algebra.node import Node
from tqp.planner.bind import bind
from tqp.tpch.data import DATA
from tqp.tpch.query import load_query


def chain(operator: str, part: str, condition: str = "") -> Callable[[int], str]:
    return lambda n: f"SELECT {operator.join([part] * n)} FROM t{condition}"


def nested(before: str, inside: str, after: str) -> Callable[[int], str]:
    return lambda n: f"SELECT {before * n}{inside}{after * n} FROM t"


def listed(before: str, part: str, after: str, separator: str = ", ") -> Callable[[int], str]:
    return lambda n: before + separator.join(part.format(i) for i in range(n)) + after


LONG = {
    "sum": chain(" + ", "a"),
    "sum of floats": chain(" + ", "f"),
    "sum as a condition": lambda n: f"SELECT a FROM t WHERE {' + '.join(['a'] * n)} > 3",
    "product and sum": chain(" + ", "a * (1 - a)"),
    "concatenation": chain(" || ", "s"),
    "complements": nested("~ ", "a", ""),
    "minus signs": nested("- ", "a", ""),
    "calls": nested("abs(", "a", ")"),
    "days": lambda n: f"SELECT d{' + INTERVAL 1 DAY' * n} FROM t",
    "casts": nested("", "a", "::INT::BIGINT"),
    "casts of dates": nested("", "d", "::TIMESTAMP::DATE"),
    "CASE in ELSE": nested("CASE WHEN a = 1 THEN 2 ELSE ", "a", " END"),
    "AND": listed("SELECT a FROM t WHERE ", "a <> {0}", "", " AND "),
    "OR": listed("SELECT a FROM t WHERE ", "(a = {0} AND f > {0})", "", " OR "),
    "columns": listed("SELECT ", "a + {0} AS c{0}", " FROM t"),
    "aggregates": listed("SELECT ", "sum(a + {0})", " FROM t"),
    "group keys": listed("SELECT count(*) FROM t GROUP BY ", "a + {0}", ""),
    "ORDER BY": listed("SELECT a FROM t ORDER BY ", "a + {0}", ""),
    "union": listed("", "SELECT a FROM t", "", " UNION ALL "),
    "derived tables": lambda n: f"SELECT a FROM {'(SELECT a + 1 AS a FROM ' * n}t{')' * n}",
}


#: For a query of TPC-H in the mean, with some to spare for other versions of Python and sqlglot.
MOST_CALLS = 30_850


def connect() -> tqp.Connection:
    con = tqp.connect(threads=1)
    days = tqp.connect().sql("SELECT DATE '2020-01-01' + i AS d FROM (VALUES (1), (2), (3)) v(i)")
    con.register(
        "t", {"a": [1, 2, 3], "f": [1.0, 2.0, 3.0], "s": ["x", "y", None], "d": days.to_arrow()["d"]}
    )
    return con


def work(con: tqp.Connection, query: str, run: Callable[[str], object] | None = None) -> int:
    """How many functions are called, in Python or C, to compile (or `run`) a query in one attempt, on a large stack."""
    calls = attempts = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    def compiled() -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise RecursionError
        sys.setprofile(count)
        try:
            (run or con.compile)(query)
        finally:
            sys.setprofile(None)

    call_deep(compiled)
    return calls


@pytest.mark.parametrize("name", LONG)
def test_twice_the_length_takes_twice_the_work(name: str) -> None:
    con, query = connect(), LONG[name]
    work(con, query(2))
    once, twice = work(con, query(300)), work(con, query(600))
    assert twice < 2.3 * once


def ctes(count: int, step: str) -> str:
    """A chain of CTEs that each read the one before twice."""
    parts = ["c0 AS (SELECT a, a + 1 AS e, a AS g FROM t)"]
    parts += [f"c{i} AS ({step.format(f'c{i - 1}')})" for i in range(1, count)]
    return f"WITH {', '.join(parts)} SELECT * FROM c{count - 1}"


@pytest.mark.parametrize(
    "step",
    [
        "SELECT x.a, x.e + y.e AS e FROM {0} x JOIN {0} y ON x.a = y.a",
        "SELECT a, e FROM {0} UNION ALL SELECT a, e + 1 FROM {0}",
        "SELECT a, e FROM {0} WHERE e > (SELECT avg(e) FROM {0})",
        "SELECT x.a, sum(y.e) AS e, max(x.g) AS g FROM {0} x JOIN {0} y ON x.a = y.a GROUP BY x.a",
    ],
)
def test_twice_the_ctes_take_twice_the_work(step: str) -> None:
    con = connect()
    work(con, ctes(2, step))
    once, twice = work(con, ctes(50, step)), work(con, ctes(100, step))
    assert twice < 2.3 * once


@pytest.fixture(scope="module")
def tpch(tpch_data: Path) -> tqp.Connection:
    con = tqp.connect(threads=1)
    for table, path in DATA.paths(tpch_data).items():
        con.register(table, str(path))
    for number in range(1, 23):  # columns are encoded, kinds of queries seen
        con.compile(load_query(number).text)
    return con


def test_planning_of_tpch_takes_few_calls(tpch: tqp.Connection) -> None:
    """What a rule does for nothing, or twice, shows here; who adds work on purpose raises the number."""
    calls = [work(tpch, load_query(number).text + "\n") for number in range(1, 23)]
    assert sum(calls) < MOST_CALLS * 22


def test_no_estimate_is_made_twice(tpch: tqp.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """The physical planner goes on with the estimates of the optimizer."""
    made = Counter[int]()
    kept: list[LogicalPlan] = []  # so that no other node gets an id
    derive = Estimator._derive

    def counted(estimator: Estimator, plan: LogicalPlan) -> float:
        made[id(plan)] += 1
        kept.append(plan)
        return derive(estimator, plan)

    monkeypatch.setattr(Estimator, "_derive", counted)
    for number in (3, 5, 18):
        tpch.compile(load_query(number).text + "\n\n")
    assert made and set(made.values()) == {1}


def test_subqueries_are_unnested_once(tpch: tqp.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the shape of a text that is new, and for its plan."""
    from tqp.planner.rules.subqueries import unnest_subqueries

    met: list[Node[Any]] = []
    unnested = unnest_subqueries.join_dependent

    def counted(*arguments: Any, **options: Any) -> Any:
        met.append(arguments[0])
        return unnested(*arguments, **options)

    monkeypatch.setattr(unnest_subqueries, "join_dependent", counted)
    text = load_query(4).text
    tpch.compile(text + "\n\n")
    compiled = len(met)
    tpch.sql(text + "\n\n\n")
    assert compiled and len(met) == 2 * compiled


def test_the_planner_scans_nothing(tpch_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it asks of columns is known once they are encoded; a dictionary is asked for by a plan, and made between two."""
    with tqp.connect(threads=1) as con:
        for table, path in DATA.paths(tpch_data).items():
            con.register(table, path)
        statements = [bind(load_query(number).text, con._snapshot()) for number in range(1, 23)]
        for statement in statements:
            statement.encode_columns()
        found: list[type] = []
        get = EncodedColumns.get

        def watched(columns: EncodedColumns, position: int, kind: type, make: Callable[[], Any]) -> Any:
            found.extend([kind] * (columns.peek(position, kind) is None))
            return get(columns, position, kind, make)

        monkeypatch.setattr(EncodedColumns, "get", watched)
        for statement in statements:
            con._queries.compiler.plans(statement.plan)
        assert not set(found) - {ValueDictionary}
