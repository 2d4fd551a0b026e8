"""UNION, INTERSECT, EXCEPT. The last two are semi and anti joins in which NULLs are equal; with ALL, of rows and the number of each copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from tqp.core.datatypes import BOOLEAN, DataType
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.core.schema import Field, Schema
from tqp.planner.algebra.expressions import Call, ColumnRef, Expression, Literal, conjunction
from tqp.planner.algebra.logical_plan import Join, JoinType, LogicalPlan, Project, Sort, SortKey, UnionAll
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.coercion import comparison
from tqp.planner.binder.expressions.collations import compared, with_collation
from tqp.planner.binder.expressions.scalars import ExpressionBinder
from tqp.planner.binder.expressions.subqueries import cast_columns, is_null_output
from tqp.planner.binder.scope import Relation, Scope
from tqp.planner.binder.select.groups import distinct_rows
from tqp.planner.binder.select.limits import bind_limit, keys_of
from tqp.planner.binder.select.ordinals import ordinal
from tqp.planner.binder.select.output import BoundQuery, Branch
from tqp.planner.binder.select.row_numbers import numbered, with_columns_of
from tqp.planner.binder.select.written import Written
from tqp.planner.functions.type_rules import forced_type
from tqp.planner.parse import Span, head_span, span_of


def bind_set_operation(context: BindContext, node: exp.SetOperation, scope: Scope) -> BoundQuery:
    """The operation with its ORDER BY and LIMIT."""
    query = _combine(context, node, scope)
    plan = bind_result_order(context, node, query, scope)
    return replace(query, plan=bind_limit(context, node, plan, scope))


def _combine(context: BindContext, node: exp.SetOperation, scope: Scope) -> BoundQuery:
    keep_duplicates = not node.args.get("distinct")
    operands = _operands(node, keep_duplicates)
    bound = [context.bind_query.bind_exact(operand, scope.outside()) for operand in operands]
    plans = [each.plan for each in bound]
    names = list(bound[0].names)
    branches = [branch for each in bound for branch in each.branches]
    if node.args.get("by_name"):
        plans, names = _by_name(context, bound, head_span(node))
        lowered = [lower_ascii(name) for name in names]
        branches = [
            branch.moved([lowered.index(lower_ascii(name)) for name in each.names])
            for each in bound
            for branch in each.branches
        ]
    plans = _same_types(context, plans, node)
    if isinstance(node, exp.Union):
        union = UnionAll(tuple(plans), _union_fields(context, plans, names))
        return BoundQuery.exact(union if keep_duplicates else distinct_rows(context, union), names, branches)
    keyword = "INTERSECT" if isinstance(node, exp.Intersect) else "EXCEPT"
    join_type = JoinType.SEMI if isinstance(node, exp.Intersect) else JoinType.ANTI
    left, right = plans
    if len({made.id for made in left.schema}) < len(left.schema):
        raise UnsupportedError(f"{keyword} over a repeated column is not supported", head_span(node))
    rows = left if keep_duplicates else distinct_rows(context, left)
    pairs = list(zip(map(ColumnRef.of, rows.schema), map(ColumnRef.of, right.schema), strict=True))
    conditions: list[Expression] = []
    if not keep_duplicates:
        conditions = [comparison("is_not_distinct_from", *pair, None) for pair in pairs]
    else:  # the second copy of a row pairs up with the second one; collations do not count, as in DuckDB
        rows, number = numbered(context, left, [ColumnRef.of(made) for made in left.schema])
        right, other = numbered(context, right, [ColumnRef.of(made) for made in right.schema])
        pairs.append((number, other))
        conditions = [Call("is_not_distinct_from", pair, BOOLEAN) for pair in pairs]
    joined = Join(rows, right, join_type, conjunction(tuple(conditions)))
    return BoundQuery.exact(with_columns_of(joined, left) if keep_duplicates else joined, names, branches)


def _operands(node: exp.SetOperation, keep_duplicates: bool) -> list[exp.Expr]:
    """The operands; a chain of one kind of UNION is one n-ary union."""
    if node.args.get("by_name") or not isinstance(node, exp.Union):
        return [node.this, node.expression]
    operands: list[exp.Expr] = [node.expression]
    left = node.this
    while (
        isinstance(left, exp.Union)
        and not left.args.get("by_name")
        and (not left.args.get("distinct")) == keep_duplicates
        and not any(left.args.get(key) for key in ("order", "limit", "offset", "with_"))
    ):
        operands.append(left.expression)
        left = left.this
    operands.append(left)
    return operands[::-1]


def _same_types(context: BindContext, plans: list[LogicalPlan], node: exp.SetOperation) -> list[LogicalPlan]:
    span = head_span(node)
    width = len(plans[0].schema)
    for plan in plans:
        if len(plan.schema) != width:
            raise BindError(
                f"{node.key.upper()}: one side has {width} columns, the other {len(plan.schema)}", span
            )
    types = [made.data_type for made in plans[0].schema]
    for plan in plans[1:]:
        for index, made in enumerate(plan.schema):
            common = forced_type(types[index], made.data_type)
            if common is None and is_null_output(plan, index):
                common = types[index]
            elif common is None and all(is_null_output(each, index) for each in plans[: plans.index(plan)]):
                common = made.data_type
            if common is None:
                raise BindError(
                    f"{node.key.upper()}: column {index + 1} is {types[index]} on one side and {made.data_type} on "
                    "the other; cast one of them",
                    span,
                )
            types[index] = with_collation(common, types[index], made.data_type)
    return [cast_columns(context, plan, types, span) for plan in plans]


def _union_fields(context: BindContext, plans: Sequence[LogicalPlan], names: Sequence[str]) -> Schema:
    fields: list[Field] = []
    for index, name in enumerate(names):
        nullable = any(plan.schema[index].nullable for plan in plans)
        fields.append(context.new_field(name, plans[0].schema[index].data_type, nullable))
    return tuple(fields)


def _by_name(
    context: BindContext, bound: Sequence[BoundQuery], span: Span | None
) -> tuple[list[LogicalPlan], list[str]]:
    """UNION BY NAME: columns pair up by name; one that a side lacks is NULL there."""
    all_columns: dict[str, tuple[str, DataType]] = {}
    for query in bound:
        lower = [lower_ascii(name) for name in query.names]
        repeated = next((name for name in query.names if lower.count(lower_ascii(name)) > 1), None)
        if repeated is not None:
            raise BindError(f'UNION BY NAME: one side has several columns "{repeated}"; rename one', span)
        for name, made in zip(query.names, query.plan.schema):
            all_columns.setdefault(lower_ascii(name), (name, made.data_type))
    plans: list[LogicalPlan] = []
    for query in bound:
        own = {lower_ascii(name): made for name, made in zip(query.names, query.plan.schema)}
        fields: list[Field] = []
        outputs: list[Expression] = []
        for key, (name, data_type) in all_columns.items():
            lacking = context.new_field(name, data_type) if key not in own else None
            fields.append(lacking or own[key])
            outputs.append(Literal(None, data_type) if lacking else ColumnRef.of(own[key]))
        plans.append(Project(query.plan, tuple(fields), tuple(outputs)))
    return plans, [name for name, _ in all_columns.values()]


def bind_result_order(context: BindContext, node: exp.Expr, query: BoundQuery, scope: Scope) -> LogicalPlan:
    """ORDER BY of a set operation or VALUES, if it has one.

    By position, by a name or an expression of one of the operands, or by an expression over the columns.
    """
    order = node.args.get("order")
    if order is None:
        return query.plan
    fields = query.plan.schema
    binder = ExpressionBinder(
        context, Scope([Relation("", query.columns)], scope.parent, scope.ctes), "this ORDER BY"
    )
    keys: list[SortKey] = []
    for written, descending, nulls_first in keys_of(order, context.catalog):
        if written is None or isinstance(written, exp.Star):
            keys += [SortKey(compared(ColumnRef.of(made)), descending, nulls_first) for made in fields]
            continue
        place = ordinal(written, len(fields), "ORDER BY")
        if place is None:
            place = _place(context.query, written, query.branches)
        key = binder.bind(written) if place is None else ColumnRef.of(fields[place])
        keys.append(SortKey(compared(key, span_of(written)), descending, nulls_first))
    return Sort(query.plan, tuple(keys))


def _place(query: str, node: exp.Expr, branches: Sequence[Branch]) -> int | None:
    """The column that an operand has by this name, or else written like this; the first operand's if several have one.

    What means the same where the tables are named must stand in one place. A column may be written with its table or without.
    """
    name = node.unnest()
    if isinstance(name, exp.Column) and not name.table:
        for branch in branches:
            place = branch.place_of_name(name.name)
            if place is not None:
                return place
    text = Written[None](query, Scope()).text(node)
    items = [item for branch in branches for item in branch.written()]
    for place, written, meaning in items:
        if text == written or (isinstance(name, exp.Column) and text == meaning):
            if any(meaning == other and place != elsewhere for elsewhere, _, other in items):
                raise BindError(
                    "ORDER BY is ambiguous: several columns are written like this; name one by its number",
                    span_of(node),
                )
            return place
    return None
