"""Score a row once for all that ask, where rows are fewest: above cheap conditions, below joins that repeat rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tqp.planner.algebra.expressions import ColumnRef, Expression, Predict, conjunction, conjuncts, read_ids
from tqp.planner.algebra.logical_node import Ids
from tqp.planner.algebra.logical_plan import Aggregate, Filter, Join, JoinType, Limit, LogicalPlan, Project
from tqp.planner.algebra.may_raise import scoring_may_raise
from tqp.planner.algebra.node import walk_plan
from tqp.planner.rules.columns import reference, substitute
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.models.predictions import (
    Scoring,
    has_prediction,
    plain,
    predictions_in,
    reading,
    scored,
    scoring,
)
from tqp.planner.rules.nulls import filtered

#: Nanoseconds to carry a prediction through a join, for each row that comes out.
_CARRY = 1.0

#: A node that puts out the values of calls, and the columns that hold them there.
Found = tuple[LogicalPlan, Mapping[Predict, ColumnRef]]


def place_predictions(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """One evaluation for equal calls of a model in SELECT, WHERE, ORDER BY and elsewhere, of the fewest rows.

    Calls that differ only in what they give (label, probability) share the scores, and so count as equal.
    """
    anyway = {made for node in walk_plan(plan) for made in scored(_parts(node))[0]}
    return context.rewrite(plan, _Placement(context, anyway).placed)


class _Placement:
    """`anyway`: what some node scores for all of its rows. What is only scored where it is asked for stays so."""

    def __init__(self, context: OptimizerContext, anyway: set[Scoring]) -> None:
        self.context = context
        self.anyway = anyway

    def placed(self, node: LogicalPlan) -> LogicalPlan:
        """The node, all below it placed before, with its calls made below it where that is better."""
        made_here = dict.fromkeys(scoring(call) for call in predictions_in(node.expressions))
        for made in sorted(made_here, key=lambda made: made[0].cost):
            ids = frozenset[int]().union(*map(read_ids, made[1]))
            found = self.shared(node, made, ids) or self.moved(node, made, ids, _of(made, node))
            node = node if found is None else found[0]
        return node

    def shared(self, node: LogicalPlan, made: Scoring, ids: Ids) -> Found | None:
        """The node reading columns of the first one below that scores the same."""
        path = [node]
        for below in _sources(node, ids):
            path.append(below)
            if made in map(scoring, predictions_in(below.expressions)):
                if isinstance(below, Aggregate) or below.source_of(ids) is None:  # of other rows
                    return None
                calls = dict.fromkeys((*_of(made, below), *_of(made, node)))
                if isinstance(below, Project) and made not in scored(below.outputs)[1]:
                    found: Found | None = self.giving(below, {call: call for call in calls})
                else:
                    found = self.moved(below, made, ids, calls, is_shared=True)
                return None if found is None else self.over(path, *found)
        return None

    def moved(
        self, node: LogicalPlan, made: Scoring, ids: Ids, calls: Iterable[Predict], is_shared: bool = False
    ) -> Found | None:
        """The node reading the calls from columns made below; None where it had better compute them itself."""
        sources = [*_sources(node, ids)]
        if not sources:
            return None
        rows, parts = self.context.estimator.rows, _parts(node)
        ready = tuple(part for part in parts if not has_prediction(part)) if isinstance(node, Filter) else ()
        input = filtered(sources[0], ready)
        here = _compared(node, self.context) if isinstance(node, Join) else rows(input)
        fewest = min(range(len(sources)), key=lambda at: rows(sources[at]))
        place = sources[fewest]
        gain = (here - rows(place)) * made[0].cost - _CARRY * here
        if gain > 0 and not scoring_may_raise(*made, place.field_facts):
            return self.over([node, *sources[: fewest + 1]], *self.predicted(place, calls))
        for_all, for_some = scored(parts)
        is_shared = is_shared or made in for_all & for_some or made in _repeated(node, parts)
        if not is_shared or made not in self.anyway:
            return None
        scores_more = (
            isinstance(node, Join) or made in for_some
        )  # rows without a match, or undecided no longer
        if scores_more and scoring_may_raise(*made, input.field_facts):
            return None
        if ready:
            node = Filter(input, conjunction(tuple(part for part in parts if part not in ready)))
        return self.over([node, input], *self.predicted(input, calls))

    def predicted(self, plan: LogicalPlan, calls: Iterable[Predict]) -> Found:
        """The plan with a column more for each of the calls."""
        same = Project(plan, plan.schema, tuple(map(reference, plan.schema)))
        return self.giving(same, {call: call for call in calls})

    def giving(self, project: Project, wanted: Mapping[Predict, Predict | ColumnRef]) -> Found:
        """The project with an output for each of the values that it does not put out yet, and these outputs."""
        names = {field.id: reference(field) for field in project.input.schema}
        fields, outputs = [*project.fields], [*project.outputs]
        known = {_key(output): field for field, output in zip(fields, outputs, strict=True)}
        columns = {}
        for call, value in wanted.items():
            field = known.get(_key(value))
            if field is None:
                if isinstance(value, ColumnRef):
                    field = next(field for field in project.input.schema if field.id == value.id)
                else:
                    field = self.context.new_field(f"{call.model.title}_{call.output.kind}", call.data_type)
                fields.append(field)
                outputs.append(substitute(value, names))
            columns[call] = reference(field)
        if len(fields) > len(project.fields):
            project = replace(project, fields=tuple(fields), outputs=tuple(outputs))
        return project, columns

    def over(
        self, path: Sequence[LogicalPlan], replacement: LogicalPlan, columns: Mapping[Predict, ColumnRef]
    ) -> Found:
        """The first node of the path over `replacement` for the last; the columns pass on up to it, and are read."""
        for node, below in zip(path[-2::-1], path[:0:-1], strict=True):
            inputs = [replacement if child is below else child for child in node.inputs]
            replacement = reading(node.with_inputs(inputs), columns)
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


def _of(made: Scoring, node: LogicalPlan) -> list[Predict]:
    return [call for call in predictions_in(node.expressions) if scoring(call) == made]


def _key(output: Expression) -> int | Predict | None:
    """By what outputs that hold the same are known."""
    if isinstance(output, ColumnRef):
        return output.id
    return plain(output) if isinstance(output, Predict) else None


def _repeated(node: LogicalPlan, parts: Iterable[Expression]) -> set[Scoring]:
    """What several conditions score: the first of them may drop rows, and then the next would score the rest anew."""
    seen: set[Scoring] = set()
    repeated: set[Scoring] = set()
    for part in parts if isinstance(node, Filter | Join) else ():
        own = set(map(scoring, predictions_in((part,))))
        repeated |= own & seen
        seen |= own
    return repeated


def _compared(join: Join, context: OptimizerContext) -> float:
    """For how many pairs of rows a join evaluates what it has to predict: those that its other conditions leave."""
    parts = tuple(part for part in conjuncts(join.condition) if not has_prediction(part))
    pairs = Join(join.left, join.right, JoinType.INNER, conjunction(parts))
    return context.estimator.rows(pairs)
