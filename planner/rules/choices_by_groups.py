"""Aggregates of what conditions choose, over the groups by what these conditions read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tqp.core.datatypes import BIGINT
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import (
    AggregateCall,
    Case,
    Cast,
    Expression,
    Literal,
    column_ids,
)
from tqp.planner.algebra.field_facts import fit_table
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan, Project
from tqp.planner.algebra.may_raise import raising_in
from tqp.planner.rules.columns import reference
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.merged_aggregates import is_mergeable, merged, parts_of, result_of

#: Rows for each group of the first step, at least, and choices: two accumulators cost less than a step of its own.
_ROWS_PER_GROUP, _FEWEST_CHOICES = 16.0, 3
_FEWEST_ROWS = 100_000.0


def choices_by_groups(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """GROUP BY week with sum(CASE WHEN day = 'Sunday' THEN price END), ... is one by week and day with sum(price) first.

    Each row is added once then, and conditions are asked of the few groups. That is a pivot, as most of such sums are.
    """
    return context.rewrite_each(plan, Aggregate, lambda node: _split(node, context))


#: An aggregate of each group of the first step, or a constant; None is NULL.
_Part = AggregateCall | int | None


@dataclass(frozen=True)
class _Choice:
    """An aggregate as a CASE of parts, by what the conditions are of each group."""

    call: AggregateCall
    branches: tuple[tuple[Expression, _Part], ...]
    default: _Part

    @property
    def parts(self) -> Iterator[AggregateCall]:
        """What is to be known of each group."""
        for value in (*(value for _, value in self.branches), self.default):
            if isinstance(value, AggregateCall):
                yield value

    def over(self, fields: dict[AggregateCall, Field]) -> AggregateCall:
        """The aggregate over the groups, whose parts are columns."""
        data_type = self.call.data_type

        def chosen(value: _Part) -> Expression:
            if not isinstance(value, AggregateCall):
                return Literal(value, data_type)
            column = reference(fields[value])
            return column if column.data_type == data_type else Cast(column, data_type)

        branches = tuple((condition, chosen(value)) for condition, value in self.branches)
        return merged(self.call, Case(branches, chosen(self.default), data_type))


def _split(plan: Aggregate, context: OptimizerContext) -> LogicalPlan:
    choices = {call: found for call in plan.aggregates if (found := _choice(call)) is not None}
    below = plan.input
    if len(choices) < _FEWEST_CHOICES or context.estimator.rows(below) < _FEWEST_ROWS:
        return plan
    fields = below.field_facts
    asked = [condition for choice in choices.values() for condition, _ in choice.branches]
    read = frozenset().union(*map(column_ids, asked))
    passed = {field.id for field in plan.key_fields}
    added = [field for field in below.schema if field.id in read - passed]
    if {field.id for field in added} | (read & passed) != read:
        return plan
    keys = (*plan.keys, *map(reference, added))
    groups, rows = context.estimator.distinct(below, keys), context.estimator.rows(below)
    if groups * _ROWS_PER_GROUP > rows or not fit_table(keys, fields, rows):
        return plan
    others = [call for call in plan.aggregates if call not in choices]
    chosen = [part for choice in choices.values() for part in choice.parts]
    values = [value for part in chosen for value in part.arguments]
    if raising_in(values, below) or not all(
        is_mergeable(call, fields, below.max_rows) for call in (*others, *chosen)
    ):
        return plan
    parts = tuple(dict.fromkeys([*chosen, *(part for call in others for part in parts_of(call))]))
    partial = {part: context.new_field(part.function, part.data_type) for part in parts}
    key_fields = (*plan.key_fields, *added)
    first = Aggregate(below, key_fields, keys, tuple(partial.values()), parts)
    over: dict[AggregateCall, Field] = {}
    for call in plan.aggregates:
        choice = choices.get(call)
        calls = (
            [choice.over(partial)]
            if choice
            else [merged(part, reference(partial[part])) for part in parts_of(call)]
        )
        for each in calls:
            over.setdefault(each, context.new_field(call.function, each.data_type))
    plain = tuple(map(reference, plan.key_fields))
    grouped = Aggregate(first, plan.key_fields, plain, tuple(over.values()), tuple(over))
    results: list[Expression] = []
    for call in plan.aggregates:
        choice = choices.get(call)
        if choice is not None:
            results.append(reference(over[choice.over(partial)]))
        else:
            made = [reference(over[merged(part, reference(partial[part]))]) for part in parts_of(call)]
            results.append(result_of(call, made, plan.aggregates, bool(plan.keys), fields))
    return Project(grouped, plan.schema, (*plain, *results))


def _choice(call: AggregateCall) -> _Choice | None:
    """sum(CASE ...), count(CASE ...), and either with FILTER; None of what is no choice."""
    if call.distinct or call.order or call.function not in ("sum", "count", "count_star"):
        return None
    branches: tuple[tuple[Expression, Expression | None], ...]
    default: Expression
    if call.filter is not None:
        branches = ((call.filter, call.arguments[0] if call.arguments else None),)
        default = Literal(None, call.data_type)
    elif len(call.arguments) == 1 and isinstance(call.arguments[0], Case):
        branches, default = call.arguments[0].branches, call.arguments[0].default
    else:
        return None
    if not all(_has_part(call, value) for value in (*(value for _, value in branches), default)):
        return None
    parts = tuple((condition, _part(call, value)) for condition, value in branches)
    return _Choice(call, parts, _part(call, default))


def _has_part(call: AggregateCall, value: Expression | None) -> bool:
    if value is None or call.function == "count":
        return True
    if isinstance(value, Literal):
        return value.value is None or _is_zero(value) or (value.value == 1 and value.data_type.is_integer)
    return not value.data_type.is_float  # the last digits of sums depend on their order


def _part(call: AggregateCall, value: Expression | None) -> _Part:
    """What the rows of a group that choose a value, or count(*), come to."""
    rows = replace(call, function="count_star", arguments=(), filter=None, data_type=BIGINT)
    if value is None:
        return rows
    if not isinstance(value, Literal):
        return replace(call, arguments=(value,), filter=None)
    if value.value is None:
        return None if call.function == "sum" else 0
    return 0 if call.function == "sum" and _is_zero(value) else rows


def _is_zero(value: Literal) -> bool:
    return value.value == 0 and not isinstance(value.value, bool | float)
