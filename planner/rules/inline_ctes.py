"""Put the plan of a CTE where it is read, if it is read once or is cheap to compute again."""

from __future__ import annotations

from collections import Counter
from math import inf

from tqp.planner.algebra.logical_plan import Aggregate, Limit, LogicalPlan, Recursive, Shared, Window
from tqp.planner.rules.columns import fresh_copy, in_subqueries, renumber
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.shared_plans import readers, shared_inputs

#: Most joins (and unions) that the copies of one CTE may have together, the CTEs inlined in it included.
_MOST_JOINS = 4


def inline_ctes(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """Replace references to CTEs by their plans, so that rules fit each copy to where it is read.

    One that aggregates, has a LIMIT or many joins stays shared if it is read several times: it is computed once, for all
    that its readers want of it, and the plan is not larger than the query. Correlated ones are always copied: they differ
    from row to row.
    """
    if not context.next_shared:
        return plan
    return _Inlining(plan, context).expanded(plan)


class _Inlining:
    def __init__(self, plan: LogicalPlan, context: OptimizerContext) -> None:
        self.context = context
        # how many each CTE that is inlined joins; infinite: not to be copied
        self.relations: dict[int, float] = {}
        self.used: set[int] = set()  # CTEs of which one copy has the ids of the original
        inputs = shared_inputs(plan)
        references = Counter(
            reader.identifier for part in (plan, *inputs.values()) for reader in readers(part)
        )
        for identifier, shared in inputs.items():
            count, relations = references[identifier], self._relations(shared)
            if count == 1 or shared.free_ids or count * (relations - 1) <= _MOST_JOINS:
                self.relations[identifier] = relations

    def _relations(self, plan: LogicalPlan) -> float:
        relations, pending = 0.0, [plan]
        while pending:
            node = pending.pop()
            if isinstance(node, Aggregate | Window | Limit | Recursive):
                return inf
            if isinstance(node, Shared):
                relations += self.relations.get(node.identifier, 1.0)
            else:
                relations += not node.inputs
                pending += node.inputs + node.subqueries
        return relations

    def expanded(self, plan: LogicalPlan) -> LogicalPlan:
        """The plan with the references in it, and in its subqueries, replaced."""
        if isinstance(plan, Shared) and plan.identifier in self.relations:
            return self._copy(plan)
        return in_subqueries(self.context.rewrite_inputs(plan, self.expanded), self.expanded)

    def _copy(self, reference: Shared) -> LogicalPlan:
        """The plan of the CTE with the reference's columns."""
        plan = reference.input
        ids = {old.id: new.id for old, new in zip(plan.schema, reference.fields, strict=True)}
        if reference.identifier in self.used:
            plan, _ = fresh_copy(plan, self.context, ids)
        else:
            self.used.add(reference.identifier)
            plan = renumber(plan, ids)
        return self.expanded(plan)  # neither of them enters the CTEs inside
