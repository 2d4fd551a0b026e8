"""Aggregate whole partitions by GROUP BY, and join the rows with that by what these are partitioned by."""

from __future__ import annotations

from tqp.core.datatypes import BOOLEAN
from tqp.planner.algebra.expressions import Call, ColumnRef, Expression, conjunction
from tqp.planner.algebra.known_fields import Fields
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Join,
    JoinType,
    LogicalPlan,
    Scan,
    Shared,
    Window,
)
from tqp.planner.algebra.outcomes import nullable
from tqp.planner.functions.registry import AGGREGATES
from tqp.planner.rules.columns import fresh_copy, is_pass_through, key_field
from tqp.planner.rules.context import OptimizerContext

#: Of fewer rows, grouping them where they have been collected takes less than a join.
_FEWEST_ROWS = 16_384.0


def aggregate_partitions(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """SELECT x - avg(x) OVER (PARTITION BY k) FROM t joins t with SELECT k, avg(x) FROM t GROUP BY k, where NULL equals NULL.

    Each row has one partner, its partition. The rows of t are then grouped and joined batch by batch, by all workers, and never
    collected; conditions on other columns of t sink below the join. A source that is more than a scan is computed once for both.
    """
    joined: dict[int, Join] = {}  # those that stand for windows, by id()

    def rewrite(node: Window) -> LogicalPlan:
        if not _is_aggregated(node):
            return node
        # All that the nodes in between do is to add columns to rows.
        source = node.input
        while isinstance(source, Window) or (isinstance(source, Join) and id(source) in joined):
            below = source.inputs[0]
            if not node.reads <= below.output_ids:
                break
            source = below
        if context.estimator.rows(source) < _FEWEST_ROWS or not _joins_well(node, source.field_facts):
            return node
        rows = node.input
        if not _is_cheap(source):
            if source is not rows:
                return node
            shared, _ = fresh_copy(source, context)
            rows = source = Shared(shared, context.new_shared(), source.schema)
        result = _joined(node, rows, source, context)
        joined[id(result)] = result
        return result

    return context.rewrite_each(plan, Window, rewrite)


def _is_aggregated(node: Window) -> bool:
    """Are there only aggregates of whole partitions?"""
    return not node.order and all(
        call.function in AGGREGATES and call.frame.is_partition for call in node.calls
    )


def _joins_well(node: Window, fields: Fields) -> bool:
    """Strings without a dictionary are compared in a join, which takes longer than to group them once."""
    return not any(
        key.data_type.is_string
        and not (isinstance(key, ColumnRef) and fields[key.id].facts.dictionary_size is not None)
        for key in node.partition
    )


def _is_cheap(source: LogicalPlan) -> bool:
    """Is the source a table or a shared plan as it is, so that it takes nothing to read it twice?"""
    while is_pass_through(source):
        (source,) = source.inputs
    return isinstance(source, Scan | Shared)


def _joined(node: Window, rows: LogicalPlan, source: LogicalPlan, context: OptimizerContext) -> Join:
    """`rows` beside the aggregates of their partitions, which are computed from `source`."""
    key_fields = tuple([key_field(key, source, context) for key in node.partition])
    calls = tuple([call.aggregate for call in node.calls])
    grouped, ids = fresh_copy(
        Aggregate(source, key_fields, node.partition, node.fields, calls),
        context,
        {field.id: field.id for field in node.fields},
    )
    known = source.field_facts
    equalities: list[Expression] = []
    for key, field in zip(node.partition, key_fields, strict=True):
        function = "is_not_distinct_from" if nullable(key, known) else "equal"
        copied = ColumnRef(ids[field.id], field.data_type, field.name)
        equalities.append(Call(function, (key, copied), BOOLEAN))
    return Join(rows, grouped, JoinType.INNER, conjunction(tuple(equalities)))
