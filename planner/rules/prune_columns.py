"""Drop every column that nothing above reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tqp.planner.algebra.logical_node import Ids
from tqp.planner.algebra.logical_plan import Join, LogicalPlan, Recursive, Shared, UnionAll, Window
from tqp.planner.rules.columns import is_pass_through, pass_through
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.shared_plans import rewrite_readers_first


def prune_columns(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """Keep of each Scan, Project, Aggregate, union and shared plan only the columns that are read; ids stay.

    A Project appears only where a position counts: at the root, in the branches of a union, in a shared plan.
    """
    pruning = _Pruning()
    return rewrite_readers_first(plan, pruning.part, pruning.finish)


class _Pruning:
    def __init__(self) -> None:
        self.positions: dict[int | None, set[int]] = {}  # what is read of each shared plan

    def part(self, plan: LogicalPlan, identifier: int | None) -> LogicalPlan:
        """The plan (None) or a shared plan, of which all readers were pruned before."""
        if identifier is None:
            self.positions[None] = set(range(len(plan.schema)))
        return self.exactly(plan, [plan.schema[i].id for i in self.kept(identifier)])

    def kept(self, identifier: int | None) -> list[int]:
        return sorted(self.positions.get(identifier, ()))

    def finish(self, node: LogicalPlan) -> LogicalPlan:
        """A reader has the columns that are read of the shared plan anywhere; who needs them all passes none on."""
        if isinstance(node, Shared):
            fields = tuple(node.fields[i] for i in self.kept(node.identifier))
            return node if fields == node.fields else replace(node, fields=fields)
        if is_pass_through(node) and _ids(node) == _ids(node.inputs[0]):
            return node.inputs[0]
        return node

    def exactly(self, plan: LogicalPlan, ids: Iterable[int]) -> LogicalPlan:
        """The pruned plan with the columns `ids` and no others, in order."""
        wanted = list(ids)
        pruned = self.prune(plan, set(wanted))
        if _ids(pruned) == wanted:
            return pruned
        if is_pass_through(pruned):
            pruned = pruned.inputs[0]
        return pass_through(pruned, wanted)

    def prune(self, plan: LogicalPlan, needed: Ids) -> LogicalPlan:
        """The plan with at least the columns `needed` (all of them its own)."""
        match plan:
            case UnionAll():
                return self.union(plan, needed)
            case Recursive():  # each iteration reads all columns of the one before
                return plan.map_inputs(lambda child: self.exactly(child, _ids(child)))
            case Shared():
                read = (i for i, field in enumerate(plan.fields) if field.id in needed)
                self.positions.setdefault(plan.identifier, set()).update(read)
                return plan
            case Join() if plan.mark is not None and plan.mark.id not in needed:
                return self.prune(plan.left, needed)
        plan = plan.without_unread(needed)
        if isinstance(plan, Window) and not plan.calls:
            return self.prune(plan.input, needed)
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


def _ids(plan: LogicalPlan) -> list[int]:
    return [field.id for field in plan.schema]
