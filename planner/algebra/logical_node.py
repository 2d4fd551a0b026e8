"""The base of logical plan nodes: what each of them has to say of itself, and what follows from that."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, ClassVar, Self

from tqp.core.schema import Field, Schema
from tqp.planner.algebra.derived import derived
from tqp.planner.algebra.expression_text import Names
from tqp.planner.algebra.expressions import ColumnRef, Expression, Predict, Scoring
from tqp.planner.algebra.join_keys import key_column
from tqp.planner.algebra.known_fields import Fields
from tqp.planner.algebra.node import Node, derived_of_own
from tqp.planner.algebra.unique_sets import UniqueSets

Ids = AbstractSet[int]
#: (at least, at most) so many rows
Bounds = tuple[int, int]


class LogicalPlan(Node["LogicalPlan"]):
    """Base. What is REQUIRED has no default: no node inherits rows, keys or order from its inputs without saying so."""

    REQUIRED: ClassVar[frozenset[str]] = Node.REQUIRED | frozenset(
        ("field_facts", "row_bounds", "unique_sets", "needs", "minds_order", "describe")
    )

    #: Attributes that pair up, the first of them fields: of these what nobody needs may be left out.
    PAIRED: ClassVar[tuple[str, ...]] = ()

    #: Are the columns of its inputs told by their place, and not by their ids?
    BY_POSITION: ClassVar[bool] = False

    if TYPE_CHECKING:

        @property
        def field_facts(self) -> Fields:
            """Output fields by id, in schema order, tightened by everything below (filters and joins included)."""

        @property
        def row_bounds(self) -> Bounds:
            """At least and at most so many rows come out."""

        @property
        def unique_sets(self) -> UniqueSets:
            """Some of the column sets that identify an output row; the empty set if there is at most one row."""

    @property
    def schema(self) -> Schema:
        """The output fields in order."""
        return self.created_fields

    def needs(self, needed: Ids) -> tuple[Ids, ...]:
        """The columns that the node reads of each input, if what reads the node needs these."""
        raise NotImplementedError

    def minds_order(self, is_seen: bool) -> bool:
        """Does the result depend on the order of the inputs' rows, if that of the node's own rows is seen or not?"""
        raise NotImplementedError

    def describe(self, names: Names) -> str:
        """The node's line in EXPLAIN."""
        raise NotImplementedError

    @derived
    def output_ids(self) -> frozenset[int]:
        """Ids of the columns that come out."""
        return frozenset([field.id for field in self.schema])

    @derived_of_own
    def reads(self) -> frozenset[int]:
        """Ids of the columns that the node's own expressions read."""
        own = frozenset([part.id for part in self.parts if isinstance(part, ColumnRef)])
        return own.union(*(plan.free_ids for plan in self.subqueries))

    @derived
    def free_ids(self) -> frozenset[int]:
        """Ids of the columns that the plan reads from outside: its correlated columns."""
        below = [child.output_ids for child in self.inputs]
        return self.reads.difference(*below).union(*(child.free_ids for child in self.inputs))

    @derived_of_own
    def scorings(self) -> dict[Scoring, list[Predict]]:
        """The different calls of models in the node's own expressions, by what they score, in order."""
        found: dict[Scoring, list[Predict]] = {}
        if Predict not in self.kinds_of_parts:
            return found
        for call in dict.fromkeys([part for part in self.parts if isinstance(part, Predict)]):
            found.setdefault(call.scoring, []).append(call)
        return found

    @property
    def max_rows(self) -> int:
        """No more rows than this come out."""
        return self.row_bounds[1]

    @derived
    def facts_in_order(self) -> list[Field]:
        """Facts of the output fields by position; unlike `field_facts`, with repeated columns."""
        return [self.field_facts[field.id] for field in self.schema]

    def source_of(self, columns: Ids) -> LogicalPlan | None:
        """The input from which these columns of the output come, if a filter on them may as well stand there."""
        return None

    def without_unread(self, needed: Ids) -> Self:
        """The node without what it lists and nobody needs; it may not drop what it has to compute anyway."""
        if not self.PAIRED:
            return self
        fields: Schema = self.__dict__[self.PAIRED[0]]
        kept = [position for position, field in enumerate(fields) if field.id in needed]
        if len(kept) == len(fields):
            return self
        return self.changed({name: tuple(self.__dict__[name][i] for i in kept) for name in self.PAIRED})

    def matches_at_most_once(self, keys: tuple[Expression, ...], null_equal: tuple[bool, ...]) -> bool:
        """True if for given values of the keys at most one row can match."""
        columns = {key_column(key) for key in keys}
        if any(unique <= columns for unique in self.unique_sets):
            return True
        for key, matches_null in zip(keys, null_equal, strict=True):
            column = key_column(key)
            field = None if column is None else self.field_facts.get(column)
            # A unique column may hold several NULLs; an equality does not match those.
            if field is not None and field.facts.is_unique and not (matches_null and field.nullable):
                return True
        return False
