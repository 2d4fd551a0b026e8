"""Score combinations of values instead of rows, where the columns that a model reads have few of them."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tqp.core.schema import Field
from tqp.planner.algebra.expressions import (
    Call,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    Predict,
    column_ids,
    has_prediction,
    transform,
    walk,
)
from tqp.planner.algebra.field_facts import key_span
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.algebra.node import transform_plan
from tqp.planner.physical.plan import Aggregate, Filter, PhysicalPlan, Project
from tqp.planner.physical.predicate_costs import cost

#: A table of more scores than this leaves the caches.
_LARGEST_TABLE = 1 << 18
#: Nanoseconds a row: to look a score up, and for each column to make its part of the place.
_LOOK_UP, _PLACE = 2.0, 1.5


def score_combinations(plan: PhysicalPlan) -> PhysicalPlan:
    """The plan, its predictions marked where all combinations of values that may occur cost less than all rows."""
    return transform_plan(plan, _with_marks)


def _with_marks(plan: PhysicalPlan) -> PhysicalPlan:
    if not isinstance(plan, Filter | Project | Aggregate):
        return plan
    known = plan.input.field_facts
    rows = plan.input.estimated_rows

    def mark(node: Expression) -> Expression:
        if not isinstance(node, Predict):
            return node
        number = _combinations(node, known)
        if number is None:
            return node
        columns = len(column_ids(node))
        one = cost(node, known)
        by_table = number * one + rows * (_LOOK_UP + _PLACE * columns)
        return replace(node, combinations=number) if by_table < rows * one else node

    return plan.map_expressions(lambda each: transform(each, mark) if has_prediction(each) else each)


def _combinations(call: Predict, known: dict[int, Field]) -> int | None:
    """How many combinations of values the columns of a call may take; None if unknown, too many, or one could raise.

    That a NULL could is not counted: inside CASE it may be known that there is none, which the runtime looks at.
    """
    if any(item.refuses_unseen for item in call.model.inputs):
        return None
    if any(may_raise(argument, known) for argument in call.arguments):
        return None
    columns: dict[int, ColumnRef] = {}
    for node in walk(call):
        match node:
            case ColumnRef():
                columns[node.id] = node
            case Predict() | Literal() | Call(function="category_code"):
                pass
            case Cast(input=of) if (
                of.data_type.is_enum or of.data_type.is_numeric and node.data_type.is_float
            ):
                pass
            case _:
                return None
    spans = [key_span(column, known) for column in columns.values()]
    if not spans or any(span is None for span in spans):
        return None
    number = prod(span for span in spans if span is not None)
    return number if 0 < number <= _LARGEST_TABLE else None
