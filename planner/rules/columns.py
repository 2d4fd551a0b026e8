"""Which columns plans and expressions read and produce, by id, and how to rewrite expressions and ids in a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from tqp.core.schema import Field, Schema
from tqp.planner.algebra.expressions import (
    AggregateCall,
    ColumnRef,
    Exists,
    Expression,
    QuantifiedComparison,
    ScalarSubquery,
    transform,
    walk,
)
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    JoinType,
    LogicalPlan,
    Project,
    Scan,
    Shared,
    Sort,
    UnionAll,
    Values,
)

if TYPE_CHECKING:
    from tqp.planner.optimizer import OptimizerContext

Subquery = ScalarSubquery | Exists | QuantifiedComparison

#: Join types whose output holds the columns of both inputs.
TWO_SIDED = frozenset({JoinType.INNER, JoinType.LEFT, JoinType.FULL, JoinType.SINGLE})


def reference(field: Field) -> ColumnRef:
    """The expression that reads a field."""
    return ColumnRef(field.id, field.data_type, field.name)


def read_ids(expression: Expression) -> set[int]:
    """Ids of the columns an expression reads, those that its subqueries read from outside included."""
    ids: set[int] = set()
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, ColumnRef):
            ids.add(node.id)
            continue
        if isinstance(node, Subquery):
            ids |= free_ids(node.plan)
        stack.extend(node.inputs)
    return ids


def output_ids(plan: LogicalPlan) -> set[int]:
    """Ids of the columns a plan puts out."""
    if isinstance(plan, Join):
        ids = output_ids(plan.left)
        if plan.join_type in TWO_SIDED:
            ids |= output_ids(plan.right)
        elif plan.mark is not None:
            ids.add(plan.mark.id)
        return ids
    own = created_fields(plan)
    if own or not plan.inputs:
        return {field.id for field in own}
    if isinstance(plan, Project | Aggregate | UnionAll | Shared):
        return set()
    return output_ids(plan.inputs[0])


def created_fields(plan: LogicalPlan) -> Schema:
    """The fields that the node itself lists (a Project or Aggregate may pass some on from its input)."""
    match plan:
        case Project() | Scan() | Values() | UnionAll() | Shared():
            return plan.fields
        case Aggregate():
            return plan.key_fields + plan.aggregate_fields
        case Join():
            return () if plan.mark is None else (plan.mark,)
        case _:
            return ()


def free_ids(plan: LogicalPlan) -> set[int]:
    """Ids that a plan reads but does not produce: its correlated columns. Relies on ids being unique in a query."""
    reads: set[int] = set()
    produced: set[int] = set()
    for node in walk_everything(plan):
        for expression in node.expressions:
            for part in walk(expression):
                if isinstance(part, ColumnRef):
                    reads.add(part.id)
        # A Project or Aggregate may pass on an outer column under its own id: that is a read, not a production.
        passed: tuple[Expression, ...] = ()
        if isinstance(node, Project):
            passed = node.outputs
        elif isinstance(node, Aggregate):
            passed = node.keys
        kept = {expression.id for expression in passed if isinstance(expression, ColumnRef)}
        produced.update([field.id for field in created_fields(node) if field.id not in kept])
    return reads - produced


class FreeColumns:
    """`free_ids` of many plans that share nodes: each node is looked at once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[LogicalPlan, frozenset[int]]] = {}

    def of(self, plan: LogicalPlan) -> frozenset[int]:
        """Ids that a well-formed plan reads but does not produce."""
        known = self._known.get(id(plan))
        if known is None:  # the plan is kept too, so that its id stays its own
            known = self._known[id(plan)] = (plan, self._derive(plan))
        return known[1]

    def _derive(self, plan: LogicalPlan) -> frozenset[int]:
        free: set[int] = set()
        for child in plan.inputs:
            free |= self.of(child)
        for expression in plan.expressions:
            for part in walk(expression):
                if isinstance(part, ColumnRef):
                    free.add(part.id)
                elif isinstance(part, Subquery):
                    free |= self.of(part.plan)
        for child in plan.inputs if free else ():
            free -= output_ids(child)
        return frozenset(free)


def has_subquery(expression: Expression) -> bool:
    """Does a subquery stand anywhere in the expression?"""
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, Subquery):
            return True
        stack.extend(node.inputs)
    return False


def substitute(expression: Expression, mapping: Mapping[int, Expression]) -> Expression:
    """The expression with the columns in `mapping` replaced, inside subqueries too."""
    if isinstance(expression, ColumnRef):
        return mapping.get(expression.id, expression)

    def on_node(node: Expression) -> Expression:
        if isinstance(node, ColumnRef):
            return mapping.get(node.id, node)
        if isinstance(node, Subquery):
            return with_plan(node, substitute_plan(node.plan, mapping))
        return node

    return transform(expression, on_node)


def substitute_plan(plan: LogicalPlan, mapping: Mapping[int, Expression]) -> LogicalPlan:
    """The plan with its correlated columns replaced."""
    plan = with_mapped_inputs(plan, lambda child: substitute_plan(child, mapping))
    return map_expressions(plan, lambda expression: substitute(expression, mapping))


