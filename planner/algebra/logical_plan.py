"""Logical plan nodes: what to compute, not how. Immutable; each derives from its inputs its schema and what is known of its rows.

All that a node derives is sound: facts of its fields (nullability, value ranges), bounds of its rows, column sets that
identify a row. Column ids are unique over the whole query, so a plan may be moved below another without renaming.
"""

from __future__ import annotations

from collections.abc import Sequence

from tqp.core.frozen import dataclass
from tqp.core.schema import Field, Schema
from tqp.planner.algebra.asof import AsofJoin
from tqp.planner.algebra.derived import derived
from tqp.planner.algebra.expression_text import Names, sort_keys_text
from tqp.planner.algebra.expressions import AggregateCall, ColumnRef, Expression, SortKey, conjuncts
from tqp.planner.algebra.field_facts import (
    aggregate_fields,
    filter_fields,
    most_groups,
    project_field,
    renamed_fields,
    sorted_fields,
    union_field,
)
from tqp.planner.algebra.join import Join, as_nullable
from tqp.planner.algebra.join_keys import JoinType
from tqp.planner.algebra.known_fields import Fields
from tqp.planner.algebra.leaves import Scan, Series, Values, WorkingRows
from tqp.planner.algebra.logical_node import Bounds, Ids, LogicalPlan
from tqp.planner.algebra.node_text import (
    conjunction_text,
    fields_text,
    grouping_text,
    limit_text,
    outputs_text,
)
from tqp.planner.algebra.recursive import Recursive
from tqp.planner.algebra.text_words import with_labels
from tqp.planner.algebra.unique_sets import ONE_ROW, UniqueSets, few, renamed_sets
from tqp.planner.algebra.unnest import Unnest
from tqp.planner.algebra.window import Window
from tqp.planner.functions.registry import AGGREGATES

__all__ = [
    "Aggregate",
    "AsofJoin",
    "Filter",
    "Join",
    "JoinType",
    "Limit",
    "LogicalPlan",
    "Project",
    "Recursive",
    "Scan",
    "Series",
    "Shared",
    "Sort",
    "SortKey",
    "UnionAll",
    "Unnest",
    "Values",
    "Window",
    "WorkingRows",
    "as_nullable",
]


@dataclass(frozen=True)
class KeepsColumns(LogicalPlan):
    """A node whose rows are rows of its only input."""

    input: LogicalPlan

    REQUIRED = LogicalPlan.REQUIRED - {"INPUTS", "FIELDS", "needs", "unique_sets"}
    INPUTS, FIELDS = ("input",), ()

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @derived
    def unique_sets(self) -> UniqueSets:
        return self.input.unique_sets

    def needs(self, needed: Ids) -> tuple[Ids, ...]:
        return (self.reads | needed,)

    def source_of(self, columns: Ids) -> LogicalPlan | None:
        return self.input


@dataclass(frozen=True)
class Filter(KeepsColumns):
    """Rows for which `condition` is true (not false, not NULL)."""

    condition: Expression

    EXPRESSIONS = ("condition",)

    @derived
    def field_facts(self) -> Fields:
        return filter_fields(self.input.field_facts, conjuncts(self.condition))

    @derived
    def row_bounds(self) -> Bounds:
        return 0, self.input.max_rows

    def minds_order(self, is_seen: bool) -> bool:
        return is_seen

    def describe(self, names: Names) -> str:
        return f"Filter {conjunction_text(conjuncts(self.condition), names)}"


@dataclass(frozen=True)
class Project(LogicalPlan):
    """One output per entry. A bare ColumnRef passes its column on, and then the field keeps the column's id."""

    input: LogicalPlan
    fields: Schema
    outputs: tuple[Expression, ...]

    INPUTS, EXPRESSIONS, FIELDS = ("input",), ("outputs",), ("fields",)
    PAIRED = ("fields", "outputs")

    @derived
    def passed_ids(self) -> frozenset[int]:
        """Ids of the columns that pass through under their own id."""
        return _passed_ids(self.fields, self.outputs)

    @derived
    def field_facts(self) -> Fields:
        below = self.input.field_facts
        pairs = zip(self.fields, self.outputs, strict=True)
        return {field.id: project_field(field, output, below) for field, output in pairs}

    @derived
    def row_bounds(self) -> Bounds:
        return self.input.row_bounds

    @derived
    def unique_sets(self) -> UniqueSets:
        return renamed_sets(self.input.unique_sets, self.outputs, self.fields)

    def needs(self, needed: Ids) -> tuple[Ids, ...]:
        return (self.reads,)

    def minds_order(self, is_seen: bool) -> bool:
        return is_seen

    def source_of(self, columns: Ids) -> LogicalPlan | None:
        return self.input if columns <= self.passed_ids else None

    def describe(self, names: Names) -> str:
        return f"Project {outputs_text(self.fields, self.outputs, names)}"


