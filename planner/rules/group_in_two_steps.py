"""Group by the key of the table that strings come from, and the few groups of that by the strings."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tqp.core.datatypes import HUGEINT
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import AggregateCall, Cast, ColumnRef, Expression
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan, Project
from tqp.planner.algebra.may_raise import aggregate_may_raise
from tqp.planner.functions.registry import AGGREGATES
from tqp.planner.rules.columns import reference
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.functional_dependencies import Dependencies

#: Most groups that the first step may leave, as a share of the rows.
_LARGEST_SHARE = 0.8
#: Fewest strings of rows that need not be grouped: what a step of its own costs, estimates being what they are.
_FEWEST_SAVED = 100_000.0


def group_in_two_steps(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """GROUP BY c_name, where c_custkey determines it: by c_custkey with any_value(c_name), then by c_name.

    Strings without a dictionary are hashed and compared once for each customer then, not for each order. Two customers of one
    name are one group still, so what is aggregated has to be in two steps, too.
    """

    def split(node: LogicalPlan) -> LogicalPlan:
        return _split(node, context) if isinstance(node, Aggregate) else node

    return context.rewrite(plan, split)


def _split(plan: Aggregate, context: OptimizerContext) -> LogicalPlan:
    fields, max_rows = plan.input.field_facts, plan.input.max_rows
    wide = {key.id for key in plan.keys if isinstance(key, ColumnRef) and _is_wide(fields[key.id])}
    if not wide:
        return plan
    for call in plan.aggregates:
        if call.distinct or _merging(call) is None or aggregate_may_raise(call, fields, max_rows):
            return plan
    dependencies = Dependencies.of(plan.input)
    determinant = _determinant(wide, dependencies, plan.input)
    if determinant is None:
        return plan
    determined = dependencies.closure(determinant)
    taken = [isinstance(key, ColumnRef) and key.id in determined - determinant for key in plan.keys]
    key_fields = [field for field in plan.input.schema if field.id in determinant]
    keys: list[Expression] = [*map(reference, key_fields)]
    picked: list[Field] = []
    for key, field, is_taken in zip(plan.keys, plan.key_fields, taken, strict=True):
        if is_taken:
            picked.append(field)
        elif field.id not in determinant:
            key_fields.append(field)
            keys.append(key)
    estimator = context.estimator
    rows, groups = estimator.rows(plan.input), estimator.distinct(plan.input, keys)
    if groups > _LARGEST_SHARE * rows or (rows - groups) * len(wide) < _FEWEST_SAVED:
        return plan
    partial = [context.new_field(field.name, field.data_type) for field in plan.aggregate_fields]
    picks = [AggregateCall("any_value", (reference(each),), each.data_type) for each in picked]
    first = Aggregate(
        plan.input, tuple(key_fields), tuple(keys), (*partial, *picked), (*plan.aggregates, *picks)
    )
    return _merged(plan, first, partial, context)


def _is_wide(field: Field) -> bool:
    return field.data_type.is_string and field.facts.dictionary_size is None


def _merging(call: AggregateCall) -> str | None:
    """The aggregate that makes one value of those of several groups."""
    function = AGGREGATES[call.function]
    if function.ignores_duplicates:
        return call.function
    return "sum" if function.counts or call.function == "sum" else None


def _determinant(wide: set[int], dependencies: Dependencies, plan: LogicalPlan) -> frozenset[int] | None:
    """Integer columns of the plan that together determine the wide ones; None if there are none."""
    fields = plan.field_facts
    candidates = [
        determinant
        for determinant, _ in dependencies.rules
        if determinant
        and all(each in fields and fields[each].data_type.is_integer_like for each in determinant)
    ]
    found: frozenset[int] = frozenset()
    missing: Collection[int] = wide
    while missing:
        best = max(candidates, key=lambda each: len(dependencies.closure(found | each) & wide), default=None)
        if best is None or not dependencies.closure(best) & set(missing):
            return None
        found |= best
        missing = wide - dependencies.closure(found)
    return found


def _merged(
    plan: Aggregate, first: Aggregate, partial: Sequence[Field], context: OptimizerContext
) -> LogicalPlan:
    """The groups of `first` grouped as `plan` does."""
    keys = tuple(map(reference, plan.key_fields))
    fields: list[Field] = []
    calls: list[AggregateCall] = []
    outputs: list[Expression] = [*keys]
    for call, field, value in zip(plan.aggregates, plan.aggregate_fields, partial, strict=True):
        merging = _merging(call)
        assert merging is not None
        is_count = AGGREGATES[call.function].counts  # the sum of which has a wider type
        made = context.new_field(field.name, HUGEINT) if is_count else field
        fields.append(made)
        calls.append(AggregateCall(merging, (reference(value),), made.data_type))
        outputs.append(Cast(reference(made), field.data_type) if is_count else reference(made))
    grouped = Aggregate(first, plan.key_fields, keys, tuple(fields), tuple(calls))
    return (
        grouped if tuple(fields) == plan.aggregate_fields else Project(grouped, plan.schema, tuple(outputs))
    )
