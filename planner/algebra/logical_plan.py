"""Logical plan nodes: what to compute, not how. Immutable; each derives its schema from its inputs.

A node's schema carries sound facts (nullability, value ranges) as well as estimates; see `tqp.core.schema`. Column ids
are unique over the whole query, so a plan may be moved below another without renaming.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

from tqp.core.schema import Field, Schema, TableSource
from tqp.planner.algebra.expressions import TRUE, AggregateCall, Expression


class JoinType(Enum):
    """The rows a join puts out. `left` is the preserved side of LEFT, SEMI, ANTI, MARK and SINGLE.

    RIGHT does not exist: the binder swaps the inputs. A cross join is INNER with condition TRUE.
    """

    INNER = "inner"
    LEFT = "left"
    FULL = "full"
    SEMI = "semi"  # left rows with at least one match
    ANTI = "anti"  # left rows without a match
    NULL_AWARE_ANTI = (
        "null-aware anti"  # NOT IN: left rows where the condition is false (not NULL) for every right row
    )
    MARK = "mark"  # every left row, plus a boolean column: any match (true), unknown (NULL), none (false)
    SINGLE = "single"  # LEFT, and an ExecutionError where a left row has more than one match


@dataclass(frozen=True, slots=True)
class LogicalPlan:
    """Base. `schema` holds the output fields in order; `inputs` the child plans."""

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return ()

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return self

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Every expression the node evaluates over its inputs."""
        return ()

    @property
    def schema(self) -> Schema:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Scan(LogicalPlan):
    """Rows of a registered table. `columns[i]` is the name, in the table, of the column that `fields[i]` holds."""

    table: TableSource = field(compare=False)
    table_name: str
    columns: tuple[str, ...]
    fields: Schema

    @property
    def schema(self) -> Schema:
        return self.fields


@dataclass(frozen=True, slots=True)
class Values(LogicalPlan):
    """Literal rows; `rows[i][j]` is an expression without columns. One empty row is SELECT without FROM."""

    rows: tuple[tuple[Expression, ...], ...]
    fields: Schema

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(value for row in self.rows for value in row)

    @property
    def schema(self) -> Schema:
        return self.fields


@dataclass(frozen=True, slots=True)
class Filter(LogicalPlan):
    """Rows for which `condition` is true (not false, not NULL)."""

    input: LogicalPlan
    condition: Expression

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return replace(self, input=inputs[0])

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (self.condition,)

    @property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True, slots=True)
class Project(LogicalPlan):
    """One output per entry. A bare ColumnRef passes its column on, and then the field keeps the column's id."""

    input: LogicalPlan
    fields: Schema
    outputs: tuple[Expression, ...]

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return replace(self, input=inputs[0])

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return self.outputs

    @property
    def schema(self) -> Schema:
        return self.fields


@dataclass(frozen=True, slots=True)
class Join(LogicalPlan):
    """See JoinType for the rows. Schema: INNER, LEFT, FULL, SINGLE: left then right (the padded sides nullable);
    SEMI and the ANTIs: left; MARK: left then `mark`.

    Until unnesting has run, `right` may read columns of `left` (a dependent join, e.g. LATERAL or a subquery).
    """

    left: LogicalPlan
    right: LogicalPlan
    join_type: JoinType
    condition: Expression = TRUE
    mark: Field | None = None  # MARK only

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return replace(self, left=inputs[0], right=inputs[1])

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (self.condition,)

    @property
    def schema(self) -> Schema:
        match self.join_type:
            case JoinType.INNER:
                return self.left.schema + self.right.schema
            case JoinType.LEFT | JoinType.SINGLE:
                return self.left.schema + as_nullable(self.right.schema)
            case JoinType.FULL:
                return as_nullable(self.left.schema) + as_nullable(self.right.schema)
            case JoinType.MARK:
                assert self.mark is not None
                return (*self.left.schema, self.mark)
            case _:
                return self.left.schema


@dataclass(frozen=True, slots=True)
class Aggregate(LogicalPlan):
    """GROUP BY. Schema: `key_fields` then `aggregate_fields`. NULL keys are equal. Without keys: exactly one row.

    DISTINCT is an Aggregate without aggregates. A key that is a bare ColumnRef keeps the column's id.
    """

    input: LogicalPlan
    key_fields: Schema
    keys: tuple[Expression, ...]
    aggregate_fields: Schema
    aggregates: tuple[AggregateCall, ...]

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return replace(self, input=inputs[0])

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (*self.keys, *self.aggregates)

    @property
    def schema(self) -> Schema:
        return self.key_fields + self.aggregate_fields


@dataclass(frozen=True, slots=True)
class SortKey:
    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Sort(LogicalPlan):
    """Rows in order of the keys; ties in input order."""

    input: LogicalPlan
    keys: tuple[SortKey, ...]

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return replace(self, input=inputs[0])

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(key.expression for key in self.keys)

    @property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True, slots=True)
class Limit(LogicalPlan):
    """Skip `offset` rows, then pass at most `limit` (None: all)."""

    input: LogicalPlan
    limit: int | None
    offset: int = 0

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return replace(self, input=inputs[0])

    @property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True, slots=True)
class UnionAll(LogicalPlan):
    """All rows of each input in turn; `fields[i]` stands for the i-th output of every input, already of one type."""

    branches: tuple[LogicalPlan, ...]
    fields: Schema

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return self.branches

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return replace(self, branches=inputs)

    @property
    def schema(self) -> Schema:
        return self.fields


@dataclass(frozen=True, slots=True)
class Shared(LogicalPlan):
    """A sub-plan that stands in more than one place and is computed once.

    All `Shared` nodes with one `identifier` have the same `input`; each renames its outputs to its own `fields`
    (positionally), so that ids stay unique.
    """

    input: LogicalPlan
    identifier: int
    fields: Schema

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return replace(self, input=inputs[0])

    @property
    def schema(self) -> Schema:
        return self.fields


def as_nullable(schema: Schema) -> Schema:
    """The same fields, each nullable, as on the padded side of an outer join."""
    return tuple(replace(f, nullable=True, statistics=replace(f.statistics, is_sorted=False)) for f in schema)


def walk_plan(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    """The plan and everything below it, parents first; what Shared nodes share once, subquery expressions not."""
    shared: set[int] = set()
    stack = [plan]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Shared):
            if node.identifier in shared:
                continue
            shared.add(node.identifier)
        stack.extend(reversed(node.inputs))


def transform_plan(plan: LogicalPlan, function: Callable[[LogicalPlan], LogicalPlan]) -> LogicalPlan:
    """Rebuild bottom-up, with `function` applied to every node after its inputs."""
    inputs = plan.inputs
    changed = tuple(transform_plan(child, function) for child in inputs)
    if any(new is not old for new, old in zip(changed, inputs, strict=True)):
        plan = plan.with_inputs(changed)
    return function(plan)
