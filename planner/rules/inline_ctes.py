"""Put the plan of a CTE where it is read, if it is read once or is small."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tqp.planner.algebra.expressions import Expression, Subquery, has_subquery, transform
from tqp.planner.algebra.logical_plan import LogicalPlan, Shared
from tqp.planner.algebra.node import subquery_plans
from tqp.planner.rules.columns import fresh_copy, renumber, with_plan

if TYPE_CHECKING:
    from tqp.planner.optimizer import OptimizerContext

#: Most nodes that the copies of one CTE may have together, the CTEs inside them included.
_MOST_NODES = 100


def inline_ctes(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """Replace references to CTEs by copies of their plans, so that rules fit each copy to where it is read.

    What is equal afterwards is computed once by `common_subplans`. A large CTE that is read several times stays shared:
    its copies might be exponentially many. Correlated ones are always copied: they differ from row to row.
    """
    if not context.next_shared:
        return plan
    return _Inlining(plan, context).expanded(plan)


class _Inlining:
    def __init__(self, plan: LogicalPlan, context: OptimizerContext) -> None:
        self.context = context
        self.references: dict[int, int] = {}  # how often each CTE is read, by identifier
        self.inputs: dict[int, LogicalPlan] = {}
        self._count(plan)
        self.sizes: dict[int, int] = {}  # nodes that a reference to the CTE becomes
        self.inlined: set[int] = set()
        for identifier in _inner_first(self.inputs):
            self._decide(identifier)
        self.used: set[int] = set()  # CTEs of which one copy has the ids of the original

    def _count(self, plan: LogicalPlan) -> None:
        left = [plan]
        while left:
            node = left.pop()
            if isinstance(node, Shared):
                self.references[node.identifier] = self.references.get(node.identifier, 0) + 1
                if node.identifier in self.inputs:
                    continue
                self.inputs[node.identifier] = node.input
            left.extend(below(node))

    def _decide(self, identifier: int) -> None:
        plan, count = self.inputs[identifier], self.references[identifier]
        size, left = 0, [plan]
        while left:
            node = left.pop()
            if isinstance(node, Shared):
                size += self.sizes[node.identifier]
            else:
                size += 1
                left.extend(below(node))
        inlined = count == 1 or count * size <= _MOST_NODES or bool(plan.free_ids)
        self.sizes[identifier] = size if inlined else 1
        if inlined:
            self.inlined.add(identifier)

    def expanded(self, plan: LogicalPlan) -> LogicalPlan:
        """The plan with the references in it, and in its subqueries, replaced."""
        if isinstance(plan, Shared) and plan.identifier in self.inlined:
            return self._copy(plan)
        plan = self.context.rewrite_inputs(plan, self.expanded)
        if any(map(has_subquery, plan.expressions)):
            plan = plan.map_expressions(lambda whole: transform(whole, self._in_subquery))
        return plan

    def _in_subquery(self, expression: Expression) -> Expression:
        return (
            with_plan(expression, self.expanded(expression.plan))
            if isinstance(expression, Subquery)
            else expression
        )

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


def below(node: LogicalPlan) -> list[LogicalPlan]:
    """The inputs of a node and the plans of its subqueries."""
    plans = list(node.inputs)
    for expression in node.expressions:
        plans += subquery_plans(expression)
    return plans


def _inner_first(inputs: dict[int, LogicalPlan]) -> list[int]:
    """The identifiers, each after those that its plan reads."""
    order: list[int] = []
    known: set[int] = set()
    left = [(identifier, False) for identifier in inputs]
    while left:
        identifier, is_done = left.pop()
        if is_done:
            order.append(identifier)
        elif identifier not in known:
            known.add(identifier)
            left.append((identifier, True))
            pending = [inputs[identifier]]
            while pending:
                node = pending.pop()
                if isinstance(node, Shared):
                    left.append((node.identifier, False))
                else:
                    pending.extend(below(node))
    return order
