"""Scalar functions, casts and aggregates of constants, computed by the engine's kernels, and the values of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import tqp
from tqp.core.datatypes import TypeKind
from tqp.core.errors import ExecutionError
from tqp.core.schema import Field, TableSource
from tqp.data.column import Column
from tqp.data.results.to_python import storage_values, where_valid
from tqp.data.string_buffers import string_array
from tqp.planner.algebra.expressions import (
    AggregateCall,
    ColumnRef,
    Expression,
    Literal,
)
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan, Project, Values
from tqp.planner.bind import BoundStatement
from tqp.planner.functions.constant_folding import fold
from tqp.planner.physical.algorithm_choice import PhysicalOptions
from tqp.planner.physical.planner import plan_physical

#: Programs that are made for one query, at most: each takes some milliseconds.
_MAX_PROGRAMS = 3_000


class TooLongError(Exception):
    """The query takes too many steps, or has what is not interpreted."""


class Kernels:
    """Scalar functions, casts and aggregates of constants, as the engine computes them; each once."""

    def __init__(self, connection: tqp.Connection) -> None:
        self._connection = connection
        self._known: dict[Any, Any] = {}
        self._columns: dict[tuple[int, str], list[Any]] = {}
        self.programs = 0

    def column(self, table: TableSource, name: str) -> list[Any]:
        """The storage values of a table's column."""
        key = id(table), name
        if key not in self._columns:
            self._columns[key] = _storage(table.column(name))  # type: ignore[attr-defined]
        return self._columns[key]

    def compute(self, expression: Expression) -> Any:
        """The storage value of an expression over literals; raises ExecutionError where it has none."""
        if expression not in self._known:
            try:
                folded = fold(expression)
                self._known[expression] = (
                    folded.value if isinstance(folded, Literal) else self._run(_project(expression))
                )
            except ExecutionError as error:
                self._known[expression] = error
        return _outcome(self._known[expression])

    def aggregate(self, call: AggregateCall, values: Sequence[Any]) -> Any:
        """An aggregate of storage values."""
        key = call, repr(values)
        if key not in self._known:
            argument = Field(1, "x", call.arguments[0].data_type)
            rows = Values(
                tuple((Literal(value, argument.data_type),) for value in values or (None,)), (argument,)
            )
            plain = replace(
                call, arguments=(ColumnRef(1, argument.data_type, "x"),), distinct=False, filter=None
            )
            result = Field(2, "y", call.data_type)
            try:
                self._known[key] = self._run(Aggregate(rows, (), (), (result,), (plain,)))
            except ExecutionError as error:
                self._known[key] = error
        return _outcome(self._known[key])

    def _run(self, plan: LogicalPlan) -> Any:
        self.programs += 1
        if self.programs > _MAX_PROGRAMS:
            raise TooLongError("too many programs")
        connection = self._connection
        statement = BoundStatement(plan, ("x",))
        program = connection._queries.compiler.lower(
            statement, plan_physical(plan, PhysicalOptions(connection._backend))
        )
        return _storage(program().columns[0])[0]


def _project(expression: Expression) -> LogicalPlan:
    return Project(Values(((),), ()), (Field(1, "x", expression.data_type),), (expression,))


def _outcome(known: Any) -> Any:
    if isinstance(known, ExecutionError):
        raise known
    return known


def _storage(column: Column) -> list[Any]:
    """The storage values of a column; None for NULL."""
    if column.data_type.is_string:
        texts: list[Any] = string_array(column).to_pylist()
        return texts
    if column.data_type.is_nested:
        raise TooLongError("nested values are not interpreted")
    if column.values is None or column.data_type.kind is TypeKind.NULL:
        return [None] * column.num_rows
    values = storage_values(column.values)
    if column.data_type.kind in (TypeKind.INTERVAL, TypeKind.ARRAY):
        values = [tuple(value) for value in values]
    return where_valid(column, values)
