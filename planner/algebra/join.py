"""The join: of all logical nodes the one with most to say about its rows."""

from __future__ import annotations

from tqp.core.frozen import dataclass
from tqp.core.schema import Field, Schema
from tqp.planner.algebra.derived import derived
from tqp.planner.algebra.expression_text import Names
from tqp.planner.algebra.expressions import TRUE, Call, Expression, column_ids, conjuncts
from tqp.planner.algebra.field_facts import join_fields, weakened
from tqp.planner.algebra.join_keys import KEEPS_RIGHT, LEFT_ONLY, TWO_SIDED, JoinKeys, JoinType
from tqp.planner.algebra.known_fields import Fields
from tqp.planner.algebra.logical_node import Bounds, Ids, LogicalPlan
from tqp.planner.algebra.may_raise import raising_in, shielded
from tqp.planner.algebra.node_text import conjunction_text
from tqp.planner.algebra.unique_sets import UniqueSets, few
from tqp.planner.functions.conditions import EQUALITIES


@dataclass(frozen=True)
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

    INPUTS, EXPRESSIONS, FIELDS = ("left", "right"), ("condition",), ("mark",)

    @property
    def schema(self) -> Schema:
        match self.join_type:
            case JoinType.INNER:
                return self.left.schema + self.right.schema
            case JoinType.LEFT | JoinType.SINGLE:
                return self.left.schema + as_nullable(self.right.schema)
            case JoinType.RIGHT:
                return as_nullable(self.left.schema) + self.right.schema
            case JoinType.FULL:
                return as_nullable(self.left.schema) + as_nullable(self.right.schema)
            case JoinType.MARK:
                assert self.mark is not None
                return (*self.left.schema, self.mark)
            case JoinType.SEMI | JoinType.ANTI | JoinType.NULL_AWARE_ANTI:
                return self.left.schema

    @derived
    def output_ids(self) -> frozenset[int]:
        if self.join_type in TWO_SIDED:
            return self.left.output_ids | self.right.output_ids
        return self.left.output_ids if self.mark is None else self.left.output_ids | {self.mark.id}

    @derived
    def keys(self) -> JoinKeys:
        """The condition, split."""
        return _split(self.condition, self.left, self.right)

    @derived
    def is_dependent(self) -> bool:
        """Does the right side read columns of the left one?"""
        return not self.right.free_ids.isdisjoint(self.left.output_ids)

    @derived
    def free_ids(self) -> frozenset[int]:
        left, right = self.left, self.right
        own = self.reads - left.output_ids - right.output_ids
        return own | left.free_ids | (right.free_ids - left.output_ids)

    @derived
    def left_key_is_unique(self) -> bool:
        """True if no two left rows match on the keys."""
        return self.left.matches_at_most_once(self.keys.left, self.keys.null_equal)

    @derived
    def right_key_is_unique(self) -> bool:
        """True if no two right rows match on the keys."""
        return self.right.matches_at_most_once(self.keys.right, self.keys.null_equal)

    @derived
    def left_at_most_once(self) -> bool:
        """True if every left row comes out at most once."""
        never_repeated = (*LEFT_ONLY, JoinType.SINGLE)
        return self.join_type in never_repeated or self.right_key_is_unique

    @derived
    def right_at_most_once(self) -> bool:
        """True if every right row comes out at most once; a dependent side has other rows for each left row."""
        return self.left_key_is_unique and not self.is_dependent

    @derived
    def field_facts(self) -> Fields:
        return join_fields(
            self.left.field_facts,
            self.right.field_facts,
            self.join_type,
            self.keys,
            self.mark,
            left_once=self.left_at_most_once,
            right_once=self.right_at_most_once,
            keeps_left_order=False,
        )

    @derived
    def row_bounds(self) -> Bounds:
        (fewest_left, left), (fewest_right, right) = self.left.row_bounds, self.right.row_bounds
        match self.join_type:
            case JoinType.SINGLE | JoinType.MARK:
                return fewest_left, left
            case JoinType.SEMI | JoinType.ANTI | JoinType.NULL_AWARE_ANTI:
                return 0, left
        matches = left * right
        if self.left_at_most_once:
            matches = min(matches, left)
        if self.right_at_most_once:
            matches = min(matches, right)
        match self.join_type:
            case JoinType.LEFT:
                most = left if self.left_at_most_once else min(left * max(right, 1), matches + left)
                return fewest_left, most
            case JoinType.RIGHT:
                most = right if self.right_at_most_once else min(right * max(left, 1), matches + right)
                return fewest_right, most
            case JoinType.FULL:
                once = self.left_at_most_once or self.right_at_most_once
                return max(fewest_left, fewest_right), left + right if once else matches + left + right
            case JoinType.INNER:
                return fewest_left * fewest_right if self.condition == TRUE else 0, matches

    @derived
    def unique_sets(self) -> UniqueSets:
        left = self.left.unique_sets
        if self.join_type in LEFT_ONLY or self.join_type is JoinType.SINGLE:
            return left
        if self.join_type in KEEPS_RIGHT:  # two padded rows may agree in everything but their NULLs
            return frozenset()
        right = self.right.unique_sets
        result: set[frozenset[int]] = set()
        if self.left_at_most_once:
            result |= left
        if self.join_type is JoinType.INNER and self.right_at_most_once:
            result |= right
        if not result:
            result = {first | second for first in left for second in right}
        return few(result)

    def needs(self, needed: Ids) -> tuple[Ids, ...]:
        right = self.reads | needed if self.join_type in TWO_SIDED else self.reads
        return (self.reads | needed) & self.left.output_ids, right & self.right.output_ids

    def source_of(self, columns: Ids) -> LogicalPlan | None:
        if self.join_type not in KEEPS_RIGHT and columns <= self.left.output_ids:
            return self.left
        if self.join_type is JoinType.INNER and columns <= self.right.output_ids:
            return self.right
        return None

    def minds_order(self, is_seen: bool) -> bool:
        return False

    def describe(self, names: Names) -> str:
        condition = conjunction_text(conjuncts(self.condition), names)
        mark = "" if self.mark is None else f" as {names.get(self.mark.id, self.mark.name)}"
        return f"Join {self.join_type.value}{' on ' + condition if condition else ''}{mark}"


