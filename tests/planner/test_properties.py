"""Facts about logical plans hold for the rows that the plans give."""

from __future__ import annotations

import pytest

from tests.planner.physical_reference import check_field
from tests.planner.plan_generator import PlanGenerator
from tests.reference_plan import MemoryTable, run, sorted_rows
from tqp.core.datatypes import BIGINT, BOOLEAN, HUGEINT
from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import AggregateCall, Call, ColumnRef, Expression, InList, Literal
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    JoinType,
    Limit,
    LogicalPlan,
    Project,
    Scan,
    Shared,
    UnionAll,
    Values,
)
from tqp.planner.algebra.node import walk_plan
from tqp.planner.algebra.outcomes import null_rejected_columns, nullable
from tqp.planner.optimizer import optimize

KEYS = MemoryTable("keys", {"k": [1, 2, 3, 4], "v": [7, 7, None, 9]})
MANY = MemoryTable("many", {"f": [1, 1, 2, 5, None], "w": [0, 1, 2, 3, 4]})


def scan(table: MemoryTable, first_id: int) -> Scan:
    fields = tuple(
        Field(
            first_id + i,
            name,
            BIGINT,
            table.column_nullable(name),
            table.column_facts(name),
            table.column_estimates(name),
        )
        for i, name in enumerate(table.columns)
    )
    return Scan(table, table.name, tuple(table.columns), fields)


def column(plan: LogicalPlan, position: int) -> ColumnRef:
    field = plan.schema[position]
    return ColumnRef(field.id, field.data_type, field.name)


def call(function: str, *arguments: Expression) -> Call:
    return Call(function, arguments, BOOLEAN)


def number(value: int) -> Literal:
    return Literal(value, BIGINT)


def check_facts(plan: LogicalPlan) -> None:
    for node in walk_plan(plan):
        rows = run(node, {})
        fewest, most = node.row_bounds
        assert fewest <= len(rows) <= most
        assert node.output_ids == {field.id for field in node.schema} == node.field_facts.keys()
        for identifier, field in node.field_facts.items():
            check_field(field, [row[identifier] for row in rows])
        for unique in node.unique_sets:
            assert len({tuple(row[i] for i in sorted(unique)) for row in rows}) == len(rows), (node, unique)


@pytest.mark.parametrize("block", range(6))
def test_facts_hold_on_random_plans(block: int) -> None:
    for seed in range(block * 30, block * 30 + 30):
        try:
            plan = optimize(PlanGenerator(seed).top(depth=1))
            if sum(1 for _ in walk_plan(plan)) > 20:
                continue
            sorted_rows(plan)
        except (ExecutionError, UnsupportedError):
            continue
        check_facts(plan)


@pytest.mark.parametrize("join_type", [t for t in JoinType if t is not JoinType.MARK])
def test_facts_of_joins(join_type: JoinType) -> None:
    for left, right in ((scan(KEYS, 0), scan(MANY, 10)), (scan(MANY, 10), scan(KEYS, 0))):
        condition = call("equal", column(left, 0), column(right, 0))
        join = Join(left, right, join_type, condition)
        try:
            run(join, {})
        except ExecutionError:
            continue
        check_facts(join)


def test_a_unique_key_bounds_the_join() -> None:
    many, keys = scan(MANY, 10), scan(KEYS, 0)
    join = Join(many, keys, JoinType.INNER, call("equal", column(many, 0), column(keys, 0)))
    assert join.max_rows == 5
    assert Join(many, keys, JoinType.INNER).max_rows == 20
    assert join.unique_sets == {frozenset((11,))}  # w is unique in `many`, and each of its rows matches once
    fields = join.field_facts
    assert not fields[10].nullable
    assert (fields[10].facts.minimum, fields[10].facts.maximum) == (1, 4)


def test_filters_tighten() -> None:
    many = scan(MANY, 10)
    filtered = Filter(
        many,
        call(
            "and", call("greater_equal", column(many, 1), number(2)), call("less", column(many, 0), number(4))
        ),
    )
    fields = filtered.field_facts
    assert (fields[11].facts.minimum, fields[11].facts.maximum) == (2, 4)
    assert (fields[10].facts.maximum, fields[10].nullable) == (3, False)
    listed = Filter(many, InList(column(many, 1), (number(1), number(3))))
    assert listed.field_facts[11].facts.minimum == 1
    assert not listed.field_facts[11].nullable
    impossible = Filter(many, call("greater", column(many, 1), number(100)))
    check_facts(impossible)


