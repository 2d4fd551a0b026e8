"""Forms: calls that are bound by hand, because no list of overloads says what they take or give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

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
