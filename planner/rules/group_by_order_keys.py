"""Group by the fields of structs, and by bytes that stand for other nested values, which are taken from any row of the group."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tqp.core.datatypes import BIGINT, BLOB, BOOLEAN, TypeKind
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import AggregateCall, Call, Case, Expression, Literal
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan, Project
from tqp.planner.algebra.outcomes import nullable
from tqp.planner.algebra.value_ranges import longest_list
from tqp.planner.rules.columns import reference
from tqp.planner.rules.context import OptimizerContext

#: Fields that are keys of their own; of a struct with more, its bytes are one.
_MOST_FIELDS = 8
#: Elements that are keys of their own; of lists that may have more, their bytes are one.
_MOST_ELEMENTS = 3


def group_by_order_keys(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """GROUP BY a list becomes GROUP BY its order key with any_value(list), and so does DISTINCT; a struct has a key for each field.

    Exact because order keys are equal where the values are, NULL being NULL; a struct that may be NULL has one more key that tells.
    Lists that are known to be short have keys for their length and for each element: these are equal where the lists are.
    """
    return context.rewrite_each(plan, Aggregate, lambda node: _by_order_keys(node, context))


def _by_order_keys(plan: Aggregate, context: OptimizerContext) -> LogicalPlan:
    if not any(key.data_type.is_composed for key in plan.keys):
        return plan
    parts = _Parts(plan.input.field_facts, context)
    outputs = [parts.add(key, made) for made, key in zip(plan.key_fields, plan.keys, strict=True)]
    grouped = replace(
        plan,
        key_fields=tuple(parts.key_fields),
        keys=tuple(parts.keys),
        aggregate_fields=(*plan.aggregate_fields, *parts.taken_fields),
        aggregates=(*plan.aggregates, *parts.taken),
    )
    return Project(grouped, plan.schema, (*outputs, *map(reference, plan.aggregate_fields)))


@dataclass
class _Parts:
    """Keys that are equal where given ones are, and what else is taken of a group so that these can be told from it."""

    known: FieldsById
    context: OptimizerContext
    keys: list[Expression] = field(default_factory=list)
    key_fields: list[Field] = field(default_factory=list)
    taken: list[AggregateCall] = field(default_factory=list)
    taken_fields: list[Field] = field(default_factory=list)

    def add(self, key: Expression, made: Field | None = None) -> Expression:
        """The key of a group, of what the group-by puts out. `made`: the field that it gets; None: a new one."""
        data_type = key.data_type
        if data_type.kind is TypeKind.STRUCT and 0 < len(data_type.children) <= _MOST_FIELDS:
            return self._struct(key)
        made = made or self.context.new_field("key", data_type)
        if not data_type.is_composed:
            self._add_key(key, made)
            return reference(made)
        longest = longest_list(key, self.known) if data_type.kind is TypeKind.LIST else None
        if longest is not None and longest <= _MOST_ELEMENTS:
            self._add_key(Call("list_length", (key,), BIGINT))
            for place in range(1, longest + 1):
                self.add(Call("list_extract", (key, Literal(place, BIGINT)), data_type.element))
        else:
            self._add_key(Call("order_key", (key,), BLOB))
        self.taken.append(AggregateCall("any_value", (key,), data_type))
        self.taken_fields.append(made)
        return reference(made)

    def _struct(self, key: Expression) -> Expression:
        data_type, can_be_null = key.data_type, nullable(key, self.known)
        is_null = self._add_key(Call("is_null", (key,), BOOLEAN)) if can_be_null else None
        fields = (
            self.add(Call("struct_extract", (key, Literal(place, BIGINT)), child))
            for place, child in enumerate(data_type.children, 1)
        )
        whole = Call("struct_pack", tuple(fields), data_type)
        return whole if is_null is None else Case(((is_null, Literal(None, data_type)),), whole, data_type)

    def _add_key(self, key: Expression, made: Field | None = None) -> Expression:
        made = made or self.context.new_field("key", key.data_type)
        self.keys.append(key)
        self.key_fields.append(made)
        return reference(made)
