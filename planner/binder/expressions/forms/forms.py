"""Forms: calls that are bound by hand, because no list of overloads says what they take or give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.expressions import Expression
from tqp.planner.parse import Span

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder

#: The arguments, not yet bound.
Nodes = Sequence[exp.Expr]
#: What binds a call, and how many arguments it takes: at least, and at most (None: any number).
Form = tuple[Callable[["ExpressionBinder", Nodes, Span | None], Expression], int, int | None]
#: By name in lower case.
Forms = Mapping[str, Form]


def call_of(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """A call, as it is written."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def filled(body: exp.Expr, values: Mapping[str, exp.Expr], is_table: bool) -> exp.Expr:
    """The body with a value in the place of each parameter; before a dot only in an expression, and tables go first there."""
    tables = {lower_ascii(each.alias_or_name) for each in body.find_all(exp.Table, exp.Subquery, exp.Values)}
    for column in list(body.find_all(exp.Column)):
        first, *fields = column.parts
        name = lower_ascii(first.name)
        if name in values and not (fields and (is_table or name in tables)):
            filled: exp.Expr = exp.Paren(this=values[name].copy())
            for each in fields:
                filled = exp.Dot(this=filled, expression=each.copy())
            column.replace(filled)
    for dot in list(body.find_all(exp.Dot)):
        name = lower_ascii(dot.this.name) if isinstance(dot.this, exp.Identifier) else ""
        is_call = isinstance(dot.expression, exp.Anonymous)
        if name in values and (is_call or not (is_table or name in tables)):
            dot.this.replace(exp.Paren(this=values[name].copy()))
    return body
