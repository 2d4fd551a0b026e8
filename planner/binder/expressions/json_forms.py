"""Forms of JSON that are more than calls of a function: the arrows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.planner.algebra.expressions import Expression
from tqp.planner.binder.expressions.operators import bind_operator
from tqp.planner.parse import span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


def bind_arrow(binder: ExpressionBinder, node: exp.JSONExtract) -> Expression:
    """`j -> path`. Though `->>` binds closer, `j -> 'a' ->> 'b'` is `(j -> 'a') ->> 'b'`, with or without parentheses."""
    path = node.expression.unnest()
    if isinstance(path, exp.JSONExtractScalar):
        part = exp.JSONExtract(this=node.this.copy(), expression=path.this.copy())
        return bind_text_arrow(binder, exp.JSONExtractScalar(this=part, expression=path.expression.copy()))
    return bind_operator(binder, "->", (node.this, node.expression), span_of(node), "->")


def bind_text_arrow(binder: ExpressionBinder, node: exp.JSONExtractScalar) -> Expression:
    """`j ->> path`"""
    return bind_operator(binder, "->>", (node.this, node.expression), span_of(node), "->>")
