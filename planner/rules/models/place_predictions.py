"""Score a row once for all that ask, where rows are fewest: above cheap conditions, below joins that repeat rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby

from tqp.planner.algebra.expressions import (
    AggregateCall,
    Call,
    Case,
    ColumnRef,
    Expression,
    Predict,
    Scoring,
    all_column_ids,
    conjunction,
    conjuncts,
    has_prediction,
)
from tqp.planner.algebra.logical_node import Ids
from tqp.planner.algebra.logical_plan import Aggregate, Filter, Join, JoinType, Limit, LogicalPlan, Project
from tqp.planner.algebra.may_raise import scoring_may_raise
from tqp.planner.algebra.node import walk_plan
from tqp.planner.functions.registry import SCALARS
from tqp.planner.rules.columns import reference
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.nulls import filtered

#: Nanoseconds to carry a prediction through a join, for each row that comes out.
_CARRY = 1.0

#: Calls of models, by what they score.
Calls = Mapping[Scoring, Sequence[Predict]]
Columns = dict[Predict, ColumnRef]

#: A node that puts out the values of calls, and the columns that hold them there.
Found = tuple[LogicalPlan, Columns]


def place_predictions(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """One evaluation for equal calls of a model in SELECT, WHERE, ORDER BY and elsewhere, of the fewest rows.

    Calls that differ only in what they give (label, probability) share the scores, and so count as equal.
    """
    anyway = {made for node in walk_plan(plan) if node.scorings for made in _scored(node)[0]}
    return context.rewrite(plan, _Placement(context, anyway).placed)


class _Placement:
    """`anyway`: what some node scores for all of its rows. What is only scored where it is asked for stays so."""

    def __init__(self, context: OptimizerContext, anyway: set[Scoring]) -> None:
        self.context = context
        self.anyway = anyway

    def placed(self, node: LogicalPlan) -> LogicalPlan:
        """The node, all below it placed before, with its calls made below it where that is better."""
        scorings = sorted(node.scorings.items(), key=lambda pair: pair[0][0].cost)
        for ids, group in groupby(scorings, lambda pair: all_column_ids(pair[0][1])):
            node = self.together(node, dict(group), ids)
        return node

    def together(self, node: LogicalPlan, group: Calls, ids: Ids) -> LogicalPlan:
        """The node reading columns of the first one below that scores the same, or columns made for it alone."""
        path = [node]
        for below in _sources(node, ids):
            path.append(below)
            both = {made: [*below.scorings[made], *group[made]] for made in group if made in below.scorings}
            if both:
                columns: Columns = {}
                if not isinstance(below, Aggregate) and below.source_of(ids) is not None:  # of the same rows
                    below, columns = self.shared(below, both, ids)
                    node, _ = self.over(path, below, columns)
                left = {made: group[made] for made in both if columns.keys().isdisjoint(group[made])}
                node, _ = self.moved(node, left, ids)
                return self.together(node, {made: group[made] for made in group if made not in both}, ids)
        return self.moved(node, group, ids)[0]

    def shared(self, node: LogicalPlan, calls: Calls, ids: Ids) -> Found:
        """The node with columns for calls that it and others make."""
        columns: Columns = {}
        if isinstance(node, Project):
            guarded = _scored(node)[1]
            given = chain.from_iterable(calls[made] for made in calls if made not in guarded)
            node, columns = self.giving(node, {call: call for call in given})
            calls = {made: calls[made] for made in calls if made in guarded}
        node, more = self.moved(node, calls, ids, is_shared=True)
        return node, columns | more

    def moved(self, node: LogicalPlan, calls: Calls, ids: Ids, is_shared: bool = False) -> Found:
        """The node reading calls from columns made below; without those that it had better compute itself."""
        sources = [*_sources(node, ids)]
        if not sources or not calls:
            return node, {}
        rows, parts = self.context.estimator.rows, _parts(node)
        ready = tuple(part for part in parts if not has_prediction(part)) if isinstance(node, Filter) else ()
        input = filtered(sources[0], ready)
        here = _compared(node, self.context) if isinstance(node, Join) else rows(input)
        fewest = min(range(len(sources)), key=lambda at: rows(sources[at]))
        place = sources[fewest]
        fewer, carried = here - rows(place), _CARRY * here
        far = [
            made
            for made in calls
            if fewer * made[0].cost > carried and not scoring_may_raise(*made, place.field_facts)
        ]
        for_all, for_some, repeated = _scored(node)
        several = calls.keys() if is_shared else for_all & for_some | repeated
        # rows without a match, or undecided no longer
        scores_more = calls.keys() if isinstance(node, Join) else for_some
        near = [
            made
            for made in calls
            if made in several
            and made in self.anyway
            and not (made in scores_more and scoring_may_raise(*made, input.field_facts))
        ]
        if far:
            path = [node, *sources[: fewest + 1]]
        elif near:
            if ready:
                node = Filter(input, conjunction(tuple(part for part in parts if has_prediction(part))))
            path = [node, input]
        else:
            return node, {}
        # In a filter one after the other, the cheapest first: each leaves fewer rows.
        now = {made: calls[made] for made in (far or near)[: 1 if isinstance(node, Filter) else None]}
        left = {made: calls[made] for made in calls if made not in now}
        node, columns = self.over(path, *self.predicted(path[-1], chain.from_iterable(now.values())))
        node, more = self.moved(node, left, ids, is_shared)
        return node, columns | more

    def predicted(self, plan: LogicalPlan, calls: Iterable[Predict]) -> Found:
        """The plan with a column more for each of the calls."""
        same = Project(plan, plan.schema, tuple(map(reference, plan.schema)))
        return self.giving(same, {call: call for call in calls})

    def giving(self, project: Project, wanted: Mapping[Predict, Predict | ColumnRef]) -> Found:
        """The project with an output for each of the values that it does not put out yet, and these outputs."""
        below = {field.id: field for field in project.input.schema}
        fields, outputs = [*project.fields], [*project.outputs]
        pairs = zip(fields, outputs, strict=True)
        known = {output: field for field, output in pairs if isinstance(output, ColumnRef | Predict)}
        columns: Columns = {}
        for call, value in wanted.items():
            field = known.get(value)
            if field is None:
                if isinstance(value, ColumnRef):
                    field = below[value.id]
                else:
                    field = self.context.new_field(f"{call.model.title}_{call.output.kind}", call.data_type)
                fields.append(field)
                outputs.append(value)
            columns[call] = reference(field)
        if len(fields) > len(project.fields):
            project = replace(project, fields=tuple(fields), outputs=tuple(outputs))
        return project, columns

    def over(self, path: Sequence[LogicalPlan], replacement: LogicalPlan, columns: Columns) -> Found:
        """The first node of the path over `replacement` for the last; the columns pass on up to it, and are read."""
        for node, below in zip(path[-2::-1], path[:0:-1], strict=True):
            inputs = [replacement if child is below else child for child in node.inputs]
            replacement = _reading(node.with_inputs(inputs), columns)
            if isinstance(replacement, Project) and node is not path[0]:
                replacement, columns = self.giving(replacement, columns)
        return replacement, columns


def _sources(node: LogicalPlan, ids: Ids) -> Iterator[LogicalPlan]:
    """The input that puts out the columns, and what is below it as long as their rows are those of the input."""
    below = next((child for child in node.inputs if ids <= child.output_ids), None)
    while below is not None:
        yield below
        if isinstance(below, Aggregate):
            return
        below = below.input if isinstance(below, Limit) else below.source_of(ids)


def _parts(node: LogicalPlan) -> tuple[Expression, ...]:
    """What the node computes: of a condition, each conjunct."""
    return conjuncts(node.condition) if isinstance(node, Filter | Join) else node.expressions


def _compared(join: Join, context: OptimizerContext) -> float:
    """For how many pairs of rows a join evaluates what it has to predict: those that its other conditions leave."""
    parts = tuple(part for part in conjuncts(join.condition) if not has_prediction(part))
    pairs = Join(join.left, join.right, JoinType.INNER, conjunction(parts))
    return context.estimator.rows(pairs)


def _reading(plan: LogicalPlan, columns: Mapping[Predict, ColumnRef]) -> LogicalPlan:
    """The node with calls in its expressions replaced by the columns that hold their values."""

    def read(expression: Expression) -> Expression:
        column = columns.get(expression) if isinstance(expression, Predict) else None
        return expression.map_inputs(read) if column is None else column

    return plan.map_expressions(read) if plan.scorings else plan


def _scored(node: LogicalPlan) -> tuple[set[Scoring], set[Scoring], set[Scoring]]:
    """What the node scores for all rows, what only for rows that something before has left undecided, and what several
    conditions score: the first of them may drop rows, and then the next would score the rest anew. Some may be all of it.
    """
    for_all, for_some, repeated = set[Scoring](), set[Scoring](), set[Scoring]()
    for part in _parts(node):
        calls = [*_calls(part, False)]
        if isinstance(node, Filter | Join):
            own = {call.scoring for call, _ in calls}
            repeated |= own & for_all | own & for_some
        for call, guarded in calls:
            (for_some if guarded else for_all).add(call.scoring)
    return for_all, for_some, repeated


def _calls(expression: Expression, guarded: bool) -> Iterator[tuple[Predict, bool]]:
    """The calls in an expression, and whether something before decides for which rows they count."""
    if isinstance(expression, Predict):
        yield expression, guarded
    decides = isinstance(expression, Case) or (
        isinstance(expression, Call) and SCALARS[expression.function].short_circuits
    )
    filtered = isinstance(expression, AggregateCall) and expression.filter is not None
    for child in expression.inputs:
        first = child is (expression.inputs[-1] if filtered else expression.inputs[0])
        yield from _calls(child, guarded or ((decides or filtered) and not first))
