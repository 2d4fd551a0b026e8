"""The logical node of WITH RECURSIVE: a plan that is run again and again, on the rows that it gave before."""

from __future__ import annotations

from collections.abc import Sequence

from tqp.core.frozen import dataclass
from tqp.core.schema import Schema
from tqp.planner.algebra.derived import derived
from tqp.planner.algebra.expression_text import Names
from tqp.planner.algebra.field_facts import with_facts
from tqp.planner.algebra.known_fields import Fields
from tqp.planner.algebra.leaves import MOST_ROWS
from tqp.planner.algebra.logical_node import Bounds, Ids, LogicalPlan
from tqp.planner.algebra.node_text import fields_text
from tqp.planner.algebra.unique_sets import UniqueSets


@dataclass(frozen=True)
class Recursive(LogicalPlan):
    """The rows of `first`, then those of `step` until it gives none; `fields[i]` stands for the i-th output of both.

    In `step`, `WorkingRows` with the identifier are the rows that came last, or all rows so far. With `distinct` (UNION) rows
    that equal earlier ones are left out, of both.

    With `keys` (USING KEY), positions of columns, a row takes the place of an earlier one with the same values in them; with
    `distinct`, only rows that changed in an iteration come last.

    Once there are `most_rows` rows, no more are asked for: None asks for all.
    """

    first: LogicalPlan
    step: LogicalPlan
    fields: Schema
    identifier: int
    distinct: bool
    keys: tuple[int, ...] | None = None
    most_rows: int | None = None

    INPUTS, EXPRESSIONS, FIELDS = ("first", "step"), (), ("fields",)
    BY_POSITION = True

    @derived
    def field_facts(self) -> Fields:
        return {field.id: with_facts(field, None, True) for field in self.fields}

    @derived
    def row_bounds(self) -> Bounds:
        least = self.first.row_bounds[0]
        return least if self._unique_places is None else min(1, least), MOST_ROWS

    @derived
    def unique_sets(self) -> UniqueSets:
        if self._unique_places is None:
            return frozenset()
        return frozenset((frozenset(self.fields[i].id for i in self._unique_places),))

    @property
    def _unique_places(self) -> Sequence[int] | None:
        """The columns that tell any two rows apart, by position."""
        return range(len(self.fields)) if self.keys is None and self.distinct else self.keys

    def needs(self, needed: Ids) -> tuple[Ids, ...]:
        return self.first.output_ids, self.step.output_ids

    def minds_order(self, is_seen: bool) -> bool:
        return is_seen or self.keys is not None

    def describe(self, names: Names) -> str:
        kept = kept_text(self.distinct, self.keys, self.most_rows)
        return f"Recursive{kept} ${self.identifier} {fields_text(self.fields, names)}"


def kept_text(distinct: bool, keys: tuple[int, ...] | None, most_rows: int | None) -> str:
    """The words that tell the rows that stay, for EXPLAIN."""
    places = "" if keys is None else f" by key {', '.join(str(key + 1) for key in keys)}"
    enough = "" if most_rows is None else f" until {most_rows} rows"
    return " distinct" * distinct + places + enough
