"""Drop every column that nothing above reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tqp.planner.algebra.logical_node import Ids
from tqp.planner.algebra.logical_plan import Join, LogicalPlan, Shared, UnionAll
from tqp.planner.rules.columns import is_pass_through, pass_through

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

    def prune(self, plan: LogicalPlan, needed: Ids) -> LogicalPlan:
        """The plan with at least the columns `needed` (all of them its own)."""
        match plan:
            case UnionAll():
                return self.union(plan, needed)
            case Shared():
                return self.share(plan, needed)
            case Join() if plan.mark is not None and plan.mark.id not in needed:
                return self.prune(plan.left, needed)
        plan = plan.without_unread(needed)
        inputs = zip(plan.inputs, plan.needs(needed), strict=True)
        pruned = plan.with_inputs([self.prune(child, below) for child, below in inputs])
        # Who reads a Project that only passes columns on takes them by id.
        return pruned.inputs[0] if is_pass_through(pruned) else pruned

    def union(self, plan: UnionAll, needed: Ids) -> LogicalPlan:
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

    def share(self, plan: Shared, needed: Ids) -> LogicalPlan:
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