def with_mapped_inputs(plan: LogicalPlan, function: Callable[[LogicalPlan], LogicalPlan]) -> LogicalPlan:
    """The node over `function` of each input; the same object if nothing changes."""
    inputs = plan.inputs
    if not inputs:
        return plan
    changed = tuple([function(child) for child in inputs])
    if all(new is old for new, old in zip(changed, inputs, strict=True)):
        return plan
    return plan.with_inputs(changed)


def map_expressions(plan: LogicalPlan, function: Callable[[Expression], Expression]) -> LogicalPlan:
    """The node with `function` applied to each of its expressions; the same object if nothing changes."""
    old = plan.expressions
    if not old:
        return plan
    new = tuple([function(expression) for expression in old])
    if all(after is before for after, before in zip(new, old, strict=True)):
        return plan
    return with_expressions(plan, new)


def with_expressions(plan: LogicalPlan, expressions: tuple[Expression, ...]) -> LogicalPlan:
    """The node with its expressions (in the order of `LogicalPlan.expressions`) replaced."""
    match plan:
        case Filter():
            return replace(plan, condition=expressions[0])
        case Project():
            return replace(plan, outputs=expressions)
        case Join():
            return replace(plan, condition=expressions[0])
        case Aggregate():
            count = len(plan.keys)
            aggregates = cast(tuple[AggregateCall, ...], expressions[count:])
            return replace(plan, keys=expressions[:count], aggregates=aggregates)
        case Sort():
            keys = tuple(replace(key, expression=e) for key, e in zip(plan.keys, expressions, strict=True))
            return replace(plan, keys=keys)
        case Values():
            width = len(plan.fields)
            rows = tuple(expressions[i * width : (i + 1) * width] for i in range(len(plan.rows)))
            return replace(plan, rows=rows)
        case _:
            return plan


def renumber(plan: LogicalPlan, ids: Mapping[int, int]) -> LogicalPlan:
    """The plan with column ids replaced wherever they are produced or read. Does not enter Shared inputs."""

    def on_node(node: Expression) -> Expression:
        if isinstance(node, ColumnRef):
            return replace(node, id=ids[node.id]) if node.id in ids else node
        if isinstance(node, Subquery):
            return with_plan(node, renumber(node.plan, ids))
        return node

    def on_fields(fields: Schema) -> Schema:
        return tuple(replace(field, id=ids[field.id]) if field.id in ids else field for field in fields)

    if isinstance(plan, Shared):
        return replace(plan, fields=on_fields(plan.fields))
    plan = with_mapped_inputs(plan, lambda child: renumber(child, ids))
    plan = map_expressions(plan, lambda expression: transform(expression, on_node))
    match plan:
        case Project() | Scan() | Values() | UnionAll():
            return replace(plan, fields=on_fields(plan.fields))
        case Aggregate():
            return replace(
                plan, key_fields=on_fields(plan.key_fields), aggregate_fields=on_fields(plan.aggregate_fields)
            )
        case Join() if plan.mark is not None:
            return replace(plan, mark=on_fields((plan.mark,))[0])
        case _:
            return plan


def fresh_copy(
    plan: LogicalPlan, context: OptimizerContext, chosen: Mapping[int, int] | None = None
) -> tuple[LogicalPlan, dict[int, int]]:
    """The same plan under new ids (those in `chosen` are given), and the new id of each column."""
    ids: dict[int, int] = dict(chosen or {})
    stack = [plan]
    while stack:
        node = stack.pop()
        for field in created_fields(node):
            if field.id not in ids:
                ids[field.id] = context.new_id()
        if not isinstance(node, Shared):
            stack.extend(node.inputs)
        for expression in node.expressions:
            stack.extend(subquery_plans(expression))
    return renumber(plan, ids), ids


def with_plan(subquery: Subquery, plan: LogicalPlan) -> Subquery:
    """The subquery expression with another plan."""
    return subquery if plan is subquery.plan else replace(subquery, plan=plan)


def subquery_plans(expression: Expression) -> list[LogicalPlan]:
    """The plans of the subqueries in an expression, not those inside them."""
    return [node.plan for node in walk(expression) if isinstance(node, Subquery)]


def walk_everything(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    """The plan and all below it, inside subqueries too; what Shared nodes share once."""
    shared: set[int] = set()
    stack = [plan]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Shared):
            if node.identifier in shared:
                continue
            shared.add(node.identifier)
        for expression in node.expressions:
            stack.extend(subquery_plans(expression))
        stack.extend(node.inputs)


def restore_schema(plan: LogicalPlan, fields: Schema) -> LogicalPlan:
    """A Project on top, if needed, so that exactly `fields` come out, in order. For readers by position."""
    schema = plan.schema
    if len(schema) == len(fields) and all(a.id == b.id for a, b in zip(schema, fields, strict=True)):
        return plan
    return pass_through(plan, (field.id for field in fields))


def pass_through(plan: LogicalPlan, ids: Iterable[int]) -> Project:
    """A Project that passes on the columns with these ids, in order."""
    by_id = {field.id: field for field in plan.schema}
    fields = tuple(by_id[identifier] for identifier in ids)
    return Project(plan, fields, tuple(reference(field) for field in fields))


def is_pass_through(plan: LogicalPlan) -> bool:
    """True for a Project that only drops or reorders columns."""
    return isinstance(plan, Project) and all(
        isinstance(output, ColumnRef) and output.id == field.id
        for field, output in zip(plan.fields, plan.outputs, strict=True)
    )
