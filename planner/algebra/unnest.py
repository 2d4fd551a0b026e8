"""The logical node that makes rows of the elements of lists."""

from __future__ import annotations

from dataclasses import replace

from tqp.core.frozen import dataclass
from tqp.core.schema import NO_FACTS, InnerFacts, Schema
from tqp.planner.algebra.derived import derived
from tqp.planner.algebra.expression_text import Names
from tqp.planner.algebra.expressions import Expression
from tqp.planner.algebra.field_facts import weakened
from tqp.planner.algebra.known_fields import Fields
from tqp.planner.algebra.leaves import MOST_ROWS
from tqp.planner.algebra.logical_node import Bounds, Ids, LogicalPlan
from tqp.planner.algebra.node_text import list_text
from tqp.planner.algebra.unique_sets import UniqueSets
from tqp.planner.algebra.value_ranges import inner_facts


@dataclass(frozen=True)
class Unnest(LogicalPlan):
    """Each row of the input once for each element of the longest of its `lists`. Schema: the input's, `fields`, `places`.

    A field for each list is its element at that place, or NULL; the one of `places`, if there is one, is the place, from 1. A
    list that is NULL has no elements. With `keeps_rows` a row without any comes once, all these being NULL.
    """

    input: LogicalPlan
    lists: tuple[Expression, ...]
    fields: Schema
    places: Schema = ()
    keeps_rows: bool = False

    INPUTS, EXPRESSIONS, FIELDS = ("input",), ("lists",), ("fields", "places")

    @property
    def schema(self) -> Schema:
        return (*self.input.schema, *self.fields, *self.places)

    @derived
    def field_facts(self) -> Fields:
        """Rows repeat in order: what is sorted stays so, nothing is unique."""
        known = {
            id: weakened(field, can_be_null=False, is_unique=False, is_sorted=True)
            for id, field in self.input.field_facts.items()
        }
        may_end_early = len(self.lists) > 1 or self.keeps_rows
        for field, lists in zip(self.fields, self.lists, strict=True):
            elements = next(iter(inner_facts(lists, self.input.field_facts)), InnerFacts())
            can_be_null = field.nullable and (may_end_early or elements.nullable)
            known[field.id] = replace(field, nullable=can_be_null, facts=elements.facts)
        return {**known, **{field.id: replace(field, facts=NO_FACTS) for field in self.places}}

    @derived
    def row_bounds(self) -> Bounds:
        fewest, most = self.input.row_bounds
        return fewest if self.keeps_rows else 0, MOST_ROWS if most else 0

    @derived
    def unique_sets(self) -> UniqueSets:
        return frozenset()

    def needs(self, needed: Ids) -> tuple[Ids, ...]:
        return (self.reads | (needed & self.input.output_ids),)

    def minds_order(self, is_seen: bool) -> bool:
        return is_seen

    def source_of(self, columns: Ids) -> LogicalPlan | None:
        return self.input if columns <= self.input.output_ids else None

    def describe(self, names: Names) -> str:
        return f"Unnest{' outer' if self.keeps_rows else ''} {list_text(self.lists, names)}"
