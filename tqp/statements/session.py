"""Session: texts of statements in, the answer of the last one out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import FrameType

import torch

from tqp.catalog.catalog import Catalog
from tqp.catalog.state import CatalogState
from tqp.catalog.variables import OneVariable, Variables
from tqp.compiled import Parameters
from tqp.core.arguments import check_name, check_query
from tqp.core.errors import BindError
from tqp.core.keywords import in_quotes
from tqp.core.process.deep_recursion import call_deep
from tqp.data.sources.base import Source
from tqp.data.sources.copied_files import CopiedFiles
from tqp.data.sources.file_identity import read_again_if_changed
from tqp.data.sources.stored_tables import table_of_rows
from tqp.planner.catalog_protocol import View
from tqp.planner.parse import (
    Command,
    ParsedStatement,
    check_parameters,
    is_one_query,
    parse_statement,
    split_statements,
)
from tqp.planner.syntax.clauses import Transaction
from tqp.planner.syntax.parts import Name
from tqp.planner.syntax.tokens import dotted_names
from tqp.queries import BoundDescription, Queries, named_place
from tqp.result import Result
from tqp.statements.execution import Execution
from tqp.statements.explained import explain
from tqp.statements.kinds import EXECUTORS

#: Under which a relation is looked up while it is executed: no name that SQL would say.
_NAME = "%relation"


@dataclass(frozen=True, slots=True)
class Session:
    """What a connection's statements share. `threads`, `memory_limit`: what it was made with."""

    catalog: Catalog
    queries: Queries
    device: torch.device
    threads: int | None
    memory_limit: int | None
    copies: CopiedFiles = field(default_factory=CopiedFiles)

    def variables(self, frame: FrameType) -> Variables:
        """The tables among the variables of a frame."""
        return Variables(frame, self.device, self.catalog)

    def run(self, text: str, params: Parameters | None, variables: Variables | None) -> Result:
        """Execute the statements of a text in turn: the answer of the last one, which takes the parameters."""
        with self.catalog.failing():
            if isinstance(text, str) and is_one_query(text):
                return self.queries.run(text, params, variables)
            check_query(text)
            with named_place(text, params):
                statements = call_deep(lambda: split_statements(text))
            for statement in statements[:-1]:
                self.run_one(statement, None, variables)
            return self.run_one(statements[-1], params, variables)

    def run_one(self, text: str, params: Parameters | None, variables: Variables | None) -> Result:
        """Execute one statement."""
        if is_one_query(text):
            return self.queries.run(text, params, variables)
        with named_place(text, params):
            parsed = call_deep(lambda: parse_statement(text))
        return self.execute(parsed, params, variables)

    def run_view(self, view: View) -> Result:
        """The rows of a view that need not be in the catalog."""

        def run() -> Result:
            return self.queries.run_on(self.catalog.snapshot().state, view.query)

        with self.catalog.failing(), self.queries.executor.memory.query():
            return read_again_if_changed(run)

    def describe_view(self, view: View) -> BoundDescription:
        """The columns of such a view."""
        with self.queries.executor.memory.query():
            state = self.catalog.snapshot().state
            return self.queries.describe(
                self.queries.with_values_of_rows(view.query, None, None, state), state
            )

    def define(self, view: View, is_replaced: bool) -> None:
        """Put a view into the schema in which things are made. Raises BindError where a table has its name, or another view unless it is replaced."""

        def next_state(state: CatalogState) -> CatalogState:
            made = replace(view, schema=state.schema_for((), temporary=False))
            _check_free(state, made, "view" if is_replaced else None)
            return state.with_view(made)

        self.catalog.change(next_state)

    def store(self, name: str, result: Result) -> None:
        """Make a table of a result. Raises BindError where there is one of its name."""
        check_name("a table", name)
        rows = result._table

        def next_state(state: CatalogState) -> CatalogState:
            said = self.named(name)
            schema = state.schema_for(said.qualifiers, temporary=False)
            table = table_of_rows(said.text, result.columns, result.types, rows, self.device, schema=schema)
            _check_free(state, table)
            return state.with_table(table)

        self.catalog.change(next_state)

    def named(self, text: str) -> Name:
        """What a text names: a table or view of just that name, else, where names stand in it with dots between, one in a schema."""
        name = Name(text, (0, 0))
        tokens = None if self.catalog.state.place_of(name) is not None else dotted_names(text)
        return name if tokens is None else Name(tokens[-1], (0, 0), tokens[:-1])

    def insert(self, name: str, rows: View | Source, by_name: bool) -> None:
        """Insert the rows of a view or a table, which need not be in the catalog, into a table; see INSERT."""
        how = "BY NAME" if by_name else ""
        text = f"INSERT INTO {self.named(name).in_quotes} {how} SELECT * FROM {in_quotes(_NAME)}"
        self.run_one(text, None, OneVariable(_NAME, rows))

    def explain_view(self, view: View, analyze: bool) -> str:
        """The plans of a view that need not be in the catalog."""
        return self.queries.explain(view.query, analyze)

    def execute(
        self, parsed: ParsedStatement | Command, params: Parameters | None, variables: Variables | None
    ) -> Result:
        """Execute a parsed statement."""
        if isinstance(parsed, ParsedStatement):
            with self.catalog.failing():
                return self.queries.run(parsed, params, variables)
        with self.catalog.failing(), named_place(parsed.text, params):
            check_parameters(params, parsed.parameter_keys.values(), "statement")
            execute = EXECUTORS[type(parsed.clauses)]
            execution = Execution(self, parsed, params, variables)
            if isinstance(parsed.clauses, Transaction) and parsed.explain is None:
                return execute(execution)

            def run() -> Result:
                self.catalog.snapshot()  # from here on, files are as they are now
                return execute(execution) if parsed.explain is None else explain(execution, execute)

            return read_again_if_changed(run)


def _check_free(state: CatalogState, made: Source | View, replaced: str | None = None) -> None:
    """Raises BindError where its name is taken by anything but what may be replaced."""
    found = state.kind_at(made.place)
    if found is not None and found != replaced:
        raise BindError(f'there is a {found} "{made.name}" already; drop it first')
