"""Random plans give the same rows before and after optimization, with all rules on and with each switched off."""

from __future__ import annotations

import pytest

from tests.planner.plan_generator import PlanGenerator, plan_size
from tests.reference_plan import sorted_rows
from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.planner.optimizer import REQUIRED, RULES, optimize
from tqp.planner.rules.context import OptimizerContext

MOST_NODES = 25
SWITCHABLE = [name for name, _ in RULES if name not in REQUIRED]


def check(seed: int, disabled: frozenset[str] = frozenset()) -> None:
    plan = PlanGenerator(seed).top(depth=2)
    if plan_size(plan) > MOST_NODES:
        return
    try:
        expected = sorted_rows(plan)
    except ExecutionError:
        return
    try:
        optimized = optimize(plan, OptimizerContext(disabled_rules=disabled))
    except UnsupportedError:
        return
    assert sorted_rows(optimized) == expected


@pytest.mark.parametrize("block", range(10))
def test_random_plans_keep_their_rows(block: int) -> None:
    for seed in range(block * 40, block * 40 + 40):
        check(seed)


@pytest.mark.parametrize("rule", SWITCHABLE)
def test_each_rule_may_be_off(rule: str) -> None:
    for seed in range(1000, 1040):
        check(seed, frozenset({rule}))
