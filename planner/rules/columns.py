"""Rewriting plans by column ids: references, substitution, new ids, projections that pass columns on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from tqp.core.datatypes import BIGINT, DataType
from tqp.core.schema import Field, Schema
from tqp.planner.algebra.expressions import Call, ColumnRef, Expression, Literal, SortKey, transform
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.logical_plan import LogicalPlan, Project, Shared, Window
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.algebra.subquery_expressions import Subquery
from tqp.planner.algebra.window_calls import WindowCall


@dataclass
class NewIds:
    """Hands out column ids and identifiers of Shared nodes that nothing in a query has."""

    next_id: int = 0
    next_shared: int = 0

    def avoid(self, nodes: Iterable[LogicalPlan]) -> None:
        """Hand out none that one of the nodes has."""
        for node in nodes:
            self.next_id = max([self.next_id, *[field.id + 1 for field in node.created_fields]])
            if isinstance(node, Shared):
                self.next_shared = max(self.next_shared, node.identifier + 1)

    def new_id(self) -> int:
        """A column id."""
        self.next_id += 1
        return self.next_id - 1

    def new_field(self, name: str, data_type: DataType, nullable: bool = True) -> Field:
        """A field under a new id."""
        return Field(self.new_id(), name, data_type, nullable)

    def renewed(self, field: Field) -> Field:
        """The field under a new id."""
        return replace(field, id=self.new_id())

    def new_shared(self) -> int:
        """An identifier of Shared nodes."""
        self.next_shared += 1
        return self.next_shared - 1


#: The expression that reads a field.
reference = ColumnRef.of


def key_field(key: Expression, plan: LogicalPlan, new: NewIds) -> Field:
    """The field of a group key: the input's own for a bare column, else a new one."""
    if isinstance(key, ColumnRef):
        return next(field for field in plan.schema if field.id == key.id)
    return new.new_field("key", key.data_type)


def substitute(expression: Expression, mapping: Mapping[int, Expression]) -> Expression:
    """The expression with the columns in `mapping` replaced, inside subqueries too."""
    if isinstance(expression, ColumnRef):
        return mapping.get(expression.id, expression)

    def on_node(node: Expression) -> Expression:
        if isinstance(node, ColumnRef):
            return mapping.get(node.id, node)
        if isinstance(node, Subquery):
            return with_plan(node, substitute_plan(node.plan, mapping))
        if isinstance(node, Call) and node.function == "struct_extract":
            return without_struct(node, {})
        return node

    return transform(expression, on_node)


def without_struct(call: Call, fields: FieldsById) -> Expression:
    """What a struct_extract takes out of a struct that is made just for it, where that raises for no row; else the call."""
    made, place = call.arguments
    if not isinstance(made, Call) or made.function != "struct_pack" or not isinstance(place, Literal):
        return call
    if type(place.value) is not int or may_raise(made, fields):
        return call
    return made.arguments[place.value - 1]


def substitute_plan(plan: LogicalPlan, mapping: Mapping[int, Expression]) -> LogicalPlan:
    """The plan with its correlated columns replaced."""
    if plan.free_ids.isdisjoint(mapping):
        return plan
    plan = plan.map_inputs(lambda child: substitute_plan(child, mapping))
    return plan.map_expressions(lambda expression: substitute(expression, mapping))


def renumber(plan: LogicalPlan, ids: Mapping[int, int]) -> LogicalPlan:
    """The plan with column ids replaced wherever they are produced or read; in Shared inputs, those read from outside."""

    def on_node(node: Expression) -> Expression:
        if isinstance(node, ColumnRef):
            return replace(node, id=ids[node.id]) if node.id in ids else node
        if isinstance(node, Subquery):
            return with_plan(node, renumber(node.plan, ids))
        return node

    def on_field(field: Field) -> Field:
        return replace(field, id=ids[field.id]) if field.id in ids else field

    ids_within = ids
    if isinstance(plan, Shared):
        ids_within = {id: ids[id] for id in plan.input.free_ids & ids.keys()}
    if ids_within:
        plan = plan.map_inputs(lambda child: renumber(child, ids_within))
    return plan.map_expressions(lambda expression: transform(expression, on_node)).map_fields(on_field)


def fresh_copy(
    plan: LogicalPlan, new: NewIds, chosen: Mapping[int, int] | None = None
) -> tuple[LogicalPlan, dict[int, int]]:
    """The same plan under new ids (those in `chosen` are given), and the new id of each column."""
    ids: dict[int, int] = dict(chosen or {})
    stack = [plan]
    while stack:
        node = stack.pop()
        for field in node.created_fields:
            if field.id not in ids:
                ids[field.id] = new.new_id()
        if not isinstance(node, Shared):
            stack.extend(node.inputs)
        stack.extend(node.subqueries)
    return renumber(plan, ids), ids


def shared_twice(plan: LogicalPlan, new: NewIds) -> tuple[Shared, Shared]:
    """The plan, computed once for two readers: under its own ids, and under new ones."""
    copy, _ = fresh_copy(plan, new)
    identifier, schema = new.new_shared(), plan.schema
    return Shared(copy, identifier, schema), Shared(copy, identifier, tuple(map(new.renewed, schema)))


def numbered(
    plan: LogicalPlan, new: NewIds, partition: Iterable[Field] = (), order: Iterable[SortKey] = ()
) -> tuple[Window, ColumnRef]:
    """The plan with the number of each row in its partition, from 1, as one more column; without `order`, as the rows come."""
    made = new.new_field("row_number", BIGINT, nullable=False)
    call = WindowCall("row_number", (), BIGINT)
    return Window(plan, tuple(map(reference, partition)), tuple(order), (made,), (call,)), reference(made)


def with_plan(subquery: Subquery, plan: LogicalPlan) -> Subquery:
    """The subquery expression with another plan."""
    return subquery if plan is subquery.plan else replace(subquery, plan=plan)


def in_subqueries(plan: LogicalPlan, function: Callable[[LogicalPlan], LogicalPlan]) -> LogicalPlan:
    """The node with `function` of the plans of the subqueries in its own expressions."""
    if not plan.subqueries:
        return plan

    def on_part(part: Expression) -> Expression:
        return with_plan(part, function(part.plan)) if isinstance(part, Subquery) else part

    return plan.map_expressions(lambda whole: transform(whole, on_part))


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
