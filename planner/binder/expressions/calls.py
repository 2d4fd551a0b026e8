"""Function calls, scalar or aggregate, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.expressions import Expression
from tqp.planner.binder.expressions.aggregates.aggregate_arguments import written
from tqp.planner.binder.expressions.aggregates.formulas import of_formula
from tqp.planner.binder.expressions.aggregates.several_values import of_single_values
from tqp.planner.binder.expressions.forms.json_forms import of_frames
from tqp.planner.binder.expressions.forms.special_forms import SPECIAL_FORMS, bind_special_form
from tqp.planner.binder.expressions.models import MODEL_CALLS, bind_registered
from tqp.planner.binder.expressions.operators import apply
from tqp.planner.binder.expressions.subqueries import bind_array, bind_exists
from tqp.planner.binder.select.unnests import is_unnest
from tqp.planner.functions import registry as functions
from tqp.planner.functions.unsupported import refuse_missing, refuse_missing_form
from tqp.planner.parse import head_span, span_of
from tqp.planner.syntax.parser import is_columns_call

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder
    from tqp.planner.binder.scope import Scope

#: Two names of one thing.
GROUPING_NAMES = ("grouping", "grouping_id")


def function_names() -> frozenset[str]:
    """Every name by which SQL calls a scalar function or an aggregate."""
    names = {*functions.scalar_names(), *functions.aggregate_names(), *SPECIAL_FORMS, *MODEL_CALLS}
    return frozenset(filter(str.isidentifier, names))


def bind_call(binder: ExpressionBinder, node: exp.Anonymous) -> Expression:
    """`name(arguments)`, scalar or aggregate."""
    name, span = lower_ascii(node.name), span_of(node)
    if functions.aggregate_overloads(name) is not None:
        return bind_aggregate(binder, node, None)
    if is_unnest(node):
        return _unnest(binder, node)
    if name == "exists" and node.expressions:
        return bind_exists(binder, node)
    if name in GROUPING_NAMES:
        return _bind_grouping(binder, node)
    nodes = node.expressions
    if name == "array" and len(nodes) == 1 and isinstance(nodes[0], exp.Query | exp.Values):
        return bind_array(binder, nodes[0], span)
    special = bind_special_form(binder, name, nodes, span)
    if special is not None:
        return special
    if functions.scalar_overloads(name) is None:
        prediction = bind_registered(binder, name, nodes, span)
        if prediction is not None:
            return prediction
        if functions.window_overloads(name) is not None and name not in ("first", "last"):
            raise BindError(f"{name}() needs OVER, as a window function", head_span(node))
        if is_columns_call(node):
            raise BindError("COLUMNS(...) is allowed in SELECT, WHERE and ORDER BY only", head_span(node))
        if binder.context.catalog.lookup_macro(name) is not None:
            raise BindError(f'the macro "{name}" gives rows, and stands in FROM', head_span(node))
        refuse_missing(name, head_span(node))
        hint = nearest(name, [*function_names(), *binder.context.catalog.function_names()])
        raise BindError(f'there is no function "{name}"{hint}', head_span(node))
    arguments = [binder.bind_flexible(argument) for argument in nodes]
    refuse_missing_form(name, len(nodes), head_span(node))
    return apply(name, arguments, span, f"{name}()")


def _bind_grouping(binder: ExpressionBinder, node: exp.Anonymous) -> Expression:
    """GROUPING(...), by the collector of the block whose keys it names, which may be columns of an enclosing one."""
    own = binder.aggregates
    keys = () if own is None or own.keys is None or not node.expressions else own.keys
    names_own_keys = bool(keys) and all(binder.bind(written) in keys for written in node.expressions)
    outer = None if names_own_keys else _block_of(binder.scope, [node])
    if outer is not None:
        assert outer.open_aggregates is not None
        return outer.open_aggregates.bind_grouping(binder.for_scope(outer), node)
    if own is None:
        raise BindError(f"GROUPING() is not allowed in {binder.clause}", span_of(node))
    return own.bind_grouping(binder, node)


def _unnest(binder: ExpressionBinder, node: exp.Anonymous) -> Expression:
    if binder.unnests is None or binder.inside_aggregate or binder.lambdas:
        raise BindError(f"unnest() is not allowed in {binder.clause}", head_span(node))
    return binder.unnests.bind(binder, node)


def bind_aggregate(
    binder: ExpressionBinder, node: exp.Anonymous | exp.WithinGroup, condition: exp.Expr | None
) -> Expression:
    """Hand an aggregate call to the collector of the block it belongs to, or say that it may not stand here."""
    of_single = of_single_values(node) if condition is None else None
    if of_single is not None:
        return binder.bind_flexible(of_single)
    call = written(node)
    assert call is not None
    outer = _block_of(binder.scope, [node] if condition is None else [node, condition])
    if outer is not None:
        assert outer.open_aggregates is not None
        return outer.open_aggregates.bind(binder.for_scope(outer), call, condition)
    if binder.aggregates is None:
        raise BindError(
            f"aggregates such as {call.name}() are not allowed in {binder.clause}", head_span(node)
        )
    return binder.aggregates.bind(binder, call, condition)


def bind_within_group(binder: ExpressionBinder, node: exp.WithinGroup) -> Expression:
    """aggregate(...) WITHIN GROUP (ORDER BY ...)."""
    return bind_aggregate(binder, node, None)


def bind_window(binder: ExpressionBinder, node: exp.Window) -> Expression:
    """`function(...) OVER (...)`, by the collector of the block."""
    for said in (of_single_values(node), of_frames(node), of_formula(node)):
        if said is not None:
            return binder.bind_flexible(said)
    if binder.windows is None or not binder.windows.may_be_written:
        if binder.clause == "this ORDER BY":
            raise UnsupportedError(
                "window functions in the ORDER BY of a set operation are not supported", span_of(node)
            )
        raise BindError(f"window functions are not allowed in {binder.clause}", span_of(node))
    return binder.windows.bind(binder, node)


def _block_of(scope: Scope, nodes: Sequence[exp.Expr]) -> Scope | None:
    """An enclosing block that the aggregate belongs to: SQL has it where its columns come from, if all are outer.

    A block has also the columns of enclosing ones that it groups by. Those that its FILTER names count, those of subqueries in it do not, nor what is looked for in these, as in DuckDB.
    """
    if scope.parent is None:
        return None
    columns = [
        (column.name, column.args["table"].name if column.args.get("table") is not None else None)
        for node in nodes
        for column in node.walk(prune=_has_query)
        if isinstance(column, exp.Column) and isinstance(column.this, exp.Identifier)
    ]
    if not columns or any(_has(scope, *column) for column in columns):
        return None
    around: Scope | None = scope.parent
    while around is not None:
        if any(_has(around, *column) for column in columns):
            if around.open_aggregates is None:
                raise BindError(
                    "an aggregate over columns of an enclosing query belongs to it, and its clause here takes none",
                    head_span(nodes[0]),
                )
            return around
        around = around.parent
    return None


def _has(block: Scope, name: str, qualifier: str | None) -> bool:
    """Whether a column is one of the block's tables, or a column of an enclosing query that the block groups by."""
    if block.has_column(name, qualifier):
        return True
    keys = None if block.open_aggregates is None else block.open_aggregates.keys
    around = block.parent if keys else None
    while around is not None and not around.has_column(name, qualifier):
        around = around.parent
    return around is not None and around.resolve_here(name, qualifier, None) in (keys or ())


def _has_query(node: exp.Expr) -> bool:
    """Is it a query, or a comparison with the rows of one: IN, ANY, ALL?"""
    quantified = isinstance(node.args.get("expression"), exp.Any | exp.All)
    return isinstance(node, exp.Query) or quantified or node.args.get("query") is not None


def bind_filtered(binder: ExpressionBinder, node: exp.Filter) -> Expression:
    """aggregate(...) FILTER (WHERE condition)."""
    of_single = of_single_values(node)
    if of_single is not None:
        return binder.bind_flexible(of_single)
    call = written(node.this)
    if call is None:
        raise UnsupportedError("FILTER after this expression is not supported", span_of(node))
    if functions.aggregate_overloads(call.name) is None:
        refuse_missing(call.name, head_span(call.node))
        raise BindError(f'FILTER needs an aggregate, and "{call.name}" is none', head_span(call.node))
    return bind_aggregate(binder, node.this, node.expression.this)
