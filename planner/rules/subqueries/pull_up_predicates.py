"""Pull correlated predicates out of a subquery's plan, so that they can become part of a join condition."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from tqp.core.datatypes import BOOLEAN
from tqp.planner.algebra.expressions import (
    TRUE,
    Call,
    Case,
    ColumnRef,
    Expression,
    Literal,
    conjunction,
    conjuncts,
    is_null_literal,
)
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    JoinType,
    Limit,
    LogicalPlan,
    Project,
    Sort,
)
from tqp.planner.algebra.may_raise import aggregate_may_raise, raising_in
from tqp.planner.algebra.outcomes import null_if_padded, rejects_null
from tqp.planner.algebra.subquery_expressions import read_ids
from tqp.planner.functions.conditions import EQUALITIES
from tqp.planner.functions.registry import AGGREGATES
from tqp.planner.rules.columns import key_field, reference, renumber, substitute
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.nulls import filtered, is_null


@dataclass(frozen=True, slots=True)
class PulledUp:
    """The subquery for one outer row = the rows of `plan` on which all `predicates` are true.

    If there are none and `empty_row` is not None, the subquery still has one row: those values, by column id
    (an aggregate without GROUP BY).
    """

    plan: LogicalPlan
    predicates: tuple[Expression, ...]
    empty_row: dict[int, Expression] | None = None
    is_single_row: bool = False  # at most one row of `plan` matches an outer row


def pull_up(plan: LogicalPlan, outer: Collection[int], context: OptimizerContext) -> PulledUp | None:
    """Pull up every predicate that reads a column in `outer`; None where something else than predicates does.

    The plan's output keeps its columns and gains those that the predicates read.
    """
    outer_ids = set(outer)
    if not plan.free_ids & outer_ids:
        return PulledUp(plan, ())
    match plan:
        case Filter():
            return _through_filter(plan, outer_ids, context)
        case Project():
            return _through_project(plan, outer_ids, context)
        case Join():
            return _through_join(plan, outer_ids, context)
        case Aggregate():
            return _through_aggregate(plan, outer_ids, context)
        case Sort():
            return pull_up(plan.input, outer_ids, context)
        case Limit():
            below = pull_up(plan.input, outer_ids, context)
            if below is None or plan.offset or plan.limit == 0:
                return None
            return below if below.empty_row is not None or below.is_single_row else None
        case _:
            return None


def _through_filter(plan: Filter, outer: set[int], context: OptimizerContext) -> PulledUp | None:
    below = pull_up(plan.input, outer, context)
    if below is None:
        return None
    local, correlated = _split(conjuncts(plan.condition), outer)
    empty_row = below.empty_row
    if empty_row is not None:
        # HAVING: fine where it drops the row of an empty group; else matched and default rows would differ.
        on_empty = substitute(plan.condition, empty_row)
        if not rejects_null(on_empty, ()):
            return None
        empty_row = None
    single = below.is_single_row or below.empty_row is not None
    return PulledUp(filtered(below.plan, local), below.predicates + correlated, empty_row, single)


def _through_project(plan: Project, outer: set[int], context: OptimizerContext) -> PulledUp | None:
    if any(read_ids(output) & outer for output in plan.outputs):
        return None
    below = pull_up(plan.input, outer, context)
    if below is None or raising_in(plan.outputs, below.plan):
        return None
    kept = {output.id for output in plan.outputs if isinstance(output, ColumnRef)} & {
        f.id for f in plan.fields
    }
    needed = _inner_ids(below.predicates, outer) - kept
    extra = tuple(field for field in below.plan.schema if field.id in needed)
    projected = Project(below.plan, plan.fields + extra, plan.outputs + tuple(map(reference, extra)))
    empty_row = below.empty_row
    if empty_row is not None:
        empty_row = {
            field.id: _default(output, empty_row)
            for field, output in zip(plan.fields, plan.outputs, strict=True)
        }
    return PulledUp(projected, below.predicates, empty_row, below.is_single_row)


def _default(output: Expression, empty_row: dict[int, Expression]) -> Expression:
    """An output's value on the default row; a plain NULL if that can be seen."""
    value = substitute(output, empty_row)
    return Literal(None, output.data_type) if null_if_padded(value, ()) else value


def _through_join(plan: Join, outer: set[int], context: OptimizerContext) -> PulledUp | None:
    left = pull_up(plan.left, outer, context)
    if left is None or left.empty_row is not None:
        return None
    if plan.join_type is JoinType.INNER:
        right = pull_up(plan.right, outer, context)
        if right is None or right.empty_row is not None:
            return None
        local, correlated = _split(conjuncts(plan.condition), outer)
        joined = Join(left.plan, right.plan, JoinType.INNER, conjunction(local))
        return PulledUp(joined, left.predicates + right.predicates + correlated)
    if plan.join_type is JoinType.FULL or plan.right.free_ids & outer or read_ids(plan.condition) & outer:
        return None
    return PulledUp(replace(plan, left=left.plan), left.predicates)


