"""Comparisons, BETWEEN and IN over values and over rows, with the one type that the compared values are cast to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import BOOLEAN, DataType
from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.algebra.expressions import Call, Expression, Literal, Varying
from tqp.planner.binder.expressions import in_lists, subqueries
from tqp.planner.binder.expressions.coercion import compare, comparison, folded, unify
from tqp.planner.binder.expressions.collations import collated
from tqp.planner.binder.expressions.literals import variable_for
from tqp.planner.functions.type_rules import equality_type, forced_type, ordering_type
from tqp.planner.parse import Span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder

FUNCTIONS: dict[type, str] = {
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
    exp.NullSafeEQ: "is_not_distinct_from",
    exp.NullSafeNEQ: "is_distinct_from",
}
#: Whether a comparison of rows gives true where the rows differ.
_OF_ROWS = {"equal": False, "is_not_distinct_from": False, "not_equal": True, "is_distinct_from": True}


def bind_comparison(binder: ExpressionBinder, node: exp.Binary) -> Expression:
    """left <comparison> right, of values, of rows, or with ANY and ALL."""
    function, span = FUNCTIONS[type(node)], span_of(node)
    quantifier = node.expression
    if isinstance(quantifier, (exp.Any, exp.All)):
        values = quantifier.this.unnest()
        of_parameter = isinstance(values, exp.Placeholder) and variable_for(binder.context, values) is None
        bind_quantified = in_lists.bind_quantified if of_parameter else subqueries.bind_quantified
        return bind_quantified(binder, node, function)
    left, right = node.left, node.right
    if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple) and function in _OF_ROWS:
        (equal,) = _equal_rows(binder, left, [right], span)
        return folded(Call("not", (equal,), BOOLEAN, span)) if _OF_ROWS[function] else equal
    return compare(function, binder.bind_flexible(left), binder.bind_flexible(right), span)


def _equal_rows(
    binder: ExpressionBinder, left: exp.Tuple, rows: Sequence[exp.Tuple], span: Span | None
) -> list[Expression]:
    """Whether the left row equals each of the others, all of one type.

    Rows are compared as values: a NULL inside equals a NULL, and the answer is never NULL.
    """
    if any(len(left.expressions) != len(row.expressions) for row in rows):
        raise BindError("rows of different lengths cannot be compared", span)
    if not left.expressions:
        raise UnsupportedError("rows without fields are not supported", span)
    equal: list[list[Expression]] = [[] for _ in rows]
    for fields in zip(left.expressions, *(row.expressions for row in rows)):
        values = [binder.bind(field) for field in fields]
        (first, *others), _ = unify(values, "a comparison of rows", span, _field_type)
        for of_row, other in zip(equal, others, strict=True):
            of_row.append(comparison("is_not_distinct_from", first, other, span))
    return [
        folded(Call("and", tuple(fields), BOOLEAN, span)) if fields[1:] else fields[0] for fields in equal
    ]


def _field_type(left: Expression, right: Expression) -> DataType | None:
    """Text makes text of the other, and so on."""
    return forced_type(left.data_type, right.data_type)


def bind_between(binder: ExpressionBinder, node: exp.Between) -> Expression:
    """value BETWEEN low AND high: all three have one type."""
    span = span_of(node)
    nodes = (node.this, node.args["low"], node.args["high"])
    values = [binder.bind_flexible(each) for each in nodes]
    unified, _ = unify(values, "BETWEEN", span, ordering_type)
    value, low, high = collated(unified, span)
    parts = (
        comparison("greater_equal", value, low, span),
        comparison("less_equal", value, high, span),
    )
    return folded(Call("and", parts, BOOLEAN, span))


def bind_in(binder: ExpressionBinder, node: exp.In) -> Expression:
    """IN over a list or a subquery, of values or rows."""
    query = node.args.get("query")
    if query is None and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Values):
        query = node.expressions[0]
    span = span_of(node)
    if query is not None:
        return subqueries.bind_in(binder, node.this, query, span)
    if node.args.get("field") is not None:
        return in_lists.bind_in(binder, node.this, node.args["field"], span)
    if isinstance(node.this, exp.Tuple):
        return in_lists.any_of(_in_rows(binder, node.this, node.expressions, span), span)
    written, nodes = binder.bind_flexible(node.this), node.expressions
    if not nodes:
        return in_lists.is_among_none(written, span)
    in_lists.check_no_list_among(binder.context, written, nodes)
    values = [written, *map(binder.bind_flexible, nodes)]
    unified, _ = unify(values, "an IN list", span, equality_type)
    operand, *choices = collated(unified, span)
    if all(
        isinstance(each, Varying) or (isinstance(each, Literal) and each.value is not None)
        for each in choices
    ):
        return in_lists.is_one_of(operand, choices, span)
    return in_lists.any_of([comparison("equal", operand, choice, span) for choice in choices], span)


def _in_rows(
    binder: ExpressionBinder, operand: exp.Tuple, choices: Sequence[exp.Expr], span: Span | None
) -> list[Expression]:
    rows = [row for row in choices if isinstance(row, exp.Tuple)]
    for row in choices:
        if not isinstance(row, (exp.Tuple, exp.Null)):
            raise UnsupportedError(
                "comparing a row with anything but a row (a, b, ...) is not supported", span_of(row)
            )
    nulls = [Literal(None, BOOLEAN)] * (len(choices) - len(rows))
    return [*(_equal_rows(binder, operand, rows, span) if rows else ()), *nulls]
