"""Logical nodes without inputs: tables, literal rows, series of integers, the rows of an iteration."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Self

from tqp.core.frozen import dataclass
from tqp.core.schema import Field, Schema, TableSource
from tqp.planner.algebra.derived import derived
from tqp.planner.algebra.expression_text import Names
from tqp.planner.algebra.expressions import Expression
from tqp.planner.algebra.field_facts import values_field, with_facts
from tqp.planner.algebra.known_fields import Fields
from tqp.planner.algebra.logical_node import Bounds, Ids, LogicalPlan
from tqp.planner.algebra.node_text import fields_text
from tqp.planner.algebra.unique_sets import ONE_ROW, UniqueSets, unique_columns

#: As many as frames have that a program makes.
MOST_ROWS = 2**31 - 1


class Leaf(LogicalPlan):
    """A node without inputs."""

    REQUIRED = LogicalPlan.REQUIRED - {"INPUTS", "needs", "minds_order"}
    INPUTS = ()

    def needs(self, needed: Ids) -> tuple[Ids, ...]:
        return ()

    def minds_order(self, is_seen: bool) -> bool:
        return False


@dataclass(frozen=True)
class Scan(Leaf):
    """Rows of a registered table. `columns[i]` is the name, in the table, of the column that `fields[i]` holds.

    What is known of the values, the table says when it is asked; binding asks only for types.
    """

    table: TableSource = field(compare=False)
    table_name: str
    columns: tuple[str, ...]
    fields: Schema

    EXPRESSIONS, FIELDS, PAIRED = (), ("fields",), ("fields", "columns")

    @derived
    def field_facts(self) -> Fields:
        table = self.table
        return {
            field.id: Field(
                field.id,
                field.name,
                field.data_type,
                table.column_nullable(column),
                table.column_facts(column),
                table.column_estimates(column),
            )
            for field, column in zip(self.fields, self.columns, strict=True)
        }

    @derived
    def row_bounds(self) -> Bounds:
        return self.table.num_rows, self.table.num_rows

    @derived
    def unique_sets(self) -> UniqueSets:
        return unique_columns(self.field_facts.values())

    def describe(self, names: Names) -> str:
        return f"Scan {self.table_name} {fields_text(self.fields, names)}"


@dataclass(frozen=True)
class Values(Leaf):
    """Literal rows; `rows[i][j]` is an expression without columns. One empty row is SELECT without FROM."""

    rows: tuple[tuple[Expression, ...], ...]
    fields: Schema

    EXPRESSIONS, FIELDS = ("rows",), ("fields",)

    @derived
    def field_facts(self) -> Fields:
        return {
            field.id: values_field(field, [row[position] for row in self.rows])
            for position, field in enumerate(self.fields)
        }

    @derived
    def row_bounds(self) -> Bounds:
        return len(self.rows), len(self.rows)

    @derived
    def unique_sets(self) -> UniqueSets:
        return ONE_ROW if len(self.rows) <= 1 else frozenset()

    def without_unread(self, needed: Ids) -> Self:
        kept = [position for position, field in enumerate(self.fields) if field.id in needed]
        if len(kept) == len(self.fields):
            return self
        rows = tuple(tuple(row[i] for i in kept) for row in self.rows)
        return replace(self, rows=rows, fields=tuple(self.fields[i] for i in kept))

    def describe(self, names: Names) -> str:
        return f"Values {fields_text(self.fields, names)}"


@dataclass(frozen=True)
class Series(Leaf):
    """`rows` integers: `start`, `start + step`, `start + 2 * step`, ..."""

    field: Field
    start: int
    step: int
    rows: int  # at least one

    EXPRESSIONS, FIELDS = (), ("field",)

    @derived
    def field_facts(self) -> Fields:
        ends = self.start, self.start + (self.rows - 1) * self.step
        known = min(ends), max(ends)
        return {self.field.id: with_facts(self.field, known, False, float(self.rows), True, self.step > 0)}

    @derived
    def row_bounds(self) -> Bounds:
        return self.rows, self.rows

    @derived
    def unique_sets(self) -> UniqueSets:
        return frozenset((frozenset((self.field.id,)),)) if self.rows > 1 else ONE_ROW

    def describe(self, names: Names) -> str:
        return f"Series {fields_text((self.field,), names)} from {self.start} by {self.step}"


@dataclass(frozen=True)
class WorkingRows(Leaf):
    """The rows that the last iteration of the Recursive node with this identifier added; with `is_whole` all rows so far."""

    identifier: int
    fields: Schema
    is_whole: bool = False

    EXPRESSIONS, FIELDS = (), ("fields",)

    @derived
    def field_facts(self) -> Fields:
        return {field.id: with_facts(field, None, True) for field in self.fields}

    @derived
    def row_bounds(self) -> Bounds:
        return 0, MOST_ROWS

    @derived
    def unique_sets(self) -> UniqueSets:
        return frozenset()

    def describe(self, names: Names) -> str:
        whole = " whole" * self.is_whole
        return f"WorkingRows{whole} ${self.identifier} {fields_text(self.fields, names)}"
