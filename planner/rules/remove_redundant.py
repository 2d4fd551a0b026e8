"""Drop nodes that change nothing: identity projects, filters on TRUE, DISTINCT of unique rows, orders nobody sees."""

from __future__ import annotations

from tqp.core.datatypes import BOOLEAN
from tqp.planner.algebra.expressions import FALSE, TRUE, Case, ColumnRef, Expression, Literal, conjuncts
from tqp.planner.algebra.join_keys import LEFT_ONLY
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    JoinType,
    Limit,
    LogicalPlan,
    Project,
    Sort,
    UnionAll,
    Values,
)
from tqp.planner.rules.columns import is_pass_through, reference, substitute
from tqp.planner.rules.context import OptimizerContext


def remove_redundant(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """Remove what has no effect on the rows; a plan that cannot have any becomes empty Values."""
    return _removed(plan, True, context)


def _removed(plan: LogicalPlan, ordered: bool, context: OptimizerContext) -> LogicalPlan:
    """`ordered`: the order of the plan's rows shows in the result."""
    minds = plan.minds_order(ordered)
    plan = context.rewrite_inputs(plan, lambda child: _removed(child, minds, context))
    match plan:
        case Sort():
            return plan if ordered and plan.keys else plan.input
        case Filter():
            return _filter(plan)
        case Project():
            return _project(plan)
        case Limit(limit=None, offset=0):
            return plan.input
        case Limit(input=Project()):
            project = plan.input
            assert isinstance(project, Project)
            return project.with_inputs((plan.with_inputs((project.input,)),))
        case Aggregate():
            return _distinct(plan)
        case Join() if _is_empty_join(plan):
            return Values((), plan.schema)
        case Join() if any(map(_is_empty, plan.inputs)) or FALSE in conjuncts(plan.condition):
            return _without_partners(plan, context)
        case Join() if _takes_any_partner(plan):
            return plan.with_inputs((plan.left, Limit(plan.right, 1)))
        case _:
            return plan


def _filter(plan: Filter) -> LogicalPlan:
    if plan.condition == TRUE:
        return plan.input
    if isinstance(plan.condition, Literal) or _is_empty(plan.input):  # FALSE or NULL
        return Values((), plan.schema)
    return plan


def _is_empty_join(plan: Join) -> bool:
    if _is_empty(plan.left) and plan.join_type is not JoinType.FULL:
        return True
    if plan.join_type in (JoinType.ANTI, JoinType.NULL_AWARE_ANTI):
        drops = (TRUE, Literal(None, BOOLEAN)) if plan.join_type is JoinType.NULL_AWARE_ANTI else (TRUE,)
        return plan.condition in drops and plan.right.row_bounds[0] > 0
    needs_partner = plan.join_type in (JoinType.INNER, JoinType.SEMI)
    return needs_partner and (_is_empty(plan.right) or FALSE in conjuncts(plan.condition))


def _takes_any_partner(plan: Join) -> bool:
    """Does it ask whether the right side has a row, and of none of its rows what is in it?"""
    if plan.join_type not in LEFT_ONLY or plan.right.max_rows <= 1:
        return False
    return plan.right.output_ids.isdisjoint(plan.reads)


def _without_partners(plan: Join, context: OptimizerContext) -> LogicalPlan:
    """A join that keeps the rows of the left side, of which none has a partner."""
    left = plan.left
    match plan.join_type:
        case JoinType.LEFT | JoinType.SINGLE:
            padding = tuple(Literal(None, field.data_type) for field in plan.right.schema)
        case JoinType.MARK:
            padding = (FALSE,)
        case JoinType.FULL:
            return _beside_nothing(plan, context)
        case _:
            return left
    return Project(left, plan.schema, (*map(reference, left.schema), *padding))


def _beside_nothing(plan: Join, context: OptimizerContext) -> LogicalPlan:
    """A FULL join none of whose rows has a partner: those of either side, with NULL for the columns of the other."""
    branches = []
    for side in plan.inputs:
        outputs = [
            reference(field) if field.id in side.output_ids else Literal(None, field.data_type)
            for field in plan.schema
        ]
        branches.append(Project(side, tuple(map(context.renewed, plan.schema)), tuple(outputs)))
    return UnionAll(tuple(branches), plan.schema)


def _is_empty(plan: LogicalPlan) -> bool:
    """Has it no row whatever the tables hold?"""
    while isinstance(plan, Project):
        plan = plan.input
    return isinstance(plan, Values) and not plan.rows


def _project(plan: Project) -> LogicalPlan:
    """Without an identity project, and two projects as one where no work is done twice."""
    below = plan.input
    if is_pass_through(plan) and [field.id for field in plan.fields] == [field.id for field in below.schema]:
        return below
    if isinstance(below, Project):
        outputs = {field.id: output for field, output in zip(below.fields, below.outputs, strict=True)}
        uses: dict[int, int] = {}
        for output in plan.outputs:
            _count_uses(output, uses)
        if all(uses.get(i, 0) <= 1 or isinstance(o, ColumnRef | Literal) for i, o in outputs.items()):
            merged = tuple(substitute(output, outputs) for output in plan.outputs)
            return Project(below.input, plan.fields, merged)
    return plan


def _count_uses(expression: Expression, uses: dict[int, int], weight: int = 1) -> None:
    if isinstance(expression, ColumnRef):
        uses[expression.id] = uses.get(expression.id, 0) + weight
    if isinstance(expression, Case):
        weight = 2  # a branch may see fewer rows than the project below did, or raise where that did not
    for child in expression.inputs:
        _count_uses(child, uses, weight)


def _distinct(plan: Aggregate) -> LogicalPlan:
    """DISTINCT of rows that are all different."""
    if plan.aggregates or not plan.keys:
        return plan
    columns = {key.id for key in plan.keys if isinstance(key, ColumnRef)}
    if any(unique <= columns for unique in plan.input.unique_sets):
        return Project(plan.input, plan.key_fields, plan.keys)
    return plan
