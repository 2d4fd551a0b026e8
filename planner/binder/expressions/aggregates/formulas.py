"""Formulas of one aggregate, such as `exp(avg(ln(x)))`, that are called by a name: what surrounds the call surrounds the aggregate."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tqp.core.errors import BindError
from tqp.core.keywords import lower_ascii
from tqp.planner.binder.expressions.aggregates.aggregate_arguments import Written, written
from tqp.planner.binder.expressions.forms.forms import call_of
from tqp.planner.functions import registry as functions
from tqp.planner.parse import head_span

_GEOMETRIC_MEANS = ("geomean", "geometric_mean")
#: Where in the list of the frame's values, in the order inside, a window function finds its own; nth_value() says it itself.
_PLACES = {"first": 1, "first_value": 1, "last": -1, "last_value": -1}


def called(node: exp.Expr) -> exp.Expr:
    """What stands before OVER and FILTER."""
    while isinstance(node, exp.Window | exp.Filter):
        node = node.this
    return node


def of_formula(node: exp.Window) -> exp.Expr | None:
    """The call of a built-in formula over a window, said by its aggregate; None of any other."""
    call = written(called(node))
    if call is None:
        return None
    if call.order and not isinstance(node.this, exp.Filter):
        return _picked_in_order(node, call)
    if call.name not in _GEOMETRIC_MEANS or len(call.arguments) != 1:
        return None
    value = call.arguments[0].copy()
    return with_aggregate_over(node, call, call_of("exp", call_of("avg", call_of("ln", value))))


def _picked_in_order(node: exp.Window, call: Written) -> exp.Expr | None:
    """nth_value(x, n ORDER BY y) OVER w: an element of list(x ORDER BY y) OVER w; None of what is no such choice of a value."""
    if not call.arguments:
        return None
    value, *numbers = call.arguments
    if call.name == "nth_value" and len(numbers) == 1:
        number = numbers[0].copy()
        is_counted = exp.GT(this=number.copy(), expression=exp.Literal.number(0))
        counted = exp.Case(ifs=[exp.If(this=is_counted, true=number)])
        place: exp.Expr = exp.cast(counted, "BIGINT")
    elif call.name in _PLACES and call.ignores_nulls and not numbers:
        place = exp.convert(_PLACES[call.name])
    else:
        return None
    over = node.copy()
    listed: exp.Expr = _with(call_of("list", value.copy()), call.distinct, call.order)
    if call.ignores_nulls:
        is_there = exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))
        listed = exp.Filter(this=listed, expression=exp.Where(this=is_there))
    over.set("this", listed)
    return call_of("list_extract", over, place)


def with_aggregate_over(window: exp.Window, call: Written, formula: exp.Expr) -> exp.Expr:
    """The formula, changed, its aggregate with the OVER and FILTER of `window`, and the DISTINCT and ORDER BY of the call in it.

    Raises BindError if it has not exactly one aggregate outside subqueries and windows.
    """
    root = exp.Paren(this=formula)
    parts = root.walk(prune=lambda node: isinstance(node, exp.Query | exp.Window))
    aggregates = [part for part in parts if isinstance(part, exp.Anonymous) and _is_aggregate(part)]
    if len(aggregates) != 1 or formula.find(exp.Window) is not None:
        raise BindError(
            f'"{call.name}" stands for an expression that is not of exactly one aggregate, and takes no OVER',
            head_span(call.node),
        )
    aggregate = aggregates[0]
    made = window.copy()
    aggregate.replace(made)
    called(made).replace(_with(aggregate, call.distinct, call.order))
    return root


def _is_aggregate(call: exp.Anonymous) -> bool:
    return functions.aggregate_overloads(lower_ascii(call.name)) is not None


def _with(aggregate: exp.Anonymous, distinct: bool, order: Sequence[exp.Ordered]) -> exp.Anonymous:
    arguments = list(aggregate.expressions)
    if distinct:
        arguments = [exp.Distinct(expressions=arguments)]
    if order:
        last = arguments.pop() if arguments else None
        arguments.append(exp.Order(this=last, expressions=[key.copy() for key in order]))
    return call_of(aggregate.name, *arguments)
