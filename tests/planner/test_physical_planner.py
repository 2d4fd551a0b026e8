"""Physical plans give the rows of the logical plan, and every promise they make holds."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import pytest

from tests.planner.physical_reference import PhysicalReference
from tests.planner.plan_generator import PlanGenerator
from tests.planner.test_cardinality import FakeTable, call, column, number, scan
from tests.reference_plan import sorted_rows
from tqp.core.backends import Backend
from tqp.core.datatypes import BIGINT, BOOLEAN, HUGEINT
from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.core.schema import ColumnEstimates, ColumnFacts, Field
from tqp.planner.algebra.expressions import AggregateCall, ColumnRef
from tqp.planner.algebra.join_keys import LEFT_ONLY
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    JoinType,
    Limit,
    Project,
    Scan,
    Sort,
    SortKey,
)
from tqp.planner.algebra.node import walk_plan
from tqp.planner.optimizer import optimize
from tqp.planner.physical import plan as physical
from tqp.planner.physical import runtime_filters
from tqp.planner.physical.algorithm_choice import PhysicalOptions
from tqp.planner.physical.plan import GroupAlgorithm, JoinAlgorithm, PhysicalPlan
from tqp.planner.physical.planner import PHYSICAL_RULES, plan_physical

Node = TypeVar("Node", bound=PhysicalPlan)

#: The interpreter of logical plans takes seconds for larger plans; those are checked against themselves.
MOST_NODES = 40


def ordered(rows):  # type: ignore[no-untyped-def]
    return sorted(rows, key=lambda row: tuple((value is not None, value or 0, str(value)) for value in row))


def check(seed: int, options: PhysicalOptions) -> None:
    plan = PlanGenerator(seed).top(depth=2)
    try:
        plan = optimize(plan)
    except UnsupportedError:
        return
    planned = plan_physical(plan, options)
    assert [(f.id, f.name) for f in planned.fields] == [(f.id, f.name) for f in plan.schema]
    try:
        with_filters = ordered(PhysicalReference(use_runtime_filters=True).rows(planned))
        assert ordered(PhysicalReference(use_runtime_filters=False).rows(planned)) == with_filters
    except ExecutionError:
        return
    if sum(1 for _ in walk_plan(plan)) <= MOST_NODES:
        assert with_filters == sorted_rows(plan)


@pytest.fixture
def eager_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runtime filters everywhere, however little they drop."""
    monkeypatch.setattr(runtime_filters, "_FEWEST_ROWS", 0.0)
    monkeypatch.setattr(runtime_filters, "_LARGEST_SHARE", float("inf"))


@pytest.mark.parametrize("block", range(10))
def test_random_plans_keep_their_rows_and_promises(block: int, eager_filters: None) -> None:
    for seed in range(block * 30, block * 30 + 30):
        check(seed, PhysicalOptions())


@pytest.mark.parametrize("rule", PHYSICAL_RULES)
def test_each_physical_rule_may_be_off(rule: str, eager_filters: None) -> None:
    for seed in range(2000, 2020):
        check(seed, PhysicalOptions(disabled_rules=frozenset({rule})))


def test_cuda_plans(eager_filters: None) -> None:
    off = frozenset({"perfect_hash_join", "offset_array_join"})
    for seed in range(3000, 3020):
        check(seed, PhysicalOptions(Backend.TORCH, off))


def table(name: str, first_id: int, rows: int, **columns: tuple[int, bool]) -> Scan:
    """`columns`: name -> (number of values from 0, is it unique)."""
    fields = tuple(
        Field(
            first_id + i,
            column,
            BIGINT,
            False,
            ColumnFacts(0, values - 1, unique),
            ColumnEstimates(float(values)),
        )
        for i, (column, (values, unique)) in enumerate(columns.items())
    )
    return scan(name, rows, *fields)


def nodes(plan: PhysicalPlan, kind: type[Node]) -> list[Node]:
    found = [plan] if isinstance(plan, kind) else []
    return found + [node for child in plan.inputs for node in nodes(child, kind)]


def sum_by_part(lines: Scan) -> Aggregate:
    total = (Field(50, "total", HUGEINT),)
    return Aggregate(
        lines,
        lines.fields[:1],
        (column(lines, 0),),
        total,
        (AggregateCall("sum", (column(lines, 1),), HUGEINT),),
    )


