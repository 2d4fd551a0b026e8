"""range(start, end, interval) and generate_series() of dates and timestamps, as lists; and their arguments, as tables too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tqp.core.datatypes import (
    BIGINT,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TIMESTAMP,
    TIMESTAMP_TZ,
    VARCHAR,
    DataType,
    TypeKind,
    list_of,
)
from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.algebra.element_expressions import OverElements
from tqp.planner.algebra.expressions import Call, Expression, Literal, is_null_literal
from tqp.planner.binder.expressions.coercion import cast_to, null_after
from tqp.planner.binder.expressions.forms.cases import make_case
from tqp.planner.binder.expressions.forms.forms import Forms, Nodes
from tqp.planner.binder.expressions.nested.lambdas import element_of
from tqp.planner.binder.expressions.operators import apply
from tqp.planner.functions.time_series import (
    Interval,
    check_finite,
    instants_by_months,
    microseconds_of_step,
)
from tqp.planner.functions.type_rules import implicit_cast_cost
from tqp.planner.parse import Span

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


def arguments_of_instants(
    name: str, given: Sequence[Expression], span: Span | None
) -> tuple[Sequence[Expression], Expression, DataType]:
    """The start and the end as timestamps, the step as an INTERVAL, and the type of the timestamps."""
    if len(given) != 3 or any(each.data_type.kind is TypeKind.TIME for each in given):
        raise BindError(f"{name}() takes integers, or two timestamps and an interval", span)
    *bounds, step = given
    data_type = TIMESTAMP_TZ if any(each.data_type == TIMESTAMP_TZ for each in bounds) else TIMESTAMP
    if any(implicit_cast_cost(each, data_type) is None for each in bounds):
        raise BindError(f"{name}() takes integers, or two timestamps and an interval", span)
    return [cast_to(each, data_type, span) for each in bounds], cast_to(step, INTERVAL, span), data_type


def instant_of_microseconds(number: Expression, data_type: DataType, span: Span | None) -> Expression:
    """The timestamp so many microseconds after 1970."""
    name = "make_timestamptz" if data_type == TIMESTAMP_TZ else "make_timestamp"
    return apply(name, [number], span, f"{name}()")


def _instant_of_parts(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """make_timestamptz(year, month, day, hour, minute, second, zone), of which a month 13 is one of the next year, and so on; or of microseconds."""
    given, name = [binder.bind_flexible(node) for node in nodes], "make_timestamptz()"
    if len(given) < 6:
        return apply("make_timestamptz", given, span, name)
    for each, wanted in zip(given, (*[BIGINT] * 5, DOUBLE, VARCHAR)):
        if implicit_cast_cost(each, wanted) is None:
            raise BindError(f"{name} takes {wanted}, not {each.data_type}; cast it", span)
    year, month, day, hour, minute = (cast_to(each, BIGINT, span) for each in given[:5])
    one = Literal(1, BIGINT)
    instant = cast_to(apply("make_date", (year, one, one), span, name), TIMESTAMP, span)
    steps = (
        ("to_months", cast_to(apply("subtract", (month, one), span, name), INTEGER, span)),
        ("to_days", cast_to(apply("subtract", (day, one), span, name), INTEGER, span)),
        ("to_hours", hour),
        ("to_minutes", minute),
        ("to_seconds", cast_to(given[5], DOUBLE, span)),
    )
    for function, count in steps:
        instant = apply("add", (instant, apply(function, (count,), span, name)), span, name)
    return (
        apply("timezone", (given[6], instant), span, name)
        if len(given) > 6
        else cast_to(instant, TIMESTAMP_TZ, span)
    )


def _series(name: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """Of integers, or of timestamps: each list."""
    given = [binder.bind_flexible(node) for node in nodes]
    if not any(each.data_type.is_temporal for each in given):
        return apply(name, given, span, f"{name}()")
    bounds, step, data_type = arguments_of_instants(name, given, span)
    result = list_of(data_type)
    if any(map(is_null_literal, (*bounds, step))):
        return Literal(None, result)
    if not isinstance(step, Literal):
        raise UnsupportedError(f"{name}() of timestamps by a step that is no constant is not supported", span)
    interval: Any = step.value
    try:
        micros = microseconds_of_step(interval, name) if any(interval) else 0  # which makes lists of none
        if micros is None:
            return Literal(_by_months(name, bounds, interval), result)
    except (BindError, UnsupportedError) as error:
        raise type(error)(error.message, span) from None
    ends = [_microseconds(each, name, span) for each in bounds]
    numbers = apply(name, [*ends, Literal(micros, BIGINT)], span, f"{name}()")
    element = element_of(binder, numbers, "x")
    body = instant_of_microseconds(element, data_type, span)
    return OverElements("list_transform", numbers, body, element, None, result, span=span)


def _microseconds(instant: Expression, name: str, span: Span | None) -> Expression:
    """Since 1970, raising for infinity."""
    message = Literal(f"{name}() does not end at infinity", VARCHAR)
    refused = null_after(Call("error", (message,), VARCHAR, span), BIGINT)
    since_1970 = apply("epoch_us", [instant], span, f"{name}()")
    return make_case([apply("isinf", [instant], span, f"{name}()")], [refused, since_1970], span)


def _by_months(name: str, bounds: Sequence[Expression], step: Interval) -> tuple[int, ...]:
    values: list[Any] = [each.value for each in bounds if isinstance(each, Literal)]
    if len(values) < len(bounds):
        raise UnsupportedError(f"{name}() of timestamps in columns by months is not supported")
    start, end = values
    for instant in values:
        check_finite(instant, name)
    return instants_by_months(start, end, step, name == "generate_series", name)


INSTANT_FORMS: Forms = {
    **{name: (partial(_series, name), 1, 3) for name in ("range", "generate_series")},
    "make_timestamptz": (_instant_of_parts, 1, 7),
}
