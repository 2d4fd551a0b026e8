"""VALUES: rows written out."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tqp.core.datatypes import DataType
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import ColumnRef, Expression, Literal, walk
from tqp.planner.algebra.logical_plan import LogicalPlan, Project, UnionAll, Values
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.coercion import cast_to, common_type_of, of_type
from tqp.planner.binder.expressions.scalars import ExpressionBinder
from tqp.planner.binder.scope import Scope
from tqp.planner.binder.select.output import BoundQuery
from tqp.planner.parse import Span, span_of


def bind_values(context: BindContext, node: exp.Values, outer: Scope) -> BoundQuery:
    """VALUES (...), (...): columns col0, col1, ... of the types common to their rows.

    Rows of columns of an enclosing query, or of the tables before, are what SELECT without FROM makes of them.
    """
    scope = Scope(parent=outer, ctes=outer.ctes)
    binder = ExpressionBinder(context, scope, "VALUES")
    rows = [
        [binder.bind_flexible(value) for value in (row.expressions if isinstance(row, exp.Tuple) else [row])]
        for row in node.expressions
    ]
    columns = [_values_column(column, span_of(node)) for column in zip(*rows, strict=True)]
    fields = tuple(
        context.new_field(f"col{index}", common, _may_be_null(values))
        for index, (values, common) in enumerate(columns)
    )
    plan = _rows(context, fields, tuple(zip(*(values for values, _ in columns))))
    return BoundQuery.exact(plan, [made.name for made in fields])


def _rows(
    context: BindContext, fields: tuple[Field, ...], rows: tuple[tuple[Expression, ...], ...]
) -> LogicalPlan:
    if not any(isinstance(part, ColumnRef) for row in rows for value in row for part in walk(value)):
        return Values(rows, fields)
    if len(rows) == 1:
        return Project(Values(((),), ()), fields, rows[0])
    branches = []
    for row in rows:
        own = tuple(context.new_field(made.name, made.data_type) for made in fields)
        branches.append(Project(Values(((),), ()), own, row))
    return UnionAll(tuple(branches), fields)


def _values_column(
    values: Sequence[Expression], span: Span | None
) -> tuple[tuple[Expression, ...], DataType]:
    """A column of VALUES and its type: literals bend to the rows before theirs, those of the first row to nothing."""
    common = common_type_of([of_type(values[0].data_type), *values[1:]], "VALUES", span)
    return tuple(cast_to(value, common, span) for value in values), common


def _may_be_null(values: Sequence[Expression]) -> bool:
    return not all(isinstance(value, Literal) and value.value is not None for value in values)
