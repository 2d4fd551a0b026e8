"""Estimates follow the statistics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from tqp.core.datatypes import BIGINT, BOOLEAN, VARCHAR, DataType
from tqp.core.names import ObjectName
from tqp.core.schema import ColumnEstimates, ColumnFacts, Field
from tqp.planner.algebra.cardinality import Estimator, selectivity
from tqp.planner.algebra.expressions import (
    AggregateCall,
    Call,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Parameter,
)
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    JoinType,
    Limit,
    LogicalPlan,
    Scan,
    UnionAll,
)


class FakeTable:
    """A table of which only the number of rows and these fields are known."""

    def __init__(self, name: str, num_rows: int, fields: Sequence[Field]) -> None:
        self.name = name
        self.num_rows = num_rows
        self.fields = {field.name: field for field in fields}

    @property
    def place(self) -> ObjectName:
        return ObjectName.of(self.name)

    @property
    def hidden_names(self) -> Sequence[str]:
        return ()

    @property
    def column_names(self) -> Sequence[str]:
        return tuple(self.fields)

    def column_type(self, name: str) -> DataType:
        return self.fields[name].data_type

    def encode(self, names: Iterable[str]) -> None:
        return

    def column_nullable(self, name: str) -> bool:
        return self.fields[name].nullable

    def column_facts(self, name: str) -> ColumnFacts:
        return self.fields[name].facts

    def column_estimates(self, name: str) -> ColumnEstimates:
        return self.fields[name].estimates

    def dictionary_size(self, name: str) -> int | None:
        return None

    def dictionary_encode(self, name: str) -> bool: ...


def scan(name: str, num_rows: int, *fields: Field) -> Scan:
    table = FakeTable(name, num_rows, fields)
    return Scan(table, name, tuple(table.column_names), fields)


def orders() -> Scan:
    key = Field(0, "o_orderkey", BIGINT, False, ColumnFacts(1, 6000, is_unique=True), ColumnEstimates(1500.0))
    date = Field(1, "o_orderdate", BIGINT, False, ColumnFacts(0, 999))
    text = Field(2, "o_comment", VARCHAR, True, ColumnFacts(), ColumnEstimates(50.0))
    return scan("orders", 1500, key, date, text)


def lines() -> Scan:
    key = Field(10, "l_orderkey", BIGINT, False, ColumnFacts(1, 6000), ColumnEstimates(1500.0))
    part = Field(11, "l_partkey", BIGINT, False, ColumnFacts(1, 200), ColumnEstimates(200.0))
    return scan("lineitem", 6000, key, part)


def column(plan: LogicalPlan, position: int) -> ColumnRef:
    field = plan.schema[position]
    return ColumnRef(field.id, field.data_type, field.name)


def call(function: str, *arguments: Expression) -> Call:
    return Call(function, arguments, BOOLEAN)


def number(value: int) -> Literal:
    return Literal(value, BIGINT)


FIELDS = {field.id: field for field in orders().fields}
DATE, TEXT, KEY = column(orders(), 1), column(orders(), 2), column(orders(), 0)


@pytest.mark.parametrize(
    "condition, share",
    [
        (call("less", DATE, number(250)), 0.25),
        (call("less_equal", DATE, number(249)), 0.25),
        (call("greater", number(250), DATE), 0.25),
        (call("greater_equal", DATE, number(900)), 0.1),
        (call("and", call("greater_equal", DATE, number(200)), call("less", DATE, number(300))), 0.1),
        (call("less", DATE, number(-5)), 0.0),
        (call("less", DATE, number(5000)), 1.0),
        (call("equal", KEY, number(5)), 1 / 1500),
        (call("not_equal", TEXT, Literal("x", VARCHAR)), 0.98),
        (InList(TEXT, (Literal("a", VARCHAR), Literal("b", VARCHAR))), 0.04),
        (call("is_null", KEY), 0.0),
        (call("or", call("less", DATE, number(500)), call("less", DATE, number(500))), 0.75),
        (call("not", call("less", DATE, number(250))), 0.75),
        (Literal(True, BOOLEAN), 1.0),
        (Literal(None, BOOLEAN), 0.0),
    ],
)
def test_selectivity(condition: Expression, share: float) -> None:
    assert selectivity(condition, FIELDS) == pytest.approx(share)


@pytest.mark.parametrize(
    "condition, share",
    [
        ("equal", 0.5), ("not_equal", 0.5), ("other", 0.3 / 8), ("list", 0.5 + 0.3 / 8), ("parameter", 0.2),
        ("null", 0.0), ("or", 0.6),
    ],
)  # fmt: skip
def test_values_that_many_rows_hold(condition: str, share: float) -> None:
    estimates = ColumnEstimates(10.0, ((7, 0.5), (8, 0.2)))
    fields = {1: Field(1, "k", BIGINT, True, ColumnFacts(0, 99), estimates)}
    k = ColumnRef(1, BIGINT)
    found = {
        "equal": call("equal", number(7), k),
        "not_equal": call("not_equal", k, number(7)),
        "other": call("equal", k, number(9)),
        "list": InList(k, (number(7), number(9))),
        "parameter": call("equal", k, Parameter(0, BIGINT, 8)),
        "null": call("equal", k, Literal(None, BIGINT)),
        "or": call("or", call("equal", k, number(7)), call("equal", k, number(8))),
    }[condition]
    assert selectivity(found, fields) == pytest.approx(share)


def test_unknown_conditions_are_neither_all_nor_nothing() -> None:
    unknown = call("array_distance", TEXT)
    matched = call("like", TEXT, Literal("%x%", VARCHAR))
    for condition in (unknown, matched, call("less", TEXT, Literal("x", VARCHAR)), call("equal", DATE, KEY)):
        assert 0.0 < selectivity(condition, FIELDS) < 0.5


def test_joins() -> None:
    left, right = lines(), orders()
    condition = call("equal", column(left, 0), column(right, 0))
    join = Join(left, right, JoinType.INNER, condition)
    assert Estimator().rows(join) == pytest.approx(6000)
    few = Filter(right, call("less", column(right, 1), number(100)))
    assert Estimator().rows(Join(left, few, JoinType.INNER, condition)) == pytest.approx(600)
    assert Estimator().rows(Join(left, few, JoinType.SEMI, condition)) == pytest.approx(600)
    assert Estimator().rows(Join(left, few, JoinType.ANTI, condition)) == pytest.approx(5400)
    assert Estimator().rows(Join(left, few, JoinType.LEFT, condition)) == pytest.approx(6000)
    assert Estimator().rows(Join(left, right, JoinType.INNER)) == pytest.approx(9_000_000)


def test_groups_and_the_rest() -> None:
    left = lines()
    count = (Field(20, "count", BIGINT),)
    calls = (AggregateCall("count_star", (), BIGINT),)
    grouped = Aggregate(left, (left.fields[1],), (column(left, 1),), count, calls)
    assert Estimator().rows(grouped) == pytest.approx(200)
    assert Estimator().rows(Aggregate(left, (), (), count, calls)) == 1.0
    assert Estimator().rows(Limit(left, 10)) == 10.0
    assert Estimator().rows(Limit(left, None, 5990)) == 10.0
    assert (
        Estimator().rows(UnionAll((left, left), (Field(30, "a", BIGINT), Field(31, "b", BIGINT)))) == 12_000
    )


def test_thresholds_on_aggregates_are_selective() -> None:
    left = lines()
    total = Field(20, "total", BIGINT)
    grouped = Aggregate(
        left,
        (left.fields[0],),
        (column(left, 0),),
        (total,),
        (AggregateCall("sum", (column(left, 1),), BIGINT),),
    )
    having = Filter(grouped, call("greater", ColumnRef(20, BIGINT, "total"), number(300)))
    estimator = Estimator()
    assert estimator.rows(having) <= 0.2 * estimator.rows(grouped)


def days(first: int = 40) -> Scan:
    """The days of two centuries, in order."""
    return scan(
        "days",
        73_000,
        Field(
            first,
            "day",
            BIGINT,
            False,
            ColumnFacts(0, 72_999, is_unique=True, is_sorted=True),
            ColumnEstimates(73_000.0),
        ),
        Field(
            first + 1,
            "week",
            BIGINT,
            False,
            ColumnFacts(0, 10_429, is_sorted=True),
            ColumnEstimates(10_430.0),
        ),
        Field(
            first + 2, "year", BIGINT, False, ColumnFacts(1900, 2099, is_sorted=True), ColumnEstimates(200.0)
        ),
        Field(first + 3, "weekday", BIGINT, False, ColumnFacts(0, 6), ColumnEstimates(7.0)),
    )


def stock() -> Scan:
    """What is in store on one day a week, for five years."""
    day = Field(50, "stock_day", BIGINT, False, ColumnFacts(36_500, 38_325), ColumnEstimates(260.0))
    item = Field(51, "item", BIGINT, False, ColumnFacts(1, 1000), ColumnEstimates(1000.0))
    return scan("stock", 260_000, day, item)


def test_columns_that_rows_are_sorted_by_keep_the_same_share_of_their_values() -> None:
    calendar = days()
    of_year = Filter(calendar, call("equal", column(calendar, 2), number(2000)))
    estimator = Estimator()
    assert estimator.distinct(of_year, (column(calendar, 1),)) == pytest.approx(52, abs=1)
    assert estimator.distinct(of_year, (column(calendar, 3),)) == 7
    of_weekday = Filter(calendar, call("equal", column(calendar, 3), number(2)))
    assert estimator.distinct(of_weekday, (column(calendar, 1),)) == pytest.approx(10_429, abs=1)


def test_a_join_leaves_the_values_of_the_rows_that_find_a_partner() -> None:
    calendar, others = days(), days(60)
    of_year = Filter(calendar, call("equal", column(calendar, 2), number(2000)))
    same_week = call("equal", column(others, 1), column(calendar, 1))
    for kind in (JoinType.INNER, JoinType.SEMI):
        joined = Join(others, of_year, kind, same_week)
        assert Estimator().distinct(joined, (column(others, 0),)) == pytest.approx(365, abs=10)
    swapped = Join(of_year, others, JoinType.INNER, same_week)
    assert Estimator().distinct(swapped, (column(others, 0),)) == pytest.approx(365, abs=10)
    outer = Join(others, of_year, JoinType.LEFT, same_week)
    assert Estimator().distinct(outer, (column(others, 0),)) == pytest.approx(73_000)


def test_keys_are_chosen_from_the_values_that_both_sides_may_have() -> None:
    calendar, left = days(), stock()
    same_day = call("equal", column(left, 0), column(calendar, 0))
    of_year = Filter(calendar, call("equal", column(calendar, 2), number(2000)))
    # A fifth of the five years' days, although there are more of them than days with stock.
    assert Estimator().rows(Join(left, of_year, JoinType.INNER, same_day)) == pytest.approx(52_000, rel=0.01)
    assert Estimator().rows(Join(left, of_year, JoinType.SEMI, same_day)) == pytest.approx(52_000, rel=0.01)
    assert Estimator().rows(Join(of_year, left, JoinType.SEMI, same_day)) == pytest.approx(365 / 7, rel=0.01)
    whole = Join(left, calendar, JoinType.INNER, same_day)
    assert Estimator().rows(whole) == pytest.approx(260_000, rel=0.01)
