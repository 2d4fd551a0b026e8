"""Group by the key of the table that the columns come from, and the few groups of that by the columns."""

from __future__ import annotations

from collections.abc import Collection

from tqp.core.schema import Field
from tqp.planner.algebra.expressions import ColumnRef, Expression
from tqp.planner.algebra.field_facts import fit_table
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan, Project
from tqp.planner.rules.columns import reference
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.functional_dependencies import Dependencies
from tqp.planner.rules.merged_aggregates import in_two_steps, is_mergeable

#: Most groups that the first step may leave, as a share of the rows.
_LARGEST_SHARE = 0.8
#: And where the rows would be sorted by keys that have numbers.
_LARGEST_SHARE_IN_TABLE = 0.125
#: Fewest strings of rows that need not be grouped: what a step of its own costs, estimates being what they are.
_FEWEST_SAVED = 100_000.0


def group_in_two_steps(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """GROUP BY c_name, where c_custkey determines it: by c_custkey with any_value(c_name), then by c_name.

    Strings without a dictionary are hashed and compared once for each customer then, not for each order. Where all keys have
    small numbers, but too many combinations for a table, rows are not sorted by them if there is a table of the customers. Two
    customers of one name are one group still, so what is aggregated has to be in two steps, too.
    """

    return context.rewrite_each(plan, Aggregate, lambda node: _split(node, context))


def _split(plan: Aggregate, context: OptimizerContext) -> LogicalPlan:
    columns = {key.id for key in plan.keys if isinstance(key, ColumnRef)}
    if not columns:
        return plan
    below = plan.input
    while isinstance(below, Project) and below.passed_ids == below.output_ids:
        below = below.input
    rows = context.estimator.rows(below)
    if rows * len(columns) < _FEWEST_SAVED:
        return plan
    fields = below.field_facts
    wide = {
        id for id in columns if fields[id].data_type.is_string and fields[id].facts.dictionary_size is None
    }
    is_sparse = not wide and not fit_table(plan.keys, fields, rows)
    costly = columns if is_sparse else wide
    if rows * len(costly) < _FEWEST_SAVED:
        return plan
    if not all(is_mergeable(call, fields, below.max_rows) for call in plan.aggregates):
        return plan
    dependencies = Dependencies.of(below)
    determinant = _determinant(costly, dependencies, below)
    if determinant is None:
        return plan
    determined = dependencies.closure(determinant)
    taken = [isinstance(key, ColumnRef) and key.id in determined - determinant for key in plan.keys]
    key_fields = [field for field in below.schema if field.id in determinant]
    keys: list[Expression] = [*map(reference, key_fields)]
    picked: list[Field] = []
    for key, field, is_taken in zip(plan.keys, plan.key_fields, taken, strict=True):
        if is_taken:
            picked.append(field)
        elif field.id not in determinant:
            key_fields.append(field)
            keys.append(key)
    groups = context.estimator.distinct(below, keys)
    if is_sparse and (groups > _LARGEST_SHARE_IN_TABLE * rows or not fit_table(keys, fields, rows)):
        return plan
    if groups > _LARGEST_SHARE * rows or (rows - groups) * len(costly) < _FEWEST_SAVED:
        return plan
    return in_two_steps(plan, below, key_fields, keys, [*map(reference, plan.key_fields)], context, picked)


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
