"""CHECKPOINT, VACUUM and ANALYZE, which have nothing to do in memory, and CALL of a table function."""

from __future__ import annotations

from tqp.core.errors import BindError, ExecutionError, nearest
from tqp.core.keywords import lower_ascii
from tqp.data.sources.stored_tables import StoredTable
from tqp.planner.syntax.clauses import CallFunction, Checkpoint, Vacuum
from tqp.result import Result
from tqp.statements.execution import Execution, done
from tqp.statements.pieces import places_of

_DATABASES = ("memory", "temp", "system")


def checkpoint(execution: Execution) -> Result:
    """Does nothing. Raises BindError for another database, ExecutionError in a transaction that has changed something."""
    clauses = execution.command.clauses
    assert isinstance(clauses, Checkpoint)
    name = clauses.database
    if name is not None and lower_ascii(name.text) not in _DATABASES:
        raise BindError(f'there is no database "{name.text}"{nearest(name.text, _DATABASES)}', name.span)
    if execution.session.catalog.has_local_changes:
        raise ExecutionError(
            "CHECKPOINT in a transaction that has changed something; COMMIT or ROLLBACK ends it"
        )
    return done()


def vacuum(execution: Execution) -> Result:
    """Does nothing. Raises BindError for a table or columns that there are not."""
    clauses = execution.command.clauses
    assert isinstance(clauses, Vacuum)
    name, state = clauses.table, execution.state
    if name is None:
        return done()
    place = state.place_of(name)
    if place is None:
        raise state.no_such("table", name, state.names())
    table = state.tables.get(place)
    if not isinstance(table, StoredTable):
        raise BindError(f'"{name.text}" is no table that a statement has made', name.span)
    places_of(table, clauses.columns)
    return done()


def call(execution: Execution) -> Result:
    """The rows of a table function."""
    clauses = execution.command.clauses
    assert isinstance(clauses, CallFunction)
    return execution.rows(execution.command.query("FROM", clauses.call), execution.state)
