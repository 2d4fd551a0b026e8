"""Group by the fields of structs, and by bytes that stand for other nested values; the values are taken from any row of the group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tqp.core.datatypes import BIGINT, BLOB, BOOLEAN, TypeKind
from tqp.planner.algebra.expressions import AggregateCall, Call, Expression, Literal
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan
from tqp.planner.rules.context import OptimizerContext

#: Fields that are keys of their own; of a struct with more, its bytes are one.
_MOST_FIELDS = 8


def group_by_order_keys(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """GROUP BY a list becomes GROUP BY its order key with any_value(list), and so does DISTINCT; a struct has a key for each field.

    Exact because order keys are equal where the values are, NULL being NULL; a struct that is NULL is told by one more key.
    """
    return context.rewrite_each(plan, Aggregate, lambda node: _by_order_keys(node, context))


def _by_order_keys(plan: Aggregate, context: OptimizerContext) -> Aggregate:
    if not any(key.data_type.is_composed for key in plan.keys):
        return plan
    key_fields, keys, taken = [], [], []
    for field, key in zip(plan.key_fields, plan.keys, strict=True):
        if not key.data_type.is_composed:
            key_fields.append(field)
            keys.append(key)
            continue
        taken.append((field, AggregateCall("any_value", (key,), key.data_type)))
        for part, nullable in _parts(key, field.nullable):
            key_fields.append(context.new_field(f"key_{field.name}", part.data_type, nullable))
            keys.append(part)
    return replace(
        plan,
        key_fields=tuple(key_fields),
        keys=tuple(keys),
        aggregate_fields=(*plan.aggregate_fields, *(field for field, _ in taken)),
        aggregates=(*plan.aggregates, *(call for _, call in taken)),
    )


def _parts(key: Expression, nullable: bool) -> Iterator[tuple[Expression, bool]]:
    """Keys that are equal where the key is, and whether they may be NULL."""
    data_type = key.data_type
    if data_type.kind is not TypeKind.STRUCT or not 0 < len(data_type.children) <= _MOST_FIELDS:
        yield (Call("order_key", (key,), BLOB), nullable) if data_type.is_composed else (key, nullable)
        return
    if nullable:
        yield Call("is_null", (key,), BOOLEAN), False
    for place, child in enumerate(data_type.children, 1):
        yield from _parts(Call("struct_extract", (key, Literal(place, BIGINT)), child), True)
