"""EXPLAIN of statements that are no queries: the plans of the queries that they ask."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from tqp.catalog.catalog import Catalog
from tqp.catalog.state import CatalogState
from tqp.compiler import explained
from tqp.planner.syntax import clauses
from tqp.result import Result
from tqp.statements.execution import Execution, PlansFoundError

#: What neither asks a query nor makes anything in the catalog: nothing but its name is known of what it would do.
_OTHERS = (
    clauses.Set,
    clauses.Reset,
    clauses.Pragma,
    clauses.Transaction,
    clauses.Checkpoint,
    clauses.Vacuum,
    clauses.LoadExtension,
    clauses.Prepare,
    clauses.Execute,
    clauses.Deallocate,
)


class _Unchanged:
    """A catalog as it is: what would change it ends instead, once that has shown that it can be done."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def change(self, change: Callable[[CatalogState], CatalogState]) -> None:
        change(self._catalog.state)
        raise PlansFoundError


def explain(execution: Execution, execute: Callable[[Execution], Result]) -> Result:
    """EXPLAIN: the plan of the first query that the statement asks. EXPLAIN ANALYZE executes it: what each of them took."""
    is_analyzed, plans = execution.command.explain == "analyze", list[str]()
    if is_analyzed:
        execute(replace(execution, plans=plans))
    elif not isinstance(execution.command.clauses, _OTHERS):
        catalog = cast(Catalog, _Unchanged(execution.session.catalog))
        with contextlib.suppress(PlansFoundError):
            execute(replace(execution, session=replace(execution.session, catalog=catalog), plans=plans))
    return explained("\n\n".join([execution.command.word, *plans]), is_analyzed)
