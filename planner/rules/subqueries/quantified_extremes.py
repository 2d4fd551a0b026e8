"""x < ANY (q), and its kin, by the least and the greatest value of q and its numbers of rows and of NULLs.

    x <  ANY (q)    x <  max(q)                            x >  ANY (q)    x >  min(q)
    x <> ANY (q)    x <> min(q) OR x <> max(q)             ALL             NOT the negated comparison with ANY

where that is true; else it is false if q has no row, unknown if x or a value of q is NULL, and false otherwise.
`= ANY` is a semi join.
"""

from __future__ import annotations

from collections.abc import Sequence

from tqp.core.datatypes import BIGINT, BOOLEAN, DataType, TypeKind
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import TRUE, AggregateCall, Call, Expression, Literal
from tqp.planner.algebra.logical_plan import Aggregate, JoinType, LogicalPlan
from tqp.planner.algebra.outcomes import nullable
from tqp.planner.rules.columns import reference
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.subqueries.dependent_join import join_dependent
from tqp.planner.rules.subqueries.pull_up_predicates import pull_up

#: The extremes that decide `x comparison ANY (q)`.
_EXTREMES: dict[str, tuple[str, ...]] = {
    "less": ("max",),
    "less_equal": ("max",),
    "greater": ("min",),
    "greater_equal": ("min",),
    "not_equal": ("min", "max"),
}

#: Types whose min and max do not follow from their comparisons.
_WITHOUT_EXTREMES = frozenset((TypeKind.ARRAY, TypeKind.NULL))


def compare_with_extremes(
    plan: LogicalPlan,
    operands: Sequence[Expression],
    comparison: str,
    subquery: LogicalPlan,
    where_true: bool,
    context: OptimizerContext,
) -> tuple[LogicalPlan, Expression] | None:
    """The plan with the extremes of the subquery joined to it, and `operands comparison ANY (subquery)` over that.

    With `where_true` the expression is true where that is, and may be NULL where it is false. None where a join on the
    comparison itself is as good: `=`, several operands, and subqueries correlated otherwise than by equalities.
    """
    extremes = _EXTREMES.get(comparison)
    column = subquery.schema[0]
    if extremes is None or len(operands) > 1 or column.data_type.kind in _WITHOUT_EXTREMES:
        return None
    calls = [(name, AggregateCall(name, (reference(column),), column.data_type)) for name in extremes]
    if not where_true:
        calls.append(("rows", AggregateCall("count_star", (), BIGINT)))
        if nullable(reference(column), subquery.field_facts):
            calls.append(("values", AggregateCall("count", (reference(column),), BIGINT)))
    fields = {name: _field(name, call.data_type, context) for name, call in calls}
    grouped = Aggregate(subquery, (), (), tuple(fields.values()), tuple(call for _, call in calls))
    outer = plan.output_ids
    if grouped.free_ids & outer and pull_up(grouped, outer, context) is None:
        return None
    joined = join_dependent(plan, grouped, JoinType.SINGLE, TRUE, None, context)
    tests = tuple(Call(comparison, (operands[0], reference(fields[name])), BOOLEAN) for name in extremes)
    if "values" in fields:
        has_null = Call("greater", (reference(fields["rows"]), reference(fields["values"])), BOOLEAN)
        tests = (*tests, Call("and", (has_null, Literal(None, BOOLEAN)), BOOLEAN))
    found = tests[0] if len(tests) == 1 else Call("or", tests, BOOLEAN)
    if where_true:
        return joined, found
    has_rows = Call("greater", (reference(fields["rows"]), Literal(0, BIGINT)), BOOLEAN)
    return joined, Call("and", (has_rows, found), BOOLEAN)


def _field(name: str, data_type: DataType, context: OptimizerContext) -> Field:
    return context.new_field(name, data_type, nullable=name not in ("rows", "values"))