@dataclass(frozen=True)
class Aggregate(LogicalPlan):
    """GROUP BY. Schema: `key_fields` then `aggregate_fields`. NULL keys are equal. Without keys: exactly one row.

    DISTINCT is an Aggregate without aggregates. A key that is a bare ColumnRef keeps the column's id.
    """

    input: LogicalPlan
    key_fields: Schema
    keys: tuple[Expression, ...]
    aggregate_fields: Schema
    aggregates: tuple[AggregateCall, ...]

    INPUTS, EXPRESSIONS = ("input",), ("keys", "aggregates")
    FIELDS, PAIRED = ("key_fields", "aggregate_fields"), ("aggregate_fields", "aggregates")

    @derived
    def passed_ids(self) -> frozenset[int]:
        """Ids of the keys that pass through under their own id."""
        return _passed_ids(self.key_fields, self.keys)

    @derived
    def field_facts(self) -> Fields:
        fields = aggregate_fields(
            self.input.field_facts,
            self.key_fields,
            self.keys,
            self.aggregate_fields,
            self.aggregates,
            self.input.max_rows,
        )
        return {field.id: field for field in fields}

    @derived
    def row_bounds(self) -> Bounds:
        if not self.keys:
            return 1, 1
        fewest, most = self.input.row_bounds
        return min(fewest, 1), most_groups(self.keys, self.input.field_facts, most)

    @derived
    def unique_sets(self) -> UniqueSets:
        if not self.keys:
            return ONE_ROW
        group = frozenset(field.id for field in self.key_fields)
        return few({group, *renamed_sets(self.input.unique_sets, self.keys, self.key_fields)})

    def needs(self, needed: Ids) -> tuple[Ids, ...]:
        return (self.reads,)

    def minds_order(self, is_seen: bool) -> bool:
        return any(
            AGGREGATES[call.function].minds_order and not call.order and call.span is not None
            for call in self.aggregates
        )

    def source_of(self, columns: Ids) -> LogicalPlan | None:
        return self.input if columns <= self.passed_ids else None

    def describe(self, names: Names) -> str:
        return f"Aggregate{grouping_text(self.keys, self.aggregate_fields, self.aggregates, names)}"


@dataclass(frozen=True)
class Sort(KeepsColumns):
    """Rows in order of the keys; ties in input order."""

    keys: tuple[SortKey, ...]

    EXPRESSIONS = ("keys",)

    @derived
    def field_facts(self) -> Fields:
        return sorted_fields(self.keys, self.input.field_facts)

    @derived
    def row_bounds(self) -> Bounds:
        return self.input.row_bounds

    def minds_order(self, is_seen: bool) -> bool:
        return False

    def describe(self, names: Names) -> str:
        return f"Sort by {sort_keys_text(self.keys, names)}"


@dataclass(frozen=True)
class Limit(KeepsColumns):
    """Skip `offset` rows, then pass at most `limit` (None: all)."""

    limit: int | None
    offset: int = 0

    EXPRESSIONS = ()

    @derived
    def field_facts(self) -> Fields:
        return self.input.field_facts

    @derived
    def row_bounds(self) -> Bounds:
        fewest, most = (max(0, rows - self.offset) for rows in self.input.row_bounds)
        return (fewest, most) if self.limit is None else (min(fewest, self.limit), min(most, self.limit))

    @derived
    def unique_sets(self) -> UniqueSets:
        return ONE_ROW if self.limit is not None and self.limit <= 1 else self.input.unique_sets

    def minds_order(self, is_seen: bool) -> bool:
        return True

    def source_of(self, columns: Ids) -> LogicalPlan | None:
        return None  # which rows pass depends on the others

    def describe(self, names: Names) -> str:
        return f"Limit{limit_text(self.limit, self.offset)}"


@dataclass(frozen=True)
class UnionAll(LogicalPlan):
    """All rows of each input in turn; `fields[i]` stands for the i-th output of every input, already of one type."""

    branches: tuple[LogicalPlan, ...]
    fields: Schema

    INPUTS, EXPRESSIONS, FIELDS = ("branches",), (), ("fields",)
    BY_POSITION = True

    @derived
    def field_facts(self) -> Fields:
        columns = zip(
            *(
                with_labels(branch.facts_in_order, branch.outputs)
                if isinstance(branch, Project)
                else branch.facts_in_order
                for branch in self.branches
            ),
            strict=True,
        )
        pairs = zip(self.fields, columns, strict=True)
        return {field.id: union_field(field, column) for field, column in pairs}

    @derived
    def row_bounds(self) -> Bounds:
        fewest, most = zip(*(branch.row_bounds for branch in self.branches), strict=True)
        return sum(fewest), sum(most)

    @derived
    def unique_sets(self) -> UniqueSets:
        return frozenset()

    def needs(self, needed: Ids) -> tuple[Ids, ...]:
        return tuple(self._sources(branch, needed) for branch in self.branches)

    def _sources(self, branch: LogicalPlan, needed: Ids) -> Ids:
        pairs = zip(branch.schema, self.fields, strict=True)
        return {source.id for source, field in pairs if field.id in needed}

    def minds_order(self, is_seen: bool) -> bool:
        return is_seen

    def describe(self, names: Names) -> str:
        return f"UnionAll {fields_text(self.fields, names)}"


@dataclass(frozen=True)
class Shared(LogicalPlan):
    """A sub-plan that stands in more than one place and is computed once.

    All `Shared` nodes with one `identifier` have the same `input`; each renames its outputs to its own `fields`
    (positionally), so that ids stay unique.
    """

    input: LogicalPlan
    identifier: int
    fields: Schema

    INPUTS, EXPRESSIONS, FIELDS = ("input",), (), ("fields",)
    BY_POSITION = True

    @derived
    def field_facts(self) -> Fields:
        return renamed_fields(self.fields, self.input.facts_in_order)

    @derived
    def row_bounds(self) -> Bounds:
        return self.input.row_bounds

    @derived
    def unique_sets(self) -> UniqueSets:
        return renamed_sets(self.input.unique_sets, self.input.schema, self.fields)

    def needs(self, needed: Ids) -> tuple[Ids, ...]:
        return (self.input.output_ids,)

    def minds_order(self, is_seen: bool) -> bool:
        return False

    def describe(self, names: Names) -> str:
        return f"Shared ${self.identifier} {fields_text(self.fields, names)}"


def _passed_ids(fields: Sequence[Field], outputs: Sequence[Expression]) -> frozenset[int]:
    pairs = zip(fields, outputs, strict=True)
    return frozenset([o.id for field, o in pairs if isinstance(o, ColumnRef) and o.id == field.id])
