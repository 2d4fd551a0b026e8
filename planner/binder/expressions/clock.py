"""The time of the query: now(), current_date and their kin, constants that are the same in all of a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tqp.core.datatypes import DATE, TIME, TIMESTAMP, TIMESTAMP_TZ, DataType
from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.algebra.expressions import Expression, Literal
from tqp.planner.binder.expressions.forms import Form, Forms, Nodes
from tqp.planner.binder.expressions.operators import apply
from tqp.planner.parse import Span

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder

_MICROSECONDS_OF_DAY = 86_400_000_000

#: Written without parentheses, unless there is such a column.
_WORDS = {
    "current_timestamp": TIMESTAMP_TZ,
    "current_date": DATE,
    "localtimestamp": TIMESTAMP,
    "localtime": TIME,
}


def clock_word(binder: ExpressionBinder, word: str, span: Span | None) -> Expression | None:
    """What CURRENT_TIMESTAMP and the like stand for; None for any other word."""
    if word == "current_time":
        raise UnsupportedError(
            "CURRENT_TIME, which has a time zone, is not supported; LOCALTIME has none", span
        )
    return _time_of_query(binder, _WORDS[word]) if word in _WORDS else None


def _time_of_query(binder: ExpressionBinder, data_type: DataType) -> Expression:
    """The time zone of a session is UTC."""
    microseconds = binder.context.catalog.query_time()
    if data_type == DATE:
        return Literal(microseconds // _MICROSECONDS_OF_DAY, DATE)
    if data_type == TIME:
        return Literal(microseconds % _MICROSECONDS_OF_DAY, TIME)
    return Literal(microseconds, data_type)


def _call(data_type: DataType) -> Form:
    return lambda binder, nodes, span: _time_of_query(binder, data_type), 0, 0


def _age(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """age(x): from x to the midnight before now; age(x, y): from y to x."""
    arguments = [binder.bind_flexible(node) for node in nodes]
    if len(arguments) == 1:
        if arguments[0].data_type.is_string:
            raise BindError("age() of a text may mean TIMESTAMP or TIMESTAMPTZ; cast it", span)
        midnight = binder.context.catalog.query_time() // _MICROSECONDS_OF_DAY * _MICROSECONDS_OF_DAY
        arguments.insert(0, Literal(midnight, TIMESTAMP))
    return apply("age", arguments, span, "age()")


CLOCK_FORMS: Forms = {
    **dict.fromkeys(("now", "get_current_timestamp", "transaction_timestamp"), _call(TIMESTAMP_TZ)),
    **dict.fromkeys(("today", "current_date"), _call(DATE)),
    "current_localtimestamp": _call(TIMESTAMP),
    "current_localtime": _call(TIME),
    "age": (_age, 1, 2),
}
