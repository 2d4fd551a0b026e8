"""Plans that draw: random numbers, or those of a sequence."""

from __future__ import annotations

from tqp.planner.algebra.expressions import Call, has_side_effects
from tqp.planner.algebra.logical_plan import LogicalPlan
from tqp.planner.algebra.node import walk_plan
from tqp.planner.functions.registry import RANDOM_CALLS


def is_random(plan: LogicalPlan) -> bool:
    """Whether some expression of the plan or of its subqueries draws, so that each run answers something else."""
    return any(
        isinstance(part, Call) and part.function in RANDOM_CALLS or has_side_effects([part])
        for node in walk_plan(plan, into_subqueries=True)
        for part in node.parts
    )
