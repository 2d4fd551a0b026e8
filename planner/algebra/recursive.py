"""The logical node of WITH RECURSIVE: a plan that is run again and again, on the rows that it gave before."""

from __future__ import annotations

from dataclasses import dataclass

from tqp.core.schema import Schema
from tqp.planner.algebra.expression_text import Names
from tqp.planner.algebra.field_facts import with_facts
from tqp.planner.algebra.known_fields import Fields
from tqp.planner.algebra.leaves import MOST_ROWS
from tqp.planner.algebra.logical_node import Bounds, Ids, LogicalPlan
from tqp.planner.algebra.node import derived
from tqp.planner.algebra.node_text import fields_text
from tqp.planner.algebra.unique_sets import UniqueSets


@dataclass(frozen=True)
class Recursive(LogicalPlan):
    """The rows of `first`, then those of `step` until it gives none; `fields[i]` stands for the i-th output of both.

    In `step`, `WorkingRows` with the identifier are the rows that came last. With `distinct` (UNION) rows that equal earlier ones
    are left out, of both.
    """

    first: LogicalPlan
    step: LogicalPlan
    fields: Schema
    identifier: int
    distinct: bool

    INPUTS, EXPRESSIONS, FIELDS = ("first", "step"), (), ("fields",)
    BY_POSITION = True

    @derived
    def field_facts(self) -> Fields:
        return {field.id: with_facts(field, None, True) for field in self.fields}

    @derived
    def row_bounds(self) -> Bounds:
        least = self.first.row_bounds[0]
        return min(1, least) if self.distinct else least, MOST_ROWS

    @derived
    def unique_sets(self) -> UniqueSets:
        return frozenset((self.output_ids,)) if self.distinct else frozenset()

    def needs(self, needed: Ids) -> tuple[Ids, ...]:
        return self.first.output_ids, self.step.output_ids

    def minds_order(self, is_seen: bool) -> bool:
        return is_seen

    def describe(self, names: Names) -> str:
        how = " distinct" if self.distinct else ""
        return f"Recursive{how} ${self.identifier} {fields_text(self.fields, names)}"
