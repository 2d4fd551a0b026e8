"""Sums of x + 1, x + 2, ... from one sum of x, and a count."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tqp.core.datatypes import BIGINT, HUGEINT
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import AggregateCall, Call, Cast, ColumnRef, Expression, Literal
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan, Project
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.rules.columns import reference
from tqp.planner.rules.context import OptimizerContext

#: Fewest sums that are worth a sum and a count in their place.
_FEWEST_SUMS = 3
#: Fewest rows of a group: what is computed of its sum has 128 bits.
_FEWEST_ROWS = 8.0


def sums_of_shifted_values(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """sum(x + 5), sum(x + 6), ... become sum(x) + 5 * count(x), and so on.

    Exact where x + 5 cannot overflow: sums of integers have 128 bits, which 64 bits times the number of rows do not leave.
    """

    def rewrite(node: Aggregate) -> LogicalPlan:
        return _rewritten(node, context) if len(node.aggregates) >= _FEWEST_SUMS else node

    return context.rewrite_each(plan, Aggregate, rewrite)


def _rewritten(plan: Aggregate, context: OptimizerContext) -> LogicalPlan:
    fields = plan.input.field_facts
    shifts = {call: shift for call in plan.aggregates if (shift := _shift(call, fields)) is not None}
    sums = Counter(base for base, _ in shifts.values())
    common = {base for base, count in sums.items() if count + (base in plan.aggregates) >= _FEWEST_SUMS}
    if not common:
        return plan
    estimator = context.estimator
    if plan.keys and estimator.rows(plan.input) < _FEWEST_ROWS * estimator.distinct(plan.input, plan.keys):
        return plan
    made: dict[AggregateCall, Field] = {}

    def result(call: AggregateCall, name: str) -> ColumnRef:
        if call not in made:
            made[call] = context.new_field(name, call.data_type)
        return reference(made[call])

    outputs: list[Expression] = [*map(reference, plan.key_fields)]
    for call, field in zip(plan.aggregates, plan.aggregate_fields, strict=True):
        base, constant = shifts.get(call, (call, 0))
        if base not in common or call is base:
            outputs.append(result(call, field.name))
            continue
        count = result(replace(base, function="count", data_type=BIGINT), "count")
        more = Call("multiply", (Cast(count, HUGEINT), Literal(constant, HUGEINT)), HUGEINT)
        outputs.append(Call("add", (result(base, "sum"), more), HUGEINT))
    grouped = replace(plan, aggregate_fields=tuple(made.values()), aggregates=tuple(made))
    return Project(grouped, plan.schema, tuple(outputs))


def _shift(call: AggregateCall, fields: FieldsById) -> tuple[AggregateCall, int] | None:
    """The sum of x alone and the constant, of a sum of x plus a constant that may be taken apart."""
    match call:
        case AggregateCall(
            "sum", (Call("add" | "subtract" as sign, (left, right)) as value,), distinct=False
        ):
            if sign == "add" and isinstance(left, Literal):
                left, right = right, left
            if (
                isinstance(right, Literal)
                and isinstance(right.value, int)
                and left.data_type.is_integer
                and value.data_type.is_integer
                and value.data_type != HUGEINT
                and not may_raise(value, fields)
            ):
                return replace(call, arguments=(left,)), right.value if sign == "add" else -right.value
    return None
