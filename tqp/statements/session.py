"""Session: texts of statements in, the answer of the last one out."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import torch

from tqp.catalog.catalog import Catalog
from tqp.catalog.variables import Variables
from tqp.compiled import Parameters
from tqp.core.arguments import check_query
from tqp.core.deep_recursion import call_deep
from tqp.planner.parse import (
    Command,
    ParsedStatement,
    is_one_query,
    parse_statement,
    split_statements,
)
from tqp.planner.syntax.clauses import Transaction
from tqp.queries import Queries, named_place
from tqp.result import Result
from tqp.statements.execution import Execution
from tqp.statements.kinds import EXECUTORS


@dataclass(frozen=True, slots=True)
class Session:
    """What a connection's statements share. `memory_limit`: the one it was made with.

    `prepared`: texts of PREPARE by their names in lower case.
    """

    catalog: Catalog
    queries: Queries
    device: torch.device
    threads: int | None
    memory_limit: int | None
    prepared: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

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

    def execute(
        self, parsed: ParsedStatement | Command, params: Parameters | None, variables: Variables | None
    ) -> Result:
        """Execute a parsed statement."""
        if isinstance(parsed, ParsedStatement):
            with self.catalog.failing():
                return self.queries.run(parsed, params, variables)
        with self.catalog.failing(), named_place(parsed.text, params):
            parsed.check_parameters(params)
            if not isinstance(parsed.clauses, Transaction):
                self.catalog.check_open()
            return EXECUTORS[type(parsed.clauses)](Execution(self, parsed, params, variables))
