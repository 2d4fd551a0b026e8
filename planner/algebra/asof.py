"""ASOF joins: each left row beside the nearest right row. Only until the first rule has made other nodes of them."""

from __future__ import annotations

from tqp.core.frozen import dataclass
from tqp.core.schema import Schema
from tqp.planner.algebra.derived import derived
from tqp.planner.algebra.expression_text import Names
from tqp.planner.algebra.expressions import Expression
from tqp.planner.algebra.field_facts import with_facts
from tqp.planner.algebra.join import as_nullable
from tqp.planner.algebra.known_fields import Fields
from tqp.planner.algebra.logical_node import Bounds, Ids, LogicalPlan
from tqp.planner.algebra.unique_sets import UniqueSets


@dataclass(frozen=True)
class AsofJoin(LogicalPlan):
    """Of the right rows whose keys equal those of the left row, the one whose value is nearest to that of the left row.

    It is the greatest that is less or equal, or (`from_above`) the least that is greater or equal; if `is_strict`, not equal.
    NULLs match nothing. `keeps_left`: left rows without such a row are padded.
    """

    left: LogicalPlan
    right: LogicalPlan
    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    left_value: Expression
    right_value: Expression
    from_above: bool
    is_strict: bool
    keeps_left: bool

    INPUTS, FIELDS = ("left", "right"), ()
    EXPRESSIONS = ("left_keys", "right_keys", "left_value", "right_value")

    @property
    def schema(self) -> Schema:
        right = self.right.schema
        return (*self.left.schema, *(as_nullable(right) if self.keeps_left else right))

    @derived
    def field_facts(self) -> Fields:
        return {field.id: with_facts(field, None, True) for field in self.schema}

    @derived
    def row_bounds(self) -> Bounds:
        fewest, most = self.left.row_bounds
        return (fewest if self.keeps_left else 0), most

    @derived
    def unique_sets(self) -> UniqueSets:
        return self.left.unique_sets

    def needs(self, needed: Ids) -> tuple[Ids, ...]:
        return self.left.output_ids, self.right.output_ids

    def minds_order(self, is_seen: bool) -> bool:
        return is_seen

    def describe(self, names: Names) -> str:
        return "AsofJoin"
