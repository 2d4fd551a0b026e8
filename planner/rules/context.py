"""What rules share while one query is optimized: new ids, estimates, and how a rule goes through a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tqp.core.backends import Backend
from tqp.planner.algebra.cardinality import Estimator
from tqp.planner.algebra.logical_plan import LogicalPlan, Shared
from tqp.planner.rules.columns import NewIds, restore_schema

Kind = TypeVar("Kind", bound=LogicalPlan)


@dataclass
class OptimizerContext(NewIds):
    """`disabled_rules`: names of logical and physical rules that the query does without."""

    disabled_rules: frozenset[str] = frozenset()
    backend: Backend = Backend.HOST
    estimator: Estimator = field(default_factory=Estimator)
    rewritten: dict[int, LogicalPlan] = field(default_factory=dict)

    @property
    def uses_indexes(self) -> bool:
        """May the physical plan look rows up in the indexes of tables?"""
        return self.backend is Backend.HOST and "index_join" not in self.disabled_rules

    def rewrite_inputs(
        self, plan: LogicalPlan, function: Callable[[LogicalPlan], LogicalPlan]
    ) -> LogicalPlan:
        """The node over `function` of its inputs; the input of Shared nodes is rewritten once for each identifier.

        For the rule that is running: its own results are kept until it ends.
        """
        if not isinstance(plan, Shared):
            if plan.BY_POSITION:
                return plan.map_inputs(lambda child: restore_schema(function(child), child.schema))
            return plan.map_inputs(function)
        done = self.rewritten.get(plan.identifier)
        if done is None:
            done = restore_schema(function(plan.input), plan.input.schema)
            self.rewritten[plan.identifier] = done
        return plan if done is plan.input else plan.with_inputs((done,))

    def rewrite(self, plan: LogicalPlan, function: Callable[[LogicalPlan], LogicalPlan]) -> LogicalPlan:
        """The plan with `function` applied to every node after its inputs."""
        return function(self.rewrite_inputs(plan, lambda child: self.rewrite(child, function)))

    def rewrite_each(
        self, plan: LogicalPlan, kind: type[Kind], function: Callable[[Kind], LogicalPlan]
    ) -> LogicalPlan:
        """The plan with `function` applied to every node of a kind after its inputs; what holds none is not looked at."""
        if kind not in plan.kinds:
            return plan
        if [None for child in plan.inputs if kind in child.kinds]:
            plan = self.rewrite_inputs(plan, lambda child: self.rewrite_each(child, kind, function))
        return function(plan) if isinstance(plan, kind) else plan
