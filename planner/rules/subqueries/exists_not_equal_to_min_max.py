"""EXISTS (same key, other value) by the least and the greatest value of each key."""

from __future__ import annotations

from tqp.core.datatypes import BOOLEAN
from tqp.planner.algebra.expressions import (
    FALSE,
    AggregateCall,
    Call,
    ColumnRef,
    Expression,
    conjunction,
    conjuncts,
)
from tqp.planner.algebra.logical_plan import Aggregate, Filter, Join, JoinType, LogicalPlan
from tqp.planner.algebra.subquery_expressions import read_ids
from tqp.planner.rules.columns import reference
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.joins.region import column_equality
from tqp.planner.rules.nulls import negate


def exists_not_equal_to_min_max(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """A SEMI or ANTI join on key equalities and one `x <> value` becomes a join with min and max of `value` per key.

    Some value of the group differs from x exactly if its least or its greatest does; NULL values differ from nothing
    and min and max ignore them, and a NULL x makes both comparisons NULL.
    """

    def rewrite(node: Join) -> LogicalPlan:
        return _rewritten(node, context) if node.join_type in (JoinType.SEMI, JoinType.ANTI) else node

    return context.rewrite_each(plan, Join, rewrite)


def _rewritten(plan: Join, context: OptimizerContext) -> LogicalPlan:
    left_ids, right_ids = plan.left.output_ids, plan.right.output_ids
    keys: dict[int, ColumnRef] = {}
    equalities: list[Expression] = []
    differing: list[tuple[Expression, ColumnRef]] = []
    for part in conjuncts(plan.condition):
        pair = column_equality(part)
        if pair is not None and (pair[0].id in left_ids) != (pair[1].id in left_ids):
            key = pair[1] if pair[0].id in left_ids else pair[0]
            keys[key.id] = key
            equalities.append(part)
            continue
        sides = _differing(part, left_ids, right_ids)
        if sides is None:
            return plan
        differing.append(sides)
    if not keys or len(differing) != 1:
        return plan
    outer, value = differing[0]
    fields = {field.id: field for field in plan.right.schema}
    least = context.new_field("least", value.data_type)
    greatest = context.new_field("greatest", value.data_type)
    calls = tuple(AggregateCall(name, (value,), value.data_type) for name in ("min", "max"))
    key_fields = tuple(fields[identifier] for identifier in keys)
    grouped = Aggregate(plan.right, key_fields, tuple(keys.values()), (least, greatest), calls)
    differs = Call(
        "or",
        tuple(Call("not_equal", (outer, reference(bound)), BOOLEAN) for bound in (least, greatest)),
        BOOLEAN,
    )
    on_keys = conjunction(tuple(equalities))
    if plan.join_type is JoinType.SEMI:
        return Filter(Join(plan.left, grouped, JoinType.INNER, on_keys), differs)
    joined = Join(plan.left, grouped, JoinType.LEFT, on_keys)
    return Filter(joined, negate(Call("coalesce", (differs, FALSE), BOOLEAN)))


def _differing(
    part: Expression, left_ids: frozenset[int], right_ids: frozenset[int]
) -> tuple[Expression, ColumnRef] | None:
    """(x, value) of `x <> value`, x of the left side and value an integer-like column of the right."""
    if not (isinstance(part, Call) and part.function == "not_equal"):
        return None
    for outer, value in (part.arguments, part.arguments[::-1]):
        if isinstance(value, ColumnRef) and value.id in right_ids and value.data_type.is_integer_like:
            reads = read_ids(outer)
            if reads and reads <= left_ids:
                return outer, value
    return None
