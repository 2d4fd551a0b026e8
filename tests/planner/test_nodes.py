"""The protocol of plan nodes: what a class has to say of itself, and walking and rebuilding whatever the nodes are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.planner.plans import example_tables, optimized
from tests.reference_plan import MemoryTable
from tqp.core.datatypes import BIGINT
from tqp.core.schema import ColumnFacts, Field
from tqp.planner import binder
from tqp.planner.algebra import logical_plan
from tqp.planner.algebra.expressions import Call, ColumnRef, Literal, SortKey
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    JoinType,
    LogicalPlan,
    Project,
    Scan,
    Series,
    Shared,
    Sort,
    UnionAll,
    Values,
)
from tqp.planner.algebra.node import Node, grow, transform_plan, walk_plan
from tqp.planner.physical import plan as physical
from tqp.planner.physical.planner import plan_physical

ROWS = MemoryTable("rows", {"a": [1, 2, 2]})


def scan(identifier: int) -> Scan:
    field = Field(identifier, "a", BIGINT, False, ColumnFacts(1, 2))
    return Scan(ROWS, "rows", ("a",), (field,))


def column(identifier: int) -> ColumnRef:
    return ColumnRef(identifier, BIGINT, "a")


def node_classes(base: type) -> list[type]:
    below = [found for each in base.__subclasses__() for found in node_classes(each)]
    return below if "REQUIRED" in base.__dict__ else [base, *below]


@pytest.mark.parametrize(
    "node", node_classes(Node), ids=lambda node: f"{node.__module__[-12:]}.{node.__name__}"
)
def test_attributes_that_nodes_name_exist(node: type[Node]) -> None:
    assert {*node.INPUTS, *node.EXPRESSIONS, *node.FIELDS} <= {*node.__match_args__}  # type: ignore[attr-defined]


def test_a_node_inherits_no_answer() -> None:
    with pytest.raises(TypeError, match="Sample does not define .*row_bounds.*unique_sets"):

        class Sample(LogicalPlan):
            INPUTS, EXPRESSIONS, FIELDS = (), (), ()

    with pytest.raises(TypeError, match="Exchange does not define EXPRESSIONS, INPUTS, describe"):

        @dataclass(frozen=True)
        class Exchange(physical.PhysicalPlan):
            pass


def test_what_stands_in_two_places_is_walked_and_rebuilt_once() -> None:
    below = scan(0)
    union = UnionAll(
        (Shared(below, 0, (Field(1, "a", BIGINT),)), Shared(below, 0, (Field(2, "a", BIGINT),))), ()
    )
    assert [type(node) for node in walk_plan(union)] == [UnionAll, Shared, Scan, Shared]
    seen: list[LogicalPlan] = []

    def renamed(node: LogicalPlan) -> LogicalPlan:
        seen.append(node)
        return scan(7) if isinstance(node, Scan) else node

    rebuilt = transform_plan(union, renamed)
    assert len(seen) == 4 and len({id(node) for node in walk_plan(rebuilt) if isinstance(node, Scan)}) == 1
    assert transform_plan(union, lambda node: node) is union


def test_expressions_are_mapped_wherever_they_stand() -> None:
    one, two = Literal(1, BIGINT), Literal(2, BIGINT)
    values = Values(((one, two), (two, one)), (Field(0, "x", BIGINT), Field(1, "y", BIGINT)))
    assert values.expressions == (one, two, two, one)
    assert values.map_expressions(lambda each: one).rows == ((one, one), (one, one))
    sort = Sort(values, (SortKey(column(0), True), SortKey(one)))
    assert sort.expressions == (column(0), one)
    assert sort.map_expressions(lambda each: two).keys == (SortKey(two, True), SortKey(two))
    assert sort.map_expressions(lambda each: each) is sort


def test_a_copy_derives_anew() -> None:
    wide = Filter(scan(0), Call("equal", (column(0), Literal(1, BIGINT)), BIGINT))
    assert wide.output_ids == {0} and wide.max_rows == 3
    moved = wide.with_inputs((scan(4),))
    assert moved.output_ids == {4} and moved.condition is wide.condition


def test_a_node_grows_only_until_something_is_derived_from_it() -> None:
    project = Project(scan(0), (), ())
    grow(project, fields=(Field(0, "a", BIGINT),), outputs=(column(0),))
    assert project.output_ids == {0}
    with pytest.raises(AssertionError, match="finished"):
        grow(project, fields=(), outputs=())


def test_only_the_binder_grows_nodes() -> None:
    root = Path(binder.__file__).parents[1]
    growing = {path for path in root.rglob("*.py") if "grow(" in path.read_text(encoding="utf-8")}
    assert {path.relative_to(root).parts[0] for path in growing} == {"algebra", "binder"}
    assert not any("object.__setattr__" in path.read_text(encoding="utf-8") for path in root.rglob("*.py"))


def test_a_dependent_side_has_other_rows_for_each_left_row() -> None:
    """One row of the lateral side for each of the left: three come out, though the left key is unique."""
    left = Series(Field(0, "k", BIGINT, False), 0, 1, 3)
    right = Project(Values(((),), ()), (Field(1, "x", BIGINT),), (column(0),))
    join = Join(left, right, JoinType.INNER, Call("equal", (column(0), column(1)), BIGINT))
    assert join.is_dependent and join.free_ids == frozenset()
    assert join.left_key_is_unique and join.max_rows == 3


def test_correlated_columns() -> None:
    outer = Filter(scan(0), Call("less", (column(0), column(9)), BIGINT))
    assert outer.free_ids == {9}
    grouped = Aggregate(outer, (Field(9, "o", BIGINT),), (column(9),), (), ())
    assert grouped.free_ids == {9} and grouped.output_ids == {9}


def test_physical_plans_are_walked_by_the_same_code() -> None:
    plan = plan_physical(optimized("SELECT t.k FROM t, u WHERE t.k = u.k ORDER BY 1", example_tables(0)))
    kinds = {type(node) for node in walk_plan(plan)}
    assert {physical.Sort, physical.Join, physical.TableScan} <= kinds
    assert transform_plan(plan, lambda node: node) is plan


def test_every_node_is_listed() -> None:
    listed = {getattr(logical_plan, name) for name in logical_plan.__all__}
    assert {node for node in node_classes(LogicalPlan) if node.__module__.startswith("tqp")} <= listed