def test_aggregates() -> None:
    many = scan(MANY, 10)
    total = Field(20, "total", HUGEINT)
    count = Field(21, "count", BIGINT)
    calls = (AggregateCall("sum", (column(many, 1),), HUGEINT), AggregateCall("count_star", (), BIGINT))
    grouped = Aggregate(many, (many.fields[0],), (column(many, 0),), (total, count), calls)
    total, count = grouped.field_facts[20], grouped.field_facts[21]
    assert (total.facts.minimum, total.facts.maximum, total.nullable) == (0, 20, False)
    assert (count.facts.minimum, count.facts.maximum, count.nullable) == (1, 5, False)
    assert grouped.unique_sets == {frozenset((10,))}
    single = Aggregate(many, (), (), (total,), calls[:1])
    assert single.max_rows == 1
    assert single.unique_sets == {frozenset()}
    check_facts(grouped)
    assert single.field_facts[20].nullable


def test_small_nodes() -> None:
    many = scan(MANY, 10)
    assert Limit(many, 3, 4).max_rows == 1
    assert Limit(many, 1).unique_sets == {frozenset()}
    assert UnionAll((many, many), (Field(30, "a", BIGINT), Field(31, "b", BIGINT))).max_rows == 10
    shared = Shared(many, 0, (Field(40, "f", BIGINT), Field(41, "w", BIGINT)))
    assert shared.unique_sets == {frozenset((41,))}
    values = Values(((number(1),), (Literal(None, BIGINT),)), (Field(50, "v", BIGINT),))
    check_facts(values)
    assert values.field_facts[50].facts.maximum == 1
    assert values.field_facts[50].nullable


def test_renaming_projections_keep_uniqueness() -> None:
    many = scan(MANY, 10)
    project = Project(many, (Field(60, "renamed", BIGINT),), (column(many, 1),))
    assert project.unique_sets == {frozenset((60,))}
    assert project.field_facts[60].facts.is_unique


def test_nullable() -> None:
    fields = {0: Field(0, "x", BIGINT, True), 1: Field(1, "y", BIGINT, False)}
    x, y = ColumnRef(0, BIGINT, "x"), ColumnRef(1, BIGINT, "y")
    assert nullable(Call("add", (x, y), BIGINT), fields)
    assert not nullable(Call("add", (y, y), BIGINT), fields)
    assert not nullable(Call("coalesce", (x, y), BIGINT), fields)
    assert not nullable(call("is_null", x), fields)
    assert nullable(Call("strptime", (y,), BIGINT), fields)  # NULL elsewhere too, perhaps


def test_null_rejection() -> None:
    x, y = ColumnRef(0, BIGINT, "x"), ColumnRef(1, BIGINT, "y")
    less, null = call("less", x, y), call("is_null", x)
    assert null_rejected_columns(less) == {0, 1}
    assert null_rejected_columns(call("not", less)) == {0, 1}
    assert null_rejected_columns(null) == set()
    assert null_rejected_columns(call("not", null)) == {0}
    assert null_rejected_columns(call("or", less, call("equal", x, x))) == {0}
    assert null_rejected_columns(call("and", null, call("equal", y, y))) == {1}
    assert null_rejected_columns(call("not", call("or", null, call("is_null", y)))) == {0, 1}
    assert null_rejected_columns(call("equal", Call("coalesce", (x, y), BIGINT), y)) == {1}


def test_nulls_of_a_branch_leave_the_range_of_a_union() -> None:
    keys = scan(KEYS, 1)
    nulls = Project(keys, (Field(10, "n", BIGINT),), (Literal(None, BIGINT),))
    assert nulls.field_facts[10].facts.is_null and nulls.field_facts[10].nullable
    numbers = Project(keys, (Field(11, "k", BIGINT),), (column(keys, 0),))
    union = UnionAll((nulls, numbers, nulls), (Field(12, "u", BIGINT),))
    found = union.field_facts[12]
    assert found.facts.range == (1, 4) and found.nullable and not found.facts.is_null
    only = UnionAll((nulls, nulls), (Field(13, "u", BIGINT),))
    assert only.field_facts[13].facts.range is None
