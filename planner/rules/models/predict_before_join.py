"""Predict before a join that repeats rows: each row is scored once instead of once for every match."""

from __future__ import annotations

from dataclasses import replace

from tqp.planner.algebra.expressions import conjunction, conjuncts, read_ids
from tqp.planner.algebra.logical_plan import Aggregate, Join, JoinType, LogicalPlan, Project
from tqp.planner.algebra.may_raise import scoring_may_raise
from tqp.planner.rules.columns import reference
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.models.predictions import (
    Scoring,
    has_prediction,
    predicted,
    predictions_in,
    reading,
    scoring,
)

#: Nanoseconds to carry a prediction through a join, for each row that comes out.
_CARRY = 1.0


def predict_before_join(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """Let a model of one side's columns score that side's rows, if these are fewer than what comes out of the joins."""

    def push(node: LogicalPlan) -> LogicalPlan:
        for made in dict.fromkeys(scoring(call) for call in predictions_in(node.expressions)):
            ids = set[int]().union(*(read_ids(argument) for argument in made[1]))
            if ids:
                node = _placed(node, made, ids, context)
        return node

    return context.rewrite(plan, push)


def _placed(node: LogicalPlan, made: Scoring, ids: set[int], context: OptimizerContext) -> LogicalPlan:
    """The node, its calls of one scoring made below in columns, if that is cheaper."""
    rows = context.estimator.rows
    for position, below in enumerate(node.inputs):
        if not ids <= below.output_ids:
            continue
        here = _compared(node, context) if isinstance(node, Join) else rows(below)
        place = _best_place(below, ids, context)
        if place is node.inputs[0] and not isinstance(node, Join):
            return node
        if scoring_may_raise(*made, place.field_facts):  # in rows that find no match
            return node
        if (here - rows(place)) * made[0].cost <= _CARRY * here:
            return node
        calls = [call for call in predictions_in(node.expressions) if scoring(call) == made]
        at_place, columns = predicted(place, calls, context)
        inputs = [*node.inputs]
        inputs[position] = _rebuilt(below, place, at_place)
        return reading(node.with_inputs(tuple(inputs)), columns)
    return node


def _compared(join: Join, context: OptimizerContext) -> float:
    """For how many pairs of rows a join evaluates what it has to predict: those that its other conditions leave."""
    parts = tuple(part for part in conjuncts(join.condition) if not has_prediction(part))
    pairs = Join(join.left, join.right, JoinType.INNER, conjunction(parts))
    return context.estimator.rows(pairs)


def _best_place(plan: LogicalPlan, ids: set[int], context: OptimizerContext) -> LogicalPlan:
    """Of the nodes below that put out the columns, as the rows that they are of, the first with the fewest rows."""
    best = node = plan
    while not isinstance(node, Aggregate) and (below := node.source_of(ids)) is not None:
        node = below
        if context.estimator.rows(node) < context.estimator.rows(best):
            best = node
    return best


def _rebuilt(plan: LogicalPlan, place: LogicalPlan, replacement: LogicalPlan) -> LogicalPlan:
    """The plan over `replacement` instead of the node `place`, whose additional columns pass on to the top."""
    if plan is place:
        return replacement
    rebuilt = plan.map_inputs(lambda child: _rebuilt(child, place, replacement))
    if rebuilt is plan or not isinstance(rebuilt, Project):
        return rebuilt
    known = {field.id for field in (*rebuilt.fields, *place.schema)}
    new = {field.id for field in replacement.schema} - known
    added = tuple(field for field in rebuilt.input.schema if field.id in new)
    outputs = (*rebuilt.outputs, *map(reference, added))
    return replace(rebuilt, fields=(*rebuilt.fields, *added), outputs=outputs)
