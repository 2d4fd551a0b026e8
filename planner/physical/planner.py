"""From the optimized logical plan to the physical one: algorithms chosen, columns pruned, runtime filters placed.

Works top-down with the columns that are used above and the runtime filters on their way down, and builds the nodes on
the way back up, when the fields of their inputs are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tqp.core.backends import Backend
from tqp.core.schema import Field, Schema
from tqp.planner.algebra.expressions import ColumnRef, Expression, column_ids, conjuncts
from tqp.planner.algebra.field_facts import (
    Fields,
    aggregate_fields,
    filter_fields,
    join_fields,
    project_field,
    sorted_fields,
    union_field,
    values_field,
)
from tqp.planner.algebra.join_keys import JoinKeys
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    JoinType,
    Limit,
    LogicalPlan,
    Project,
    Scan,
    Shared,
    Sort,
    UnionAll,
    Values,
)
from tqp.planner.algebra.node import walk_plan
from tqp.planner.physical import plan as physical
from tqp.planner.physical.aggregate_planning import (
    choose_grouping,
    key_parts,
    most_direct_groups,
    pack_group_keys,
)
from tqp.planner.physical.cardinality import Estimator
from tqp.planner.physical.distinct_predictions import score_combinations
from tqp.planner.physical.factored_sums import choose_factors
from tqp.planner.physical.filter_order import order_conjuncts
from tqp.planner.physical.index_joins import IndexedTable, index_join
from tqp.planner.physical.join_choices import JoinChoices, dictionary_sizes
from tqp.planner.physical.join_planning import (
    FreshIds,
    choose_algorithm,
    every_row_matches,
    expand_full_join,
    flip,
    keys_for_three_values,
    match_plain_nulls,
    pack_join_keys,
    plain_join_type,
    stands_by_key,
)
from tqp.planner.physical.numbered_keys import number_keys
from tqp.planner.physical.plan import GroupAlgorithm, JoinAlgorithm, PhysicalPlan
from tqp.planner.physical.runtime_filters import (
    Requests,
    bare_columns,
    columns_of,
    filter_from_probe,
    pass_operator,
    place,
    reads_runs,
    request_filter,
    scores_rows,
    split,
    stops_above,
)
from tqp.planner.physical.shared_scans import filter_as_build_side, share_filtered_scans

#: What `PhysicalOptions.disabled_rules` may switch off; any choice of them gives the same rows.
PHYSICAL_RULES = tuple(
    """topk runtime_filters filter_by_runs share_filtered_scans filter_order swap_join_sides reduce_keys
    reduce_build_side index_join lookup_join directory_join dictionary_join string_join range_join direct_aggregate hash_aggregate
    clustered_aggregate numbered_keys factored_sums predict_distinct""".split()
)

_LET_FILTERS_PASS = (Filter, Project, Join, Aggregate, Sort)
_KEEPS_PROBE_ORDER = (JoinType.SEMI, JoinType.ANTI, JoinType.NULL_AWARE_ANTI, JoinType.MARK)


@dataclass(frozen=True, slots=True)
class PhysicalOptions:
    """What the plan is for; `disabled_rules` from `PHYSICAL_RULES`."""

    backend: Backend = Backend.HOST
    disabled_rules: frozenset[str] = frozenset()


def plan_physical(plan: LogicalPlan, options: PhysicalOptions | None = None) -> PhysicalPlan:
    """The physical plan of a logical plan without subqueries; its fields are those of `plan.schema`, in that order."""
    planner = _Planner(options or PhysicalOptions(), plan)
    planned = planner.plan(plan, _ids(plan.schema), ())
    if planner.is_on("share_filtered_scans"):
        planned = share_filtered_scans(planned, planner.fresh_ids())
    if planner.is_on("predict_distinct"):
        planned = score_combinations(planned)
    return planner.with_schema(planned, plan.schema, keep_names=True)


class _Planner:
    def __init__(self, options: PhysicalOptions, root: LogicalPlan) -> None:
        self.options = options
        self.estimator = Estimator()
        self._root = root
        #: Entries of the dictionaries of table columns, by column id.
        self._dictionaries = dictionary_sizes(root) if self.is_on("dictionary_join") else {}
        self._choices = JoinChoices(
            self.estimator, self._dictionaries, options.backend, options.disabled_rules
        )
        self._fresh: FreshIds | None = None
        self._shared: dict[int, PhysicalPlan] = {}
        self._next_join = 0

    def is_on(self, rule: str) -> bool:
        return rule not in self.options.disabled_rules

    def plan(self, plan: LogicalPlan, required: frozenset[int], requests: Requests) -> PhysicalPlan:
        """The plan for `required` columns of the output, with each of the `requests` placed in it or dropped."""
        if requests and (stops_above(plan) or not isinstance(plan, _LET_FILTERS_PASS)):
            if self._choices.runs_are_known():
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
                return self._scan(plan, required)
            case Values():
                return self._values(plan, required)
            case Filter():
                return self._filter(plan, required, requests)
            case Project():
                return self._project(plan, required, requests)
            case Join():
                return self._join(plan, required, requests)
            case Aggregate():
                return self._aggregate(plan, required, requests)
            case Sort():
                return self._sort(plan, required, requests, None)
            case Limit():
                return self._limit(plan, required)
            case UnionAll():
                return self._union(plan, required)
            case Shared():
                return self._share(plan)
        raise AssertionError(f"no physical form of {type(plan).__name__}")

    def with_schema(self, plan: PhysicalPlan, schema: Schema, keep_names: bool = False) -> PhysicalPlan:
        """The plan with exactly the columns of `schema`, in its order."""
        same = [field.id for field in plan.fields] == [field.id for field in schema]
        if same and not (keep_names and any(a.name != b.name for a, b in zip(plan.fields, schema))):
            return plan
        by_id = _by_id(plan.fields)
        fields = tuple(replace(by_id[field.id], name=field.name) for field in schema)
        outputs = tuple(ColumnRef(field.id, field.data_type, by_id[field.id].name) for field in schema)
        return physical.Project(fields, plan.estimated_rows, plan.max_rows, plan, outputs)

    def _rows(self, plan: LogicalPlan, *inputs: tuple[LogicalPlan, PhysicalPlan]) -> float:
        """The logical estimate, cut by the share that runtime filters below leave of the inputs."""
        rows = self.estimator.rows(plan)
        for logical, planned in inputs:
            expected = self.estimator.rows(logical)
            if expected > 0.0:
                rows *= min(1.0, planned.estimated_rows / expected)
        return rows

    def _scan(self, plan: Scan, required: frozenset[int]) -> PhysicalPlan:
        pairs = [pair for pair in zip(plan.columns, plan.fields, strict=True) if pair[1].id in required]
        return physical.TableScan(
            tuple(field for _, field in pairs),
            self.estimator.rows(plan),
            plan.max_rows,
            plan.table,
            plan.table_name,
            tuple(column for column, _ in pairs),
        )

    def _values(self, plan: Values, required: frozenset[int]) -> PhysicalPlan:
        kept = [position for position, field in enumerate(plan.fields) if field.id in required]
        rows = tuple(tuple(row[position] for position in kept) for row in plan.rows)
        fields = tuple(
            values_field(plan.fields[position], [row[position] for row in plan.rows]) for position in kept
        )
        return physical.ValuesScan(fields, float(len(rows)), len(rows), rows)

    def _filter(self, plan: Filter, required: frozenset[int], requests: Requests) -> PhysicalPlan:
        if scores_rows(plan):
            requests = pass_operator(requests)
        below = self.plan(plan.input, required | column_ids(plan.condition), requests)
        parts, fields = conjuncts(plan.condition), _by_id(below.fields)
        parts = self._in_order(parts, fields)
        return physical.Filter(
            _kept(filter_fields(fields, parts).values(), required),
            self._rows(plan, (plan.input, below)),
            plan.max_rows,
            below,
            parts,
        )

    def _in_order(self, parts: Sequence[Expression], fields: Fields) -> tuple[Expression, ...]:
        return order_conjuncts(parts, fields, self.estimator) if self.is_on("filter_order") else tuple(parts)

    def _project(self, plan: Project, required: frozenset[int], requests: Requests) -> PhysicalPlan:
        inside, outside = split(requests, bare_columns(plan.fields, plan.outputs))
        if scores_rows(plan):
            inside = pass_operator(inside)
        required |= columns_of(outside)
        pairs = [pair for pair in zip(plan.fields, plan.outputs, strict=True) if pair[0].id in required]
        outputs = tuple(output for _, output in pairs)
        below = self.plan(plan.input, _columns(outputs), inside)
        if not all(isinstance(output, ColumnRef) and output.id == field.id for field, output in pairs):
            known = _by_id(below.fields)
            fields = tuple(project_field(field, output, known) for field, output in pairs)
            below = physical.Project(fields, below.estimated_rows, below.max_rows, below, outputs)
        return place(below, outside)

    def _aggregate(self, plan: Aggregate, required: frozenset[int], requests: Requests) -> PhysicalPlan:
        inside, outside = split(requests, bare_columns(plan.key_fields, plan.keys))
        required |= columns_of(outside)
        measures = zip(plan.aggregate_fields, plan.aggregates, strict=True)
        kept = [(field, call) for field, call in measures if field.id in required]
        aggregates = tuple(call for _, call in kept)
        below = self.plan(plan.input, _columns((*plan.keys, *aggregates)), pass_operator(inside))
        known = _by_id(below.fields)
        packing = pack_group_keys(plan.keys, known)
        rows = min(self._rows(plan, (plan.input, below)), below.estimated_rows) if plan.keys else 1.0
        backend, disabled = self.options.backend, self.options.disabled_rules
        algorithm = choose_grouping(plan.keys, known, packing, below.estimated_rows, rows, backend, disabled)
        if algorithm in (GroupAlgorithm.HASH, GroupAlgorithm.SORT) and self._numbers_keys():
            most = most_direct_groups(below.estimated_rows)
            numbered = number_keys(plan.keys, key_parts(plan.keys, known), known, below, most, backend)
            if numbered is not None:
                algorithm, packing = GroupAlgorithm.DIRECT, numbered
        fields = aggregate_fields(
            known,
            plan.key_fields,
            plan.keys,
            [field for field, _ in kept],
            aggregates,
            plan.input.max_rows,
        )
        factors = None
        if algorithm is GroupAlgorithm.DIRECT and packing is not None and self.is_on("factored_sums"):
            factors = choose_factors(aggregates, known, packing, below.estimated_rows, plan.input.max_rows)
        grouped = physical.Aggregate(
            tuple(fields),
            rows,
            plan.max_rows,
            below,
            algorithm,
            plan.keys,
            aggregates,
            packing,
            factors,
        )
        return place(grouped, outside)

    def _numbers_keys(self) -> bool:
        return self.is_on("numbered_keys") and self.is_on("direct_aggregate")

    def _sort(
        self, plan: Sort, required: frozenset[int], requests: Requests, limit: Limit | None
    ) -> PhysicalPlan:
        below = self.plan(plan.input, required | _columns(plan.expressions), requests)
        fields = _kept(sorted_fields(plan.keys, _by_id(below.fields)).values(), required)
        if limit is None or limit.limit is None:
            return physical.Sort(fields, below.estimated_rows, below.max_rows, below, plan.keys)
        rows = min(float(limit.limit), max(0.0, below.estimated_rows - limit.offset))
        return physical.Sort(fields, rows, limit.max_rows, below, plan.keys, limit.limit, limit.offset)

    def _limit(self, plan: Limit, required: frozenset[int]) -> PhysicalPlan:
        if plan.limit is not None and self.is_on("topk"):
            if isinstance(plan.input, Sort):
                return self._sort(plan.input, required, (), plan)
            if isinstance(plan.input, Project) and isinstance(plan.input.input, Sort):
                # A projection keeps rows and order, so the limit may come before it.
                projection = plan.input
                return self._project(
                    replace(projection, input=replace(plan, input=projection.input)), required, ()
                )
        below = self.plan(plan.input, required, ())
        rows = max(0.0, below.estimated_rows - plan.offset)
        rows = rows if plan.limit is None else min(rows, float(plan.limit))
        return physical.Limit(below.fields, rows, plan.max_rows, below, plan.limit, plan.offset)

    def _union(self, plan: UnionAll, required: frozenset[int]) -> PhysicalPlan:
        kept = [position for position, field in enumerate(plan.fields) if field.id in required]
        branches: list[PhysicalPlan] = []
        for branch in plan.branches:
            schema = tuple(branch.schema[position] for position in kept)
            branches.append(self.with_schema(self.plan(branch, _ids(schema), ()), schema))
        fields = tuple(
            union_field(plan.fields[position], [branch.fields[column] for branch in branches])
            for column, position in enumerate(kept)
        )
        rows = sum(branch.estimated_rows for branch in branches)
        return physical.UnionAll(fields, rows, plan.max_rows, tuple(branches))

    def _share(self, plan: Shared) -> PhysicalPlan:
        below = self._shared.get(plan.identifier)
        if below is None:
            schema = plan.input.schema
            below = self.with_schema(self.plan(plan.input, _ids(schema), ()), schema)
            self._shared[plan.identifier] = below
        fields = tuple(
            Field(field.id, field.name, field.data_type, source.nullable, source.statistics)
            for field, source in zip(plan.fields, below.fields, strict=True)
        )
        return physical.Shared(fields, below.estimated_rows, below.max_rows, below, plan.identifier)

    def _join(self, plan: Join, required: frozenset[int], requests: Requests) -> PhysicalPlan:
        if plan.join_type is JoinType.FULL:
            expanded = expand_full_join(plan, self.fresh_ids())
            return place(self.plan(expanded, required | columns_of(requests), ()), requests)
        reduced = self._choices.with_reduced_build(plan, required | columns_of(requests), self.fresh_ids)
        if reduced is not plan:
            return self._join(reduced, required, requests)
        identifier = self._next_join
        self._next_join += 1
        probe, build, keys = plan.left, plan.right, plan.keys
        probe_unique, build_unique = plan.left_key_is_unique, plan.right_key_is_unique
        if self._choices.should_swap(plan, keys, probe_unique, build_unique):
            probe, build, keys = build, probe, flip(keys)
            probe_unique, build_unique = build_unique, probe_unique
        keys = self._choices.useful_keys(plan.join_type, keys, probe, build)
        index = self._choices.index(plan.join_type, keys, probe, build, build_unique)
        probe_ids, build_ids = probe.field_facts, build.field_facts
        into_probe, others = split(requests, probe_ids)
        into_build, here = split(others, build_ids) if plan.join_type is JoinType.INNER else ((), others)
        needed = required | columns_of(here) | _columns(keys.residual)
        own = (
            request_filter(
                identifier, plan.join_type, keys, probe, build, self.estimator, self._choices.runs_are_known()
            )
            if self.is_on("runtime_filters") and index is None
            else None
        )
        downward: Requests = pass_operator(into_probe) + ((own,) if own is not None else ())
        probed = self.plan(probe, (needed & probe_ids.keys()) | _columns(keys.left), downward)
        if index is not None:
            joined = self._index_join(
                plan, index, keys, (probe, probed), required | columns_of(others), identifier
            )
            if joined is not None:
                return place(joined, others)
        other = (
            filter_from_probe(plan.join_type, keys, probed, build, self.estimator)
            if self.is_on("runtime_filters")
            else None
        )
        into_build = pass_operator(into_build) + ((other,) if other is not None else ())
        built = self.plan(build, (needed & build_ids.keys()) | _columns(keys.right), into_build)

        is_filtered = own is not None and own.ranges is not None
        if plan.join_type is JoinType.INNER and not is_filtered and self.is_on("share_filtered_scans"):
            probed = filter_as_build_side(keys, probed, built)

        left, right = _by_id(probed.fields), _by_id(built.fields)
        keys = match_plain_nulls(keys, plan.join_type, left, right)
        join_type = plain_join_type(plan.join_type, keys, left, right)
        keys = keys_for_three_values(join_type, keys, plan.condition, left, right)
        bounds, keys_of_pairs = self._choices.bounds(join_type, keys, left, right, built.max_rows)
        packing = pack_join_keys(
            keys, left, right, self._dictionaries, own.ranges if own is not None else None
        )
        algorithm = (
            JoinAlgorithm.RANGE
            if bounds
            else choose_algorithm(
                join_type,
                keys,
                packing,
                build.matches_at_most_once(keys.right, keys.null_equal),
                max(probed.estimated_rows, own.rows if own is not None else 0.0),
                built.estimated_rows,
                self.options.backend,
                self.options.disabled_rules,
            )
        )
        in_order = join_type in _KEEPS_PROBE_ORDER or (
            algorithm is JoinAlgorithm.LOOKUP and (join_type is JoinType.INNER or not keys.residual)
        )
        known = join_fields(
            left,
            right,
            join_type,
            keys,
            plan.mark,
            left_once=build_unique or plan.join_type is JoinType.SINGLE,
            right_once=probe_unique,
            keeps_left_order=in_order,
        )
        all_match = algorithm is JoinAlgorithm.LOOKUP and (
            every_row_matches(keys, probed, built) or is_filtered and not keys.residual
        )
        rows = self._rows(plan, (probe, probed), (build, built))
        if own is not None and is_filtered:  # the join itself drops what its filter dropped before
            rows /= max(own.share, 1e-9)
        rows = min(rows, self.estimator.rows(plan))
        payload = (needed & right.keys()) - _columns(keys.right)
        joined = physical.Join(
            _kept(known.values(), required | columns_of(here)),
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
            keys_of_pairs.residual,
            packing,
            plan.mark,
            all_match and join_type in (JoinType.INNER, JoinType.SEMI),
            algorithm is JoinAlgorithm.LOOKUP
            and len(payload) > 0
            and stands_by_key(len(payload), built.estimated_rows, rows),
            bounds=bounds,
        )
        return place(joined, here)

    def _index_join(
        self,
        plan: Join,
        index: IndexedTable,
        keys: JoinKeys,
        probe: tuple[LogicalPlan, PhysicalPlan],
        required: frozenset[int],
        identifier: int,
    ) -> PhysicalPlan | None:
        table = self._scan(index.scan, required | _columns((*keys.right, *keys.residual, *index.conditions)))
        return index_join(
            plan,
            index,
            keys,
            probe[1],
            table,
            required,
            identifier,
            self._rows(plan, probe),
            plan.max_rows,
            self._in_order,
        )

    def fresh_ids(self) -> FreshIds:
        if self._fresh is None:
            nodes = list(walk_plan(self._root))
            last_id = max((field.id for node in nodes for field in _own_fields(node)), default=-1)
            last_shared = max((node.identifier for node in nodes if isinstance(node, Shared)), default=-1)
            self._fresh = FreshIds(last_id + 1, last_shared + 1)
        return self._fresh


def _own_fields(plan: LogicalPlan) -> Schema:
    return plan.schema if not isinstance(plan, Filter | Sort | Limit) else ()


def _by_id(fields: Schema) -> Fields:
    return {field.id: field for field in fields}


def _ids(fields: Schema) -> frozenset[int]:
    return frozenset(field.id for field in fields)


def _columns(expressions: Iterable[Expression]) -> frozenset[int]:
    return frozenset().union(*(column_ids(expression) for expression in expressions))


def _kept(fields: Iterable[Field], required: frozenset[int]) -> Schema:
    return tuple(field for field in fields if field.id in required)
