"""From the optimized logical plan to the physical one: algorithms chosen, columns pruned, runtime filters placed.

Works top-down with the columns that are used above and the runtime filters on their way down, and builds the nodes on
the way back up, when the fields of their inputs are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from tqp.core.schema import Field, Schema
from tqp.planner.algebra.cardinality import Estimator
from tqp.planner.algebra.expressions import Expression, conjuncts
from tqp.planner.algebra.field_facts import (
    aggregate_fields,
    filter_fields,
    project_field,
    renamed_fields,
    sorted_fields,
    union_field,
    window_fields,
)
from tqp.planner.algebra.known_fields import Fields
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    AsofJoin,
    Filter,
    Join,
    Limit,
    LogicalPlan,
    Project,
    Recursive,
    Scan,
    Series,
    Shared,
    Sort,
    UnionAll,
    Unnest,
    Values,
    Window,
    WorkingRows,
)
from tqp.planner.algebra.node import walk_plan
from tqp.planner.algebra.text_words import with_labels
from tqp.planner.physical import plan as physical
from tqp.planner.physical.aggregate_planning import (
    DICTIONARY_ENCODED_KEYS,
    GROUP_CHOICES,
    GroupSituation,
)
from tqp.planner.physical.algorithm_choice import PhysicalOptions, choose, rules_of
from tqp.planner.physical.distinct_predictions import score_combinations
from tqp.planner.physical.factored_sums import choose_factors
from tqp.planner.physical.filter_order import order_conjuncts
from tqp.planner.physical.joins.algorithms import JOIN_CHOICES
from tqp.planner.physical.joins.build import JoinPlanner
from tqp.planner.physical.joins.candidates import JoinCandidates, dictionary_sizes
from tqp.planner.physical.joins.nearest import plan_nearest
from tqp.planner.physical.plan import GroupAlgorithm, PhysicalPlan
from tqp.planner.physical.runtime_filters import (
    Requests,
    columns_of,
    pass_operator,
    place,
    reads_runs,
    scores_rows,
    split,
    stops_above,
)
from tqp.planner.physical.shared_scans import share_filtered_scans
from tqp.planner.physical.window_planning import first_of_partitions
from tqp.planner.rules.columns import NewIds, is_pass_through, reference

#: What `PhysicalOptions.disabled_rules` may switch off; any choice of them gives the same rows.
PHYSICAL_RULES = (
    *"topk runtime_filters filter_by_runs share_filtered_scans filter_order".split(),
    *"swap_join_sides distinct_build_side reduce_keys reduce_probe index_join dictionary_join nearest_join".split(),
    *rules_of(JOIN_CHOICES),
    *rules_of(GROUP_CHOICES),
    *"factored_sums predict_distinct first_of_partitions choose_rows in_pieces streaming".split(),
)

_LET_FILTERS_PASS = (Filter, Project, Join, AsofJoin, Aggregate, Sort, UnionAll)


def plan_physical(
    plan: LogicalPlan, options: PhysicalOptions | None = None, estimator: Estimator | None = None
) -> PhysicalPlan:
    """The physical plan of a logical plan without subqueries; its fields are those of `plan.schema`, in that order.

    `estimator`: one that knows nodes of the plan already.
    """
    planner = Planner(options or PhysicalOptions(), plan, estimator or Estimator())
    planned = planner.plan(plan, _ids(plan.schema), ())
    if planner.is_on("share_filtered_scans"):
        planned = share_filtered_scans(planned, planner.new_ids)
    if planner.is_on("predict_distinct") and any(map(scores_rows, walk_plan(plan))):
        planned = score_combinations(planned)
    return planner.with_schema(planned, plan.schema, keep_names=True)


class Planner:
    """Plans one query; the joins by `JoinPlanner`."""

    def __init__(self, options: PhysicalOptions, root: LogicalPlan, estimator: Estimator) -> None:
        self.options = options
        self.estimator = estimator
        self._root = root
        dictionaries = dictionary_sizes(root) if self.is_on("dictionary_join") else {}
        self._candidates = JoinCandidates(estimator, dictionaries, options)
        self._num_joins = 0
        self._shared: dict[int, PhysicalPlan] = {}

    def is_on(self, rule: str) -> bool:
        """May the choice be made?"""
        return self.options.is_on(rule)

    def new_join(self) -> int:
        """A number for a join."""
        self._num_joins += 1
        return self._num_joins - 1

    def plan(self, plan: LogicalPlan, required: frozenset[int], requests: Requests) -> PhysicalPlan:
        """The plan for `required` columns of the output, with each of the `requests` placed in it or dropped."""
        if requests and (stops_above(plan) or not isinstance(plan, _LET_FILTERS_PASS)):
            if self.options.runs_are_known:
                for request in requests:
                    request.by_runs = request.by_runs or reads_runs(plan, request, self.estimator)
            inside = tuple(request for request in requests if request.by_runs and isinstance(plan, Filter))
            here = tuple(request for request in requests if request not in inside)
            required |= columns_of(here)
            if isinstance(plan, Filter) and inside:
                return place(self._filter(plan, required, inside), here)
            return place(self.plan(plan, required, ()), here)
        match plan:
            case Scan():
                return self.scan(plan, required)
            case Values():
                return self._values(plan, required)
            case Series():
                fields = tuple(plan.field_facts.values())
                return physical.SeriesScan(
                    fields, self.estimator.rows(plan), plan.rows, plan.start, plan.step
                )
            case Filter():
                return self._filter(plan, required, requests)
            case Project():
                return self._project(plan, required, requests)
            case Join():
                return JoinPlanner(self, self._candidates).plan(plan, required, requests)
            case AsofJoin():
                return plan_nearest(self, self._candidates.dictionaries, plan, required, requests)
            case Aggregate():
                return self._aggregate(plan, required, requests)
            case Sort():
                return self._sort(plan, required, requests, None)
            case Unnest():
                return self._unnest(plan, required)
            case Window():
                return self._window(plan, required)
            case Limit():
                return self._limit(plan, required)
            case UnionAll():
                return self._union(plan, required, requests)
            case WorkingRows():
                fields, rows = tuple(plan.field_facts.values()), self.estimator.rows(plan)
                return physical.WorkingRows(fields, rows, plan.max_rows, plan.identifier, plan.is_whole)
            case Recursive():
                return self._recursive(plan)
            case Shared():
                return self._share(plan)
        raise AssertionError(f"no physical form of {type(plan).__name__}")

    def with_schema(self, plan: PhysicalPlan, schema: Schema, keep_names: bool = False) -> PhysicalPlan:
        """The plan with exactly the columns of `schema`, in its order."""
        same = [field.id for field in plan.fields] == [field.id for field in schema]
        if same and not (keep_names and any(a.name != b.name for a, b in zip(plan.fields, schema))):
            return plan
        by_id = plan.field_facts
        fields = tuple(replace(by_id[field.id], name=field.name) for field in schema)
        outputs = tuple(reference(by_id[field.id]) for field in schema)
        return physical.Project(fields, plan.estimated_rows, plan.max_rows, plan, outputs)

    def rows(self, plan: LogicalPlan, *inputs: tuple[LogicalPlan, PhysicalPlan]) -> float:
        """The logical estimate, cut by the share that runtime filters below leave of the inputs."""
        rows = self.estimator.rows(plan)
        for logical, planned in inputs:
            expected = self.estimator.rows(logical)
            if expected > 0.0:
                rows *= min(1.0, planned.estimated_rows / expected)
        return rows

    def scan(self, plan: Scan, required: frozenset[int]) -> PhysicalPlan:
        plan = plan.without_unread(required)
        fields, rows = tuple(plan.field_facts.values()), self.estimator.rows(plan)
        return physical.TableScan(fields, rows, plan.max_rows, plan.table, plan.table_name, plan.columns)

    def _values(self, plan: Values, required: frozenset[int]) -> PhysicalPlan:
        plan = plan.without_unread(required)
        fields = tuple(plan.field_facts.values())
        return physical.ValuesScan(fields, float(len(plan.rows)), len(plan.rows), plan.rows)

    def _filter(self, plan: Filter, required: frozenset[int], requests: Requests) -> PhysicalPlan:
        if scores_rows(plan):
            requests = pass_operator(requests)
        below = self.plan(plan.input, required | plan.reads, requests)
        parts, fields = conjuncts(plan.condition), below.field_facts
        if isinstance(below, physical.Window) and self.is_on("first_of_partitions"):
            below = first_of_partitions(below, parts)
        parts = self.in_order(parts, fields)
        return physical.Filter(
            _kept(filter_fields(fields, parts).values(), required),
            self.rows(plan, (plan.input, below)),
            plan.max_rows,
            below,
            parts,
        )

    def in_order(self, parts: Sequence[Expression], fields: Fields) -> tuple[Expression, ...]:
        return order_conjuncts(parts, fields, self.estimator) if self.is_on("filter_order") else tuple(parts)

    def _project(self, plan: Project, required: frozenset[int], requests: Requests) -> PhysicalPlan:
        inside, outside = split(requests, plan.passed_ids)
        if scores_rows(plan):
            inside = pass_operator(inside)
        required |= columns_of(outside)
        plan = plan.without_unread(required)
        below = self.plan(plan.input, plan.reads, inside)
        if not is_pass_through(plan):
            known = below.field_facts
            pairs = zip(plan.fields, plan.outputs, strict=True)
            fields = tuple(project_field(field, output, known) for field, output in pairs)
            below = physical.Project(fields, below.estimated_rows, below.max_rows, below, plan.outputs)
        return place(below, outside)

    def _aggregate(self, plan: Aggregate, required: frozenset[int], requests: Requests) -> PhysicalPlan:
        inside, outside = split(requests, plan.passed_ids)
        required |= columns_of(outside)
        plan = plan.without_unread(required)
        below = self.plan(plan.input, plan.reads, pass_operator(inside))
        known = below.field_facts
        rows = min(self.rows(plan, (plan.input, below)), below.estimated_rows) if plan.keys else 1.0
        situation = GroupSituation(plan.keys, below, rows, self.options)
        choice = choose(GROUP_CHOICES, situation, self.options.disabled_rules)
        algorithm = choice.algorithm
        if choice is DICTIONARY_ENCODED_KEYS:
            packing = situation.encoded
        elif algorithm in (GroupAlgorithm.HASH, GroupAlgorithm.SORT):
            packing = situation.word
        else:
            packing = situation.packing
        fields = aggregate_fields(
            known,
            plan.key_fields,
            plan.keys,
            plan.aggregate_fields,
            plan.aggregates,
            plan.input.max_rows,
        )
        factors = None
        if algorithm is GroupAlgorithm.DIRECT and packing is not None and self.is_on("factored_sums"):
            factors = choose_factors(
                plan.aggregates, known, packing, below.estimated_rows, plan.input.max_rows
            )
        grouped = physical.Aggregate(
            tuple(fields),
            rows,
            plan.max_rows,
            below,
            algorithm,
            plan.keys,
            plan.aggregates,
            packing,
            factors,
        )
        return place(grouped, outside)

    def _sort(
        self, plan: Sort, required: frozenset[int], requests: Requests, limit: Limit | None
    ) -> PhysicalPlan:
        below = self.plan(plan.input, required | plan.reads, requests)
        fields = _kept(sorted_fields(plan.keys, below.field_facts).values(), required)
        if limit is None or limit.limit is None:
            return physical.Sort(fields, below.estimated_rows, below.max_rows, below, plan.keys)
        rows = min(float(limit.limit), max(0.0, below.estimated_rows - limit.offset))
        return physical.Sort(fields, rows, limit.max_rows, below, plan.keys, limit.limit, limit.offset)

    def _unnest(self, plan: Unnest, required: frozenset[int]) -> PhysicalPlan:
        (needed,) = plan.needs(required)
        below = self.plan(plan.input, frozenset(needed), ())
        known = plan.field_facts
        kept = [known[field.id] for field in plan.input.schema if field.id in required]
        made = [known[field.id] for field in (*plan.fields, *plan.places)]
        return physical.Unnest(
            (*kept, *made),
            self.estimator.rows(plan),
            plan.max_rows,
            below,
            plan.lists,
            bool(plan.places),
            plan.keeps_rows,
        )

    def _window(self, plan: Window, required: frozenset[int]) -> PhysicalPlan:
        plan = plan.without_unread(required)
        if not plan.calls:
            return self.plan(plan.input, required, ())
        (needed,) = plan.needs(required)
        below = self.plan(plan.input, frozenset(needed), ())
        known = window_fields(
            below.field_facts, plan.partition, plan.order, plan.fields, plan.calls, plan.input.max_rows
        )
        called = tuple(known[field.id] for field in plan.fields)
        kept = _kept(known.values(), required - _ids(plan.fields))
        return physical.Window(
            (*kept, *called),
            below.estimated_rows,
            below.max_rows,
            below,
            plan.partition,
            plan.order,
            plan.calls,
        )

    def _limit(self, plan: Limit, required: frozenset[int]) -> PhysicalPlan:
        if plan.limit is not None and self.is_on("topk") and isinstance(plan.input, Sort):
            return self._sort(plan.input, required, (), plan)
        read = plan.input if plan.limit is None else _with_enough(plan.input, plan.limit + plan.offset)
        below = self.plan(read, required, ())
        rows = max(0.0, below.estimated_rows - plan.offset)
        rows = rows if plan.limit is None else min(rows, float(plan.limit))
        return physical.Limit(below.fields, rows, plan.max_rows, below, plan.limit, plan.offset)

    def _union(self, plan: UnionAll, required: frozenset[int], requests: Requests) -> PhysicalPlan:
        kept = [position for position, field in enumerate(plan.fields) if field.id in required]
        branches: list[PhysicalPlan] = []
        inside: list[Requests] = []
        for branch in plan.branches:
            columns = {
                field.id: reference(own) for field, own in zip(plan.fields, branch.schema, strict=True)
            }
            inside.append(tuple(request.over(columns) for request in requests))
            schema = tuple(branch.schema[position] for position in kept)
            needed = _ids(schema) | columns_of(inside[-1])
            branches.append(self.with_schema(self.plan(branch, needed, inside[-1]), schema))
        for request, parts in zip(requests, zip(*inside, strict=True), strict=True):
            request.was_placed_in(parts)
        in_branches = [
            with_labels(branch.fields, branch.outputs)
            if isinstance(branch, physical.Project)
            else branch.fields
            for branch in branches
        ]
        fields = tuple(
            union_field(plan.fields[position], [each[column] for each in in_branches])
            for column, position in enumerate(kept)
        )
        rows = sum(branch.estimated_rows for branch in branches)
        return physical.UnionAll(fields, rows, plan.max_rows, tuple(branches))

    def _recursive(self, plan: Recursive) -> PhysicalPlan:
        first, step = (
            self.with_schema(self.plan(each, _ids(each.schema), ()), each.schema) for each in plan.inputs
        )
        fields, rows = tuple(plan.field_facts.values()), self.estimator.rows(plan)
        return physical.Recursive(
            fields,
            rows,
            plan.max_rows,
            first,
            step,
            plan.identifier,
            plan.distinct,
            plan.keys,
            plan.most_rows,
        )

    def _share(self, plan: Shared) -> PhysicalPlan:
        below = self._shared.get(plan.identifier)
        if below is None:
            schema = plan.input.schema
            below = self.with_schema(self.plan(plan.input, _ids(schema), ()), schema)
            self._shared[plan.identifier] = below
        fields = tuple(renamed_fields(plan.fields, below.fields).values())
        return physical.Shared(fields, below.estimated_rows, below.max_rows, below, plan.identifier)

    @cached_property
    def new_ids(self) -> NewIds:
        """Found when something asks: most plans need none."""
        new = NewIds()
        new.avoid(walk_plan(self._root))
        return new


def _ids(fields: Schema) -> frozenset[int]:
    return frozenset(field.id for field in fields)


def _kept(fields: Iterable[Field], required: frozenset[int]) -> Schema:
    return tuple(field for field in fields if field.id in required)


def _with_enough(plan: LogicalPlan, most_rows: int) -> LogicalPlan:
    """The plan, in which a recursion ends once there are as many rows as are asked for: it may be without end."""
    match plan:
        case Project():
            return plan.with_inputs((_with_enough(plan.input, most_rows),))
        case Recursive(keys=None):
            return replace(plan, most_rows=most_rows)
    return plan
