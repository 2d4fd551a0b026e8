"""The table functions range() and generate_series(): integers from a start by a step, without or with the end."""

from __future__ import annotations

from sqlglot import exp

from tqp.core.datatypes import BIGINT
from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.algebra.expressions import Literal
from tqp.planner.algebra.logical_plan import Series, Values
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.coercion import cast_to
from tqp.planner.binder.expressions.scalars import ExpressionBinder
from tqp.planner.binder.scope import Scope
from tqp.planner.binder.select.output import BoundQuery
from tqp.planner.functions.constant_folding import fold
from tqp.planner.functions.type_rules import implicit_cast_cost
from tqp.planner.parse import Span, span_of

#: By name: is the end one of the numbers?
SERIES = {"range": False, "generate_series": True}
_MOST_ROWS = 1 << 32


def bind_series(context: BindContext, call: exp.Anonymous, span: Span | None) -> BoundQuery:
    """range(end), range(start, end) and range(start, end, step); the same of generate_series. NULL makes no rows."""
    name = call.name.lower()
    if not 1 <= len(call.expressions) <= 3:
        raise BindError(f"{name}() takes an end; or a start, an end and perhaps a step", span)
    given = [_integer(context, node, name) for node in call.expressions]
    start, end, step = (0, given[0], 1) if len(given) == 1 else (given[0], given[1], [*given, 1][2])
    if step == 0:
        raise BindError(f"the step of {name}() must not be 0", span)
    field = context.new_field(name, BIGINT, nullable=False)
    rows = 0
    if start is not None and end is not None and step is not None:
        rows = max(0, (end - start) // step + 1 if SERIES[name] else -((start - end) // step))
        if rows > _MOST_ROWS:
            raise UnsupportedError(f"{name}() of more than {_MOST_ROWS} rows is not supported", span)
    plan = Series(field, start or 0, step or 1, rows) if rows else Values((), (field,))
    return BoundQuery.exact(plan, (name,))


def _integer(context: BindContext, node: exp.Expr, name: str) -> int | None:
    span = span_of(node)
    if node.find(exp.Column, exp.Query) is not None:
        raise UnsupportedError(f"{name}() of columns or subqueries is not supported; pass a parameter", span)
    bound = ExpressionBinder(context, Scope(), "FROM").bind_flexible(node)
    if bound.data_type.is_temporal:
        raise UnsupportedError(f"{name}() of dates and timestamps is not supported", span)
    if implicit_cast_cost(bound, BIGINT) is None:
        raise BindError(f"{name}() takes integers, not {bound.data_type}", span)
    value = fold(cast_to(bound, BIGINT, span))
    if not isinstance(value, Literal):
        raise UnsupportedError(f"{name}() of what is not constant is not supported", span)
    assert value.value is None or isinstance(value.value, int)
    return value.value
