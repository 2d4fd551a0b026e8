"""Remove joins that neither drop nor repeat rows, and whose other side nobody reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tqp.planner.algebra.expressions import ColumnRef, Expression
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Join,
    JoinType,
    LogicalPlan,
    Project,
    Scan,
    Shared,
    UnionAll,
    Values,
)
from tqp.planner.algebra.null_facts import nullable
from tqp.planner.algebra.properties import Facts
from tqp.planner.algebra.value_ranges import value_range
from tqp.planner.physical.join_keys import JoinKeys
from tqp.planner.rules.columns import is_pass_through, output_ids, read_ids, with_mapped_inputs
from tqp.planner.rules.joins.region import condition_may_raise

if TYPE_CHECKING:
    from tqp.planner.optimizer import OptimizerContext


def remove_joins(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """A left join by a unique key, or an inner one in which every row has one partner, is dropped if it adds nothing."""
    return _remove(plan, {field.id for field in plan.schema}, context)


def _remove(plan: LogicalPlan, needed: set[int], context: OptimizerContext) -> LogicalPlan:
    """The plan without such joins; it has at least the columns `needed`."""
    match plan:
        case Join():
            kept = _kept_side(plan, needed, context.facts)
            if kept is not None:
                return _remove(kept, needed, context)
            below = needed | read_ids(plan.condition)
        case Project():
            pairs = zip(plan.fields, plan.outputs, strict=True)
            below = _reads(output for field, output in pairs if field.id in needed)
            removed = _remove(plan.input, below, context)
            if removed is plan.input:
                return plan
            kept_pairs = [
                (field, output)
                for field, output in zip(plan.fields, plan.outputs, strict=True)
                if field.id in needed
            ]
            return Project(removed, tuple(f for f, _ in kept_pairs), tuple(o for _, o in kept_pairs))
        case Aggregate():
            below = _reads(plan.expressions)
        case Shared() | UnionAll() | Scan() | Values():
            return context.rewrite_inputs(plan, lambda child: remove_joins(child, context))
        case _:
            below = needed | _reads(plan.expressions)
    return with_mapped_inputs(plan, lambda child: _remove(child, below, context))


def _kept_side(join: Join, needed: set[int], facts: Facts) -> LogicalPlan | None:
    """The side whose rows are those of the join, if only its columns are needed."""
    keys = facts.join_keys(join)
    if any(keys.null_equal) or condition_may_raise(join, facts):  # errors are never dropped
        return None
    if not needed & output_ids(join.right):
        if join.join_type is JoinType.LEFT and facts.right_key_is_unique(join):
            return join.left
        if join.join_type is JoinType.INNER and _finds_one(keys, join.left, join.right, facts):
            return join.left
    if join.join_type is JoinType.INNER and not needed & output_ids(join.left):
        flipped = JoinKeys(keys.right, keys.left, keys.null_equal, keys.residual)
        if _finds_one(flipped, join.right, join.left, facts):
            return join.right
    return None


def _finds_one(keys: JoinKeys, side: LogicalPlan, other: LogicalPlan, facts: Facts) -> bool:
    """True if each row of `side` has exactly one partner: `other` is a whole table with every key that there can be."""
    while is_pass_through(other):
        other = other.inputs[0]
    if not isinstance(other, Scan) or len(keys.left) != 1 or keys.residual:
        return False
    key = keys.right[0]
    field = next((field for field in other.fields if isinstance(key, ColumnRef) and field.id == key.id), None)
    if field is None or field.nullable or not field.statistics.is_unique:
        return False
    fields = facts.fields(side)
    known, asked = value_range(key, {field.id: field}), value_range(keys.left[0], fields)
    if known is None or asked is None or nullable(keys.left[0], fields):
        return False
    return known[1] - known[0] + 1 == other.table.num_rows and known[0] <= asked[0] and asked[1] <= known[1]


def _reads(expressions: Iterable[Expression]) -> set[int]:
    return set[int]().union(*(read_ids(expression) for expression in expressions))
