"""The time of the query: now(), current_date and their kin, constants that are the same in all of a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import DATE, TIME, TIMESTAMP, TIMESTAMP_TZ, DataType
from tqp.core.errors import BindError
from tqp.planner.algebra.expressions import Expression, Literal
from tqp.planner.binder.expressions.forms import Form, Forms, Nodes
from tqp.planner.binder.expressions.operators import apply
from tqp.planner.parse import Span

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder
    from tqp.planner.binder.scope import Scope

_MICROSECONDS_OF_DAY = 86_400_000_000

#: Written without parentheses: the word, and the type.
_WORDS: dict[type, tuple[str, DataType]] = {
    exp.CurrentTimestamp: ("current_timestamp", TIMESTAMP_TZ),
    exp.CurrentDate: ("current_date", DATE),
    exp.Localtimestamp: ("localtimestamp", TIMESTAMP),
    exp.Localtime: ("localtime", TIME),
}
CLOCK_WORDS = tuple(_WORDS)


def bind_clock_word(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """CURRENT_TIMESTAMP and the like; a column of that name goes before."""
    word, data_type = _WORDS[type(node)]
    scope: Scope | None = binder.scope
    while scope is not None:
        if scope.has_column(word, None):
            return binder.bind_flexible(exp.column(exp.to_identifier(word).update_positions(node)))
        scope = scope.parent
    return _time_of_query(binder, data_type)


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