def test_a_runtime_filter_goes_below_the_aggregate() -> None:
    grouped = sum_by_part(table("lines", 0, 1_000_000, part=(20_000, False), quantity=(50, False)))
    parts = table("parts", 10, 20_000, key=(20_000, True), brand=(100, False))
    few = Filter(parts, call("equal", column(parts, 1), number(7)))
    plan = plan_physical(
        Join(grouped, few, JoinType.INNER, call("equal", column(grouped, 0), column(few, 0)))
    )
    (join,) = nodes(plan, physical.Join)
    (aggregate,) = nodes(plan, physical.Aggregate)
    assert isinstance(aggregate.input, physical.RuntimeFilter)
    assert aggregate.input.join == join.identifier
    assert join.algorithm is JoinAlgorithm.PERFECT_HASH
    off = PhysicalOptions(disabled_rules=frozenset({"runtime_filters"}))
    assert not nodes(
        plan_physical(
            Join(grouped, few, JoinType.SEMI, call("equal", column(grouped, 0), column(few, 0))), off
        ),
        physical.RuntimeFilter,
    )


def test_no_runtime_filter_right_below_its_join() -> None:
    lines = table("lines", 0, 1_000_000, part=(20_000, False))
    few = table("parts", 10, 100, key=(20_000, True))
    plan = plan_physical(Join(lines, few, JoinType.INNER, call("equal", column(lines, 0), column(few, 0))))
    assert not nodes(plan, physical.RuntimeFilter)


def test_the_unique_side_is_built() -> None:
    parts = table("parts", 10, 200_000, key=(200_000, True))
    lines = table("lines", 0, 70_000, part=(200_000, False))
    plan = plan_physical(
        Join(parts, lines, JoinType.INNER, call("equal", column(parts, 0), column(lines, 0)))
    )
    (join,) = nodes(plan, physical.Join)
    assert join.algorithm is JoinAlgorithm.PERFECT_HASH
    assert isinstance(join.build, physical.TableScan)
    assert join.build.table_name == "parts"
    assert [field.id for field in plan.fields] == [10, 0]


def test_a_whole_table_of_all_keys_matches_every_row() -> None:
    lines = table("lines", 0, 1_000_000, part=(20_000, False))
    parts = table("parts", 10, 20_000, key=(20_000, True), brand=(100, False), kind=(30, False))
    condition = call("equal", column(lines, 0), column(parts, 0))
    whole = Join(lines, parts, JoinType.INNER, condition)
    (join,) = nodes(plan_physical(whole), physical.Join)
    assert join.all_match and join.by_key
    filtered = replace(whole, right=Filter(parts, call("less", column(parts, 1), number(7))))
    short = replace(whole, right=replace(parts, table=FakeTable("parts", 19_999, parts.fields)))
    open_lines = scan("lines", 1_000_000, replace(lines.fields[0], nullable=True))
    more_parts = table("lines", 0, 1_000_000, part=(20_001, False))
    for other in (filtered, short, replace(whole, left=open_lines), replace(whole, left=more_parts)):
        (join,) = nodes(plan_physical(other), physical.Join)
        assert join.algorithm is JoinAlgorithm.PERFECT_HASH and not join.all_match


def test_columns_stand_by_key_where_the_join_reads_them_often() -> None:
    parts = table("parts", 10, 500_000, key=(500_000, True), brand=(100, False), kind=(30, False))
    for rows, by_key in ((1_000_000, True), (1_000, False)):
        lines = table("lines", 0, rows, part=(500_000, False))
        off = PhysicalOptions(disabled_rules=frozenset({"swap_join_sides"}))
        condition = call("equal", column(lines, 0), column(parts, 0))
        (join,) = nodes(plan_physical(Join(lines, parts, JoinType.INNER, condition), off), physical.Join)
        assert join.by_key is by_key


def test_two_sparse_keys_become_one_dense_key() -> None:
    offers = table("offers", 10, 800_000, part=(200_000, False), supplier=(10_000, False))
    for rows, algorithm in ((600_000, JoinAlgorithm.OFFSET_ARRAY), (6_000_000, JoinAlgorithm.HASH)):
        lines = table("lines", 0, rows, part=(200_000, False), supplier=(10_000, False))
        both = call("and", *(call("equal", column(lines, i), column(offers, i)) for i in range(2)))
        (join,) = nodes(plan_physical(Join(lines, offers, JoinType.INNER, both)), physical.Join)
        assert join.algorithm is algorithm  # more pairs to compare than a hash table takes to fill
        alone = algorithm is JoinAlgorithm.OFFSET_ARRAY
        assert (len(join.probe_keys), len(join.residual)) == ((1, 1) if alone else (2, 0))
    off = PhysicalOptions(disabled_rules=frozenset({"reduce_keys"}))
    (join,) = nodes(plan_physical(Join(lines, offers, JoinType.INNER, both), off), physical.Join)
    assert join.algorithm is JoinAlgorithm.HASH
    assert join.packing is not None and join.packing.size == 2_000_000_000
    on_torch = PhysicalOptions(Backend.TORCH, frozenset({"reduce_keys"}))
    (join,) = nodes(plan_physical(Join(lines, offers, JoinType.INNER, both), on_torch), physical.Join)
    assert join.algorithm is JoinAlgorithm.SORT


