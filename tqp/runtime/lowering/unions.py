"""Lowering of rows that come from several streams, one after the other: UNION ALL, and what else ends in one frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tqp.planner.physical import plan as physical
from tqp.runtime.breakers.collect import Collect
from tqp.runtime.breakers.makers import Concatenate
from tqp.runtime.lowering.expressions.scalars import ExpressionLowering
from tqp.runtime.lowering.stream import Stream, Value
from tqp.runtime.pipeline import Breaker

if TYPE_CHECKING:
    from tqp.runtime.lowering.plan import PlanLowering


class Branch(NamedTuple):
    """A stream that ends, and its values. `collect` makes the breaker for a slot; `own`: what this reads behind the values."""

    lowering: ExpressionLowering
    values: Sequence[Value]
    own: Sequence[Value] = ()
    collect: Callable[[str], Breaker] = Collect


def lower_union(plan: PlanLowering, node: physical.UnionAll) -> Stream:
    """The rows of the branches."""
    branches = []
    for branch in node.branches:
        lowering = plan.enter(plan.lower(branch), node)
        values = [lowering.materialise(lowering.stream.column(f.id)) for f in branch.fields]
        branches.append(Branch(lowering, values))
    return one_after_the_other(plan, branches, node, "branch", "a branch of UNION ALL")


def one_after_the_other(
    plan: PlanLowering, branches: Sequence[Branch], node: physical.PhysicalPlan, prefix: str, title: str
) -> Stream:
    """The rows of several streams, whose columns get layouts that hold the values of all."""
    layouts = [
        branches[0].lowering.common_layout([branch.values[i] for branch in branches], field.data_type)
        for i, field in enumerate(node.fields)
    ]
    slots = []
    for lowering, values, own, collect in branches:
        slots.append(plan.program.slot(prefix))
        stored = map(lowering.in_layout, values, layouts)
        plan.program.close(lowering.stream, [*stored, *own], collect(slots[-1]), title)
    return plan.made(Concatenate(plan.program.slot("union"), slots), layouts, node, "UNION ALL")
