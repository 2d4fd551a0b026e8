"""LIMIT, OFFSET, and the keys of ORDER BY."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from tqp.core.datatypes import BIGINT
from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.algebra.expressions import Literal
from tqp.planner.algebra.logical_plan import Limit, LogicalPlan
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.coercion import cast_to
from tqp.planner.binder.expressions.scalars import ExpressionBinder
from tqp.planner.binder.scope import Scope
from tqp.planner.binder.select.stars import star_of
from tqp.planner.binder.unsupported_clauses import check_understood
from tqp.planner.functions.constant_folding import fold
from tqp.planner.parse import span_of


def bind_limit(context: BindContext, query: exp.Expr, plan: LogicalPlan, scope: Scope) -> LogicalPlan:
    """The plan under the query's LIMIT and OFFSET, if it has any."""
    limit_node, offset_node = query.args.get("limit"), query.args.get("offset")
    if limit_node is None and offset_node is None:
        return plan
    for node in (limit_node, offset_node):
        if node is not None:
            check_understood(node)
    limit = offset = None
    if isinstance(limit_node, exp.Fetch):
        options = limit_node.args.get("limit_options")
        count = limit_node.args.get("count") or exp.Literal.number(1)  # FETCH FIRST ROW ONLY
        limit = _count(context, count, options, "FETCH", scope)
    elif limit_node is not None:
        options = limit_node.args.get("limit_options")
        limit = _count(context, limit_node.expression, options, "LIMIT", scope)
        offset = _count(context, limit_node.args.get("offset"), None, "OFFSET", scope)
    if offset_node is not None:
        offset = _count(context, offset_node.expression, None, "OFFSET", scope)
    return plan if limit is None and not offset else Limit(plan, limit, offset or 0)


def _count(
    context: BindContext, node: exp.Expr | None, options: exp.Expr | None, clause: str, scope: Scope
) -> int | None:
    if node is None:
        return None
    span = span_of(node)
    if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
        raise UnsupportedError(f"{clause} with a percentage or WITH TIES is not supported", span)
    if isinstance(node, (exp.Subquery, exp.Select)):
        raise UnsupportedError(
            f"{clause} with a subquery is not supported; pass the number as a parameter", span
        )
    if node.find(exp.Column) is not None:
        raise BindError(f"{clause} needs a constant or a parameter, not a column", span)
    empty = Scope(parent=None, ctes=scope.ctes)
    number = ExpressionBinder(context, empty, clause).bind(node)
    bound = fold(cast_to(number, BIGINT, span))  # raises what is wrong with it
    if not isinstance(bound, Literal):  # of a function that only runs compute
        raise UnsupportedError(
            f"{clause} with a computed number is not supported; write it, or pass it as a parameter", span
        )
    if bound.value is None:
        return None
    count = bound.value
    if not isinstance(count, int) or count < 0:
        raise BindError(f"{clause} must not be negative, and is {count!r}", span)
    return count


def keys_of(order: exp.Order) -> Iterator[tuple[exp.Expr | None, bool, bool]]:
    """The keys of ORDER BY, whether each descends, and whether NULLs come first.

    None stands for all columns of SELECT: ORDER BY ALL, or a star and nothing else.
    """
    check_understood(order)
    for ordered in order.expressions:
        check_understood(ordered)
        node = ordered.this
        is_star = len(order.expressions) == 1 and star_of(node) is not None
        is_all = is_star or isinstance(node, exp.Var) and node.name.upper() == "ALL"
        yield None if is_all else node, bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first"))