def test_one_dense_key_stands_for_few_others_only_where_all_make_one_integer() -> None:
    """Pairs of the dense key are compared in each other key, while the integer of all is hashed as it is."""
    sizes = {
        "part": (100_000, False),
        "supplier": (10_000, False),
        "day": (20_000, False),
        "kind": (900, False),
    }
    lines, offers = table("lines", 0, 600_000, **sizes), table("offers", 10, 160_000, **sizes)
    equalities = [call("equal", column(lines, i), column(offers, i)) for i in range(4)]
    for keys, algorithm in ((2, JoinAlgorithm.OFFSET_ARRAY), (4, JoinAlgorithm.HASH)):
        condition = call("and", *equalities[:keys])
        (join,) = nodes(plan_physical(Join(lines, offers, JoinType.INNER, condition)), physical.Join)
        assert join.algorithm is algorithm


@pytest.mark.parametrize(("distance", "indexed"), [(None, True), (1 / 3, True), (0.001, False)])
def test_a_build_side_whose_keys_lie_together_in_the_probed_table_is_built(
    distance: float | None, indexed: bool
) -> None:
    """Zones of the table without one of the keys are not read, which is worth more than the index of the small table."""
    lines = table("lines", 0, 2_000_000, day=(2_000, False), part=(20_000, False))
    day = lines.fields[0]
    near = day.known(False, day.facts, ColumnEstimates(2_000.0, distance=distance))
    lines = scan("lines", 2_000_000, near, lines.fields[1])
    parts = table("parts", 10, 20_000, key=(20_000, True), brand=(1_000, False))
    days = table("days", 20, 70_000, key=(70_000, True), year=(2_000, False))
    key = days.fields[0]
    key = key.known(False, replace(key.facts, is_sorted=True), key.estimates)
    days = scan("days", 70_000, key, days.fields[1])
    of_brand = Filter(parts, call("equal", column(parts, 1), number(3)))
    of_year = Filter(days, call("equal", column(days, 1), number(3)))
    of_parts = Join(lines, of_brand, JoinType.INNER, call("equal", column(lines, 1), column(parts, 0)))
    plan = Join(of_parts, of_year, JoinType.INNER, call("equal", column(lines, 0), column(days, 0)))
    assert [join.indexed for join in nodes(plan_physical(plan), physical.Join)] == [indexed, False]


def test_group_algorithms() -> None:
    few = table("few", 0, 1_000_000, key=(100, False), value=(10, False))
    many = table("many", 0, 1_000_000, key=(1_000_000, False), value=(10, False))
    sparse = table("sparse", 0, 1_000, key=(10**9, False), value=(10, False))
    gaps = table("gaps", 0, 1_000_000, key=(1000, False), value=(10, False))
    key, value = gaps.fields
    gaps = scan("gaps", 1_000_000, replace(key, facts=replace(key.facts, maximum=10**9)), value)
    key, value = many.fields
    in_order = scan("in_order", 1_000_000, replace(key, facts=replace(key.facts, is_sorted=True)), value)
    expected = {
        few: GroupAlgorithm.DIRECT,
        many: GroupAlgorithm.DIRECT,
        sparse: GroupAlgorithm.SORT,
        gaps: GroupAlgorithm.HASH,
        in_order: GroupAlgorithm.CLUSTERED,
    }
    for rows, algorithm in expected.items():
        (aggregate,) = nodes(plan_physical(sum_by_part(rows)), physical.Aggregate)
        assert aggregate.algorithm is algorithm


def test_columns_are_pruned() -> None:
    lines = table("lines", 0, 1000, part=(100, False), quantity=(10, False), unused=(5, False))
    parts = table("parts", 10, 100, key=(100, True), label=(100, False), unused=(5, False))
    join = Join(lines, parts, JoinType.INNER, call("equal", column(lines, 0), column(parts, 0)))
    wanted = (join.schema[1], join.schema[4])
    plan = plan_physical(Project(join, wanted, tuple(ColumnRef(f.id, BIGINT, f.name) for f in wanted)))
    (planned,) = nodes(plan, physical.Join)
    assert [field.id for field in planned.fields] == [1, 11]
    assert [scan.columns for scan in nodes(plan, physical.TableScan)] == [
        ("part", "quantity"),
        ("key", "label"),
    ]


