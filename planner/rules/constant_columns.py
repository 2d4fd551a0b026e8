"""Columns with one value in all rows, as a query writes it: `SELECT 'new' AS kind, ...`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tqp.core.schema import Field
from tqp.planner.algebra.expressions import ColumnRef, Expression, Literal
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Limit,
    LogicalPlan,
    Project,
    Sort,
    Values,
    Window,
)

Constants = Mapping[int, Literal]


def constant_columns(*plans: LogicalPlan) -> Constants:
    """The values of columns that have one in all rows, by their ids; some of them."""
    known: dict[int, Literal] = {}
    for plan in plans:
        known |= _constants(plan)
    return known


def _constants(plan: LogicalPlan) -> Constants:
    match plan:
        case Project():
            return _known(zip(plan.fields, plan.outputs, strict=True), _constants(plan.input))
        case Values(rows=(row,)):
            return _known(zip(plan.fields, row, strict=True), {})
        case Aggregate():
            made = list(zip(plan.key_fields, plan.keys, strict=True))
            for field, call in zip(plan.aggregate_fields, plan.aggregates, strict=True):
                if plan.keys and call.function == "any_value" and call.filter is None:
                    made.append((field, call.arguments[0]))
            return _known(made, _constants(plan.input))
        case Filter() | Sort() | Limit() | Window():
            return _constants(plan.input)
        case _:
            return {}


def _known(made: Iterable[tuple[Field, Expression]], below: Constants) -> Constants:
    known = {}
    for field, expression in made:
        value = below.get(expression.id) if isinstance(expression, ColumnRef) else expression
        if isinstance(value, Literal):
            known[field.id] = value
    return known