def _through_aggregate(plan: Aggregate, outer: set[int], context: OptimizerContext) -> PulledUp | None:
    """Equality predicates on inner values become group keys: one group for each value an outer row can ask for."""
    if any(read_ids(expression) & outer for expression in plan.expressions):
        return None
    below = pull_up(plan.input, outer, context)
    if below is None or below.empty_row is not None:
        return None
    rows = below.plan.max_rows
    if any(aggregate_may_raise(call, below.plan.field_facts, rows) for call in plan.aggregates):
        return None
    key_fields, keys = list(plan.key_fields), list(plan.keys)
    predicates = []
    for predicate in below.predicates:
        sides = is_equality_with(predicate, outer)
        if sides is None or not isinstance(predicate, Call):
            return None
        outer_side, inner_side = sides
        if not read_ids(inner_side) <= below.plan.output_ids:
            return None  # it reads a query further out
        field = next((f for f, key in zip(key_fields, keys, strict=True) if _is_same(key, inner_side)), None)
        if field is None:
            field = key_field(inner_side, below.plan, context)
            key_fields.append(field)
            keys.append(inner_side)
        predicates.append(Call(predicate.function, (outer_side, reference(field)), predicate.data_type))
    grouped = replace(plan, input=below.plan, key_fields=tuple(key_fields), keys=tuple(keys))
    if plan.keys:
        return PulledUp(grouped, tuple(predicates), None, is_single_row=False)
    return PulledUp(grouped, tuple(predicates), row_of_nothing(plan), is_single_row=True)


def row_of_nothing(plan: Aggregate) -> dict[int, Expression]:
    """What the aggregates are of no rows, by column id: a count 0, most others NULL."""
    return {
        field.id: Literal(AGGREGATES[call.function].of_nothing, field.data_type)
        for field, call in zip(plan.aggregate_fields, plan.aggregates, strict=True)
    }


def _is_same(a: Expression, b: Expression) -> bool:
    if isinstance(a, ColumnRef) and isinstance(b, ColumnRef):
        return a.id == b.id
    return a == b


def is_equality_with(predicate: Expression, outer: Collection[int]) -> tuple[Expression, Expression] | None:
    """The (outer, inner) sides of an equality whose one side reads outer columns and whose other side does not."""
    if not (isinstance(predicate, Call) and predicate.function in EQUALITIES):
        return None
    first, second = predicate.arguments
    first_outer = not read_ids(first).isdisjoint(outer)
    second_outer = not read_ids(second).isdisjoint(outer)
    if first_outer and not read_ids(first) - set(outer) and not second_outer:
        return first, second
    if second_outer and not read_ids(second) - set(outer) and not first_outer:
        return second, first
    return None


def _split(
    parts: tuple[Expression, ...], outer: set[int]
) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
    """Conjuncts that read no outer column, and those that do."""
    local = tuple(part for part in parts if not read_ids(part) & outer)
    return local, tuple(part for part in parts if read_ids(part) & outer)


def _inner_ids(predicates: tuple[Expression, ...], outer: set[int]) -> set[int]:
    return {identifier for predicate in predicates for identifier in read_ids(predicate)} - outer


def with_single_row(left: LogicalPlan, pulled: PulledUp, context: OptimizerContext) -> LogicalPlan:
    """Every left row beside the one row that the right side has for it: a default row where nothing matches.

    That is the COUNT bug's cure: an aggregate without keys gives a row for no input, count 0.
    """
    assert pulled.empty_row is not None
    right = pulled.plan
    defaults = {
        identifier: default
        for identifier, default in pulled.empty_row.items()
        if not is_null_literal(default)
    }
    fields = right.schema
    defaulted = [field for field in fields if field.id in defaults]
    if not defaulted:
        return Join(left, right, JoinType.LEFT, conjunction(pulled.predicates))
    inner_ids = {field.id: context.new_id() for field in defaulted}
    right = renumber(right, inner_ids)
    matched = context.new_field("matched", BOOLEAN, nullable=False)
    inner_fields = right.schema
    right = Project(right, (*inner_fields, matched), (*map(reference, inner_fields), TRUE))
    joined = Join(left, right, JoinType.LEFT, conjunction(pulled.predicates))
    by_id = {field.id: field for field in joined.schema}
    outputs: list[Expression] = [reference(field) for field in left.schema]
    for field in fields:
        inner = by_id[inner_ids.get(field.id, field.id)]
        output: Expression = reference(inner)
        if field.id in defaults:
            unmatched = is_null(reference(by_id[matched.id]))
            output = Case(((unmatched, defaults[field.id]),), output, field.data_type)
        outputs.append(output)
    right_fields = tuple(field if field.id in defaults else by_id[field.id] for field in fields)
    return Project(joined, (*left.schema, *right_fields), tuple(outputs))
