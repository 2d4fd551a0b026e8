"""Execution: one statement that is being executed, and the answers that statements give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import torch

from tqp.catalog.state import CatalogState
from tqp.catalog.variables import Variables
from tqp.compiled import Parameters
from tqp.core.datatypes import BIGINT, BOOLEAN, DataType
from tqp.core.errors import BindError
from tqp.data.column import Column, Table
from tqp.data.sources.make_source import make_source
from tqp.planner.bind import Arrangement
from tqp.planner.parse import Command, ParsedStatement, parse
from tqp.planner.syntax.clauses import Part
from tqp.queries import BoundDescription
from tqp.result import Result

if TYPE_CHECKING:
    from tqp.statements.session import Session


@dataclass(frozen=True, slots=True)
class Execution:
    """What a statement is executed with. Its executor changes the catalog in one step, or not at all."""

    session: Session
    command: Command
    params: Parameters | None
    variables: Variables | None

    @property
    def state(self) -> CatalogState:
        """The catalog now."""
        return self.session.catalog.state

    def rows(
        self, query: ParsedStatement, state: CatalogState, arranged: Arrangement | None = None
    ) -> Result:
        """What a query made of parts of the statement answers."""
        return self.session.queries.run_on(state, query, self.params, self.variables, arranged)

    def columns(self, query: ParsedStatement) -> BoundDescription:
        """The columns of a query made of parts of the statement; those of a PIVOT may depend on the rows that there are."""
        queries, state = self.session.queries, self.state
        known = queries.with_values_of_rows(query, self.params, self.variables, state)
        return queries.describe(known, state, self.variables, self.params)

    def rows_of(self, text: str, state: CatalogState) -> Result:
        """What a query of our own answers."""
        return self.session.queries.run_on(state, parse(text))

    def type_of(self, part: Part) -> DataType:
        """The type that its name stands for."""
        query = self.command.query("SELECT CAST(NULL AS", part, ")")
        return self.session.queries.types(query, self.state)[0]

    def refuse_parameters(self, what: str) -> None:
        """Raises BindError where parameters stand in what is kept."""
        if self.command.parameter_keys:
            raise BindError(f"{what} cannot have parameters: it is kept without their values")


def counted(num_rows: int) -> Result:
    """How many rows a statement has changed."""
    values = torch.tensor([num_rows])
    return Result(("Count",), (BIGINT,), Table(("Count",), (Column(BIGINT, 1, values),), 1))


def made() -> Result:
    """What CREATE answers: no rows."""
    return Result(("Count",), (BIGINT,), Table(("Count",), (Column(BIGINT, 0, torch.zeros(0).long()),), 0))


def done() -> Result:
    """What statements answer that change no rows."""
    column = Column(BOOLEAN, 0, torch.zeros(0, dtype=torch.bool))
    return Result(("Success",), (BOOLEAN,), Table(("Success",), (column,), 0))


def listed(schema: Sequence[tuple[str, pa.DataType]], rows: Sequence[Sequence[Any]]) -> Result:
    """Rows of Python values as an answer."""
    arrays = [pa.array([row[place] for row in rows], kind) for place, (_, kind) in enumerate(schema)]
    source = make_source("rows", pa.table(arrays, [name for name, _ in schema]), torch.device("cpu"))
    columns = tuple(map(source.column, source.column_names))
    names = tuple(source.column_names)
    return Result(names, tuple(column.data_type for column in columns), Table(names, columns, len(rows)))
