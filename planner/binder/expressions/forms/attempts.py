"""try(x): NULL for a row for which computing x raises."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

from sqlglot import exp

from tqp.core.errors import BindError, ExecutionError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.expressions import Cast, ColumnRef, Expression, Literal, Predict, Try, walk
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.algebra.subquery_expressions import Subquery
from tqp.planner.binder.expressions.forms.forms import Forms, Nodes
from tqp.planner.binder.expressions.forms.randomness import DRAWING
from tqp.planner.functions import registry as functions
from tqp.planner.functions.constant_folding import fold
from tqp.planner.parse import Span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


def _try(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    (node,) = nodes
    _check(node)
    value = binder.bind(node)
    parts = walk(value)
    if any(isinstance(each, Subquery) for each in parts):
        raise BindError("try() takes no subquery", span)
    if _is_of_several_rows(binder, value):
        raise BindError(
            "try() takes no alias of an aggregate, a window function or unnest(); name it in a subquery", span
        )
    if any(isinstance(each, Predict) for each in parts):
        raise UnsupportedError("predictions of models inside try() are not supported", span)
    if not may_raise(value, {}):
        return value
    try:
        folded = fold(value)
    except ExecutionError:
        return Literal(None, value.data_type)
    if isinstance(folded, Literal):
        return folded
    return replace(value, is_try=True) if _is_cast_alone(value) else Try(value, span)


def _is_of_several_rows(binder: ExpressionBinder, value: Expression) -> bool:
    """Whether the value, by an alias, is what a call makes of rows of the block."""
    calls = {} if binder.aggregates is None else binder.aggregates.calls
    lists = {} if binder.unnests is None else binder.unnests.lists
    made = {field.id for field in (*calls.values(), *lists.values())}
    is_of_window = binder.windows is not None and binder.windows.is_in(value)
    return is_of_window or any(isinstance(part, ColumnRef) and part.id in made for part in walk(value))


def _is_cast_alone(value: Expression) -> TypeGuard[Cast]:
    """Whether only a cast may raise, of which TRY_CAST makes NULLs for less; not NULLs inside of nested values."""
    if not isinstance(value, Cast) or may_raise(value.input, {}):
        return False
    return not any(each.is_nested or each.is_json for each in (value.data_type, value.input.data_type))


def _check(node: exp.Expr) -> None:
    """Raise BindError for what is not computed of one row alone, or is another value each time."""
    for part in node.find_all(exp.Query, exp.Exists, exp.Window, exp.Anonymous):
        if isinstance(part, exp.Window):
            raise BindError(
                "try() takes no window function; write it around an argument of that", span_of(part)
            )
        if not isinstance(part, exp.Anonymous):
            raise BindError("try() takes no subquery", span_of(part))
        name = lower_ascii(part.name)
        if functions.aggregate_overloads(name):
            raise BindError(
                f"try() takes no aggregate; write it around the argument of {name}()", span_of(part)
            )
        if name in _VOLATILE:
            raise BindError(f"try() takes no volatile function, as {name}() is", span_of(part))


_VOLATILE = DRAWING | {"currval", "error"}

TRY_FORMS: Forms = {"try": (_try, 1, 1)}
