"""Arguments of table functions, which are constants: no row is there yet that they could be of."""

from __future__ import annotations

from sqlglot import exp

from tqp.core.datatypes import BIGINT
from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.algebra.expressions import Expression, Literal
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.coercion import cast_to
from tqp.planner.binder.expressions.scalars import ExpressionBinder
from tqp.planner.binder.scope import Scope
from tqp.planner.functions.constant_folding import fold
from tqp.planner.functions.type_rules import implicit_cast_cost, settle
from tqp.planner.parse import Span, span_of


def split_arguments(call: exp.Anonymous) -> tuple[list[exp.Expr], dict[str, exp.Expr]]:
    """The arguments of a call without a name, and those with one: `name := value`, or `name = value`."""
    given: list[exp.Expr] = []
    named: dict[str, exp.Expr] = {}
    for each in call.expressions:
        if is_named(each):
            named[each.this.name] = each.expression
        else:
            given.append(each)
    return given, named


def is_named(argument: exp.Expr) -> bool:
    """Whether an argument is `name := value`, or `name = value`."""
    if isinstance(argument, exp.EQ):
        return isinstance(argument.this, exp.Column) and not argument.this.table
    return isinstance(argument, (exp.PropertyEQ, exp.Kwarg))


def constant_argument(context: BindContext, node: exp.Expr, name: str) -> Expression:
    """An argument of the function `name`, whose type may still bend."""
    if node.find(exp.Column, exp.Query) is not None:
        raise UnsupportedError(
            f"{name}() of columns or subqueries is not supported; pass a parameter", span_of(node)
        )
    return ExpressionBinder(context, Scope(), "FROM").bind_flexible(node)


def literal_argument(context: BindContext, node: exp.Expr, name: str) -> Literal:
    """An argument of the type that it settles for; UnsupportedError for what is not folded."""
    return literal_of(settle(constant_argument(context, node, name)), name, span_of(node))


def literal_of(bound: Expression, name: str, span: Span | None) -> Literal:
    """The value that a constant argument has; UnsupportedError for what is not folded."""
    value = fold(bound)
    if not isinstance(value, Literal):
        raise UnsupportedError(f"{name}() of what is not constant is not supported", span)
    return value


def constant_text(context: BindContext, node: exp.Expr, name: str, what: str) -> str:
    """An argument that is `what`, a text."""
    value = fold(settle(constant_argument(context, node, name)))
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        raise BindError(f"{name}() takes {what}, not {value.data_type}", span_of(node))
    return value.value


def integer_of(bound: Expression, name: str, span: Span | None, taken: str) -> int | None:
    """The integer that an argument is or may be cast to; `taken`: what the function takes, for an error."""
    if implicit_cast_cost(bound, BIGINT) is None:
        raise BindError(f"{name}() takes {taken}, not {bound.data_type}", span)
    value = literal_of(cast_to(bound, BIGINT, span), name, span).value
    assert value is None or isinstance(value, int)
    return value
