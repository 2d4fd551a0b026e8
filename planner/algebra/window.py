"""The logical node of window functions: all calls of a query block that agree in PARTITION BY and ORDER BY."""

from __future__ import annotations

from tqp.core.frozen import dataclass
from tqp.core.schema import Schema
from tqp.planner.algebra.derived import derived
from tqp.planner.algebra.expression_text import Names
from tqp.planner.algebra.expressions import ColumnRef, Expression, SortKey
from tqp.planner.algebra.field_facts import window_fields
from tqp.planner.algebra.known_fields import Fields
from tqp.planner.algebra.logical_node import Bounds, Ids, LogicalPlan
from tqp.planner.algebra.node_text import window_text
from tqp.planner.algebra.unique_sets import UniqueSets
from tqp.planner.algebra.window_calls import WindowCall


@dataclass(frozen=True)
class Window(LogicalPlan):
    """The input's rows, with `order` by partition and in order, ties in input order. Schema: the input's fields, then one for each call.

    NULLs are equal in `partition`. Rows that agree in `order` are peers; without it, all rows of a partition are.
    """

    input: LogicalPlan
    partition: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    fields: Schema
    calls: tuple[WindowCall, ...]

    INPUTS, EXPRESSIONS, FIELDS = ("input",), ("partition", "order", "calls"), ("fields",)
    PAIRED = ("fields", "calls")

    @property
    def schema(self) -> Schema:
        return (*self.input.schema, *self.fields)

    @property
    def partition_ids(self) -> frozenset[int]:
        """Ids of the columns that are equal in all rows of a partition."""
        return frozenset([key.id for key in self.partition if isinstance(key, ColumnRef)])

    @derived
    def field_facts(self) -> Fields:
        return window_fields(
            self.input.field_facts, self.partition, self.order, self.fields, self.calls, self.input.max_rows
        )

    @derived
    def row_bounds(self) -> Bounds:
        return self.input.row_bounds

    @derived
    def unique_sets(self) -> UniqueSets:
        return self.input.unique_sets

    def needs(self, needed: Ids) -> tuple[Ids, ...]:
        return (self.reads | (needed & self.input.output_ids),)

    def minds_order(self, is_seen: bool) -> bool:
        return (
            True  # of rows that tie, or of all where there is no order, the first is the first of the input
        )

    def source_of(self, columns: Ids) -> LogicalPlan | None:
        return self.input if columns <= self.partition_ids else None  # whole partitions go

    def describe(self, names: Names) -> str:
        return f"Window{window_text(self.partition, self.order, self.fields, self.calls, names)}"
