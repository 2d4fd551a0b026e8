"""Aggregates that give several values as a list, in the words of those that give one: quantiles, and the greatest or least n."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.binder.expressions.forms.forms import call_of
from tqp.planner.functions.registry import main_spelling
from tqp.planner.parse import head_span, span_of

QUANTILES = frozenset(
    (
        "quantile_cont",
        "quantile_disc",
        "approx_quantile",
        "percentile_cont",
        "percentile_disc",
        "reservoir_quantile",
    )
)
#: Those that take a number behind their arguments, how many these are, and whether the greatest come first.
_OF_MANY = {
    "max": (1, True),
    "min": (1, False),
    **dict.fromkeys(("arg_max", "arg_max_nulls_last"), (2, True)),
    **dict.fromkeys(("arg_min", "arg_min_nulls_last"), (2, False)),
}
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
    if name in QUANTILES and plain:
        place = len(plain) > 1  # behind the value, or alone before WITHIN GROUP
        if isinstance(plain[place], exp.Array):
            return quantiles(node, place, plain[place].expressions)
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


def quantiles(node: exp.Expr, place: int, fractions: Sequence[exp.Expr]) -> exp.Expr:
    """A call whose argument at a place is a list of fractions, by one call for each; NULL where that of the first is."""
    parts = []
    for fraction in fractions or [exp.Literal.number("0.5")]:
        part = node.copy()
        call = _call(part)
        assert call is not None
        _plain(call.expressions)[place].replace(fraction.copy())
        parts.append(part)
    is_null = exp.Is(this=parts[0].copy(), expression=exp.Null())
    listed: exp.Expr = exp.Array(expressions=parts)
    if not fractions:  # nothing, of the type that a quantile has
        listed = _first(listed, exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=is_null, true=exp.Null())], default=listed)


def _first(values: exp.Expr, number: exp.Expr) -> exp.Expr:
    """As many elements of a list, from the first on."""
    places = exp.Slice(this=exp.Literal.number(1), expression=number)
    return exp.Bracket(this=exp.Paren(this=values), expressions=[places])


def _first_of_list(node: exp.Expr, call: exp.Anonymous, descends: bool) -> exp.Expr:
    *values, number = _plain(call.expressions)
    if isinstance(number, exp.Literal | exp.Null | exp.Neg):
        _check_number(number, call)
    value, key = values[0], values[-1]
    is_distinct = isinstance(call.expressions[0], exp.Distinct)
    of: exp.Expr = value.copy()
    if is_distinct:
        of = of if key is value else call_of("row", key.copy(), of)
    elif key.find(exp.Column, exp.PositionalColumn, exp.Anonymous) is not None:  # a constant orders nothing
        order = exp.Ordered(this=key.copy(), desc=descends, nulls_first=False)
        of = exp.Order(this=of, expressions=[order])
    listed = exp.Anonymous(this="list", expressions=[of])
    tests = [] if _takes_nulls(call) else [_is_there(each) for each in values]
    made = _in_its_place(node, listed, tests)
    if number.find(exp.Column, exp.PositionalColumn) is not None:  # as the first row has it that counts
        numbers = _in_its_place(node, call_of("list", number.copy()), [each.copy() for each in tests])
        number = call_of("list_extract", numbers, exp.Literal.number(1))
    if not isinstance(number, exp.Literal):
        number = _checked(number, made, call.name)
    if is_distinct:
        made = call_of(
            "list_sort", call_of("list_distinct", made), exp.Literal.string("DESC" if descends else "ASC")
        )
    first = _first(made, number)
    return call_of("list_transform", first, _SECOND.copy()) if is_distinct and key is not value else first


def _takes_nulls(call: exp.Anonymous) -> bool:
    return lower_ascii(call.name).endswith("_nulls_last")


def _is_there(node: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=node.copy(), expression=exp.Null()))


def _in_its_place(node: exp.Expr, new: exp.Anonymous, tests: Sequence[exp.Expr]) -> exp.Expr:
    """Another call with the FILTER and OVER of this one, of the rows for which the tests hold."""
    made = node.copy()
    old = _call(made)
    assert old is not None
    new.meta.update(old.meta)
    condition = exp.and_(*tests, copy=False) if tests else None
    around = old.parent
    if condition is None:
        filtered: exp.Expr = new
    elif isinstance(around, exp.Filter):
        given = around.expression.this
        given.replace(exp.and_(exp.Paren(this=given.copy()), condition, copy=False))
        filtered = new
    else:
        filtered = exp.Filter(this=new, expression=exp.Where(this=condition))
    if old is made:
        return filtered
    old.replace(filtered)
    return made


def _checked(number: exp.Expr, listed: exp.Expr, name: str) -> exp.Expr:
    """A number that is computed, which raises an error unless it is one of 1 to the greatest, or no row counts."""
    least, most = exp.Literal.number(1), exp.Literal.number(_MOST - 1)
    is_good = exp.Between(this=number.copy(), low=least, high=most)
    no_rows = exp.Is(this=listed.copy(), expression=exp.Null())
    message = exp.Literal.string(f"{name}() of several values takes a number from 1 to {_MOST - 1}")
    is_wrong = exp.Not(this=call_of("coalesce", is_good, no_rows))
    return exp.Case(ifs=[exp.If(this=is_wrong, true=call_of("error", message))], default=number.copy())


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
    return _first(listed, number)


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
