"""Ask only whether a row has a partner, where nothing above minds which, or how many."""

from __future__ import annotations

from tqp.planner.algebra.expressions import TRUE
from tqp.planner.algebra.logical_node import Ids
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    JoinType,
    Limit,
    LogicalPlan,
    Project,
    Scan,
    Series,
    Shared,
    Sort,
    Values,
)
from tqp.planner.algebra.may_raise import raising_in
from tqp.planner.algebra.subquery_expressions import read_ids
from tqp.planner.functions.registry import AGGREGATES
from tqp.planner.physical.joins.index import table_with_set
from tqp.planner.rules.columns import reference
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.joins.region import condition_may_raise

#: An inner join is left to the search for an order, which may build the smaller side, if it makes fewer pairs for each row of
#: the larger one than this; or, where the other side is a table whose set of keys can be asked, for each row of the one kept.
_FEWEST_PAIRS = 2.0
#: A side's rows are grouped before the join where each comes so many times or more.
_FEWEST_REPEATED = 8.0


def match_once(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """An inner join that repeats rows becomes a SEMI join below DISTINCT or IN, if only one side's columns are read.

    A cross product becomes one with a single row of the other side. Else sides of which most rows come again join each once.
    """
    return _matched(plan, {field.id for field in plan.schema}, True, context)


def _matched(plan: LogicalPlan, needed: Ids, counts: bool, context: OptimizerContext) -> LogicalPlan:
    """The plan with such joins; it has at least the columns `needed`. `counts`: whether repeated rows change anything."""
    match plan:
        case Join():
            if not counts:
                plan = _with_distinct_sides(_semi_join(plan, needed, context), needed, context)
        case Project():
            plan = plan.without_unread(needed)
        case _ if plan.BY_POSITION:
            return context.rewrite_inputs(plan, lambda child: match_once(child, context))
    inputs = zip(plan.inputs, plan.needs(needed), _inputs_count(plan, counts), strict=True)
    return plan.with_inputs([_matched(child, below, minds, context) for child, below, minds in inputs])


def _inputs_count(plan: LogicalPlan, counts: bool) -> tuple[bool, ...]:
    """For each input, whether repeated rows in it change anything, if `counts` says so of the plan's own."""
    match plan:
        case Filter() | Project() | Sort():
            return (counts,)
        case Aggregate():
            return (
                not all(
                    call.distinct or AGGREGATES[call.function].ignores_duplicates for call in plan.aggregates
                ),
            )
        case Join(join_type=JoinType.SEMI | JoinType.ANTI | JoinType.NULL_AWARE_ANTI | JoinType.MARK):
            return (counts, False)
        case Join(join_type=JoinType.SINGLE):
            return (counts, True)
        case Join():
            return (counts, counts)
    return (True,) * len(plan.inputs)


def _semi_join(join: Join, needed: Ids, context: OptimizerContext) -> Join:
    is_product = join.condition == TRUE
    if (
        join.join_type is not JoinType.INNER
        or not (join.keys.left or is_product)
        or condition_may_raise(join)
    ):
        return join
    rows = context.estimator.rows
    repeats_both = rows(join) >= _FEWEST_PAIRS * max(rows(join.left), rows(join.right))
    for kept, other, keys in (
        (join.left, join.right, join.keys),
        (join.right, join.left, join.keys.swapped()),
    ):
        if not needed.isdisjoint(other.output_ids):
            continue
        if is_product:
            cut = repeats_both and _may_be_cut(other)
            return Join(kept, Limit(other, 1), JoinType.INNER, TRUE) if cut else join
        repeats = rows(join) >= _FEWEST_PAIRS * rows(kept)
        if repeats_both or (repeats and table_with_set(keys, kept.field_facts, other) is not None):
            return Join(kept, other, JoinType.SEMI, join.condition)
    return join


def _with_distinct_sides(join: Join, needed: Ids, context: OptimizerContext) -> Join:
    """An inner join that repeats rows, each side without rows that come again, where these are most."""
    if join.join_type is not JoinType.INNER:
        return join
    rows = context.estimator.rows
    if rows(join) < _FEWEST_PAIRS * max(rows(join.left), rows(join.right)):
        return join
    read = needed | read_ids(join.condition)
    sides = []
    for side in join.inputs:
        columns = tuple(field for field in side.schema if field.id in read)
        keys = tuple(map(reference, columns))
        few = bool(keys) and not any(field.data_type.is_composed for field in columns)
        if few and context.estimator.distinct(side, keys) * _FEWEST_REPEATED <= rows(side):
            side = Aggregate(side, columns, keys, (), ())
        sides.append(side)
    return join.with_inputs(sides)


def _may_be_cut(plan: LogicalPlan) -> bool:
    """Are these rows of a table, none of which raises anything?"""
    while isinstance(plan, Filter | Project | Sort):
        if raising_in(plan.expressions, plan.input):
            return False
        plan = plan.input
    return isinstance(plan, Scan | Values | Series | Shared)  # which is computed whole in any case
