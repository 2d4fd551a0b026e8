"""Physical plans give the rows of the logical plan, and every promise they make holds."""

from __future__ import annotations

import pytest

from tests.planner.physical_reference import PhysicalReference
from tests.planner.plan_generator import PlanGenerator
from tests.reference_plan import sorted_rows
from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.planner import runtime_filters
from tqp.planner.logical_plan import walk_plan
from tqp.planner.optimizer import optimize
from tqp.planner.physical_planner import PHYSICAL_RULES, PhysicalOptions, plan_physical

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
    off = frozenset({"lookup_join", "directory_join"})
    for seed in range(3000, 3020):
        check(seed, PhysicalOptions("cuda", off))
