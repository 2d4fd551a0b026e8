"""The choices of one join that depend on estimates: sides, keys, and whether a stored index takes the place of a build."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tqp.core.backends import Backend
from tqp.planner.algebra.expressions import ColumnRef, column_ids
from tqp.planner.algebra.join_keys import JoinKeys
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.logical_plan import Join, JoinType, LogicalPlan, Scan
from tqp.planner.algebra.node import walk_plan
from tqp.planner.physical.cardinality import Estimator
from tqp.planner.physical.index_joins import IndexedTable, index_for
from tqp.planner.physical.join_planning import (
    FreshIds,
    dense_span,
    flip,
    reduce_build_side,
    reduce_keys,
    should_swap,
    side_cost,
    single_key,
)
from tqp.planner.physical.plan import Bound
from tqp.planner.physical.range_joins import should_swap_bounds, split_bounds
from tqp.planner.physical.runtime_filters import reads_runs, request_filter, saved_work

_THREE_VALUED = (JoinType.MARK, JoinType.NULL_AWARE_ANTI)


@dataclass(frozen=True, slots=True)
class JoinChoices:
    """`dictionaries`: entries of the dictionaries of table columns, by column id."""

    estimator: Estimator
    dictionaries: Mapping[int, int]
    backend: Backend
    disabled_rules: frozenset[str]

    def is_on(self, rule: str) -> bool:
        """May the choice be made?"""
        return rule not in self.disabled_rules

    def runs_are_known(self) -> bool:
        """Can the rows of a sorted column be found by its runs?"""
        return self.is_on("filter_by_runs") and self.backend is Backend.HOST

    def should_swap(self, plan: Join, keys: JoinKeys, left_is_unique: bool, right_is_unique: bool) -> bool:
        """Is an inner join cheaper with its sides exchanged?"""
        if plan.join_type is not JoinType.INNER or not self.is_on("swap_join_sides"):
            return False
        if not keys.left:
            return self._should_swap_bounds(plan, keys)
        as_written, _ = self._cheapest(plan.join_type, keys, plan.left, plan.right, right_is_unique)
        swapped, _ = self._cheapest(plan.join_type, flip(keys), plan.right, plan.left, left_is_unique)
        return should_swap(as_written, swapped)

    def _should_swap_bounds(self, plan: Join, keys: JoinKeys) -> bool:
        if not self.is_on("range_join"):
            return False
        rows = self.estimator.rows
        sides = plan.left.field_facts, plan.right.field_facts
        return should_swap_bounds(keys, *sides, rows(plan.left), rows(plan.right))

    def bounds(
        self, kind: JoinType, keys: JoinKeys, probe: FieldsById, build: FieldsById, build_rows: int
    ) -> tuple[tuple[Bound, ...], JoinKeys]:
        """The bounds of a range join, if it pays, and the keys without them; of one build row at most there is no range."""
        if build_rows <= 1 or not self.is_on("range_join"):
            return (), keys
        return split_bounds(keys, kind, probe, build)

    def index(
        self, kind: JoinType, keys: JoinKeys, probe: LogicalPlan, build: LogicalPlan, build_is_unique: bool
    ) -> IndexedTable | None:
        """The table that the build side is, if looking the probe rows up in its index costs less than a build."""
        return self._cheapest(kind, keys, probe, build, build_is_unique)[1]

    def _cheapest(
        self, kind: JoinType, keys: JoinKeys, probe: LogicalPlan, build: LogicalPlan, build_is_unique: bool
    ) -> tuple[float, IndexedTable | None]:
        """The cost by an index, and the table; or that of a build, less what its runtime filter saves."""
        rows, build_rows = self.estimator.rows(probe), self.estimator.rows(build)
        cost = side_cost(rows, build_rows, build_is_unique, self._span(keys, probe, build))
        if self.is_on("runtime_filters"):
            cost -= saved_work(kind, keys, probe, build, self.estimator)
        if self.is_on("index_join") and self.backend is Backend.HOST:
            index = index_for(kind, keys, probe.field_facts, build)
            if index is not None and index.cost(rows) < cost:
                return index.cost(rows), index
        return cost, None

    def _span(self, keys: JoinKeys, probe: LogicalPlan, build: LogicalPlan) -> int | None:
        rows = self.estimator.rows(probe) + self.estimator.rows(build)
        fields = probe.field_facts, build.field_facts
        return dense_span(keys, *fields, self.dictionaries, rows)

    def useful_keys(self, kind: JoinType, keys: JoinKeys, probe: LogicalPlan, build: LogicalPlan) -> JoinKeys:
        """The keys, or one of them if a dense table over it beats hashing them all."""
        if len(keys.left) < 2 or kind in _THREE_VALUED or not self.is_on("reduce_keys"):
            return keys
        if self._span(keys, probe, build) is not None:
            return keys
        rows = self.estimator.rows(build)
        singles = [single_key(keys, position) for position in range(len(keys.left))]
        candidates = [rows / self.estimator.distinct(build, single.right) for single in singles]
        spans = [self._span(single, probe, build) for single in singles]
        saved = [saved_work(kind, single, probe, build, self.estimator) for single in singles]
        return reduce_keys(keys, candidates, spans, saved)

    def with_reduced_build(self, plan: Join, required: frozenset[int], fresh: Callable[[], FreshIds]) -> Join:
        """The join, its build side reduced to the keys of its probe side where runs of a sorted column tell these rows."""
        keys = plan.keys
        if plan.join_type not in (JoinType.SEMI, JoinType.ANTI) or len(keys.left) != 1 or keys.null_equal[0]:
            return plan
        if not (self.is_on("reduce_build_side") and self.runs_are_known()):
            return plan
        if not all(isinstance(key, ColumnRef) for key in (*keys.left, *keys.right)):
            return plan
        if self.index(plan.join_type, keys, plan.left, plan.right, True) is not None:
            return plan
        request = request_filter(
            -1, JoinType.SEMI, flip(keys), plan.right, plan.left, self.estimator, by_runs=True
        )
        if request is None or not reads_runs(plan.right, request, self.estimator):
            return plan
        needed = required.union(*map(column_ids, (*keys.left, *keys.residual)))
        return reduce_build_side(plan, keys, needed, fresh())


def dictionary_sizes(root: LogicalPlan) -> dict[int, int]:
    """Entries of the dictionaries of table columns below, by column id."""
    return {
        field.id: field.statistics.dictionary_size
        for node in walk_plan(root)
        if isinstance(node, Scan)
        for field in node.fields
        if field.statistics.dictionary_size is not None
    }
