"""Aggregates that give several values as a list, in the words of those that give one: quantiles, and the greatest or least n."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.binder.expressions.forms.forms import call_of
from tqp.planner.functions.registry import main_spelling
from tqp.planner.parse import head_span, span_of

_QUANTILES = frozenset(
    ("quantile_cont", "quantile_disc", "approx_quantile", "percentile_cont", "percentile_disc")
)
#: Those that take a number behind their arguments, how many these are, and whether the greatest come first.
_OF_MANY = {"max": (1, True), "min": (1, False), "arg_max": (2, True), "arg_min": (2, False)}
#: The second field of a pair.
_SECOND = exp.Lambda(
    this=exp.Bracket(this=exp.to_identifier("pair"), expressions=[exp.Literal.number(2)]),
    expressions=[exp.to_identifier("pair")],
)
#: DuckDB's limit.
_MOST = 1_000_000


def of_single_values(node: exp.Expr) -> exp.Expr | None:
    """The call, with its FILTER, OVER or WITHIN GROUP around it, said by aggregates of one value; None of any other.

    `quantile(x, [a, b])` is `[quantile(x, a), quantile(x, b)]`, but NULL of no values; `max(x, 2)` the first two of a list in order.
    """
    call = _call(node)
    if call is None:
        return None
    name, arguments = main_spelling(lower_ascii(call.name)), call.expressions
    plain = _plain(arguments)
    if name in _QUANTILES and plain and isinstance(plain[-1], exp.Array):
        return _quantiles(node, plain[-1].expressions)
    if name == "approx_top_k" and len(plain) == 2:
        return _most_frequent(node, call)
    count, descends = _OF_MANY.get(name, (0, False))
    if count and len(plain) == count + 1:
        return _first_of_list(node, call, descends)
    return None


def _call(node: exp.Expr) -> exp.Anonymous | None:
    while isinstance(node, exp.Window | exp.Filter | exp.WithinGroup):
        node = node.this
    return node if isinstance(node, exp.Anonymous) else None


def _plain(arguments: Sequence[exp.Expr]) -> Sequence[exp.Expr]:
    """The arguments, without DISTINCT around them."""
    is_distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    return arguments[0].expressions if is_distinct else arguments


def _quantiles(node: exp.Expr, fractions: Sequence[exp.Expr]) -> exp.Expr:
    if not fractions:
        raise UnsupportedError("quantiles of an empty list of fractions are not supported", span_of(node))
    parts = []
    for fraction in fractions:
        part = node.copy()
        call = _call(part)
        assert call is not None
        _plain(call.expressions)[-1].replace(fraction.copy())
        parts.append(part)
    is_null = exp.Is(this=parts[0].copy(), expression=exp.Null())
    return exp.Case(ifs=[exp.If(this=is_null, true=exp.Null())], default=exp.Array(expressions=parts))


def _first_of_list(node: exp.Expr, call: exp.Anonymous, descends: bool) -> exp.Expr:
    *values, number = _plain(call.expressions)
    _check_number(number, call)
    made = node.copy()
    new = _call(made)
    assert new is not None
    value, key = values[0], values[-1]
    is_distinct = isinstance(call.expressions[0], exp.Distinct)
    of: exp.Expr = value.copy()
    if is_distinct:
        of = of if key is value else call_of("row", key.copy(), of)
    elif key.find(exp.Column, exp.PositionalColumn, exp.Anonymous) is not None:  # a constant orders nothing
        order = exp.Ordered(this=key.copy(), desc=descends, nulls_first=False)
        of = exp.Order(this=of, expressions=[order])
    listed = exp.Anonymous(this="list", expressions=[of])
    listed.meta.update(new.meta)
    tests = [exp.Not(this=exp.Is(this=each.copy(), expression=exp.Null())) for each in values]
    condition = exp.and_(*tests, copy=False)
    around = new.parent
    if isinstance(around, exp.Filter):
        given = around.expression.this
        given.replace(exp.and_(exp.Paren(this=given.copy()), condition, copy=False))
        new.replace(listed)
    else:
        filtered = exp.Filter(this=listed, expression=exp.Where(this=condition))
        if new is made:
            made = filtered
        else:
            new.replace(filtered)
    if is_distinct:
        made = call_of(
            "list_sort", call_of("list_distinct", made), exp.Literal.string("DESC" if descends else "ASC")
        )
    places = exp.Slice(this=exp.Literal.number(1), expression=number.copy())
    first = exp.Bracket(this=exp.Paren(this=made), expressions=[places])
    return call_of("list_transform", first, _SECOND.copy()) if is_distinct and key is not value else first


def _most_frequent(node: exp.Expr, call: exp.Anonymous) -> exp.Expr:
    """Exact, by the counts of all values; of values that are as frequent the least come first."""
    value, number = _plain(call.expressions)
    _check_number(number, call)
    made = node.copy()
    new = _call(made)
    assert new is not None
    counted = call_of("histogram", value.copy())
    counted.meta.update(new.meta)
    if new is made:
        made = counted
    else:
        new.replace(counted)
    order = call_of("list_grade_up", call_of("map_values", made), exp.Literal.string("DESC"))
    listed = call_of("list_select", call_of("map_keys", made.copy()), order)
    return exp.Bracket(
        this=listed, expressions=[exp.Slice(this=exp.Literal.number(1), expression=number.copy())]
    )


def _check_number(number: exp.Expr, call: exp.Anonymous) -> None:
    if isinstance(number, exp.Null | exp.Neg):
        raise BindError(
            f"{call.name}() of several values takes a number from 1 to {_MOST - 1}", span_of(number)
        )
    if not isinstance(number, exp.Literal) or number.is_string or not str(number.this).isdigit():
        raise UnsupportedError(
            f"{call.name}() of so many values that a column says is not supported; write a number",
            head_span(call),
        )
    if not 0 < int(number.this) < _MOST:
        raise BindError(
            f"{call.name}() of several values takes a number from 1 to {_MOST - 1}", span_of(number)
        )
