"""The physical node of a join: its sides planned, filters placed on the way, algorithm and facts of what comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tqp.planner.algebra.expressions import all_column_ids
from tqp.planner.algebra.field_facts import join_fields
from tqp.planner.algebra.join_keys import KEEPS_RIGHT, LEFT_ONLY, JoinType
from tqp.planner.algebra.logical_plan import Join as LogicalJoin
from tqp.planner.physical.algorithm_choice import choose
from tqp.planner.physical.joins.algorithms import JOIN_CHOICES, JoinSituation, every_row_matches
from tqp.planner.physical.joins.candidates import JoinCandidate, JoinCandidates
from tqp.planner.physical.joins.costs import stands_by_key
from tqp.planner.physical.joins.index import index_join
from tqp.planner.physical.joins.packing import (
    keys_for_three_values,
    match_plain_nulls,
    pack_join_keys,
    plain_join_type,
)
from tqp.planner.physical.joins.rewrites import by_order_keys, key_left_condition
from tqp.planner.physical.plan import Join, JoinAlgorithm, PhysicalPlan
from tqp.planner.physical.runtime_filters import (
    FilterRequest,
    Requests,
    columns_of,
    filter_from_probe,
    pass_operator,
    place,
    request_filter,
    split,
)
from tqp.planner.physical.shared_scans import filter_as_build_side

if TYPE_CHECKING:
    from tqp.planner.physical.planner import Planner


#: Joins all of whose rows hold a build row: what drops those drops these.
PASSES_BUILD = (JoinType.INNER, JoinType.RIGHT)


class JoinPlanner:
    """Plans one join of a query."""

    def __init__(self, planner: Planner, candidates: JoinCandidates) -> None:
        self._planner = planner
        self._options = planner.options
        self._candidates = candidates

    def plan(self, plan: LogicalJoin, required: frozenset[int], requests: Requests) -> PhysicalPlan:
        """See `Planner.plan`."""
        plan = key_left_condition(plan, self._planner.new_ids)
        if plan.join_type in LEFT_ONLY and self._options.is_on("distinct_build_side"):
            plan = self._candidates.with_distinct_build(by_order_keys(plan), lambda: self._planner.new_ids)
        identifier = self._planner.new_join()
        join = self._candidates.best(plan)
        read = required | columns_of(requests)
        reduced = self._candidates.with_reduced_probe(plan, join, read, lambda: self._planner.new_ids)
        if reduced is not plan:
            plan, join = reduced, self._candidates.best(reduced)
        # a build row whose partners are left out would come out without any
        keeps_build = join.join_type in KEEPS_RIGHT
        into_probe, others = ((), requests) if keeps_build else split(requests, join.probe.output_ids)
        is_inner, passes_build = join.join_type is JoinType.INNER, join.join_type in PASSES_BUILD
        into_build, here = split(others, join.build.output_ids) if passes_build else ((), others)
        needed = required | columns_of(here) | all_column_ids(join.keys.residual)

        own = self._filter_of_probe(join, identifier)
        downward: Requests = pass_operator(into_probe) + ((own,) if own is not None else ())
        of_probe = (needed & join.probe.output_ids) | all_column_ids(join.keys.left)
        probed = self._planner.plan(join.probe, of_probe, downward)
        indexed = self._with_index(plan, join, probed, required | columns_of(others), identifier)
        if indexed is not None:
            return place(indexed, others)

        other = self._filter_of_build(join, probed)
        into_build = pass_operator(into_build) + ((other,) if other is not None else ())
        of_build = (needed & join.build.output_ids) | all_column_ids(join.keys.right)
        built = self._planner.plan(join.build, of_build, into_build)
        is_filtered = own is not None and own.ranges is not None
        if is_inner and not is_filtered and self._options.is_on("share_filtered_scans"):
            probed = filter_as_build_side(join.keys, probed, built)
        kept = required | columns_of(here)
        return place(self._built(plan, join, probed, built, own, kept, identifier), here)

    def _filter_of_probe(self, join: JoinCandidate, identifier: int) -> FilterRequest | None:
        """The filter by the build keys on its way down the probe side."""
        if join.index is not None or not self._options.is_on("runtime_filters"):
            return None
        by_runs = self._options.runs_are_known
        sides = join.keys, join.probe, join.build
        return request_filter(identifier, join.join_type, *sides, self._planner.estimator, by_runs)

    def _filter_of_build(self, join: JoinCandidate, probed: PhysicalPlan) -> FilterRequest | None:
        """The filter of an inner join inside the probe side on its way down the build side."""
        if not self._options.is_on("runtime_filters"):
            return None
        return filter_from_probe(join.join_type, join.keys, probed, join.build, self._planner.estimator)

    def _with_index(
        self,
        plan: LogicalJoin,
        join: JoinCandidate,
        probed: PhysicalPlan,
        required: frozenset[int],
        identifier: int,
    ) -> PhysicalPlan | None:
        """The join by the index of a table, if that is the candidate and it still can be."""
        index, keys = join.index, join.keys
        if index is None:
            return None
        columns = required | all_column_ids((*keys.right, *keys.residual, *index.conditions))
        table = self._planner.scan(index.scan, columns)
        rows = self._planner.rows(plan, (join.probe, probed))
        return index_join(
            plan, index, keys, probed, table, required, identifier, rows, self._planner.in_order
        )

    def _built(
        self,
        plan: LogicalJoin,
        join: JoinCandidate,
        probed: PhysicalPlan,
        built: PhysicalPlan,
        own: FilterRequest | None,
        required: frozenset[int],
        identifier: int,
    ) -> PhysicalPlan:
        """The join of two planned sides; `own`: its filter on the probe side."""
        left, right = probed.field_facts, built.field_facts
        keys = match_plain_nulls(join.keys, join.join_type, left, right)
        join_type = plain_join_type(join.join_type, keys, left, right)
        keys = keys_for_three_values(join_type, keys, left, right)
        bounds, without_bounds = self._candidates.bounds(join_type, keys, left, right, built.max_rows)
        ranges = own.ranges if own is not None else None
        packing = pack_join_keys(keys, left, right, self._candidates.dictionaries, ranges)
        situation = JoinSituation(
            join_type,
            keys,
            bounds,
            packing,
            join.build.matches_at_most_once(keys.right, keys.null_equal),
            max(probed.estimated_rows, own.rows if own is not None else 0.0),
            built.estimated_rows,
            self._options.backend,
        )
        algorithm = choose(JOIN_CHOICES, situation, self._options.disabled_rules).algorithm
        is_perfect_hash = algorithm is JoinAlgorithm.PERFECT_HASH
        known = join_fields(
            left,
            right,
            join_type,
            keys,
            plan.mark,
            left_once=join.build_is_unique or join_type is JoinType.SINGLE,
            right_once=join.probe_is_unique,
            keeps_left_order=join_type in LEFT_ONLY
            or (join_type not in KEEPS_RIGHT and is_perfect_hash)
            and (join_type is JoinType.INNER or not keys.residual),
        )
        rows = self._planner.rows(plan, (join.probe, probed), (join.build, built))
        if own is not None and ranges is not None:  # the join itself drops what its filter dropped before
            rows /= max(own.selectivity, 1e-9)
        rows = min(rows, self._planner.estimator.rows(plan))
        all_match = is_perfect_hash and join_type in (JoinType.INNER, JoinType.SEMI)
        if all_match and (own is None or own.ranges is None or own.is_partial or keys.residual):
            all_match = every_row_matches(keys, probed, built)
        payload = ((required | all_column_ids(join.keys.residual)) & right.keys()) - all_column_ids(
            keys.right
        )
        return Join(
            tuple(field for field in known.values() if field.id in required),
            rows,
            plan.max_rows,
            identifier,
            probed,
            built,
            join_type,
            algorithm,
            keys.left,
            keys.right,
            keys.null_equal,
            without_bounds.residual,
            packing,
            plan.mark,
            all_match,
            is_perfect_hash and bool(payload) and stands_by_key(len(payload), built.estimated_rows, rows),
            bounds=bounds,
        )
