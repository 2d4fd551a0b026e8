"""The rule `group_by_columns_first`: the same rows with it and without, and where it applies."""

from __future__ import annotations

import datetime
import random

import duckdb
import pyarrow as pa
import pytest

import tqp
from tqp.core.datatypes import DOUBLE, VARCHAR, struct
from tqp.planner.algebra.expressions import Call, Cast, ColumnRef, Literal
from tqp.planner.rules.group_by_columns_first import _is_plain

ROWS = 120_000
START = datetime.datetime(1969, 11, 20, 13, 30)


def table() -> pa.Table:
    rng = random.Random(5)

    def column(values: list[object], data_type: pa.DataType, nulls: float = 0.05) -> pa.Array:
        chosen = rng.choices(values, k=ROWS)
        return pa.array([None if rng.random() < nulls else value for value in chosen], data_type)

    return pa.table(
        {
            "s": column(["a", "B", "\u00e4\U0001f600", "", "b"], pa.string()),
            "i": column([*range(-3, 9)], pa.int32()),
            "d": column([0.0, -0.0, 1.25, 2.5, -1.5, float("nan"), float("inf")], pa.float64()),
            "x": column(
                [START + datetime.timedelta(minutes=7 * n) for n in range(4_000)], pa.timestamp("us")
            ),
            "n": pa.array(range(ROWS), pa.int64()),
            "v": column([*range(100)], pa.int64()),
        }
    )


TABLE = table()


def is_split(con: tqp.Connection, query: str) -> bool:
    """Are there two steps in the logical plan?"""
    return con.explain(query).count("Aggregate by") == 2


def rows(result: tqp.Result | duckdb.DuckDBPyRelation) -> list[str]:
    """In order; which of 0.0 and -0.0 stands for both is open."""
    return sorted(repr(row).replace("(-0.0", "(0.0") for row in result.fetchall())


@pytest.mark.parametrize(
    ("keys", "applies"),
    [
        ("upper(s)", True),
        ("s || '-' || i", True),
        ("monthname(x), upper(s)", True),
        ("hour(x), dayofweek(x), i", True),
        ("strftime(x, '%d.%m.'), s", True),
        ("round(d)", True),
        ("floor(d / 0.5) * 0.5", True),
        ("1 / d", False),  # which tells -0.0 from 0.0
        ("d::VARCHAR", False),
        ("upper(s), x", False),  # most rows have an instant of their own
        ("i % 3", False),  # costs less than a step
        ("n % 1000 || ''", False),
        ("s, random() < 2", False),
    ],
)
def test_rows_with_the_rule_and_without(keys: str, applies: bool) -> None:
    aggregates = "count(*), sum(v), avg(v), min(s), max(x), bool_and(i > 2)"
    query = f"SELECT {keys}, {aggregates} FROM t GROUP BY ALL"
    answers = []
    for disabled in ((), ("group_by_columns_first",)):
        con = tqp.connect(disabled_rules=disabled)
        con.register("t", TABLE)
        con.sql(query).to_arrow()
        assert is_split(con, query) == (applies and not disabled)
        answers.append(rows(con.sql(query)))
    assert answers[0] == answers[1]


def test_answers_are_duckdbs() -> None:
    con, oracle = tqp.connect(), duckdb.connect()
    con.register("t", TABLE)
    oracle.register("t", TABLE)
    for keys in (
        "upper(s) AS a, monthname(x) AS b",
        "s || i AS a, year(x) AS b",
        "round(d) AS a, hour(x) AS b",
    ):
        query = f"SELECT {keys}, count(*), sum(v), avg(v), max(x) FROM t GROUP BY ALL ORDER BY ALL"
        assert rows(con.sql(query)) == rows(oracle.sql(query))


def test_aggregates_that_need_all_rows_are_not_split() -> None:
    con = tqp.connect()
    con.register("t", TABLE)
    for call in ("count(DISTINCT v)", "string_agg(s, '')", "median(v)"):
        assert not is_split(con, f"SELECT upper(s), {call} FROM t GROUP BY 1")


def test_what_is_read_of_nested_values_may_tell_equal_ones_apart() -> None:
    doubles = ColumnRef(0, struct({"d": DOUBLE}))
    assert not _is_plain(Cast(Call("struct_extract", (doubles, Literal("d", VARCHAR)), DOUBLE), VARCHAR))
    assert _is_plain(Call("upper", (ColumnRef(0, VARCHAR),), VARCHAR))
