"""Rows by their numbers: what LIMIT with a computed number or a percentage, DISTINCT ON, EXCEPT ALL and samples are made of."""

from __future__ import annotations

from collections.abc import Sequence

from tqp.core.datatypes import BIGINT, BOOLEAN
from tqp.planner.algebra.expressions import Call, ColumnRef, Expression, Literal, SortKey
from tqp.planner.algebra.logical_plan import Filter, LogicalPlan, Project, Window
from tqp.planner.algebra.window_calls import WindowCall
from tqp.planner.binder.context import BindContext


def numbered(
    context: BindContext,
    plan: LogicalPlan,
    partition: Sequence[Expression] = (),
    order: Sequence[SortKey] = (),
) -> tuple[Window, ColumnRef]:
    """The plan with the number of each row in its partition, from 1, as one more column; without `order`, as the rows come."""
    return _with_call(context, plan, "row_number", partition, order)


def counted(context: BindContext, plan: LogicalPlan) -> tuple[Window, ColumnRef]:
    """The plan with the number of all its rows as one more column."""
    return _with_call(context, plan, "count_star", (), ())


def _with_call(
    context: BindContext,
    plan: LogicalPlan,
    function: str,
    partition: Sequence[Expression],
    order: Sequence[SortKey],
) -> tuple[Window, ColumnRef]:
    made = context.new_field(function, BIGINT, nullable=False)
    call = WindowCall(function, (), BIGINT)
    return Window(plan, tuple(partition), tuple(order), (made,), (call,)), ColumnRef.of(made)


def first_of_each(
    context: BindContext, plan: LogicalPlan, keys: Sequence[Expression], order: Sequence[SortKey]
) -> LogicalPlan:
    """DISTINCT ON: the first row of each value of the keys, with one more column."""
    window, number = numbered(context, plan, keys, order)
    return Filter(window, Call("less_equal", (number, Literal(1, BIGINT)), BOOLEAN))


def with_columns_of(plan: LogicalPlan, original: LogicalPlan) -> LogicalPlan:
    """The plan without the columns that were added to the original's."""
    fields = original.schema
    return Project(plan, fields, tuple(map(ColumnRef.of, fields)))
