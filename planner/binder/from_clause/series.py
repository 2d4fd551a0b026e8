"""The table functions range() and generate_series(): integers or timestamps from a start by a step, without or with the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from tqp.core.datatypes import BIGINT
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.expressions import ColumnRef, Expression, Literal
from tqp.planner.algebra.logical_plan import Project, Series, Unnest, Values
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.forms.forms import call_of
from tqp.planner.binder.expressions.forms.instants import arguments_of_instants, instant_of_microseconds
from tqp.planner.binder.expressions.scalars import ExpressionBinder
from tqp.planner.binder.from_clause.constant_arguments import constant_argument, integer_of, literal_of
from tqp.planner.binder.from_clause.row_arguments import read_rows, row_arguments
from tqp.planner.binder.scope import Scope
from tqp.planner.binder.select.output import BoundQuery
from tqp.planner.functions.constant_folding import fold
from tqp.planner.functions.time_series import (
    check_finite,
    count_of_steps,
    instants_by_months,
    microseconds_of_step,
)
from tqp.planner.parse import Span, placed, span_of

#: By name: is the end one of the numbers?
SERIES = {"range": False, "generate_series": True}
_MOST_ROWS = 1 << 32
_TAKEN = "integers, or two timestamps and an interval"


def bind_series(context: BindContext, call: exp.Anonymous, siblings: Scope, span: Span | None) -> BoundQuery:
    """range(end), range(start, end) and range(start, end, step); the same of generate_series. NULL makes no rows."""
    name = lower_ascii(call.name)
    if not 1 <= len(call.expressions) <= 3:
        raise BindError(f"{name}() takes an end; or a start, an end and perhaps a step", span)
    if read_rows(call.expressions):
        return _of_each_row(context, call, siblings, span)
    bound = [constant_argument(context, node, name) for node in call.expressions]
    if any(each.data_type.is_temporal for each in bound):
        return _instants(context, name, bound, span)
    given = [
        integer_of(each, name, span_of(node), _TAKEN)
        for each, node in zip(bound, call.expressions, strict=True)
    ]
    start, end, step = (0, given[0], 1) if len(given) == 1 else (given[0], given[1], [*given, 1][2])
    if step == 0:
        raise BindError(f"the step of {name}() must not be 0", span)
    field = context.new_field(name, BIGINT, nullable=False)
    rows = 0
    if start is not None and end is not None and step is not None:
        rows = _count(start, end, step, name, span)
    plan = Series(field, start or 0, step or 1, rows) if rows else Values((), (field,))
    return BoundQuery.exact(plan, (name,))


def _of_each_row(context: BindContext, call: exp.Anonymous, siblings: Scope, span: Span | None) -> BoundQuery:
    """The elements of the list that the function of the same name makes for each row of the tables before."""
    name = lower_ascii(call.name)
    binder, nodes = row_arguments(context, call.expressions, siblings, "FROM")
    if len(nodes) == 3:
        nodes[2] = _checked_step(binder, nodes[2], name)
    numbers = binder.bind(call_of(name, *nodes))
    field = context.new_field(name, numbers.data_type.element)
    return BoundQuery.exact(Unnest(Values(((),), ()), (numbers,), (field,)), (name,))


def _checked_step(binder: ExpressionBinder, step: exp.Expr, name: str) -> exp.Expr:
    """A step that raises where it is 0, which makes an empty list, but no rows of a table."""
    message = f"the step of {name}() must not be 0"
    value = fold(binder.bind(step))
    if isinstance(value, Literal):
        if value.value in (0, (0, 0, 0)):
            raise BindError(message, span_of(step))
        return step
    is_zero = exp.EQ(this=step.copy(), expression=exp.Literal.number(0))
    error = placed(call_of("error", exp.Literal.string(message)), span_of(step))
    return exp.Case(ifs=[exp.If(this=is_zero, true=error)], default=step)


def numbered_rows(context: BindContext, count: int, name: str, span: Span | None) -> Series:
    """So many rows, at least one, for the function `name`."""
    rows = _count(0, count, 1, name, span)
    return Series(context.new_field("number", BIGINT, nullable=False), 0, 1, rows)


def _count(start: int, end: int, step: int, name: str, span: Span | None) -> int:
    rows = count_of_steps(start, end, step, SERIES.get(name, False))
    if rows > _MOST_ROWS:
        raise UnsupportedError(f"{name}() of more than {_MOST_ROWS} rows is not supported", span)
    return rows


def _instants(context: BindContext, name: str, given: Sequence[Expression], span: Span | None) -> BoundQuery:
    """range(start, end, interval) of dates and timestamps."""
    bounds, step, data_type = arguments_of_instants(name, given, span)
    values: list[Any] = [literal_of(each, name, span).value for each in (*bounds, step)]
    start, end, interval = values
    field = context.new_field(name, data_type, nullable=False)
    if start is None or end is None or interval is None:
        return BoundQuery.exact(Values((), (field,)), (name,))
    try:
        for instant in (start, end):
            check_finite(instant, name)
        micros = microseconds_of_step(interval, name)
        if micros is None:
            found = instants_by_months(start, end, interval, SERIES[name], name)
            rows = tuple((Literal(each, data_type),) for each in found)
            return BoundQuery.exact(Values(rows, (field,)), (name,))
    except (BindError, UnsupportedError) as error:
        raise type(error)(error.message, span) from None
    count = _count(start, end, micros, name, span)
    if not count:
        return BoundQuery.exact(Values((), (field,)), (name,))
    number = context.new_field("number", BIGINT, nullable=False)
    instant_of = instant_of_microseconds(ColumnRef.of(number), data_type, span)
    plan = Project(Series(number, start, micros, count), (field,), (instant_of,))
    return BoundQuery.exact(plan, (name,))
