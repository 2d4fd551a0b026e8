"""The text of expressions and plans."""

from __future__ import annotations

import pytest

from tests.planner.test_cardinality import call, column, lines, number, orders
from tqp.core.datatypes import BIGINT, BLOB, BOOLEAN, DATE, DOUBLE, INTERVAL, TIMESTAMP, VARCHAR, decimal
from tqp.core.schema import Field
from tqp.planner.algebra.explain import explain_logical, explain_physical
from tqp.planner.algebra.expression_text import format_expression
from tqp.planner.algebra.expressions import (
    AggregateCall,
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
)
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    JoinType,
    Limit,
    LogicalPlan,
    Sort,
    SortKey,
)
from tqp.planner.physical.planner import plan_physical

X, Y = ColumnRef(0, BIGINT, "x"), ColumnRef(1, BIGINT, "y")
S = ColumnRef(2, VARCHAR, "s")


def text(value: str) -> Literal:
    return Literal(value, VARCHAR)


@pytest.mark.parametrize(
    "expression, shown",
    [
        (Call("multiply", (Call("add", (X, Y), BIGINT), X), BIGINT), "(x + y) * x"),
        (Call("add", (Call("multiply", (X, Y), BIGINT), X), BIGINT), "x * y + x"),
        (Call("subtract", (X, Call("subtract", (Y, X), BIGINT)), BIGINT), "x - (y - x)"),
        (call("and", call("less", X, Y), call("or", call("equal", X, Y), call("is_null", X))),
         "x < y AND (x = y OR x IS NULL)"),
        (call("not", call("is_null", X)), "x IS NOT NULL"),
        (call("not", call("less", X, Y)), "NOT x < y"),
        (call("not", call("like", S, text("a%"))), "s NOT LIKE 'a%'"),
        (call("not", InList(X, (number(1), number(2)))), "x NOT IN (1, 2)"),
        (Call("date_part", (text("year"), X), BIGINT), "year(x)"),
        (Call("substring", (S, number(1), number(2)), VARCHAR), "substring(s, 1, 2)"),
        (Cast(X, DOUBLE), "CAST(x AS DOUBLE)"),
        (Cast(X, DOUBLE, is_try=True), "TRY_CAST(x AS DOUBLE)"),
        (Case(((call("less", X, Y), X),), Y, BIGINT), "CASE WHEN x < y THEN x ELSE y END"),
        (AggregateCall("count_star", (), BIGINT), "count(*)"),
        (AggregateCall("sum", (X,), BIGINT, distinct=True, filter=call("less", X, Y)),
         "sum(DISTINCT x) FILTER (WHERE x < y)"),
        (text("it's"), "'it''s'"),
        (Literal(-5, decimal(5, 2)), "-0.05"),
        (Literal(9204, DATE), "DATE '1995-03-15'"),
        (Literal(10**6, TIMESTAMP), "TIMESTAMP '1970-01-01 00:00:01'"),
        (Literal(2**62, TIMESTAMP), f"TIMESTAMP {2**62}"),
        (Literal((1, 2, 0), INTERVAL), "INTERVAL '1 months 2 days'"),
        (Literal(b"\x01a", BLOB), "'\\x01\\x61'::BLOB"),
        (Literal(None, BIGINT), "NULL"),
        (Literal(True, BOOLEAN), "TRUE"),
        (Literal(1.5, DOUBLE), "1.5"),
        (ColumnRef(7, BIGINT), "#7"),
    ],
)  # fmt: skip
def test_expressions(expression: Expression, shown: str) -> None:
    assert format_expression(expression) == shown


def test_long_lists_are_cut() -> None:
    shown = format_expression(InList(X, tuple(number(i) for i in range(50))))
    assert shown.endswith("7, ... 50 values)")


def query() -> LogicalPlan:
    left, right = lines(), orders()
    early = Filter(right, call("less", column(right, 1), number(100)))
    join = Join(left, early, JoinType.INNER, call("equal", column(left, 0), column(right, 0)))
    grouped = Aggregate(
        join,
        (left.fields[1],),
        (column(left, 1),),
        (Field(20, "count", BIGINT),),
        (AggregateCall("count_star", (), BIGINT),),
    )
    key = SortKey(ColumnRef(20, BIGINT, "count"), descending=True)
    return Limit(Sort(grouped, (key,)), 10)


def test_logical_plan() -> None:
    assert explain_logical(query()).splitlines() == [
        "Limit 10  ~10 rows",
        "  Sort by count DESC  ~200 rows",
        "    Aggregate by l_partkey: count(*) AS count  ~200 rows",
        "      Join inner on l_orderkey = o_orderkey  ~600 rows",
        "        Scan lineitem (l_orderkey, l_partkey)  ~6000 rows",
        "        Filter o_orderdate < 100  ~150 rows",
        "          Scan orders (o_orderkey, o_orderdate, o_comment)  ~1500 rows",
    ]


def test_physical_plan() -> None:
    plan = plan_physical(query())
    assert explain_physical(plan).splitlines() == [
        "Sort top 10 by count DESC  ~10 rows",
        "  Aggregate [direct group-by, 200 keys] by l_partkey: count(*) AS count  ~200 rows",
        "    Join 0 inner [perfect-hash join, 6001 keys] on l_orderkey = o_orderkey  ~600 rows",
        "      TableScan lineitem (l_orderkey, l_partkey)  ~6000 rows",
        "      Filter o_orderdate < 100  ~150 rows",
        "        TableScan orders (o_orderkey, o_orderdate)  ~1500 rows",
    ]
    annotated = explain_physical(plan, {id(plan): "10 rows, 1.2 ms"})
    assert annotated.splitlines()[0] == "Sort top 10 by count DESC  ~10 rows  10 rows, 1.2 ms"


def test_equal_names_are_told_apart() -> None:
    left, right = orders(), lines()
    renamed = tuple(Field(f.id, "k", f.data_type, f.nullable, f.facts) for f in right.fields[:1])
    other = type(right)(right.table, "lineitem", ("l_orderkey",), renamed)
    same = type(left)(left.table, "orders", left.columns[:1], (Field(0, "k", BIGINT),))
    shown = explain_logical(
        Join(same, other, JoinType.INNER, call("equal", column(same, 0), column(other, 0)))
    )
    assert "on k#0 = k#10" in shown
