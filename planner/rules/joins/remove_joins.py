"""Remove joins that neither drop nor repeat rows, and whose other side nobody reads."""

from __future__ import annotations

from tqp.planner.algebra.join_keys import JoinKeys
from tqp.planner.algebra.logical_node import Ids
from tqp.planner.algebra.logical_plan import Join, JoinType, LogicalPlan, Project, Scan
from tqp.planner.algebra.unique_sets import all_find_one
from tqp.planner.rules.columns import is_pass_through
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.joins.region import condition_may_raise


def remove_joins(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """A left join by a unique key, or an inner one in which every row has one partner, is dropped if it adds nothing."""
    return _remove(plan, {field.id for field in plan.schema}, context)


def _remove(plan: LogicalPlan, needed: Ids, context: OptimizerContext) -> LogicalPlan:
    """The plan without such joins; it has at least the columns `needed`."""
    match plan:
        case Join():
            kept = _kept_side(plan, needed)
            if kept is not None:
                return _remove(kept, needed, context)
        case Project():
            narrowed = plan.without_unread(needed)
            below = _remove(plan.input, narrowed.reads, context)
            return plan if below is plan.input else narrowed.with_inputs((below,))
        case _ if plan.BY_POSITION:
            return context.rewrite_inputs(plan, lambda child: remove_joins(child, context))
    inputs = zip(plan.inputs, plan.needs(needed), strict=True)
    return plan.with_inputs([_remove(child, below, context) for child, below in inputs])


def _kept_side(join: Join, needed: Ids) -> LogicalPlan | None:
    """The side whose rows are those of the join, if only its columns are needed."""
    if join.join_type not in (JoinType.LEFT, JoinType.INNER):
        return None
    right_is_needed = not needed.isdisjoint(join.right.output_ids)
    left_is_needed = join.join_type is JoinType.LEFT or not needed.isdisjoint(join.left.output_ids)
    if left_is_needed and right_is_needed:
        return None
    keys = join.keys
    if any(keys.null_equal) or condition_may_raise(join):  # errors are never dropped
        return None
    if not right_is_needed:
        if join.join_type is JoinType.LEFT and join.right_key_is_unique:
            return join.left
        if join.join_type is JoinType.INNER and _finds_one(keys, join.left, join.right):
            return join.left
    if not left_is_needed and _finds_one(keys.swapped(), join.right, join.left):
        return join.right
    return None


def _finds_one(keys: JoinKeys, side: LogicalPlan, other: LogicalPlan) -> bool:
    """True if each row of `side` has exactly one partner: `other` is a whole table with every key that there can be."""
    while is_pass_through(other):
        other = other.inputs[0]
    return isinstance(other, Scan) and all_find_one(
        keys, side.field_facts, other.field_facts, other.table.num_rows
    )
