"""Lowering of rows that come from several streams, one after the other: UNION ALL, and what else ends in one frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tqp.planner.physical import plan as physical
from tqp.runtime.breakers.collect import Collect
from tqp.runtime.breakers.makers import Concatenate
from tqp.runtime.lowering.expressions.scalars import ExpressionLowering
from tqp.runtime.lowering.expressions.value_forms import common_dictionary
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
        values = [lowering.stream.column(f.id) for f in branch.fields]
        branches.append(Branch(lowering, values))
    return one_after_the_other(plan, branches, node, "branch", "a branch of UNION ALL")


def one_after_the_other(
    plan: PlanLowering, branches: Sequence[Branch], node: physical.PhysicalPlan, prefix: str, title: str
) -> Stream:
    """The rows of several streams, whose columns get layouts that hold the values of all."""
    columns = [
        _in_one_dictionary(plan, branches, [branch.values[i] for branch in branches])
        for i in range(len(node.fields))
    ]
    layouts = [
        branches[0].lowering.common_layout(values, field.data_type)
        for values, field in zip(columns, node.fields, strict=True)
    ]
    slots = []
    for number, (lowering, _, own, collect) in enumerate(branches):
        slots.append(plan.program.slot(prefix))
        stored = map(lowering.in_layout, [values[number] for values in columns], layouts)
        plan.program.close(lowering.stream, [*stored, *own], collect(slots[-1]), title)
    return plan.made(Concatenate(plan.program.slot("union"), slots), layouts, node, "UNION ALL")


def _in_one_dictionary(
    plan: PlanLowering, branches: Sequence[Branch], values: Sequence[Value]
) -> list[Value]:
    """A column's values in each branch, as tensors; texts as codes into one dictionary, if there is one that has them all."""
    is_text = all(value.layout.data_type.is_string for value in values)
    dictionary = common_dictionary(plan.program, values) if is_text else None
    return [
        branch.lowering.materialise(
            value if dictionary is None else branch.lowering.in_dictionary(value, dictionary)
        )
        for branch, value in zip(branches, values, strict=True)
    ]
