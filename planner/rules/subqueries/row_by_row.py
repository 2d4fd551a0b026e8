"""A dependent join whose right side computes its rows one by one, as SELECT lists and WHERE do, is a Project over its left side.

    t, LATERAL (SELECT f(t.x) AS y)                      Project t.*, f(x) AS y
    t, LATERAL (SELECT f(t.x) AS y WHERE t.x > 1)        Project t.*, f(x) AS y, over Filter x > 1
    t LEFT JOIN LATERAL (the same) ON y < 5              Project t.*, CASE WHEN present THEN f(x) END AS y

No domain of distinct outer values, no group-by and no join back.
"""

from __future__ import annotations

from typing import NamedTuple

from tqp.core.datatypes import BOOLEAN
from tqp.core.schema import Field, Schema
from tqp.planner.algebra.expressions import FALSE, TRUE, Case, Expression, Literal
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    JoinType,
    Limit,
    LogicalPlan,
    Project,
    Sort,
    Values,
)
from tqp.planner.algebra.may_raise import raising_in
from tqp.planner.rules.columns import reference
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.subqueries.pull_up_predicates import pull_up, with_single_row


class Beside(NamedTuple):
    """Left rows with the columns of the one right row that each has, if `present` is true (not false, not NULL)."""

    plan: LogicalPlan
    present: Expression


def is_of_one_row(plan: LogicalPlan) -> bool:
    """Projections and filters over one row that reads no other query's columns."""
    while isinstance(plan, Project | Filter | Sort) or _keeps_one_row(plan):
        (plan,) = plan.inputs
    return plan.row_bounds == (1, 1) and not plan.free_ids


def beside_one_row(
    beside: Beside, right: LogicalPlan, drops: bool, context: OptimizerContext
) -> Beside | None:
    """The rows beside the row that `right`, which may read their columns, has for each; None where it may have several.

    With `drops` the rows for which it has none are dropped, otherwise `present` becomes false or NULL for them. The output
    has all columns of `right`, some of nodes below it, and those of `beside.plan`.
    """
    if not right.free_ids & beside.plan.output_ids:
        if right.row_bounds != (1, 1):
            return None
        is_empty_row = isinstance(right, Values) and not right.fields
        plan = beside.plan if is_empty_row else Join(beside.plan, right, JoinType.INNER)
        return Beside(plan, beside.present)
    match right:
        case Filter():
            below = beside_one_row(beside, right.input, drops, context)
            return below and _filtered(below, right.condition, drops, context)
        case Project():
            below = beside_one_row(beside, right.input, drops, context)
            return below and with_outputs(below, right.fields, right.outputs)
        case Aggregate(aggregates=()) if right.keys:  # DISTINCT of one row
            below = beside_one_row(beside, right.input, drops, context)
            return below and with_outputs(below, right.key_fields, right.keys)
        case Aggregate():
            pulled = pull_up(right, beside.plan.output_ids, context)
            if pulled is None or pulled.empty_row is None:
                return None
            return Beside(with_single_row(beside.plan, pulled, context), beside.present)
        case Join(join_type=JoinType.INNER):
            first = beside_one_row(beside, right.left, drops, context)
            below = first and beside_one_row(first, right.right, drops, context)
            return below and _filtered(below, right.condition, drops, context)
        case Sort():
            return beside_one_row(beside, right.input, drops, context)
        case Limit() if _keeps_one_row(right):
            return beside_one_row(beside, right.input, drops, context)
        case _:
            return None


def with_outputs(beside: Beside, fields: Schema, outputs: tuple[Expression, ...]) -> Beside:
    """The rows with more columns; what may raise is computed only where the right row is present."""
    plan, present = beside
    known = plan.output_ids
    added = [(f, output) for f, output in zip(fields, outputs, strict=True) if f.id not in known]
    if present != TRUE:
        raising = raising_in(outputs, plan)
        added = [(field, where(present, output) if output in raising else output) for field, output in added]
    return Beside(extended(plan, added), present)


def where(present: Expression, output: Expression) -> Expression:
    """The output, NULL where the condition is not true."""
    if present == TRUE:
        return output
    return Case(((present, output),), Literal(None, output.data_type), output.data_type)


def both(present: Expression, condition: Expression) -> Expression:
    """Two conditions, the second asked for where the first is true; false, not NULL, where that is not."""
    return condition if present == TRUE else Case(((present, condition),), FALSE, BOOLEAN)


def extended(plan: LogicalPlan, added: list[tuple[Field, Expression]]) -> LogicalPlan:
    """The plan with more columns beside its own."""
    if not added:
        return plan
    fields, outputs = zip(*added, strict=True)
    schema = plan.schema
    return Project(plan, (*schema, *fields), (*map(reference, schema), *outputs))


def _filtered(beside: Beside, condition: Expression, drops: bool, context: OptimizerContext) -> Beside:
    if condition == TRUE:
        return beside
    if drops:
        return Beside(Filter(beside.plan, condition), beside.present)
    present = context.new_field("present", BOOLEAN)
    plan = extended(beside.plan, [(present, both(beside.present, condition))])
    return Beside(plan, reference(present))


def _keeps_one_row(plan: LogicalPlan) -> bool:
    """A LIMIT that drops no row of an only one."""
    return isinstance(plan, Limit) and plan.offset == 0 and plan.limit != 0
