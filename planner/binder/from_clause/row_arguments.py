"""Arguments of table functions that may read the tables before them (LATERAL), and the queries around."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tqp.core.errors import UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.aggregates.aggregate_arguments import written
from tqp.planner.binder.expressions.scalars import ExpressionBinder
from tqp.planner.binder.scope import Scope
from tqp.planner.functions import registry as functions
from tqp.planner.parse import span_of


def read_rows(arguments: Sequence[exp.Expr]) -> bool:
    """Whether one of the arguments names a column or holds a query, so that it may have another value for each row."""
    return any(node.find(exp.Column, exp.Query) is not None for node in arguments)


def row_arguments(
    context: BindContext, arguments: Sequence[exp.Expr], siblings: Scope, clause: str
) -> tuple[ExpressionBinder, list[exp.Expr]]:
    """What binds the arguments, and the nodes to bind.

    To DuckDB arguments that name columns are a query of one row, so that an aggregate or a window function that names none is one of
    that row.
    """
    binder = ExpressionBinder(context, Scope(parent=siblings, ctes=siblings.ctes), clause)
    names_column = any(node.find(exp.Column) is not None for node in arguments)
    return binder, [_with_calls_of_one_row(node) for node in arguments] if names_column else [*arguments]


def _with_calls_of_one_row(argument: exp.Expr) -> exp.Expr:
    def change(node: exp.Expr) -> exp.Expr:
        is_part = isinstance(node.parent, exp.Filter | exp.WithinGroup | exp.Window)
        is_call = isinstance(node, exp.Window) or _is_aggregate(node)
        if is_part or not is_call:
            return node
        if node.find(exp.Column) is not None:
            if isinstance(node, exp.Window):
                raise UnsupportedError(
                    "a window function of columns is not supported in arguments of table functions; use a subquery",
                    span_of(node),
                )
            return node
        return exp.Subquery(this=exp.Select(expressions=[node.copy()]))

    return argument.transform(change)


def _is_aggregate(node: exp.Expr) -> bool:
    call = written(node.this if isinstance(node, exp.Filter) else node)
    return call is not None and bool(functions.aggregate_overloads(lower_ascii(call.name)))
