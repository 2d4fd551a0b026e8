"""Runtime filters: a join's build keys prune rows deep inside its probe side, before other joins, group-bys and predictions.

A request travels down with the planning of the probe side, towards where its key columns come from; `place` puts it
there if it has passed an operator on its way that it saves work (right below its own join it would repeat that join).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tqp.planner.algebra.cardinality import Estimator
from tqp.planner.algebra.expressions import ColumnRef, Expression, all_column_ids
from tqp.planner.algebra.join_keys import DROPS_LEFT, JoinKeys
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    JoinType,
    LogicalPlan,
    Project,
    Scan,
    Shared,
    UnionAll,
)
from tqp.planner.algebra.may_raise import raising_in
from tqp.planner.algebra.value_ranges import value_range
from tqp.planner.functions.ranges import Range
from tqp.planner.physical.plan import Filter as PhysicalFilter
from tqp.planner.physical.plan import Join as PhysicalJoin
from tqp.planner.physical.plan import PhysicalPlan, RuntimeFilter, TableScan
from tqp.planner.physical.plan import Project as PhysicalProject
from tqp.planner.rules.columns import substitute

#: A filter that keeps more than this share of the keys is not worth its look-ups.
_LARGEST_SHARE = 0.5
_FEWEST_ROWS = 256.0
#: What the look-up of a join by several keys costs, in those by one.
_OF_SEVERAL_KEYS = 3.0
_SAVED_PER_ROW = 4.0
#: Up to this share of a sorted column's values, the rows of those found are counted out; else all rows look theirs up.
_LARGEST_SHARE_OF_RUNS = 0.07
_SHORTEST_RUN = 2.0
#: Rows of a table from which on its zones are looked at before they are read; what is saved of a row that is not.
FEWEST_ZONED_ROWS, _SAVED_PER_UNREAD_ROW = 262_144, 2.0
#: A zone spans so many times as much as the values at its ends are apart, if they are in no order.
_ZONE_SPAN = 3.0


@dataclass(slots=True)
class FilterRequest:
    """A filter on its way down; one object for one filter, changed as it travels.

    `by_runs` is decided at the table's filters. Set where it is placed: `ranges`, what the keys can be there, which the
    join's key packing must cover; `rows`, how many are looked up; `is_partial`, whether others get by without it.
    """

    join: int
    keys: tuple[Expression, ...]
    selectivity: float
    has_passed: bool = False
    by_runs: bool = False  # of a sorted column, if it gets down to its table
    ranges: tuple[Range, ...] | None = None
    rows: float = 0.0
    is_partial: bool = False

    def columns(self) -> frozenset[int]:
        """Ids of the columns the keys read."""
        return all_column_ids(self.keys)

    def over(self, columns: Mapping[int, Expression]) -> FilterRequest:
        """The same in a branch of UNION ALL, with its columns for those of the union, whose rows need not be put together then."""
        keys = tuple(substitute(key, columns) for key in self.keys)
        return FilterRequest(self.join, keys, self.selectivity, has_passed=True)

    def was_placed_in(self, branches: Sequence[FilterRequest]) -> None:
        """What the keys can be where it was placed in some branches, and how many are looked up."""
        placed = [each for each in branches if each.ranges is not None]
        if placed:
            pairs = zip(*(each.ranges or () for each in placed), strict=True)
            self.ranges = tuple(
                (min(low for low, _ in each), max(high for _, high in each)) for each in pairs
            )
            self.rows = sum(each.rows for each in placed)
            self.is_partial = len(placed) < len(branches) or any(each.is_partial for each in placed)


Requests = tuple[FilterRequest, ...]


def request_filter(
    identifier: int,
    join_type: JoinType,
    keys: JoinKeys,
    probe: LogicalPlan,
    build: LogicalPlan,
    estimator: Estimator,
    by_runs: bool = False,
) -> FilterRequest | None:
    """The filter of a join on the rows of its probe side, if it would drop enough of them.

    `by_runs`: also one that passes no other operator, if it can look up the runs of a sorted column.
    """
    if join_type not in DROPS_LEFT or not keys.left or any(keys.null_equal):
        return None
    if not all(key.data_type.is_integer_like for key in keys.left):
        return None
    if estimator.distinct(build, keys.right) > _LARGEST_SHARE * estimator.rows(probe):
        return None  # other operators leave fewer rows than there are keys: the filter would look up what those drop
    selectivity = estimator.key_selectivity(probe, keys.left, build, keys.right)
    request = FilterRequest(identifier, keys.left, selectivity)
    place_below = origin(probe, request.columns())
    if place_below is None and not (by_runs and reads_runs(probe, request, estimator)):
        return None
    if place_below is not None and raising_in(keys.left, place_below):
        return None
    if selectivity > _LARGEST_SHARE:
        return None
    return request if _saves_look_ups(probe, request, estimator) else None


def _saves_look_ups(probe: LogicalPlan, request: FilterRequest, estimator: Estimator) -> bool:
    """Do fewer rows look up a key where the filter looks up one of each row below all joins that it passes?

    A join that keeps fewer rows than the filter had better come first: the filter's own join finds these few. Runs of a sorted
    column are looked up, not its rows.
    """
    joins: list[tuple[float, float]] = []  # what a look-up costs, and the share of the rows that it leaves
    plan, columns = probe, request.columns()
    while not stops_above(plan) and not isinstance(plan, UnionAll):
        below = plan.source_of(columns)
        if below is None:
            break
        if scores_rows(plan) or isinstance(plan, Aggregate):
            return True
        if isinstance(plan, Join):
            cost = 1.0 if len(plan.keys.left) == 1 else _OF_SEVERAL_KEYS
            joins.append((cost, estimator.rows(plan) / max(1.0, estimator.rows(below))))
        plan = below
    if isinstance(plan, UnionAll) or reads_runs(plan, request, estimator):
        return True
    left, saved = 1.0, 0.0
    for cost, selectivity in (*reversed(joins), (1.0, 1.0)):  # its own join is the last
        saved += left * cost
        left *= selectivity
    return (1.0 - request.selectivity) * saved > 1.0


def filter_from_probe(
    join_type: JoinType, keys: JoinKeys, probed: PhysicalPlan, build: LogicalPlan, estimator: Estimator
) -> FilterRequest | None:
    """A filter on the rows of the build side by the keys of an inner join that all probe rows have been through.

    For joins that have none of their own on the probe side: no build row with another key can have a partner.
    """
    if join_type not in (JoinType.LEFT, JoinType.SINGLE, JoinType.ANTI) or len(keys.left) != 1:
        return None
    probe_key, build_key = keys.left[0], keys.right[0]
    if keys.null_equal[0] or not isinstance(probe_key, ColumnRef) or not build_key.data_type.is_integer_like:
        return None
    place_below = origin(build, all_column_ids(keys.right))
    if place_below is None or raising_in(keys.right, place_below):
        return None
    join = inner_join_on(probed, probe_key.id)
    if join is None:
        return None
    selectivity = join.build.estimated_rows / estimator.distinct(build, keys.right)
    return FilterRequest(join.identifier, keys.right, selectivity) if selectivity <= _LARGEST_SHARE else None


def inner_join_on(plan: PhysicalPlan, column: int) -> PhysicalJoin | None:
    """The topmost inner or semi join below `plan`, on the way to the column, with the column as its only key."""
    while True:
        if isinstance(plan, PhysicalJoin):
            keys = (*plan.probe_keys, *plan.build_keys)
            is_key = any(isinstance(key, ColumnRef) and key.id == column for key in keys)
            may_drop = plan.join_type in (JoinType.INNER, JoinType.SEMI) and plan.has_keys
            if may_drop and len(plan.probe_keys) == 1 and is_key:
                return None if plan.null_equal[0] else plan
            is_built = any(f.id == column for f in plan.build.fields)
            from_build = plan.join_type in (JoinType.INNER, JoinType.RIGHT) and is_built
            plan = plan.build if from_build else plan.probe
        elif isinstance(plan, PhysicalFilter | RuntimeFilter | PhysicalProject):
            plan = plan.input
        else:
            return None


def joined_by(plan: LogicalPlan, key: Expression) -> bool:
    """Is there an inner or semi join by this column alone below `plan`, which `filter_from_probe` may find?"""
    below: LogicalPlan | None = plan
    while isinstance(key, ColumnRef) and isinstance(below, Filter | Project | Join):
        match below:
            case Join(join_type=JoinType.INNER | JoinType.SEMI, keys=JoinKeys((left,), (right,))):
                if key in (left, right):
                    return not below.keys.null_equal[0]
        below = below.source_of(frozenset((key.id,)))
    return False


def origin(plan: LogicalPlan, columns: frozenset[int]) -> LogicalPlan | None:
    """How deep below `plan` a filter on these columns can go; None if it would pass no join, group-by or prediction."""
    has_passed = False
    while (
        not stops_above(plan)
        and not isinstance(plan, UnionAll)
        and (below := plan.source_of(columns)) is not None
    ):
        has_passed = has_passed or scores_rows(plan) or isinstance(plan, Join | Aggregate)
        plan = below
    return plan if has_passed or isinstance(plan, UnionAll) else None


def saved_work(
    join_type: JoinType, keys: JoinKeys, probe: LogicalPlan, build: LogicalPlan, estimator: Estimator
) -> float:
    """Nanoseconds that a runtime filter is expected to save on its way to where the probe keys come from."""
    request = request_filter(-1, join_type, keys, probe, build, estimator)
    source = None if request is None else origin(probe, request.columns())
    if request is None or source is None:
        return 0.0
    return (1.0 - request.selectivity) * estimator.rows(source) * _SAVED_PER_ROW


def saved_reading(
    join_type: JoinType, keys: JoinKeys, probe: LogicalPlan, build: LogicalPlan, estimator: Estimator
) -> float:
    """Nanoseconds that are not spent on zones of a table in the probe side in which no row has a key of the build side.

    The keys may lie anywhere in the table.
    """
    if join_type not in DROPS_LEFT or not keys.left or any(keys.null_equal):
        return 0.0
    key, plan = keys.left[0], probe
    if not isinstance(key, ColumnRef):
        return 0.0
    while isinstance(plan, Filter | Project | Join):
        below = plan.source_of(frozenset((key.id,)))
        if below is None:
            return 0.0
        plan = below
    if not isinstance(plan, Scan) or plan.table.num_rows < FEWEST_ZONED_ROWS:
        return 0.0
    distance = plan.field_facts[key.id].estimates.distance
    if distance is None:
        return 0.0
    of_key = estimator.key_selectivity(plan, keys.left[:1], build, keys.right[:1])
    read = of_key + _ZONE_SPAN * distance * estimator.distinct(build, keys.right[:1])
    return max(0.0, 1.0 - read) * plan.table.num_rows * _SAVED_PER_UNREAD_ROW


def reads_runs(plan: LogicalPlan, request: FilterRequest, estimator: Estimator) -> bool:
    """Is it worth to look up the runs of a sorted table column, and to evaluate the table's filters afterwards?

    Not where these keep fewer rows than the request.
    """
    rows = estimator.rows(plan)
    while isinstance(plan, Filter) or (isinstance(plan, Project) and request.columns() <= plan.passed_ids):
        plan = plan.input
    if not isinstance(plan, Scan) or len(request.keys) != 1 or not isinstance(request.keys[0], ColumnRef):
        return False
    field = plan.field_facts[request.keys[0].id]
    all_rows, known = estimator.rows(plan), field.facts
    distinct_count = field.estimates.distinct_count
    return (
        known.is_sorted
        and not known.is_unique
        and distinct_count is not None
        and field.data_type.is_integer_like
        and distinct_count * _SHORTEST_RUN <= all_rows
        and request.selectivity <= _LARGEST_SHARE_OF_RUNS
        and request.selectivity * all_rows <= rows
    )


def split(requests: Requests, ids: Collection[int]) -> tuple[Requests, Requests]:
    """(those whose keys read only the columns `ids`, the others)."""
    inside = tuple(request for request in requests if all(column in ids for column in request.columns()))
    return inside, tuple(request for request in requests if request not in inside)


def pass_operator(requests: Requests) -> Requests:
    """Note that the requests go below an operator that they save work."""
    for request in requests:
        request.has_passed = True
    return requests


def columns_of(requests: Requests) -> frozenset[int]:
    """Ids of all columns the requests read."""
    return frozenset().union(*(request.columns() for request in requests))


def stops_above(plan: LogicalPlan) -> bool:
    """True for a chain of cheap filters on stored rows: the runtime filter looks up only the rows those leave."""
    return isinstance(plan, Filter) and _is_leaf(plan)


def place(plan: PhysicalPlan, requests: Requests) -> PhysicalPlan:
    """The plan under those of the requests that are worth it here."""
    fields = plan.field_facts if requests else {}
    for request in sorted(requests, key=lambda request: not request.by_runs):
        if not (request.has_passed or request.by_runs) or plan.estimated_rows < _FEWEST_ROWS:
            continue
        ranges = [value_range(key, fields) for key in request.keys]
        known = tuple(pair for pair in ranges if pair is not None)
        if len(known) < len(ranges):
            continue
        request.ranges, request.rows = known, plan.estimated_rows
        rows = plan.estimated_rows * request.selectivity
        # The filter may let more rows pass than it should, so it adds nothing to what is known of the columns.
        by_runs = request.by_runs and isinstance(plan, TableScan)  # the first of several
        plan = RuntimeFilter(plan.fields, rows, plan.max_rows, plan, request.keys, request.join, by_runs)
    return plan


def scores_rows(plan: LogicalPlan) -> bool:
    """Does the node call a model? Then it is worth to drop rows before it."""
    return bool(plan.scorings)


def _is_leaf(plan: LogicalPlan) -> bool:
    while isinstance(plan, Filter | Project) and not scores_rows(plan):
        plan = plan.input
    return not plan.inputs or isinstance(plan, Shared)
