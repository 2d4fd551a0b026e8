"""The ways in which one join can be run, and the cheapest: which side is built, or stands in an index, and by which keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf

from tqp.core.backends import Backend
from tqp.core.datatypes import BOOLEAN
from tqp.core.frozen import dataclass
from tqp.planner.algebra.cardinality import Estimator
from tqp.planner.algebra.expressions import (
    Call,
    ColumnRef,
    Expression,
    all_column_ids,
    column_ids,
    conjunction,
)
from tqp.planner.algebra.field_facts import expression_distinct
from tqp.planner.algebra.join_keys import THREE_VALUED, JoinKeys, JoinType, is_word
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.logical_plan import Aggregate, Join, LogicalPlan, Scan, Shared
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.algebra.node import walk_plan
from tqp.planner.physical.algorithm_choice import PhysicalOptions
from tqp.planner.physical.joins.costs import COLLECTED, pairs_worth_a_hash, side_cost
from tqp.planner.physical.joins.index import IndexedTable, index_for
from tqp.planner.physical.joins.packing import (
    MOST_CANDIDATES,
    KeyAlone,
    dense_span,
    fits_table,
    keys_for_three_values,
    pack_join_keys,
    reduce_keys,
    single_key,
)
from tqp.planner.physical.joins.ranges import bounds_cost, split_bounds
from tqp.planner.physical.plan import Bound
from tqp.planner.physical.runtime_filters import joined_by, saved_reading, saved_work
from tqp.planner.rules.columns import NewIds, key_field, pass_through, reference
from tqp.planner.rules.functional_dependencies import same_for_equal_inputs

#: What joins become whose sides are exchanged.
SWAPPED = {
    JoinType.INNER: JoinType.INNER,
    JoinType.LEFT: JoinType.RIGHT,
    JoinType.RIGHT: JoinType.LEFT,
    JoinType.FULL: JoinType.FULL,
}
#: Sides are exchanged only for a clear gain: of the larger cost, so much at least.
_SWAP_GAIN = 0.1
#: Pairs of a nested-loop join that take as long as grouping a row.
_PAIRS_PER_GROUPED_ROW = 8
#: Nanoseconds of a pair whose other keys are compared, of a look-up that drops a row before, of a build row kept for two.
_PAIR, _LOOK_UP, _KEPT_ROW = 8.0, 3.0, 20.0


@dataclass(frozen=True, slots=True)
class JoinCandidate:
    """`probe` is streamed; `build` is materialised, or with `index` is a table whose index takes the place of a build.

    `join_type`: that of a physical join, with the left side as the probe.
    """

    join_type: JoinType
    probe: LogicalPlan
    build: LogicalPlan
    keys: JoinKeys  # left: of the probe side
    probe_is_unique: bool  # no two rows match on the keys
    build_is_unique: bool
    cost: float = inf  # in nanoseconds; inf where nothing tells candidates apart
    index: IndexedTable | None = None

    def swapped(self) -> JoinCandidate:
        """With the sides exchanged: of a type in SWAPPED."""
        return JoinCandidate(
            SWAPPED[self.join_type],
            self.build,
            self.probe,
            self.keys.swapped(),
            self.build_is_unique,
            self.probe_is_unique,
        )

    def at(self, cost: float, index: IndexedTable | None = None) -> JoinCandidate:
        """With its cost, by an index or without."""
        return replace(self, cost=cost, index=index)


def _needs_partners(plan: Join) -> bool:
    """May a key of rows that are all kept raise, which it does not where there is nothing to look up? A build computes it first."""
    known = plan.left.field_facts
    return plan.join_type is JoinType.LEFT and any(may_raise(key, known) for key in plan.keys.left)


@dataclass(frozen=True, slots=True)
class JoinCandidates:
    """`dictionaries`: entries of the dictionaries of table columns, by column id."""

    estimator: Estimator
    dictionaries: Mapping[int, int]
    options: PhysicalOptions

    def best(self, plan: Join) -> JoinCandidate:
        """The cheapest way, by the keys that are worth it."""
        written = JoinCandidate(
            plan.join_type,
            plan.left,
            plan.right,
            plan.keys,
            plan.left_key_is_unique,
            plan.right_key_is_unique,
        )
        best = written
        if plan.join_type in SWAPPED and self.options.is_on("swap_join_sides") and not _needs_partners(plan):
            as_written, swapped = self.costed(written), self.costed(written.swapped())
            if swapped.join_type is JoinType.RIGHT:
                swapped = swapped.at(swapped.cost + COLLECTED * self.estimator.rows(plan))
            gain = _SWAP_GAIN * max(abs(as_written.cost), abs(swapped.cost)) if plan.keys.left else 0.0
            best = swapped if as_written.cost - swapped.cost > gain else as_written
        keys = self._useful_keys(best)
        if keys is best.keys and best is not written:
            return best
        return self.costed(replace(best, keys=keys))

    def costed(self, candidate: JoinCandidate) -> JoinCandidate:
        """The candidate with its cost: by an index if one is cheaper, or of a build, less what its runtime filter saves."""
        kind, keys, probe, build = candidate.join_type, candidate.keys, candidate.probe, candidate.build
        rows, build_rows = self.estimator.rows(probe), self.estimator.rows(build)
        if not keys.left:
            sides = probe.field_facts, build.field_facts
            bounds = split_bounds(keys, kind, *sides)[0] if self.options.is_on("range_join") else ()
            return candidate.at(bounds_cost(bounds, rows, build_rows) if bounds else inf)
        cost = side_cost(rows, build_rows, candidate.build_is_unique, self._span(keys, probe, build))
        if self.options.is_on("runtime_filters"):
            cost -= saved_work(kind, keys, probe, build, self.estimator)
            if kind is JoinType.LEFT and joined_by(probe, keys.left[0]):  # its filter reduces the build side
                cost -= saved_work(SWAPPED[kind], keys.swapped(), build, probe, self.estimator)
        if self.options.is_on("index_join") and self.options.backend is Backend.HOST:
            index = index_for(kind, keys, probe.field_facts, build)
            by_index = inf if index is None else index.cost(rows)
            if by_index < cost and by_index < cost - saved_reading(kind, keys, probe, build, self.estimator):
                return candidate.at(by_index, index)
        return candidate.at(cost)

    def bounds(
        self, kind: JoinType, keys: JoinKeys, probe: FieldsById, build: FieldsById, build_rows: int
    ) -> tuple[tuple[Bound, ...], JoinKeys]:
        """The bounds of a range join, if it pays, and the keys without them; of one build row at most there is no range."""
        if build_rows <= 1 or not self.options.is_on("range_join"):
            return (), keys
        return split_bounds(keys, kind, probe, build)

    def with_distinct_build(self, plan: Join, new_ids: Callable[[], NewIds]) -> Join:
        """A join that asks whether a right row matches and compares pairs of rows, with each right row once if that pays."""
        left, right = plan.left.field_facts, plan.right.field_facts
        keys = keys_for_three_values(plan.join_type, plan.keys, left, right)
        if keys.left:
            return self._with_distinct_keys(plan, keys, new_ids)
        if self.bounds(plan.join_type, keys, left, right, plan.right.max_rows)[0]:
            return plan
        fields = tuple(
            right[each.id] for each in plan.right.schema if each.id in all_column_ids(keys.residual)
        )
        columns = tuple(map(reference, fields))
        if not columns or not all(map(same_for_equal_inputs, keys.residual)):
            return plan
        if any(each.data_type.is_composed for each in columns):  # no key of a group: see group_by_order_keys
            return plan
        probes, rows = self.estimator.rows(plan.left), self.estimator.rows(plan.right)
        saved_pairs = probes * (rows - self.estimator.distinct(plan.right, columns))
        if saved_pairs < _PAIRS_PER_GROUPED_ROW * rows:
            return plan
        return replace(plan, right=Aggregate(plan.right, fields, columns, (), ()))

    def _with_distinct_keys(self, plan: Join, keys: JoinKeys, new_ids: Callable[[], NewIds]) -> Join:
        """The same of a join by hashes: a left row is compared with all right rows of its hash, those that are equal among them.

        That may be any number of rows, unless a key is known to have many values.
        """
        left, right = plan.left.field_facts, plan.right.field_facts
        groups = tuple(dict.fromkeys(keys.right))
        if plan.right_key_is_unique or not self._compares_hashes(keys, left, right):
            return plan
        if not all(map(column_ids, groups)):
            return plan
        counted = tuple(each for each in groups if expression_distinct(each, right) is not None)
        if counted:
            probes, rows = self.estimator.rows(plan.left), self.estimator.rows(plan.right)
            pairs = probes * (rows / self.estimator.distinct(plan.right, counted) - 1.0)
            if pairs < _PAIRS_PER_GROUPED_ROW * rows:
                return plan
        new = new_ids()
        fields = tuple(key_field(each, plan.right, new) for each in groups)
        field_of = dict(zip(groups, fields, strict=True))
        equalities = tuple(
            Call(
                "is_not_distinct_from" if null_equal else "equal", (key, reference(field_of[other])), BOOLEAN
            )
            for key, other, null_equal in zip(keys.left, keys.right, keys.null_equal, strict=True)
        )
        distinct = Aggregate(plan.right, fields, groups, (), ())
        return replace(plan, right=distinct, condition=conjunction(equalities))

    def _compares_hashes(self, keys: JoinKeys, left: FieldsById, right: FieldsById) -> bool:
        """Whether a join by the keys finds pairs by a hash and compares them, and nothing else."""
        if keys.residual or pack_join_keys(keys, left, right, self.dictionaries, None) is not None:
            return False
        return (
            len(keys.left) > 1
            or keys.null_equal[0]
            or not (is_word(key := keys.left[0].data_type) or key.is_string)
        )

    def with_reduced_probe(
        self, plan: Join, join: JoinCandidate, needed: frozenset[int], new_ids: Callable[[], NewIds]
    ) -> Join:
        """An inner join by one of several keys, its probe side without rows that no build row equals in another, if that pays.

        The build side is shared then: it is asked for the other key first. `needed`: what is read of the join's columns.
        """
        every = plan.keys if join.probe is plan.left else plan.keys.swapped()
        if plan.join_type is not JoinType.INNER or len(join.keys.left) != 1 or len(every.left) < 2:
            return plan
        if join.index is not None or not self.options.is_on("reduce_probe"):
            return plan
        probe, build = join.probe, join.build
        rows, build_rows = self.estimator.rows(probe), self.estimator.rows(build)
        pairs = (
            rows * build_rows * self.estimator.key_selectivity(probe, join.keys.left, build, join.keys.right)
        )
        pairs /= self.estimator.distinct(build, join.keys.right)
        best, most_saved = None, 2.0 * (rows * _LOOK_UP + build_rows * _KEPT_ROW)
        for position, (left, right) in enumerate(zip(every.left, every.right, strict=True)):
            single = single_key(every, position)
            is_column = isinstance(left, ColumnRef) and isinstance(right, ColumnRef)
            if single.left == join.keys.left or every.null_equal[position] or not is_column:
                continue
            saved = pairs * _PAIR * (1.0 - self.estimator.key_selectivity(probe, (left,), build, (right,)))
            if saved > most_saved and self._span(single, probe, build) is not None:
                best, most_saved = single, saved
        if best is None:
            return plan
        new, needed = new_ids(), needed | all_column_ids((plan.condition,))
        identifier = new.new_shared()
        build = pass_through(build, (field.id for field in build.schema if field.id in needed))
        asked = Shared(build, identifier, tuple(map(new.renewed, build.schema)))
        renamed = zip(build.schema, asked.fields, strict=True)
        key = next(reference(field) for old, field in renamed if old.id in all_column_ids(best.right))
        found = Join(probe, asked, JoinType.SEMI, Call("equal", (best.left[0], key), BOOLEAN))
        kept = Shared(build, identifier, build.schema)
        sides = (found, kept) if probe is plan.left else (kept, found)
        return replace(plan, left=sides[0], right=sides[1])

    def _span(self, keys: JoinKeys, probe: LogicalPlan, build: LogicalPlan) -> int | None:
        rows = self.estimator.rows(probe) + self.estimator.rows(build)
        fields = probe.field_facts, build.field_facts
        return dense_span(keys, *fields, self.dictionaries, rows)

    def _useful_keys(self, candidate: JoinCandidate) -> JoinKeys:
        """The keys, or one of them if a dense table over it beats hashing them all."""
        kind = candidate.join_type
        keys, probe, build = candidate.keys, candidate.probe, candidate.build
        if len(keys.left) < 2 or kind in THREE_VALUED or not self.options.is_on("reduce_keys"):
            return keys
        rows, build_rows = self.estimator.rows(probe), self.estimator.rows(build)
        packing = pack_join_keys(keys, probe.field_facts, build.field_facts, self.dictionaries, None)
        if packing is not None and fits_table(packing, rows + build_rows):
            return keys
        cautious = self.estimator.cautious_rows(build)
        alone = []
        for position in range(len(keys.left)):
            single = single_key(keys, position)
            distinct = self.estimator.distinct(build, single.right)
            found = self.estimator.key_selectivity(probe, single.left, build, single.right)
            span = self._span(single, probe, build)
            saved = saved_work(kind, single, probe, build, self.estimator)
            # of more rows than expected each probe row meets more of them, unless there are other values for these
            candidates = cautious / distinct
            if candidates > MOST_CANDIDATES and self._has_values_for(cautious, single.right[0], build):
                candidates = 1.0
            alone.append(KeyAlone(candidates, build_rows * found / distinct, span, saved))
        if packing is None:
            return reduce_keys(keys, alone, inf)
        worth = pairs_worth_a_hash(len(alone), rows, build_rows, candidate.build_is_unique)
        return reduce_keys(keys, alone, worth)

    def _has_values_for(self, rows: float, key: Expression, plan: LogicalPlan) -> bool:
        """Whether the key is a column of a table below the plan that has a value for each of so many rows."""
        if not isinstance(key, ColumnRef) or self.estimator.key_values(plan, key).stored < rows:
            return False
        columns, below = column_ids(key), plan
        while not isinstance(below, Scan):
            source = below.source_of(columns)
            if source is None:
                return False
            below = source
        return True


def dictionary_sizes(root: LogicalPlan) -> dict[int, int]:
    """Entries of the dictionaries of table columns below, by column id: a scan's, or that under which a shared plan passes it on."""
    nodes = walk_plan(root)
    sizes = {
        field.id: field.facts.dictionary_size
        for node in nodes
        if isinstance(node, Scan)
        for field in node.field_facts.values()
        if field.facts.dictionary_size is not None
    }
    if not sizes or Shared not in root.kinds:
        return sizes
    renamed = {
        field.id: stored.id
        for node in nodes
        if isinstance(node, Shared)
        for field, stored in zip(node.fields, node.input.schema, strict=True)
        if field.id != stored.id
    }
    for id in renamed:
        origin = id
        while origin in renamed:
            origin = renamed[origin]
        if origin in sizes:
            sizes[id] = sizes[origin]
    return sizes
