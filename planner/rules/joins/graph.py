"""A region of inner joins as a graph: relations with their sizes, equalities between them, cardinalities of subsets.

Sets of relations are bit masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf, prod

from tqp.core.datatypes import BOOLEAN
from tqp.core.frozen import dataclass
from tqp.planner.algebra.cardinality import Estimator, KeyValues, key_domain
from tqp.planner.algebra.expressions import Call, Expression, conjunction
from tqp.planner.algebra.join_keys import is_two_sided
from tqp.planner.algebra.logical_plan import Join, JoinType, LogicalPlan
from tqp.planner.algebra.subquery_expressions import read_ids
from tqp.planner.physical.joins.index import IndexedTable, indexed_table
from tqp.planner.rules.joins.region import column_equality, equivalence_classes
from tqp.planner.rules.nulls import filtered


@dataclass(frozen=True, slots=True)
class JoinTree:
    """An ordered join of the relations in `mask`: a leaf, or the probe side `left` with the build side `right`."""

    mask: int
    rows: float
    cost: float
    left: JoinTree | None = None
    right: JoinTree | None = None


class _Equality:
    """Expressions that are equal in the result, by the relation that each belongs to, with their values."""

    def __init__(self) -> None:
        self.members: dict[int, list[tuple[Expression, KeyValues]]] = {}
        self.mask = 0

    def add(self, relation: int, expression: Expression, values: KeyValues) -> None:
        self.members.setdefault(relation, []).append((expression, values))
        self.mask |= 1 << relation


class JoinGraph:
    """What the search for an order asks: which sets are connected, and how large joins are."""

    def __init__(
        self,
        relations: Sequence[LogicalPlan],
        parts: Sequence[Expression],
        estimator: Estimator,
        uses_indexes: bool,
    ) -> None:
        self.relations = list(relations)
        self.rows = [max(1.0, estimator.rows(relation)) for relation in relations]
        self._fields = {k: v for relation in relations for k, v in relation.field_facts.items()}
        self._home = {
            identifier: i for i, relation in enumerate(relations) for identifier in relation.output_ids
        }
        self._estimator = estimator
        self._equalities = self._classes(parts)
        self._rest: list[tuple[int, Expression, float]] = []
        for part in parts:
            if not self._add_equality(part):
                selectivity = estimator.selectivity(part, self._fields)
                self._rest.append((self._mask(part), part, selectivity))
        self.neighbours = [0] * len(relations)
        #: What the bounds by a mask leave, beyond the share of each.
        self._range_selectivities: dict[int, float] = {}
        for equality in self._equalities:
            for relation in equality.members:
                self.neighbours[relation] |= equality.mask & ~(1 << relation)

        self._add_null_equalities()
        self._add_single_rows()
        self._add_ranges()
        #: Tables with an index on a member of an equality, by relation.
        self._indexes: dict[int, list[tuple[_Equality, IndexedTable]]] = {}
        if uses_indexes:
            self._find_indexes()

    def _add_null_equalities(self) -> None:
        """Tie relations by IS NOT DISTINCT FROM, which is in no class of equalities, as NULL is equal to NULL in it."""
        for mask, part, _ in self._rest:
            if not (isinstance(part, Call) and part.function == "is_not_distinct_from"):
                continue
            sides = [self._mask(argument) for argument in part.arguments]
            if mask.bit_count() == 2 and all(side.bit_count() == 1 for side in sides):
                for side in sides:
                    self.neighbours[side.bit_length() - 1] |= mask ^ side

    def _add_single_rows(self) -> None:
        """Tie relations of one row, such as a scalar subquery, to those that are compared with them: then they are filters of these."""
        for mask, _, _ in self._rest:
            sides = (mask & -mask).bit_length() - 1, mask.bit_length() - 1
            if mask.bit_count() == 2 and any(self.relations[side].max_rows <= 1 for side in sides):
                for side, other in zip(sides, sides[::-1], strict=True):
                    self.neighbours[side] |= 1 << other

    def _add_ranges(self) -> None:
        """Tie relations with bounds on each other from both sides that no equalities tie; about one row each matches."""
        for mask in dict.fromkeys(mask for mask, _, _ in self._rest if mask.bit_count() == 2):
            first, second = mask.bit_length() - 1, (mask & -mask).bit_length() - 1
            parts = [part for of, part, _ in self._rest if of == mask]
            sides = (self.relations[side].field_facts for side in (first, second))
            if not is_two_sided(parts, *sides) or mask & self.reachable(first) == mask:
                continue
            self.neighbours[first] |= 1 << second
            self.neighbours[second] |= 1 << first
            matched = 1.0 / min(self.rows[first], self.rows[second])
            known = prod(selectivity for of, _, selectivity in self._rest if of == mask)
            self._range_selectivities[mask] = min(1.0, matched / known) if known else 1.0

    def reachable(self, relation: int) -> int:
        """The relations that are tied to one, directly or through others."""
        mask, reached = 0, 1 << relation
        while mask != reached:
            mask, reached = reached, reached | self.adjacent(reached)
        return mask

    def _find_indexes(self) -> None:
        for equality in self._equalities:
            for relation, members in equality.members.items():
                found = indexed_table(self.relations[relation], members[0][0])
                if found is not None:
                    self._indexes.setdefault(relation, []).append((equality, found))

    def index_cost(self, probe: JoinTree, table: JoinTree) -> float:
        """The cost of looking rows up in the index of a table, in the measure of `IndexedTable.cost`; infinity without."""
        known = self._indexes.get(table.mask.bit_length() - 1) if table.left is None else None
        if known is None:
            return inf
        keys = [known for known in self._equalities if known.mask & probe.mask and known.mask & table.mask]
        costs = (index.cost(probe.rows) for equality, index in known if keys == [equality])
        return min(costs, default=inf)

    def _mask(self, expression: Expression) -> int:
        mask = 0
        for identifier in read_ids(expression):
            mask |= 1 << self._home[identifier]
        return mask

    def _classes(self, parts: Sequence[Expression]) -> list[_Equality]:
        equalities = []
        for known in equivalence_classes(parts):
            equality = _Equality()
            for column in known.values():
                self._add_member(equality, self._home[column.id], column)
            equalities.append(equality)
        return equalities

    def _add_member(self, equality: _Equality, relation: int, expression: Expression) -> None:
        equality.add(relation, expression, self._estimator.key_values(self.relations[relation], expression))

    def _add_equality(self, part: Expression) -> bool:
        """Take a part that is (in a class or by itself) an equality between relations."""
        if column_equality(part) is not None:
            return True
        if not (isinstance(part, Call) and part.function == "equal"):
            return False
        masks = [self._mask(argument) for argument in part.arguments]
        if masks[0] & masks[1] or any(mask == 0 or mask & (mask - 1) for mask in masks):
            return False
        equality = _Equality()
        for mask, argument in zip(masks, part.arguments, strict=True):
            self._add_member(equality, mask.bit_length() - 1, argument)
        self._equalities.append(equality)
        return True

    def adjacent(self, mask: int) -> int:
        """Relations that an equality ties to one in the set."""
        result = 0
        while mask:
            lowest = mask & -mask
            result |= self.neighbours[lowest.bit_length() - 1]
            mask ^= lowest
        return result

    def join_rows(self, left: JoinTree, right: JoinTree) -> float:
        """Estimated rows of the join of two disjoint sets. Several keys are taken as one of two correlated columns."""
        left_distinct, right_distinct, domain = [], [], 1.0
        for equality in self._equalities:
            if equality.mask & left.mask and equality.mask & right.mask:
                sides = self._values(equality, left), self._values(equality, right)
                left_distinct.append(sides[0].distinct)
                right_distinct.append(sides[1].distinct)
                domain = max(domain, key_domain(sides))
        rows = left.rows * right.rows
        if left_distinct:
            if len(left_distinct) > 1:
                combined = (min(prod(left_distinct), left.rows), min(prod(right_distinct), right.rows))
                domain = max(domain, min(combined))
            rows /= domain
        both = left.mask | right.mask
        selectivities = [(mask, selectivity) for mask, _, selectivity in self._rest]
        for mask, selectivity in (*selectivities, *self._range_selectivities.items()):
            if mask & ~both == 0 and mask & left.mask and mask & right.mask:
                rows *= selectivity
        return max(1.0, rows)

    def _values(self, equality: _Equality, tree: JoinTree) -> KeyValues:
        known = [
            values
            for relation, members in equality.members.items()
            if tree.mask >> relation & 1
            for _, values in members
        ]
        fewest = known[0] if len(known) == 1 else min(known, key=lambda values: values.distinct)
        return fewest if fewest.distinct <= tree.rows else KeyValues(tree.rows, fewest.stored, fewest.range)

    def plan(self, tree: JoinTree) -> LogicalPlan:
        """The joins of a tree, each with the conditions that become testable there."""
        if tree.left is None or tree.right is None:
            return self._leaf(tree.mask.bit_length() - 1)
        left, right = self.plan(tree.left), self.plan(tree.right)
        condition: list[Expression] = []
        for equality in self._equalities:
            first, second = self._member(equality, tree.left.mask), self._member(equality, tree.right.mask)
            if first is not None and second is not None:
                condition.append(Call("equal", (first, second), BOOLEAN))
        for mask, part, _ in self._rest:
            if mask & ~tree.mask == 0 and mask & tree.left.mask and mask & tree.right.mask:
                condition.append(part)
        return Join(left, right, JoinType.INNER, conjunction(tuple(condition)))

    def _leaf(self, relation: int) -> LogicalPlan:
        """A relation, with the conditions on it alone that push-down left in the region."""
        parts = [part for mask, part, _ in self._rest if mask == 1 << relation]
        for equality in self._equalities:
            members = equality.members.get(relation, ())
            for (first, _), (second, _) in pairwise(members):
                parts.append(Call("equal", (first, second), BOOLEAN))
        return filtered(self.relations[relation], tuple(parts))

    def _member(self, equality: _Equality, mask: int) -> Expression | None:
        for relation, members in equality.members.items():
            if mask >> relation & 1:
                return members[0][0]
        return None
