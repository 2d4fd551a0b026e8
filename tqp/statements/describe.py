"""DESCRIBE, SHOW and SUMMARIZE."""

from __future__ import annotations

import pyarrow as pa

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.definitions import ColumnDefinition, TableDefinition
from tqp.core.errors import UnsupportedError
from tqp.data.sources.stored_tables import StoredTable
from tqp.planner.syntax.clauses import Describe, Part, ShowTables
from tqp.result import Result
from tqp.statements.execution import Execution, listed

_TEXT = pa.string()
_DESCRIPTION = [(name, _TEXT) for name in ("column_name", "column_type", "null", "key", "default", "extra")]
_NAMES = [("name", _TEXT)]


def describe(execution: Execution) -> Result:
    """A row for each column of a table or query."""
    clauses, command = execution.command.clauses, execution.command
    assert isinstance(clauses, Describe)
    is_query = (
        clauses.query.stop - clauses.query.start > 1 and command.tokens.kinds[clauses.query.start] != "name"
    )
    query = command.query(clauses.query) if is_query else command.query("FROM", clauses.query)
    found = execution.session.queries.describe(query, execution.state, execution.variables, execution.params)
    if clauses.summarize:
        raise UnsupportedError("SUMMARIZE is not supported")
    definition = None if is_query else _definition(execution, clauses.query)
    rows = []
    for place, (name, data_type) in enumerate(zip(found.names, found.types, strict=True)):
        column = ColumnDefinition(name, data_type) if definition is None else definition.columns[place]
        null = "YES" if column.nullable else "NO"
        rows.append((name, type_name(data_type), null, _key(definition, name), column.default, None))
    return listed(_DESCRIPTION, rows)


def type_name(data_type: DataType) -> str:
    """The type as DuckDB names it where it describes a column."""
    return '"NULL"' if data_type.kind is TypeKind.NULL else str(data_type)


def _definition(execution: Execution, table: Part) -> TableDefinition | None:
    name = execution.command.source(table).rpartition(".")[2].strip('"').lower()
    found = execution.state.tables.get(name)
    return found.definition if isinstance(found, StoredTable) else None


def _key(definition: TableDefinition | None, name: str) -> str | None:
    for key in () if definition is None else definition.keys:
        if name in key.columns:
            return "PRI" if key.is_primary else "UNI"
    return None


def show_tables(execution: Execution) -> Result:
    """The names of tables and views."""
    clauses = execution.command.clauses
    assert isinstance(clauses, ShowTables)
    if clauses.all:
        raise UnsupportedError("SHOW ALL TABLES is not supported; SHOW TABLES is")
    return listed(_NAMES, [(name,) for name in sorted(execution.state.names(), key=str.lower)])
