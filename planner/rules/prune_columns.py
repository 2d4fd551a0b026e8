"""Drop every column that nothing above reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from tqp.planner.algebra.expressions import Expression
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Join,
    JoinType,
    LogicalPlan,
    Project,
    Scan,
    Shared,
    UnionAll,
    Values,
)
from tqp.planner.rules.columns import (
    TWO_SIDED,
    is_pass_through,
    output_ids,
    pass_through,
    read_ids,
    with_mapped_inputs,
)

if TYPE_CHECKING:
    from tqp.planner.optimizer import OptimizerContext


def prune_columns(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """Keep of each Scan, Project, Aggregate, union and shared plan only the columns that are read; ids stay.

    A Project appears only where a position counts: at the root, in the branches of a union, in a shared plan.
    """
    pruning = _Pruning()
    root_ids = [field.id for field in plan.schema]
    while (
        True
    ):  # what one Shared node needs its siblings get too, and that may ask more of shared plans inside
        pruned = pruning.exactly(plan, root_ids)
        if not pruning.widened:
            return pruned
        pruning.restart()


class _Pruning:
    def __init__(self) -> None:
        self.positions: dict[int, set[int]] = {}  # what is read of each shared plan
        self.shared: dict[int, LogicalPlan] = {}
        self.widened = False

    def restart(self) -> None:
        self.shared.clear()
        self.widened = False

    def exactly(self, plan: LogicalPlan, ids: Iterable[int]) -> LogicalPlan:
        """The pruned plan with the columns `ids` and no others, in order."""
        wanted = list(ids)
        pruned = self.prune(plan, set(wanted))
        if [field.id for field in pruned.schema] == wanted:
            return pruned
        if is_pass_through(pruned):
            pruned = pruned.inputs[0]
        return pass_through(pruned, wanted)

    def prune(self, plan: LogicalPlan, needed: set[int]) -> LogicalPlan:
        """The plan with at least the columns `needed` (all of them its own)."""
        match plan:
            case Scan():
                return self.scan(plan, needed)
            case Project():
                return self.project(plan, needed)
            case Aggregate():
                return self.aggregate(plan, needed)
            case Join():
                return self.join(plan, needed)
            case UnionAll():
                return self.union(plan, needed)
            case Shared():
                return self.share(plan, needed)
            case Values():
                return self.values(plan, needed)
            case _:
                below = _reads(plan.expressions) | needed
                return with_mapped_inputs(plan, lambda child: self.prune(child, below))

    def scan(self, plan: Scan, needed: set[int]) -> LogicalPlan:
        if all(field.id in needed for field in plan.fields):
            return plan
        kept = [i for i, field in enumerate(plan.fields) if field.id in needed]
        columns = tuple(plan.columns[i] for i in kept)
        return replace(plan, columns=columns, fields=tuple(plan.fields[i] for i in kept))

    def values(self, plan: Values, needed: set[int]) -> LogicalPlan:
        kept = [i for i, field in enumerate(plan.fields) if field.id in needed]
        if len(kept) == len(plan.fields):
            return plan
        rows = tuple(tuple(row[i] for i in kept) for row in plan.rows)
        return Values(rows, tuple(plan.fields[i] for i in kept))

    def project(self, plan: Project, needed: set[int]) -> LogicalPlan:
        kept = [i for i, field in enumerate(plan.fields) if field.id in needed]
        if len(kept) < len(plan.fields):
            fields = tuple(plan.fields[i] for i in kept)
            plan = Project(plan.input, fields, tuple(plan.outputs[i] for i in kept))
        below = self.prune(plan.input, _reads(plan.outputs))
        if is_pass_through(plan):  # its reader takes columns by id
            return below
        return plan if below is plan.input else replace(plan, input=below)

    def aggregate(self, plan: Aggregate, needed: set[int]) -> LogicalPlan:
        kept = [i for i, field in enumerate(plan.aggregate_fields) if field.id in needed]
        if len(kept) < len(plan.aggregates):
            fields = tuple(plan.aggregate_fields[i] for i in kept)
            plan = replace(plan, aggregate_fields=fields, aggregates=tuple(plan.aggregates[i] for i in kept))
        below = self.prune(plan.input, _reads(plan.expressions))
        return plan if below is plan.input else replace(plan, input=below)

    def join(self, plan: Join, needed: set[int]) -> LogicalPlan:
        read = read_ids(plan.condition)
        left_ids, right_ids = output_ids(plan.left), output_ids(plan.right)
        if plan.join_type is JoinType.MARK and plan.mark is not None and plan.mark.id not in needed:
            return self.prune(plan.left, needed)
        from_right = (read | needed) & right_ids if plan.join_type in TWO_SIDED else read & right_ids
        left = self.prune(plan.left, (read | needed) & left_ids)
        right = self.prune(plan.right, from_right)
        return plan if left is plan.left and right is plan.right else plan.with_inputs((left, right))

    def union(self, plan: UnionAll, needed: set[int]) -> LogicalPlan:
        kept = [i for i, field in enumerate(plan.fields) if field.id in needed]
        branches = []
        for branch in plan.branches:
            fields = branch.schema
            branches.append(self.exactly(branch, [fields[i].id for i in kept]))
        fields = tuple(plan.fields[i] for i in kept)
        if len(kept) == len(plan.fields) and all(
            a is b for a, b in zip(branches, plan.branches, strict=True)
        ):
            return plan
        return UnionAll(tuple(branches), fields)

    def share(self, plan: Shared, needed: set[int]) -> LogicalPlan:
        positions = self.positions.setdefault(plan.identifier, set())
        asked = {i for i, field in enumerate(plan.fields) if field.id in needed}
        if not asked <= positions:
            self.widened = self.widened or plan.identifier in self.shared
            positions |= asked
        kept = sorted(positions)
        if plan.identifier not in self.shared:
            inner = plan.input.schema
            self.shared[plan.identifier] = self.exactly(plan.input, [inner[i].id for i in kept])
        below = self.shared[plan.identifier]
        if below is plan.input and len(kept) == len(plan.fields):
            return plan
        return Shared(below, plan.identifier, tuple(plan.fields[i] for i in kept))


def _reads(expressions: Iterable[Expression]) -> set[int]:
    ids: set[int] = set()
    for expression in expressions:
        ids |= read_ids(expression)
    return ids
