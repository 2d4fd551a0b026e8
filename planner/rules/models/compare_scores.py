"""Compare the score behind a probability, where nothing else needs the probability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tqp.planner.algebra.expressions import Call, Expression, Literal, Predict, transform
from tqp.planner.algebra.logical_plan import LogicalPlan
from tqp.planner.algebra.node import walk_plan
from tqp.planner.rules.context import OptimizerContext


def compare_scores(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """`p > 0.9` on a logistic model becomes a bound on its score, found so that exactly the same rows pass."""
    computed = set(_computed(plan))

    def compare(expression: Expression) -> Expression:
        return transform(expression, lambda part: _compared(part, computed))

    return context.rewrite(plan, lambda node: node.map_expressions(compare) if node.scorings else node)


def _computed(plan: LogicalPlan) -> Iterator[Predict]:
    """The calls whose values are needed for more than comparisons with constants."""
    for node in walk_plan(plan):
        for expression in node.expressions if node.scorings else ():
            yield from _values(expression)


def _values(expression: Expression) -> Iterator[Predict]:
    if isinstance(expression, Predict):
        yield expression
    compared = _comparison(expression)
    for child in expression.inputs if compared is None else compared[0].inputs:
        yield from _values(child)


def _comparison(expression: Expression) -> tuple[Predict, str, float] | None:
    """A call, compared with a constant, which simplified comparisons have on the right."""
    if not isinstance(expression, Call) or len(expression.arguments) != 2:
        return None
    left, right = expression.arguments
    if not isinstance(left, Predict) or not isinstance(right, Literal) or not isinstance(right.value, float):
        return None
    return left, expression.function, right.value


def _compared(expression: Expression, computed: set[Predict]) -> Expression:
    compared = _comparison(expression)
    if compared is None or compared[0] in computed:
        return expression
    call, function, value = compared
    found = call.model.threshold(call.output, function, value)
    if found is None:
        return expression
    score, of_scores, bound = found
    assert isinstance(expression, Call)
    arguments = (replace(call, output=score), Literal(bound, score.data_type))
    return replace(expression, function=of_scores, arguments=arguments)
