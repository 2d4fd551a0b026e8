"""Subqueries in expressions: scalar, EXISTS, IN, ANY, ALL. Correlated references are ids of an enclosing block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import BOOLEAN, NULL, VARCHAR, DataType, list_of
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import (
    AggregateCall,
    Call,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    SortKey,
)
from tqp.planner.algebra.logical_plan import Aggregate, Filter, Limit, LogicalPlan, Project, Sort
from tqp.planner.algebra.subquery_expressions import Exists, QuantifiedComparison, ScalarSubquery
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.coercion import cast_to, folded
from tqp.planner.binder.expressions.collations import collated, with_collation
from tqp.planner.functions.type_rules import common_type
from tqp.planner.parse import Span, span_of, written_fields

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


def bind_scalar(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """(SELECT one column)."""
    span = span_of(node)
    with binder.around_subquery() as scope:
        bound = binder.context.bind_query.bind_exact(node, scope)
    if len(bound.plan.schema) != 1:
        raise BindError(
            f"a subquery used as a value must have one column, and this has {len(bound.plan.schema)}", span
        )
    return ScalarSubquery(bound.plan, bound.plan.schema[0].data_type, span)


def bind_array(binder: ExpressionBinder, query: exp.Expr, span: Span | None) -> Expression:
    """ARRAY(SELECT one column): its values as a list, which is empty where the query has no rows.

    They stand in the list in the order of the query's ORDER BY, which the list asks for itself: rows of a correlated subquery
    come in any order.
    """
    with binder.around_subquery() as scope:
        plan = binder.context.bind_query.bind_exact(query, scope).plan
    if len(plan.schema) != 1:
        raise BindError(f"ARRAY(SELECT ...) takes one column, and this has {len(plan.schema)}", span)
    value: Expression = ColumnRef.of(plan.schema[0])
    order = _order_of(plan)
    if isinstance(plan, Project) and _order_of(plan.input):  # without the columns that only ORDER BY reads
        order, value, plan = _order_of(plan.input), plan.outputs[0], plan.input
    data_type = list_of(value.data_type)
    call = AggregateCall("list", (value,), data_type, order=order)
    values = binder.context.new_field("list", data_type, True)
    listed = Aggregate(plan, (), (), (values,), (call,))
    found = Call("coalesce", (ColumnRef.of(values), Literal((), data_type)), data_type, span)
    made = Project(listed, (binder.context.new_field("array", data_type, False),), (found,))
    return ScalarSubquery(made, data_type, span)


def _order_of(plan: LogicalPlan) -> tuple[SortKey, ...]:
    """What the rows are sorted by."""
    sort = plan.input if isinstance(plan, Limit) else plan
    return sort.keys if isinstance(sort, Sort) else ()


def bind_exists(binder: ExpressionBinder, node: exp.Exists | exp.Anonymous) -> Expression:
    """EXISTS (query), which sqlglot takes for a call where the query begins with VALUES or a parenthesis."""
    query = node.this if isinstance(node, exp.Exists) else node.expressions[0]
    if not isinstance(query, (exp.Query, exp.Values)):
        raise UnsupportedError("EXISTS over a list is not supported", span_of(node))
    with binder.around_subquery() as scope:
        return Exists(binder.context.bind_query.bind_lazy(query, scope).plan)  # nobody refers to its columns


def bind_in(binder: ExpressionBinder, operand: exp.Expr, query: exp.Expr, span: Span | None) -> Expression:
    """operand IN (SELECT ...) or IN (VALUES ...), also for rows."""
    return _quantified(binder, "equal", False, operand, query, span)


def bind_quantified(binder: ExpressionBinder, node: exp.Binary, function: str) -> Expression:
    """operand <comparison> ANY|ALL (SELECT ...), or of the elements of a list."""
    right = node.expression
    if _is_chain(node):
        raise UnsupportedError(
            "a comparison with ANY or ALL behind one with ALL, or of a list, is not supported: DuckDB leaves it out; "
            "put the first one in parentheses",
            span_of(node),
        )
    inner = _quantified_query(right)
    if not isinstance(inner, (exp.Query, exp.Values)):  # a list, as its elements
        unnested = exp.Anonymous(this="unnest", expressions=[inner.copy()])
        inner = exp.Select(expressions=[unnested])
    return _quantified(binder, function, isinstance(right, exp.All), node.this, inner, span_of(node))


def _quantified_query(right: exp.Any | exp.All) -> exp.Expr:
    query: exp.Expr = right.this
    inner: exp.Expr = query.this if isinstance(query, (exp.Paren, exp.Subquery)) else query
    return inner


def _is_chain(node: exp.Binary) -> bool:
    """Is the left side of a quantified comparison one too, such that DuckDB forgets what comes behind it?"""
    first = node.this.expression if isinstance(node.this, exp.Binary) else None
    is_of_list = isinstance(first, exp.Any) and not isinstance(
        _quantified_query(first), (exp.Query, exp.Values)
    )
    return isinstance(first, exp.All) or is_of_list


def _quantified(
    binder: ExpressionBinder,
    function: str,
    is_all: bool,
    operand: exp.Expr,
    query: exp.Expr,
    span: Span | None,
) -> Expression:
    with binder.around_subquery() as scope:
        plan = binder.context.bind_query.bind_exact(query, scope).plan
    nodes = written_fields(operand)
    has_rows = [column.data_type.is_tuple for column in plan.schema] == [True]
    if (
        nodes is None
        or (len(nodes) > 1 and has_rows)
        or (len(nodes) == 1 and not is_membership(function, is_all))
    ):
        nodes = [operand]  # a value, or a row beside a column of rows
    elif not is_membership(function, is_all):
        raise UnsupportedError(
            "a row compared with the columns of a subquery by other than IN, = ANY and <> ALL is not supported",
            span,
        )
    operands = [binder.bind_flexible(node) for node in nodes]
    return quantified_over(binder.context, function, is_all, operands, plan, span)


def is_membership(function: str, is_all: bool) -> bool:
    """Whether a comparison with ANY or ALL asks what IN or NOT IN does."""
    return function == ("not_equal" if is_all else "equal")


def _comparable_rows(plan: LogicalPlan) -> LogicalPlan:
    """The rows but for UNIONs of a member that is NULL, which equal nothing; the answer is not NULL for them, as in DuckDB."""
    value = ColumnRef.of(plan.schema[0])
    return Filter(plan, Call("are_comparable", (value, value), BOOLEAN))


def quantified_over(
    context: BindContext,
    function: str,
    is_all: bool,
    operands: Sequence[Expression],
    plan: LogicalPlan,
    span: Span | None,
) -> Expression:
    """Bound operands <comparison> ANY|ALL the rows of a plan. Raises BindError where their types do not go together."""
    columns = plan.schema
    if len(columns) != len(operands):
        raise BindError(
            f"the subquery must have {len(operands)} column{'s' if len(operands) > 1 else ''} to compare with, "
            f"and has {len(columns)}",
            span,
        )
    types: list[DataType] = []
    for operand, column in zip(operands, columns):
        common = common_type(operand, ColumnRef.of(column))
        if common is None:
            raise BindError(
                f"cannot compare {operand.data_type} with {column.data_type}; cast one of them", span
            )
        types.append(with_collation(common, operand.data_type, column.data_type))
    cast_operands = tuple(_as_type(operand, common, span) for operand, common in zip(operands, types))
    cast_operands, plan = _by_collation(
        context, cast_operands, cast_columns(context, plan, types, span), span
    )
    if any(each.is_union for each in types):
        if len(types) > 1 or not is_membership(function, is_all):
            raise UnsupportedError(
                "a UNION is compared with a subquery by IN, = ANY and <> ALL alone, and not in a row; others are not supported",
                span,
            )
        plan = _comparable_rows(plan)
    if not is_all and function == "not_equal":
        # x <> ANY (q) is NOT (x = ALL (q))
        equal_all = QuantifiedComparison("equal", True, cast_operands, plan)
        return folded(Call("not", (equal_all,), BOOLEAN, span))
    return QuantifiedComparison(function, is_all, cast_operands, plan)


def _by_collation(
    context: BindContext, operands: tuple[Expression, ...], plan: LogicalPlan, span: Span | None
) -> tuple[tuple[Expression, ...], LogicalPlan]:
    """Operands, and the columns of a plan that they are compared with, under the collations of both."""
    columns = tuple(map(ColumnRef.of, plan.schema))
    pairs = [collated(pair, span) for pair in zip(operands, columns, strict=True)]
    if all(column is known for (_, column), known in zip(pairs, columns, strict=True)):
        return operands, plan
    fields = tuple(context.renewed(each) for each in plan.schema)
    return tuple(operand for operand, _ in pairs), Project(plan, fields, tuple(column for _, column in pairs))


def cast_columns(
    context: BindContext, plan: LogicalPlan, types: Sequence[DataType], span: Span | None
) -> LogicalPlan:
    """The plan with its columns, in order, as `types`; the plan itself if they are."""
    if all(_is_same(column.data_type, wanted) for column, wanted in zip(plan.schema, types)):
        return plan
    fields: list[Field] = []
    outputs: list[Expression] = []
    for index, (column, wanted) in enumerate(zip(plan.schema, types)):
        output: Expression = ColumnRef.of(column)
        if not _is_same(column.data_type, wanted):
            if is_null_output(plan, index):
                output = Literal(None, NULL)  # may be of any type, whatever it was called before
            output = _as_type(output, wanted, span)
            column = context.new_field(column.name, wanted, column.nullable)
        fields.append(column)
        outputs.append(output)
    return Project(plan, tuple(fields), tuple(outputs))


def _as_type(value: Expression, wanted: DataType, span: Span | None) -> Expression:
    """The value cast to a type, a text to one with its collation."""
    made = cast_to(value, wanted, span)
    return made if _is_same(made.data_type, wanted) or made.data_type != VARCHAR else Cast(made, wanted)


def _is_same(column: DataType, wanted: DataType) -> bool:
    return column == wanted and column.collation == wanted.collation


def is_null_output(plan: LogicalPlan, index: int) -> bool:
    """Whether an output column of the plan is a constant NULL that is a number in name only, such as -NULL."""
    output = plan.outputs[index] if isinstance(plan, Project) else None
    return isinstance(output, Literal) and output.value is None and output.data_type.is_numeric