def as_nullable(schema: Schema) -> Schema:
    """The same fields, each nullable, as on the padded side of an outer join."""
    return tuple(weakened(field, can_be_null=True, is_unique=True, is_sorted=False) for field in schema)


def _split(condition: Expression, left_plan: LogicalPlan, right_plan: LogicalPlan) -> JoinKeys:
    """Keys are the conjuncts that compare an expression of the left columns with one of the right columns.

    A key that may raise is NULL where a part that is asked for before it and reads its side alone is not true. Parts that may
    raise are asked for last, those of both sides after those of one, whatever the order in which they are written.
    """
    left_ids, right_ids = left_plan.output_ids, right_plan.output_ids
    parts = conjuncts(condition)
    raising = raising_in(parts, left_plan, right_plan)
    left: list[Expression] = []
    right: list[Expression] = []
    null_equal: list[bool] = []
    residual: list[Expression] = []

    def turn(part: Expression) -> int:
        reads = column_ids(part)
        return (part in raising) + (part in raising and not (reads <= left_ids or reads <= right_ids))

    for part in sorted(parts, key=turn) if raising else parts:
        if isinstance(part, Call) and part.function in EQUALITIES:
            first, second = part.arguments
            first_ids, second_ids = column_ids(first), column_ids(second)
            if first_ids and second_ids:
                if not (first_ids <= left_ids and second_ids <= right_ids):
                    first, second, first_ids, second_ids = second, first, second_ids, first_ids
                if first_ids <= left_ids and second_ids <= right_ids:
                    left.append(
                        shielded(first, residual, left_plan.field_facts) if part in raising else first
                    )
                    right.append(
                        shielded(second, residual, right_plan.field_facts) if part in raising else second
                    )
                    null_equal.append(part.function == "is_not_distinct_from")
                    continue
        residual.append(part)
    return JoinKeys(tuple(left), tuple(right), tuple(null_equal), tuple(residual))
