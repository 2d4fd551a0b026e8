"""ASOF joins: each left row beside the nearest right row."""

from __future__ import annotations

from tqp.core.datatypes import BOOLEAN
from tqp.core.frozen import dataclass
from tqp.core.schema import Schema
from tqp.planner.algebra.derived import derived
from tqp.planner.algebra.expression_text import Names
from tqp.planner.algebra.expressions import Call, Expression
from tqp.planner.algebra.field_facts import join_fields
from tqp.planner.algebra.join import as_nullable
from tqp.planner.algebra.join_keys import JoinKeys, JoinType
from tqp.planner.algebra.known_fields import Fields
from tqp.planner.algebra.logical_node import Bounds, Ids, LogicalPlan
from tqp.planner.algebra.node_text import conjunction_text
from tqp.planner.algebra.unique_sets import UniqueSets


@dataclass(frozen=True)
class AsofJoin(LogicalPlan):
    """Of the right rows whose keys equal those of the left row, the one whose value is nearest to that of the left row.

    It is the greatest that is less or equal, or (`from_above`) the least that is greater or equal; if `is_strict`, not equal.
    Of several, it is the first. NULLs match nothing. `keeps_left`: left rows without such a row are padded; `keeps_right`:
    so are right rows that are nearest to none.
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
    keeps_right: bool = False

    INPUTS, FIELDS = ("left", "right"), ()
    EXPRESSIONS = ("left_keys", "right_keys", "left_value", "right_value")

    @property
    def schema(self) -> Schema:
        left, right = self.left.schema, self.right.schema
        return (
            *(as_nullable(left) if self.keeps_right else left),
            *(as_nullable(right) if self.keeps_left else right),
        )

    @derived
    def join_type(self) -> JoinType:
        """What becomes of rows without partners; RIGHT where only right ones come out."""
        if self.keeps_left:
            return JoinType.FULL if self.keeps_right else JoinType.LEFT
        return JoinType.RIGHT if self.keeps_right else JoinType.INNER

    @derived
    def comparison(self) -> str:
        """That of the right value with the left one."""
        return ("greater" if self.from_above else "less") + ("" if self.is_strict else "_equal")

    @derived
    def keys(self) -> JoinKeys:
        """The equalities of the condition, and its inequality."""
        nearest = Call(self.comparison, (self.right_value, self.left_value), BOOLEAN)
        return JoinKeys(self.left_keys, self.right_keys, (False,) * len(self.left_keys), (nearest,))

    @derived
    def field_facts(self) -> Fields:
        left, right = self.left.field_facts, self.right.field_facts
        return join_fields(
            left,
            right,
            self.join_type,
            self.keys,
            left_once=True,
            right_once=False,
            keeps_left_order=not self.keeps_right,
        )

    @derived
    def row_bounds(self) -> Bounds:
        (fewest_left, left), (fewest_right, right) = self.left.row_bounds, self.right.row_bounds
        fewest = max(fewest_left * self.keeps_left, fewest_right * self.keeps_right)
        return fewest, left + right * self.keeps_right

    @derived
    def unique_sets(self) -> UniqueSets:
        return frozenset() if self.keeps_right else self.left.unique_sets

    def needs(self, needed: Ids) -> tuple[Ids, ...]:
        read = self.reads | needed
        return read & self.left.output_ids, read & self.right.output_ids

    def source_of(self, columns: Ids) -> LogicalPlan | None:
        return self.left if not self.keeps_right and columns <= self.left.output_ids else None

    @derived
    def conditions(self) -> tuple[Expression, ...]:
        """The conjuncts of the condition."""
        equal = zip(self.left_keys, self.right_keys, strict=True)
        return (*(Call("equal", pair, BOOLEAN) for pair in equal), *self.keys.residual)

    def minds_order(self, is_seen: bool) -> bool:
        return is_seen

    def describe(self, names: Names) -> str:
        return f"AsofJoin {self.join_type.value} on {conjunction_text(self.conditions, names)}"
