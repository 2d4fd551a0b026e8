"""Ask conditions that may raise below joins, too: for rows of which they are not true, no partners are looked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tqp.core.datatypes import BOOLEAN
from tqp.planner.algebra.expressions import (
    FALSE,
    TRUE,
    Call,
    Expression,
    Predict,
    PythonCall,
    Try,
    conjuncts,
    walk,
)
from tqp.planner.algebra.logical_plan import Filter, Join, JoinType, LogicalPlan
from tqp.planner.algebra.may_raise import raising_in
from tqp.planner.algebra.subquery_expressions import read_ids
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.nulls import filtered

#: A condition is attempted for a side's rows if it would be asked of so many times as many pairs, and of so many in any case.
_FEWEST_REPEATED, _FEWEST_PAIRS = 4.0, 10_000.0
#: An attempt gives up after so many calls; rows that have not been asked by then stay.
_MOST_CALLS = 50

#: For each side of a join, whether its rows without a partner are dropped, so that a condition of ON can drop them before.
_DROPS: dict[JoinType, tuple[bool, bool]] = {
    JoinType.INNER: (True, True),
    JoinType.SEMI: (True, True),
    JoinType.LEFT: (False, True),
    JoinType.ANTI: (False, True),
}
#: For each side, whether a condition on its columns that stands above the join can drop its rows before.
_PASSES: dict[JoinType, tuple[bool, bool]] = {
    JoinType.INNER: (True, True),
    JoinType.SEMI: (True, False),
    JoinType.LEFT: (True, False),
    JoinType.ANTI: (True, False),
}


class _Condition(NamedTuple):
    """One that may raise, and the estimated number of rows that it is asked of where it stands."""

    expression: Expression
    num_rows: float


def attempt_before_join(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """A condition on one relation that may raise, and so waits for joins that repeat the rows, is attempted before them.

    Rows of which it is not true go; those for which it raises stay, as the condition above may never be asked of them.
    """
    return _attempted(plan, (), context) if Join in plan.kinds else plan


def _attempted(plan: LogicalPlan, above: Sequence[_Condition], context: OptimizerContext) -> LogicalPlan:
    match plan:
        case Filter() if _leads_to_join(plan):
            own = _conditions(conjuncts(plan.condition), plan, context)
            return plan.with_inputs((_attempted(plan.input, (*above, *own), context),))
        case Join() if plan.join_type in _PASSES:
            own = _conditions(plan.keys.residual, plan, context)
            of_kinds = zip(plan.inputs, _PASSES[plan.join_type], _DROPS[plan.join_type], strict=True)
            sides = []
            for side, passes, drops in of_kinds:
                asked = [*(above if passes else ()), *(own if drops else ())]
                of_side = [each for each in asked if read_ids(each.expression) <= side.output_ids]
                sides.append(_attempted(side, of_side, context))
            return plan.with_inputs(sides)
    below = context.rewrite_inputs(plan, lambda child: attempt_before_join(child, context))
    if not above:
        return below
    fewest = max(_FEWEST_PAIRS, _FEWEST_REPEATED * context.estimator.rows(plan))
    attempts = dict.fromkeys(_attempt(each.expression) for each in above if each.num_rows >= fewest)
    return filtered(below, tuple(attempts))


def _leads_to_join(plan: LogicalPlan) -> bool:
    while isinstance(plan, Filter):
        plan = plan.input
    return isinstance(plan, Join)


def _conditions(
    conditions: Sequence[Expression], plan: Filter | Join, context: OptimizerContext
) -> list[_Condition]:
    """Those of a plan's conditions that may be attempted."""
    parts = [
        part
        for part in raising_in(conditions, *plan.inputs)
        if read_ids(part) and not any(isinstance(each, Predict | PythonCall) for each in walk(part))
    ]
    if not parts:
        return []
    num_rows = context.estimator.rows(plan if isinstance(plan, Join) else plan.input)
    if isinstance(plan, Join) and not plan.keys.left:
        num_rows = context.estimator.rows(plan.left) * context.estimator.rows(plan.right)
    return [_Condition(part, num_rows) for part in parts]


def _attempt(condition: Expression) -> Expression:
    """False for a row for which the condition is not true, and true where it raises."""
    known = Try(Call("coalesce", (condition, FALSE), BOOLEAN), most_calls=_MOST_CALLS)
    return Call("coalesce", (known, TRUE), BOOLEAN)