def test_top_k_passes_a_projection() -> None:
    lines = table("lines", 0, 1000, part=(100, False), quantity=(10, False))
    kept = (lines.fields[0],)
    project = Project(Sort(lines, (SortKey(column(lines, 1)),)), kept, (column(lines, 0),))
    plan = optimize(Limit(project, 5, 2))
    (sort,) = nodes(plan_physical(plan), physical.Sort)
    assert (sort.limit, sort.offset) == (5, 2)
    off = PhysicalOptions(disabled_rules=frozenset({"topk"}))
    assert nodes(plan_physical(plan, off), physical.Limit)


def test_not_in_without_nulls_is_an_anti_join() -> None:
    lines = table("lines", 0, 1000, part=(100, False))
    parts = table("parts", 10, 100, key=(100, True))
    condition = call("equal", column(lines, 0), column(parts, 0))
    (join,) = nodes(plan_physical(Join(lines, parts, JoinType.NULL_AWARE_ANTI, condition)), physical.Join)
    assert join.join_type is JoinType.ANTI
    open_parts = scan("parts", parts.table.num_rows, replace(parts.fields[0], nullable=True))
    (join,) = nodes(
        plan_physical(Join(lines, open_parts, JoinType.NULL_AWARE_ANTI, condition)), physical.Join
    )
    assert join.join_type is JoinType.NULL_AWARE_ANTI
    with_more = call("and", condition, call("less", column(lines, 0), number(5)))
    (join,) = nodes(
        plan_physical(Join(lines, open_parts, JoinType.NULL_AWARE_ANTI, with_more)), physical.Join
    )
    assert join.algorithm is JoinAlgorithm.NESTED_LOOP


@pytest.mark.parametrize("join_type", LEFT_ONLY)
def test_all_pairs_are_formed_with_each_right_row_once(join_type: JoinType) -> None:
    lines = table("lines", 0, 1000, part=(100, False))
    parts = table("parts", 10, 5000, key=(20, False), label=(5000, False))
    condition = call("not_equal", column(lines, 0), column(parts, 0))
    mark = Field(20, "mark", BOOLEAN) if join_type is JoinType.MARK else None
    plan = Join(lines, parts, join_type, condition, mark)

    def builds(plan: Join) -> list[type[PhysicalPlan]]:
        return [type(join.build) for join in nodes(plan_physical(plan), physical.Join)]

    assert builds(plan) == [physical.Aggregate]
    assert builds(replace(plan, left=table("lines", 0, 3, part=(3, False)))) == [physical.TableScan]
    unequal = call("not_equal", column(lines, 0), column(parts, 1))
    assert builds(replace(plan, condition=unequal)) == [physical.TableScan]


def test_no_runtime_filter_where_other_operators_leave_fewer_rows_than_it_has_keys() -> None:
    rows, keys = 1_000_000, 250_000
    line = Field(0, "line_order", BIGINT, False, ColumnFacts(1, keys), ColumnEstimates(float(keys)))
    part = Field(1, "line_part", BIGINT, False, ColumnFacts(1, 10_000), ColumnEstimates(10_000.0))
    lines = scan("lines", rows, line, part)
    order = Field(
        2, "order_key", BIGINT, False, ColumnFacts(1, keys, is_unique=True), ColumnEstimates(float(keys))
    )
    year = Field(3, "year", BIGINT, False, ColumnFacts(0, 9), ColumnEstimates(10.0))
    orders = scan("orders", keys, order, year)
    key = Field(
        4, "part_key", BIGINT, False, ColumnFacts(1, 10_000, is_unique=True), ColumnEstimates(10_000.0)
    )
    kind = Field(5, "kind", BIGINT, False, ColumnFacts(0, 99), ColumnEstimates(100.0))
    parts = scan("parts", 10_000, key, kind)
    few_orders = Filter(orders, call("less", column(orders, 1), number(3)))
    for kinds, filters in ((1, 1), (90, 2)):
        few_parts = Filter(parts, call("less", column(parts, 1), number(kinds)))
        of_parts = Join(lines, few_parts, JoinType.INNER, call("equal", column(lines, 1), column(parts, 0)))
        plan = Join(of_parts, few_orders, JoinType.INNER, call("equal", column(lines, 0), column(orders, 0)))
        options = PhysicalOptions(disabled_rules=frozenset({"index_join"}))
        planned = plan_physical(plan, options)
        placed = [node for node in walk_plan(planned) if isinstance(node, physical.RuntimeFilter)]
        assert len(placed) == filters - 1, kinds
