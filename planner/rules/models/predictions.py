"""Calls of models in plans: where they stand, which of them are one scoring, and how they become columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tqp.core.models import ModelSignature
from tqp.planner.algebra.expressions import (
    AggregateCall,
    Call,
    Case,
    ColumnRef,
    Expression,
    Predict,
    transform,
    walk,
)
from tqp.planner.algebra.logical_plan import LogicalPlan
from tqp.planner.functions.registry import SCALARS

#: A model and what it scores: calls that agree in it are scored once, whatever each makes of the scores.
Scoring = tuple[ModelSignature, tuple[Expression, ...]]


def has_prediction(expression: Expression) -> bool:
    """Does a model's call stand in the expression?"""
    return any(isinstance(node, Predict) for node in walk(expression))


def predictions_in(expressions: Iterable[Expression]) -> list[Predict]:
    """The different calls in the expressions, in order, each as `plain` has it."""
    return list(
        dict.fromkeys(
            plain(node)
            for expression in expressions
            for node in walk(expression)
            if isinstance(node, Predict)
        )
    )


def plain(call: Predict) -> Predict:
    """The call without display names, by which equal calls could differ."""
    return replace(call, arguments=tuple(transform(part, _unnamed) for part in call.arguments), span=None)


def scoring(call: Predict) -> Scoring:
    """What a plain call scores."""
    return call.model, call.arguments


def _unnamed(expression: Expression) -> Expression:
    return replace(expression, name="") if isinstance(expression, ColumnRef) else expression


def with_columns(expression: Expression, columns: Mapping[Predict, ColumnRef]) -> Expression:
    """The expression with calls (plain ones) replaced by the columns that hold their values."""
    if not columns or not has_prediction(expression):
        return expression
    if isinstance(expression, Predict) and (column := columns.get(plain(expression))) is not None:
        return column
    return expression.map_inputs(lambda child: with_columns(child, columns))


def reading(plan: LogicalPlan, columns: Mapping[Predict, ColumnRef]) -> LogicalPlan:
    """The node with calls in its expressions replaced by the columns that hold their values."""
    return plan.map_expressions(lambda expression: with_columns(expression, columns))


def scored(expressions: Iterable[Expression]) -> tuple[set[Scoring], set[Scoring]]:
    """What is scored for all rows, and what only for rows that something before has left undecided; some may be both."""
    found: tuple[set[Scoring], set[Scoring]] = (set(), set())
    for expression in expressions:
        for call, guarded in _calls(expression, False):
            found[guarded].add(scoring(plain(call)))
    return found


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
