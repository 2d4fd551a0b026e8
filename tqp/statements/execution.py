"""Execution: one statement that is being executed, and the answers that statements give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import torch

from tqp.catalog.state import CatalogState
from tqp.catalog.variables import OneVariable, Variables
from tqp.compiled import Parameters
from tqp.core.datatypes import BIGINT, BOOLEAN, DataType
from tqp.core.errors import BindError
from tqp.core.keywords import in_quotes
from tqp.data.column import Column, Table
from tqp.data.sources.objects.arrow_tables import ArrowSource
from tqp.planner.bind import Arrangement
from tqp.planner.parse import Command, ParsedStatement, parse
from tqp.planner.syntax.clauses import (
    CreateMacro,
    CreateSchema,
    CreateSequence,
    CreateTable,
    CreateType,
    CreateView,
)
from tqp.planner.syntax.parts import Name, Part
from tqp.queries import Rows
from tqp.result import Result

if TYPE_CHECKING:
    from tqp.statements.session import Session

Outcome = TypeVar("Outcome")
_NAME = "%rows"


class PlansFoundError(Exception):
    """EXPLAIN has found what it tells; the statement is not executed."""


@dataclass(frozen=True, slots=True)
class Execution:
    """What a statement is executed with. Its executor changes the catalog in one step, or not at all.

    `plans`: under EXPLAIN, those of the queries that it has asked.
    """

    session: Session
    command: Command
    params: Parameters | None
    variables: Variables | None
    plans: list[str] | None = None

    @property
    def state(self) -> CatalogState:
        """The catalog now."""
        return self.session.catalog.state

    def rows(
        self, query: ParsedStatement, state: CatalogState, arranged: Arrangement | None = None
    ) -> Result:
        """What a query made of parts of the statement answers."""
        self._note_plan(query, state, arranged)
        return self.session.queries.run_on(state, query, self.params, self.variables, arranged)

    def written(self, query: ParsedStatement, write: Callable[[Rows], Outcome]) -> Outcome:
        """What `write` says of the rows of a query made of parts of the statement."""
        self._note_plan(query, self.state)
        return self.session.queries.write(query, self.params, self.variables, write)

    def _note_plan(
        self, query: ParsedStatement, state: CatalogState, arranged: Arrangement | None = None
    ) -> None:
        """Keep the plan of a query if plans are asked for. Raises PlansFoundError where nothing is to be executed."""
        if self.plans is not None:
            is_analyzed = self.command.explain == "analyze"
            explain = self.session.queries.explain
            self.plans.append(explain(query, is_analyzed, self.params, self.variables, state, arranged))
            if not is_analyzed:
                raise PlansFoundError

    def rows_of(self, text: str, state: CatalogState) -> Result:
        """What a query of our own answers."""
        return self.session.queries.run_on(state, parse(text))

    def rows_of_table(self, table: pa.Table) -> Result:
        """The rows of an Arrow table of our own."""
        source = ArrowSource(_NAME, table, self.session.device)
        query = parse(f"FROM {in_quotes(_NAME)}")
        return self.session.queries.run_on(self.state, query, variables=OneVariable(_NAME, source))

    def value_of(self, part: Part) -> Any:
        """The value of a constant expression."""
        query, queries = self.command.query("SELECT", part), self.session.queries
        return queries.run_on(self.state, query, self.params, self.variables).fetchall()[0][0]

    def type_of(self, part: Part, collation: Part | None = None) -> DataType:
        """The type that its name stands for, with a collation if one is named."""
        behind = ("COLLATE", collation) if collation is not None else ()
        query = self.command.query("SELECT CAST(NULL AS", part, ")", *behind)
        return self.session.queries.types(query, self.state)[0]

    def schema_for(self, name: Name, temporary: bool = False) -> str:
        """The schema in which what has that name is made; see `CatalogState.schema_for`."""
        return self.state.schema_for(name.qualifiers, temporary, name.span)

    def refuse_subquery(self, part: Part, what: str) -> None:
        """Raises BindError where a subquery stands in an expression that takes none, as in DuckDB."""
        if "SELECT" in self.command.tokens.kinds[part.start : part.stop]:
            raise BindError(f"{what} takes no subquery", self.command.span(part))

    def refuse_parameters(self, what: str) -> None:
        """Raises BindError where parameters stand in what is kept."""
        if self.command.parameter_keys:
            raise BindError(f"{what} cannot have parameters: it is kept without their values")


#: Words that stand for truth values in options and settings.
TRUTH_WORDS = {"true": True, "on": True, "false": False, "off": False}

Creation = CreateTable | CreateView | CreateMacro | CreateType | CreateSequence


def is_there(clauses: Creation | CreateSchema, kind: str, found: str | None) -> bool:
    """Whether there is one that IF NOT EXISTS leaves as it is. Raises BindError where another is in the way.

    `found`: what has the name, in its schema.
    """
    name = clauses.name
    if found is None or clauses.or_replace and found == kind:
        return False
    if found == kind and clauses.if_not_exists:
        return True
    if found == kind:
        raise BindError(
            f'there is a {kind} "{name.text}" already; CREATE OR REPLACE takes its place', name.span
        )
    raise BindError(f'there is a {found} "{name.text}" already; drop it first', name.span)


class Effect(Result):
    """What a statement without RETURNING answers: a row with the number of rows that it has changed, or no row.

    `num_changed`: that number; None where there is none.
    """

    def __init__(self, column: Column, name: str, num_changed: int | None = None) -> None:
        super().__init__((name,), (column.data_type,), Table((name,), (column,), column.num_rows))
        self.num_changed = num_changed


def counted(num_rows: int) -> Effect:
    """How many rows a statement has changed."""
    return Effect(Column(BIGINT, 1, torch.tensor([num_rows])), "Count", num_rows)


def made() -> Effect:
    """What CREATE answers."""
    return Effect(Column(BIGINT, 0, torch.zeros(0).long()), "Count")


def done() -> Effect:
    """What statements answer that change no rows."""
    return Effect(Column(BOOLEAN, 0, torch.zeros(0, dtype=torch.bool)), "Success")
