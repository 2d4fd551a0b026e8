"""Group by few keys what is grouped by these and others already, as ROLLUP asks for: few groups instead of all rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tqp.core.schema import Field
from tqp.planner.algebra.expressions import AggregateCall, ColumnRef, Expression
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan, Project, Shared
from tqp.planner.rules.columns import in_subqueries, reference
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.merged_aggregates import is_mergeable, merged, parts_of, result_of, substituted
from tqp.planner.rules.shared_plans import shared_inputs

#: Grouping by the keys of all sets first is worth it if it leaves at most this share of the rows.
_LARGEST_SHARE = 0.25


def coarser_from_finer(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """Aggregates of one shared plan, some by a part of others' keys, where each call can be made of parts of its groups.

    GROUP BY ROLLUP (a, b) groups the rows by a and b, these groups by a, and those into one. Where no set has the keys of all
    others, as of GROUPING SETS (a, b), the rows are grouped by all of them first if that leaves few.
    """
    if not context.next_shared:
        return plan
    replaced: dict[int, LogicalPlan] = {}
    families: defaultdict[int, list[Aggregate]] = defaultdict(list)
    for part in (plan, *shared_inputs(plan).values()):
        for node in _aggregates(part):
            assert isinstance(node.input, Shared)
            families[node.input.identifier].append(node)
    for nodes in families.values():
        if len(nodes) > 1:
            _Family(nodes, context).replace_in(replaced)
    if not replaced:
        return plan

    def visit(node: LogicalPlan) -> LogicalPlan:
        changed = context.rewrite_inputs(replaced.get(id(node), node), visit)
        return in_subqueries(changed, visit)

    return visit(plan)


def _aggregates(plan: LogicalPlan) -> Iterator[Aggregate]:
    """Those over Shared nodes that may be made of parts, not those inside of shared plans."""
    pending = [plan]
    while pending:
        node = pending.pop()
        if isinstance(node, Shared):
            continue
        pending += node.inputs + node.subqueries
        if isinstance(node, Aggregate) and isinstance(node.input, Shared) and not node.free_ids:
            shared = node.input
            fields, max_rows = shared.field_facts, shared.max_rows
            keys_are_columns = all(isinstance(key, ColumnRef) for key in node.keys)
            calls = (is_mergeable(call, fields, max_rows) for call in node.aggregates)
            if keys_are_columns and not shared.input.free_ids and all(calls):
                yield node


@dataclass(slots=True)
class _Groups:
    """Groups of the rows by some of their columns, each with the parts of all aggregates.

    `finer`: the groups that they are made of; None: of the rows. `readers`: how many plans read them.
    """

    keys: tuple[int, ...]  # columns of the shared plan
    finer: _Groups | None = None
    readers: int = 0
    shared: tuple[LogicalPlan, int] | None = None


class _Family:
    """The aggregates of one shared plan. Their keys and calls are told by the columns of that plan."""

    def __init__(self, nodes: Sequence[Aggregate], context: OptimizerContext) -> None:
        self.context, self.nodes = context, nodes
        first = nodes[0].input
        assert isinstance(first, Shared)
        self.source = first
        self.calls = {id(node): self._calls_of(node) for node in nodes}
        self.parts = tuple(
            dict.fromkeys(part for calls in self.calls.values() for call in calls for part in parts_of(call))
        )

    def replace_in(self, replaced: dict[int, LogicalPlan]) -> None:
        """Enter what becomes of each node by its id, if any is made of another's groups."""
        groups: dict[frozenset[int], _Groups] = {}
        keys = {id(node): self._keys_of(node) for node in self.nodes}
        for key in sorted(keys.values(), key=len, reverse=True):
            groups.setdefault(frozenset(key), _Groups(key))
        self._connect(groups)
        for node in self.nodes:
            groups[frozenset(keys[id(node)])].readers += 1
        for node in self.nodes:
            own = groups[frozenset(keys[id(node)])]
            if own.finer is not None or own.readers > 1:
                replaced[id(node)] = self._result(node, own)

    def _connect(self, groups: dict[frozenset[int], _Groups]) -> None:
        """Let groups be made of the smallest finer ones; `groups` are in order, the finest first."""
        whole = frozenset().union(*groups)
        if whole not in groups and sum(not any(key < other for other in groups) for key in groups) > 1:
            references = [reference(field) for field in self._fields(whole)]
            estimator = self.context.estimator
            if estimator.distinct(self.source, references) <= _LARGEST_SHARE * estimator.rows(self.source):
                groups[whole] = _Groups(tuple(sorted(whole)))
        for key, each in groups.items():
            finer = [other for other in groups if key < other]
            if finer:
                each.finer = groups[min(finer, key=len)]
                each.finer.readers += 1

    def _fields(self, columns: frozenset[int]) -> list[Field]:
        pairs = zip(self.source.input.schema, self.source.fields, strict=True)
        return [mine for theirs, mine in pairs if theirs.id in columns]

    def _keys_of(self, node: Aggregate) -> tuple[int, ...]:
        columns = self._columns_of(node)
        return tuple(columns[key.id].id for key in node.keys if isinstance(key, ColumnRef))

    def _calls_of(self, node: Aggregate) -> list[AggregateCall]:
        columns = self._columns_of(node)
        return [substituted(call, columns) for call in node.aggregates]

    def _columns_of(self, node: Aggregate) -> Mapping[int, ColumnRef]:
        """The columns of the shared plan by the ids that the node reads them under."""
        pairs = zip(node.input.schema, self.source.input.schema, strict=True)
        return {mine.id: reference(theirs) for mine, theirs in pairs}

    # the plans

    def _result(self, node: Aggregate, groups: _Groups) -> LogicalPlan:
        """The node's rows, of its groups."""
        rows, calls, fields = self._read(groups), self.calls[id(node)], self.source.input.field_facts
        columns = dict(zip(groups.keys, rows.schema))
        values = dict(zip(self.parts, map(reference, rows.schema[len(groups.keys) :]), strict=True))
        outputs: list[Expression] = [reference(columns[key]) for key in self._keys_of(node)]
        for call in calls:
            outputs.append(result_of(call, [values[part] for part in parts_of(call)], calls, True, fields))
        return Project(rows, node.schema, tuple(outputs))

    def _read(self, groups: _Groups) -> LogicalPlan:
        """The groups for one more reader: columns for their keys, then for the parts."""
        if groups.readers == 1:
            return self._grouped(groups)
        if groups.shared is None:
            groups.shared = self._grouped(groups), self.context.new_shared()
        plan, identifier = groups.shared
        return Shared(plan, identifier, tuple(map(self.context.renewed, plan.schema)))

    def _grouped(self, groups: _Groups) -> LogicalPlan:
        finer = groups.finer
        if finer is None:
            rows: LogicalPlan = replace(
                self.source, fields=tuple(map(self.context.renewed, self.source.fields))
            )
            pairs = zip(self.source.input.schema, rows.schema, strict=True)
            columns = {theirs.id: mine for theirs, mine in pairs}
            references = {theirs: reference(mine) for theirs, mine in columns.items()}
            calls = tuple(substituted(part, references) for part in self.parts)
        else:
            rows = self._read(finer)
            columns = dict(zip(finer.keys, rows.schema))
            values = map(reference, rows.schema[len(finer.keys) :])
            calls = tuple(map(merged, self.parts, values))
        key_fields = tuple(columns[key] for key in groups.keys)
        made = tuple(self.context.new_field(part.function, part.data_type) for part in self.parts)
        return Aggregate(rows, key_fields, tuple(map(reference, key_fields)), made, calls)
