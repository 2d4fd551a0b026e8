"""The time of the query: now(), current_date and their kin, constants that are the same in all of a transaction."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tqp.core.datatypes import DATE, INTERVAL, TIME, TIME_TZ, TIMESTAMP, TIMESTAMP_TZ, VARCHAR, DataType
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.time_limits import MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND
from tqp.core.zone_names import zone_of
from tqp.core.zoned_times import stored_time
from tqp.planner.algebra.expressions import Expression, Literal, is_null_literal
from tqp.planner.binder.expressions.coercion import null_after
from tqp.planner.binder.expressions.forms.forms import Form, Forms, Nodes
from tqp.planner.binder.expressions.operators import apply
from tqp.planner.functions.constants import constant_text
from tqp.planner.functions.type_rules import settle
from tqp.planner.parse import Span

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder

#: Written without parentheses, unless there is such a column.
_WORDS = {
    "current_timestamp": TIMESTAMP_TZ,
    "current_date": DATE,
    "localtimestamp": TIMESTAMP,
    "localtime": TIME,
    "current_time": TIME_TZ,
}


def clock_word(binder: ExpressionBinder, word: str, span: Span | None) -> Expression | None:
    """What CURRENT_TIMESTAMP and the like stand for; None for any other word."""
    return _time_of_query(binder, _WORDS[word]) if word in _WORDS else None


def _time_of_query(binder: ExpressionBinder, data_type: DataType) -> Expression:
    """The time zone of a session is UTC."""
    microseconds = binder.context.catalog.query_time()
    if data_type == DATE:
        return Literal(microseconds // MICROSECONDS_PER_DAY, DATE)
    if data_type.is_time_of_day:
        clock = microseconds % MICROSECONDS_PER_DAY
        return Literal(clock if data_type == TIME else stored_time(clock, 0), data_type)
    return Literal(microseconds, data_type)


def _call(data_type: DataType) -> Form:
    return lambda binder, nodes, span: _time_of_query(binder, data_type), 0, 0


def _age(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """age(x): from x to the midnight before now; age(x, y): from y to x."""
    arguments = [binder.bind_flexible(node) for node in nodes]
    if len(arguments) == 1:
        if arguments[0].data_type.is_string:
            raise BindError("age() of a text may mean TIMESTAMP or TIMESTAMPTZ; cast it", span)
        midnight = binder.context.catalog.query_time() // MICROSECONDS_PER_DAY * MICROSECONDS_PER_DAY
        arguments.insert(0, Literal(midnight, TIMESTAMP))
    return apply("age", arguments, span, "age()")


def bind_timezone(
    binder: ExpressionBinder, nodes: Nodes, span: Span | None, label: str = "timezone()"
) -> Expression:
    """timezone(zone, x); of a TIMETZ and the name of a zone, by the offset that this zone has now."""
    arguments = [binder.bind_flexible(node) for node in nodes]
    zone = arguments[0]
    if arguments[-1].data_type == TIME_TZ and zone.data_type == VARCHAR:
        if is_null_literal(zone):
            return null_after(arguments[-1], TIME_TZ)
        name = constant_text(settle(zone))
        if name is None:
            raise UnsupportedError("a time zone that is no constant is not supported of TIMETZ", span)
        now = datetime.fromtimestamp(binder.context.catalog.query_time() // MICROSECONDS_PER_SECOND, UTC)
        try:
            offset = now.astimezone(zone_of(name)).utcoffset() or timedelta()
        except UnsupportedError as error:
            raise UnsupportedError(error.message, span) from None
        arguments[0] = Literal((0, 0, offset // timedelta(microseconds=1)), INTERVAL)
    return apply("timezone", arguments, span, label)


CLOCK_FORMS: Forms = {
    "timezone": (bind_timezone, 1, 2),
    **dict.fromkeys(("now", "get_current_timestamp", "transaction_timestamp"), _call(TIMESTAMP_TZ)),
    **dict.fromkeys(("today", "current_date"), _call(DATE)),
    "current_localtimestamp": _call(TIMESTAMP),
    "current_localtime": _call(TIME),
    "get_current_time": _call(TIME_TZ),
    "age": (_age, 1, 2),
}
