"""Score a row once where several clauses ask for it: the first that does makes a column, which the others read."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from tqp.planner.algebra.expressions import ColumnRef, Expression, Predict, conjuncts, read_ids
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
from tqp.planner.algebra.may_raise import scoring_may_raise
from tqp.planner.algebra.node import walk_plan
from tqp.planner.rules.columns import reference
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.models.predictions import (
    Scoring,
    has_prediction,
    plain,
    predicted,
    predictions_in,
    reading,
    scored,
    scoring,
    with_columns,
)
from tqp.planner.rules.nulls import filtered

#: Plain calls that nodes above make, of columns that keep their ids down to here; in order, as plans do not depend on hashes.
Wanted = dict[Predict, None]
#: The columns that hold the values of calls.
Columns = dict[Predict, ColumnRef]

_KEEPS_LEFT = frozenset(JoinType) - {JoinType.FULL}


def evaluate_predictions_once(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """One evaluation for equal calls of a model in SELECT, WHERE, ORDER BY and elsewhere; cheap conditions come before it.

    Calls that differ only in what they give (label, probability) share the scores, and so count as equal.
    """
    parts = (part for node in walk_plan(plan) for whole in node.expressions for part in conjuncts(whole))
    return _Once(context, scored(parts)[0]).visit(plan, {})[0]


class _Once:
    """`anyway`: what some node scores for all of its rows. What is only scored where it is asked for stays so."""

    def __init__(self, context: OptimizerContext, anyway: set[Scoring]) -> None:
        self.context = context
        self.anyway = anyway

    def visit(self, plan: LogicalPlan, wanted: Wanted) -> tuple[LogicalPlan, Columns]:
        """The plan, which may have columns more, and those that hold what calls above would compute anew."""
        match plan:
            case Filter():
                return self.filter(plan, wanted)
            case Project():
                return self.project(plan, wanted)
            case Join():
                return self.join(plan, wanted)
            case Sort() | Aggregate():
                return self.other(plan, wanted)
            case Limit():
                below, columns = self.visit(plan.input, wanted)
                return plan if below is plan.input else replace(plan, input=below), columns
        return self.context.rewrite_inputs(plan, lambda child: self.visit(child, {})[0]), {}

    def filter(self, plan: Filter, wanted: Wanted) -> tuple[LogicalPlan, Columns]:
        own = predictions_in((plan.condition,))
        below, columns = self.visit(plan.input, wanted | dict.fromkeys(own))
        if not own:
            return plan if below is plan.input else replace(plan, input=below), columns
        parts = [with_columns(part, columns) for part in conjuncts(plan.condition)]
        for made in sorted(
            self._shared(parts, wanted, below, _repeated(parts)), key=lambda call: call[0].cost
        ):
            calls = _of(made, (*predictions_in(parts), *wanted))
            ready = tuple(part for part in parts if not has_prediction(part))
            parts = [part for part in parts if has_prediction(part)]
            below, added = predicted(filtered(below, ready), calls, self.context)
            columns |= added
            parts = [with_columns(part, added) for part in parts]
        return filtered(below, tuple(parts)), columns

    def project(self, plan: Project, wanted: Wanted) -> tuple[LogicalPlan, Columns]:
        # What is a column here already need not become one below, but for its siblings' sake.
        own = {plain(output) for output in plan.outputs if isinstance(output, Predict)}
        below, columns, outputs = self.inputs(plan.input, plan.outputs, wanted, own)
        fields = plan.fields
        offered = {
            plain(output): reference(field)
            for field, output in zip(fields, outputs, strict=True)
            if isinstance(output, Predict)
        }
        passed = {
            output.id: reference(field)
            for field, output in zip(fields, outputs, strict=True)
            if isinstance(output, ColumnRef)
        }
        for call, column in columns.items():
            if call not in wanted:
                continue
            if column.id not in passed:
                passed[column.id] = column
                fields = (*fields, next(field for field in below.schema if field.id == column.id))
                outputs = (*outputs, column)
            offered[call] = passed[column.id]
        if below is plan.input and len(outputs) == len(plan.outputs):
            return plan, offered
        return Project(below, fields, outputs), offered

    def join(self, plan: Join, wanted: Wanted) -> tuple[LogicalPlan, Columns]:
        own = dict.fromkeys(predictions_in((plan.condition,)))
        keeps_left, keeps_right = plan.join_type in _KEEPS_LEFT, plan.join_type is JoinType.INNER
        sides: list[LogicalPlan] = []
        columns: Columns = {}
        offered: Columns = {}
        parts = conjuncts(plan.condition)
        for side, is_kept in ((plan.left, keeps_left), (plan.right, keeps_right)):
            below, found = self.visit(side, (wanted if is_kept else {}) | own)
            fields = below.field_facts
            for made in self._shared(parts, wanted, below, _repeated(parts)) if is_kept else ():
                calls = [call for call in _of(made, (*own, *wanted)) if call not in found]
                if not calls or scoring_may_raise(*made, fields):  # in rows that find no match
                    continue
                if read_ids(calls[0]) and read_ids(calls[0]) <= fields.keys():
                    below, added = predicted(below, calls, self.context)
                    found |= added
            sides.append(below)
            columns |= found
            if is_kept:
                offered |= found
        joined = plan.with_inputs(tuple(sides)) if sides != [plan.left, plan.right] else plan
        return reading(joined, columns), offered

    def other(self, plan: Sort | Aggregate, wanted: Wanted) -> tuple[LogicalPlan, Columns]:
        """An aggregate's columns are of other rows, so nothing of what is below it is offered above."""
        above = wanted if isinstance(plan, Sort) else {}
        below, columns, _ = self.inputs(plan.input, plan.expressions, above)
        if below is plan.input:
            return plan, columns if isinstance(plan, Sort) else {}
        return reading(plan.with_inputs((below,)), columns), columns if isinstance(plan, Sort) else {}

    def inputs(
        self,
        plan: LogicalPlan,
        expressions: tuple[Expression, ...],
        wanted: Wanted,
        made_here: Collection[Predict] = (),
    ) -> tuple[LogicalPlan, Columns, tuple[Expression, ...]]:
        """What expressions are computed on: with columns for calls in them that are wanted above or stand in several."""
        own = predictions_in(expressions)
        below, columns = self.visit(plan, wanted | dict.fromkeys(own))
        if not own:
            return below, columns, expressions
        expressions = tuple(with_columns(expression, columns) for expression in expressions)
        elsewhere = {call: None for call in wanted if call not in made_here}
        for made in self._shared(expressions, elsewhere, below):
            calls = _of(made, (*predictions_in(expressions), *wanted))
            below, added = predicted(below, calls, self.context)
            columns |= added
            expressions = tuple(with_columns(expression, added) for expression in expressions)
        return below, columns, expressions

    def _shared(
        self,
        expressions: Iterable[Expression],
        wanted: Wanted,
        below: LogicalPlan,
        repeated: Collection[Scoring] = (),
    ) -> list[Scoring]:
        """What the expressions over `below` score that others score too, and that may be scored for all rows."""
        for_all, for_some = scored(expressions)
        others = {scoring(call) for call in wanted}.union(repeated, for_all & for_some)
        fields = below.field_facts
        own = dict.fromkeys(scoring(call) for call in predictions_in(expressions))
        return [
            made
            for made in own
            if made in others
            and made in self.anyway
            and not (made in for_some and scoring_may_raise(*made, fields))
        ]


def _of(made: Scoring, calls: Iterable[Predict]) -> list[Predict]:
    return list(dict.fromkeys(call for call in calls if scoring(call) == made))


def _repeated(parts: Iterable[Expression]) -> set[Scoring]:
    """What several of the conditions score: the first of them may drop rows, and then the next would score the rest anew."""
    seen: set[Scoring] = set()
    repeated: set[Scoring] = set()
    for part in parts:
        own = {scoring(call) for call in predictions_in((part,))}
        repeated |= own & seen
        seen |= own
    return repeated
