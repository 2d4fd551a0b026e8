"""Join a plan to one that reads its columns, without that dependency.

First by pulling the correlated predicates up into the join condition (`pull_up.py`): enough for most queries, and it
costs nothing. Otherwise by computing the right side for the distinct outer values, the domain (`domain.py`).
"""

from __future__ import annotations

from tqp.core.datatypes import BOOLEAN
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import (
    FALSE,
    TRUE,
    Call,
    Expression,
    conjunction,
    conjuncts,
)
from tqp.planner.algebra.join_keys import THREE_VALUED
from tqp.planner.algebra.logical_plan import (
    Filter,
    Join,
    JoinType,
    LogicalPlan,
    Project,
)
from tqp.planner.algebra.outcomes import nullable
from tqp.planner.rules.columns import reference
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.nulls import conjoin, is_null, negate
from tqp.planner.rules.subqueries.outer_domain import over_domain
from tqp.planner.rules.subqueries.pull_up_predicates import (
    PulledUp,
    is_equality_with,
    pull_up,
    with_single_row,
)


def join_dependent(
    left: LogicalPlan,
    right: LogicalPlan,
    join_type: JoinType,
    condition: Expression,
    mark: Field | None,
    context: OptimizerContext,
) -> LogicalPlan:
    """`Join(left, right, join_type, condition, mark)` where `right` may read columns of `left`, as plain joins.

    The output has at least the columns of that join, in any order. Raises UnsupportedError for a correlated LIMIT of more than one row.
    """
    outer = left.output_ids
    if not right.free_ids & outer:
        return Join(left, right, _plain_type(join_type, right, condition), condition, mark)
    pulled = pull_up(right, outer, context)
    if pulled is not None:
        if pulled.empty_row is None:
            return _joined(left, pulled, join_type, condition, mark)
        if join_type is not JoinType.LEFT or condition == TRUE:
            return _on_single_row(with_single_row(left, pulled, context), join_type, condition, mark)
    join_type = _plain_type(join_type, right, condition)
    left, right, matches = over_domain(left, right, outer, context)
    return Join(left, right, join_type, conjoin(matches, condition), mark)


def _plain_type(join_type: JoinType, right: LogicalPlan, condition: Expression) -> JoinType:
    """The type of the join by how many rows the right side has for each left row."""
    if condition == TRUE and right.row_bounds == (1, 1) and join_type in (JoinType.SINGLE, JoinType.LEFT):
        return JoinType.INNER
    return JoinType.LEFT if join_type is JoinType.SINGLE and right.max_rows <= 1 else join_type


def _joined(
    left: LogicalPlan,
    pulled: PulledUp,
    join_type: JoinType,
    condition: Expression,
    mark: Field | None,
) -> LogicalPlan:
    """The join on the pulled-up predicates, as part of its condition."""
    right = pulled.plan
    predicates = pulled.predicates
    if join_type is JoinType.SINGLE and pulled.is_single_row:
        join_type = JoinType.LEFT
    if join_type in THREE_VALUED:
        # A row on which a predicate is NULL is no row of the subquery: it must not make the result unknown.
        fields = {**left.field_facts, **right.field_facts}
        outer, known = left.output_ids, []
        for predicate in predicates:
            sides = is_equality_with(predicate, outer)
            if not nullable(predicate, fields):
                known.append(predicate)
            elif sides is not None and isinstance(predicate, Call) and predicate.function == "equal":
                outer_side, inner_side = sides
                if nullable(inner_side, fields):
                    right = Filter(right, negate(is_null(inner_side)))
                known.append(Call("is_not_distinct_from", (outer_side, inner_side), BOOLEAN))
            else:
                known.append(Call("coalesce", (predicate, FALSE), BOOLEAN))
        predicates = tuple(known)
    return Join(left, right, join_type, conjunction((*predicates, *conjuncts(condition))), mark)


def _on_single_row(
    plan: LogicalPlan, join_type: JoinType, condition: Expression, mark: Field | None
) -> LogicalPlan:
    """The join's outcome, where its right side's only row already stands beside each left row."""
    match join_type:
        case JoinType.SEMI | JoinType.INNER:
            return plan if condition == TRUE else Filter(plan, condition)
        case JoinType.ANTI:
            return Filter(plan, negate(Call("coalesce", (condition, FALSE), BOOLEAN)))
        case JoinType.NULL_AWARE_ANTI:
            return Filter(plan, negate(condition))
        case JoinType.MARK:
            assert mark is not None
            fields = plan.schema
            return Project(plan, (*fields, mark), (*map(reference, fields), condition))
        case _:
            return plan
