"""From bound statements to programs, and to the text of their plans: the last steps of a query's planning."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import torch

from tqp.core.backends import Backend
from tqp.core.datatypes import VARCHAR
from tqp.core.errors import UnsupportedError
from tqp.core.schema import TableSource
from tqp.data.backend import computing_with
from tqp.data.column import Column, Table
from tqp.operators.strings import layout as string_layout
from tqp.planner.algebra.explain import explain_logical, explain_physical
from tqp.planner.algebra.logical_plan import LogicalPlan, Scan
from tqp.planner.algebra.node import walk_plan
from tqp.planner.bind import BoundStatement
from tqp.planner.describe import Description
from tqp.planner.optimizer import optimize, without_subqueries
from tqp.planner.physical.algorithm_choice import PhysicalOptions
from tqp.planner.physical.plan import PhysicalPlan
from tqp.planner.physical.planner import plan_physical
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.scan_conditions import TableConditions, over_tables, scan_conditions
from tqp.planner.shapes import Shape, explain_shape, shape_of
from tqp.planner.unread_table import UnreadTable
from tqp.result import Result
from tqp.runtime.differentiable import SPECIAL_ALGORITHMS, DifferentiableProgram
from tqp.runtime.executor import Executor
from tqp.runtime.fuse import Fuser
from tqp.runtime.lowering.plan import lower_plan
from tqp.runtime.lowering.program_builder import ProgramBuilder
from tqp.runtime.profiler import profile
from tqp.runtime.program import TensorProgram

#: What EXPLAIN puts out.
EXPLAINED = Description(("explain_key", "explain_value"), (VARCHAR, VARCHAR))


class Plans(NamedTuple):
    """`are_lasting`: False where the next query like this is planned with dictionaries of columns that this one lacked."""

    logical: LogicalPlan
    physical: PhysicalPlan
    are_lasting: bool


@dataclass(frozen=True, slots=True)
class Compiler:
    """Optimizes, plans and lowers for one device and backend. The columns of a statement are encoded before."""

    device: torch.device
    backend: Backend
    disabled_rules: frozenset[str]
    fuser: Fuser | None
    executor: Executor

    def without_subqueries(self, plan: LogicalPlan) -> LogicalPlan:
        """A bound plan as joins only."""
        return without_subqueries(plan, OptimizerContext(disabled_rules=self.disabled_rules))

    def scan_conditions(self, plan: LogicalPlan) -> dict[TableSource, TableConditions]:
        """What a bound plan asks of the rows of its tables, where these can be restricted; no column is read for it.

        Subqueries are joins for it, so that it shows which of their rows count.
        """
        nodes = walk_plan(plan, into_subqueries=True)
        scans = [node for node in nodes if isinstance(node, Scan)]
        if not any(scan.table.can_be_restricted(scan.columns) for scan in scans):
            return {}
        if any(node.subqueries for node in nodes):
            unread = {table: UnreadTable(table) for table in {scan.table for scan in scans}}
            tables: dict[TableSource, TableSource] = {each: table for table, each in unread.items()}
            with suppress(UnsupportedError):  # said where the plan is optimized
                joins = self.without_subqueries(over_tables(plan, unread, ()))
                plan = over_tables(joins, tables, ())
        return scan_conditions(plan)

    def optimized(self, plan: LogicalPlan) -> tuple[LogicalPlan, float]:
        """A bound plan optimized, and how many rows it is expected to put out."""
        context = OptimizerContext(disabled_rules=self.disabled_rules, backend=self.backend)
        logical = optimize(plan, context)
        return logical, context.estimator.rows(logical)

    def plans(self, plan: LogicalPlan, without: frozenset[str] = frozenset()) -> Plans:
        """The optimized and the physical plan of a bound one."""
        rules = self.disabled_rules | without
        context = OptimizerContext(disabled_rules=rules, backend=self.backend)
        logical = optimize(plan, context)
        options = PhysicalOptions(self.backend, rules)
        physical = plan_physical(logical, options, context.estimator)
        are_there = [table.dictionary_encode(column) for table, column in dict.fromkeys(options.wanted)]
        if any(are_there):
            physical = plan_physical(logical, PhysicalOptions(self.backend, rules), context.estimator)
        return Plans(logical, physical, all(are_there))

    def program(self, statement: BoundStatement) -> TensorProgram:
        """The statement's program."""
        return self._of_plans(statement, self.plans(statement.plan))

    def program_of_shape(self, statement: BoundStatement, shape: Shape) -> TensorProgram:
        """The program of the statement's shape, which takes its constants as parameters."""
        return self._of_plans(statement, self.plans(shape.plan))

    def _of_plans(self, statement: BoundStatement, plans: Plans) -> TensorProgram:
        program = self.lower(statement, plans.physical)
        program.is_lasting = plans.are_lasting
        return program

    def differentiable(self, statement: BoundStatement) -> TensorProgram:
        """The statement's program that carries gradients."""
        plans = self.plans(statement.plan, SPECIAL_ALGORITHMS)
        return self.lower(statement, plans.physical, differentiable=True)

    def lower(
        self, statement: BoundStatement, plan: PhysicalPlan, differentiable: bool = False
    ) -> TensorProgram:
        """A physical plan as a program that puts out what the statement names."""
        builder = ProgramBuilder(self.device, self.backend, carries_gradients=differentiable)
        kind = DifferentiableProgram if differentiable else TensorProgram
        types = [field.data_type for field in statement.plan.schema]
        with computing_with(self.backend):
            slot, columns = lower_plan(builder, plan)
            program = kind(builder, columns, slot, statement.names, types, self.executor)
        if self.fuser is not None and not differentiable:
            self.fuser.fuse(program.steps())
        return program

    def explain(self, statement: BoundStatement, analyze: bool) -> str:
        """The statement's plans as text; with `analyze` also what a run of its program took."""
        statement.encode_columns()
        shape = explain_shape(shape_of(self.without_subqueries(statement.plan)))
        logical, physical, _ = self.plans(statement.plan)
        if not analyze:
            return f"{_plans_text(logical, physical)}{shape}"
        _, measured = profile(self.lower(statement, physical), self.executor)
        annotations = {node: str(operator) for node, operator in measured.operators.items()}
        return f"{_plans_text(logical, physical, annotations)}{shape}\n\n{self.total_text(measured.seconds)}"

    def plans_text(self, statement: BoundStatement) -> str:
        """The statement's plans."""
        statement.encode_columns()
        logical, physical, _ = self.plans(statement.plan)
        return _plans_text(logical, physical)

    def total_text(self, seconds: float) -> str:
        """What a run took, and where."""
        threads = self.executor.threads
        return f"Total {seconds * 1e3:.2f} ms on {threads} thread{'s' if threads > 1 else ''}, {self.device}"


def _plans_text(
    logical: LogicalPlan, physical: PhysicalPlan, annotations: Mapping[int, str] | None = None
) -> str:
    return f"Logical plan\n{explain_logical(logical)}\n\nPhysical plan\n{explain_physical(physical, annotations)}"


def explained(text: str, analyze: bool) -> Result:
    """What an EXPLAIN statement answers."""
    columns = tuple(
        Column(VARCHAR, 1, None, None, string_layout.from_list([value]))
        for value in ("analyzed_plan" if analyze else "physical_plan", text)
    )
    return Result(EXPLAINED.names, (VARCHAR, VARCHAR), Table(EXPLAINED.names, columns, 1))
