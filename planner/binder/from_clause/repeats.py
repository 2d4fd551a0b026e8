"""The table functions repeat(value, count) and repeat_row(values, ..., num_rows := count): a row of constants, so many times."""

from __future__ import annotations

from sqlglot import exp

from tqp.core.datatypes import VARCHAR
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.expressions import Literal
from tqp.planner.algebra.logical_plan import Project, Values
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.coercion import cast_to
from tqp.planner.binder.from_clause.constant_arguments import (
    constant_argument,
    integer_of,
    literal_argument,
    split_arguments,
)
from tqp.planner.binder.from_clause.series import numbered_rows
from tqp.planner.binder.select.output import BoundQuery
from tqp.planner.functions.constant_folding import fold
from tqp.planner.parse import Span, span_of

REPEATS = ("repeat", "repeat_row")
_COUNT = "num_rows"


def bind_repeat(context: BindContext, call: exp.Anonymous, span: Span | None) -> BoundQuery:
    """The rows. The column of repeat() is called as its value is written, those of repeat_row() column0, column1, ..."""
    name = lower_ascii(call.name)
    given, named = split_arguments(call)
    if name == "repeat":
        if len(given) != 2 or named:
            raise BindError("repeat() takes a value and how many times it is repeated", span)
        *nodes, counted = given
    else:
        if not given or [lower_ascii(key) for key in named] != [_COUNT]:
            raise BindError(f"repeat_row() takes values, and how many rows there are: {_COUNT} := 2", span)
        nodes, [counted] = given, named.values()
    values = [literal_argument(context, node, name) for node in nodes]
    if name == "repeat":
        is_renamed = isinstance(call.parent, exp.Table) and call.parent.alias_column_names
        names = ["value" if is_renamed else _written(values[0], span)]
    else:
        names = [f"column{place}" for place in range(len(values))]
    count = integer_of(constant_argument(context, counted, name), name, span_of(counted), "a number of rows")
    if count is None or count < 0:
        raise BindError(f"{name}() takes a number of rows that is not NULL and not below 0", span)
    fields = tuple(
        context.new_field(shown, value.data_type, value.value is None)
        for shown, value in zip(names, values, strict=True)
    )
    if not count:
        return BoundQuery.exact(Values((), fields), names)
    rows = numbered_rows(context, count, name, span)
    return BoundQuery.exact(Project(rows, fields, tuple(values)), names)


def _written(value: Literal, span: Span | None) -> str:
    text = fold(cast_to(value, VARCHAR, span))
    if not isinstance(text, Literal):
        raise UnsupportedError(
            f"repeat() of a {value.data_type} whose column gets no name is not supported; give it one, as in t(x)",
            span,
        )
    return "NULL" if text.value is None else str(text.value) or "C0"
