"""LIMIT, OFFSET, and the keys of ORDER BY."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from tqp.core.datatypes import BIGINT, BOOLEAN, DOUBLE, UBIGINT, VARCHAR
from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.algebra.expressions import (
    Call,
    Case,
    Cast,
    Expression,
    Literal,
    SortKey,
    conjunction,
)
from tqp.planner.algebra.logical_plan import Filter, Limit, LogicalPlan, Sort
from tqp.planner.algebra.subquery_expressions import read_ids
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.directions import direction_of
from tqp.planner.binder.expressions.coercion import cast_to, null_after
from tqp.planner.binder.expressions.scalars import ExpressionBinder
from tqp.planner.binder.scope import Scope
from tqp.planner.binder.select.row_numbers import counted, numbered, with_columns_of
from tqp.planner.binder.select.stars import star_of
from tqp.planner.binder.unsupported_clauses import check_understood
from tqp.planner.catalog_protocol import Catalog
from tqp.planner.functions.constant_folding import fold
from tqp.planner.parse import span_of

#: More rows than there are.
_ALL = 2**62


def bind_limit(
    context: BindContext, query: exp.Expr, plan: LogicalPlan, scope: Scope, *, lazy: bool = False
) -> LogicalPlan:
    """The plan under the query's LIMIT and OFFSET, if it has any. With `lazy` it may have more columns."""
    limit_node, offset_node = query.args.get("limit"), query.args.get("offset")
    if limit_node is None and offset_node is None:
        return plan
    for node in (limit_node, offset_node):
        if node is not None:
            check_understood(node)
    count, offset, options, clause = None, None, None, "LIMIT"
    if isinstance(limit_node, exp.Fetch):
        count = limit_node.args.get("count") or exp.Literal.number(1)  # FETCH FIRST ROW ONLY
        options, clause = limit_node.args.get("limit_options"), "FETCH"
    elif limit_node is not None:
        count, offset = limit_node.expression, limit_node.args.get("offset")
        count = None if isinstance(count, exp.Var) else count  # LIMIT ALL
        options = limit_node.args.get("limit_options")
    if offset_node is not None:
        offset = offset_node.expression
    if options is not None and options.args.get("with_ties"):
        raise UnsupportedError(f"{clause} WITH TIES is not supported", span_of(count))
    skipped = _count(context, offset, "OFFSET", scope)
    if options is not None and options.args.get("percent"):
        kept = _percentage(context, count, clause, scope)
        if kept is None and skipped is None:
            return plan
        limited = _rows_of_numbers(context, plan, None, kept, skipped)
    else:
        kept = _count(context, count, clause, scope)
        if isinstance(kept, Literal | None) and isinstance(skipped, Literal | None):
            most, start = _constant(kept), _constant(skipped) or 0
            return plan if most is None and not start else Limit(plan, most, start)
        limited = _rows_of_numbers(context, plan, kept, None, skipped)
    return limited if lazy else with_columns_of(limited, plan)


def _rows_of_numbers(
    context: BindContext,
    plan: LogicalPlan,
    most: Expression | None,
    percentage: Expression | None,
    skipped: Expression | None,
) -> LogicalPlan:
    """At most so many rows, or so many hundredths of all of them, after those that are skipped: by their numbers."""
    window, number = numbered(context, plan)
    conditions: list[Expression] = []
    start = Literal(0, BIGINT) if skipped is None else _or_else(skipped, 0)
    place = Call("subtract", (number, start), BIGINT)
    rows: LogicalPlan = window
    if skipped is not None:
        conditions.append(Call("greater", (number, start), BOOLEAN))
    if most is not None:
        conditions.append(Call("less_equal", (place, _or_else(most, _ALL)), BOOLEAN))
    if percentage is not None:
        rows, total = counted(context, window)
        share = Call("divide", (_or_else(percentage, 100.0), Literal(100.0, DOUBLE)), DOUBLE)
        wanted = Call("multiply", (share, Cast(total, DOUBLE)), DOUBLE)
        conditions.append(Call("less_equal", (Cast(place, DOUBLE), wanted), BOOLEAN))
    return Sort(Filter(rows, conjunction(tuple(conditions))), (SortKey(number),))


def _or_else(value: Expression, other: float) -> Expression:
    """NULL is no LIMIT, and no OFFSET."""
    return Call("coalesce", (value, Literal(other, value.data_type)), value.data_type)


def _constant(number: Literal | None) -> int | None:
    value = None if number is None else number.value
    assert value is None or isinstance(value, int)
    return value


def _count(context: BindContext, node: exp.Expr | None, clause: str, scope: Scope) -> Expression | None:
    """A number of rows: a literal that is no NULL and not negative, or what a subquery computes."""
    if node is None:
        return None
    span, number = span_of(node), _number(context, node, clause, scope)
    bound = fold(cast_to(number, BIGINT, span))  # raises what is wrong with it
    if not isinstance(bound, Literal):
        return cast_to(cast_to(number, UBIGINT, span), BIGINT, span)  # where it is negative, it raises
    if bound.value is None:
        return None
    if not isinstance(bound.value, int) or bound.value < 0:
        raise BindError(f"{clause} must not be negative, and is {bound.value!r}", span)
    return bound


def _percentage(context: BindContext, node: exp.Expr | None, clause: str, scope: Scope) -> Expression | None:
    """A number of hundredths from 0 to 100."""
    assert node is not None
    span = span_of(node)
    bound = fold(cast_to(_number(context, node, clause, scope), DOUBLE, span))
    if not isinstance(bound, Literal):
        limits = (("less", 0.0), ("greater", 100.0))
        beyond = tuple(Call(name, (bound, Literal(limit, DOUBLE)), BOOLEAN) for name, limit in limits)
        message = Literal(f"{clause}: a percentage lies between 0 and 100", VARCHAR)
        error = null_after(Call("error", (message,), VARCHAR, span), DOUBLE)
        return Case(((Call("or", beyond, BOOLEAN), error),), bound, DOUBLE)
    if bound.value is None:
        return None
    if not isinstance(bound.value, float) or not 0.0 <= bound.value <= 100.0:
        raise BindError(f"{clause}: a percentage lies between 0 and 100, and this is {bound.value!r}", span)
    return bound


def _number(context: BindContext, node: exp.Expr, clause: str, scope: Scope) -> Expression:
    """Of what stands outside the query, it may name aliases of constants."""
    refused = BindError(f"{clause} needs a constant, a parameter or a subquery, not a column", span_of(node))
    outside = node.walk(prune=lambda each: isinstance(each, exp.Query))
    if scope.parent is None and any(isinstance(each, exp.Column) for each in outside):
        raise refused
    number = ExpressionBinder(context, Scope(parent=scope.parent, ctes=scope.ctes), clause).bind(node)
    if read_ids(number):
        raise refused
    return number


def keys_of(order: exp.Order, catalog: Catalog) -> Iterator[tuple[exp.Expr | None, bool, bool]]:
    """The keys of ORDER BY, whether each descends, and whether NULLs come first.

    None stands for all columns of SELECT: ORDER BY ALL, or a star and nothing else.
    """
    check_understood(order)
    for ordered in order.expressions:
        check_understood(ordered)
        node = ordered.this
        is_star = len(order.expressions) == 1 and star_of(node) is not None
        is_all = is_star or isinstance(node, exp.Var) and node.name.upper() == "ALL"
        yield (None if is_all else node, *direction_of(ordered, catalog))
