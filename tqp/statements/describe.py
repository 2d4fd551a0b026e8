"""DESCRIBE, SHOW and SUMMARIZE."""

from __future__ import annotations

import pyarrow as pa

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.definitions import ColumnDefinition, TableDefinition, quoted
from tqp.data.sources.stored_tables import StoredTable
from tqp.planner.syntax.clauses import Describe, Part, ShowTables
from tqp.result import Result
from tqp.statements.execution import Execution, listed

_TEXT = pa.string()
_DESCRIPTION = [(name, _TEXT) for name in ("column_name", "column_type", "null", "key", "default", "extra")]
#: What SUMMARIZE calls the rows that it reads.
_ALL = '"%all"'
_NAMES = [("name", _TEXT)]
_ALL_TABLES = """
SELECT
    database_name AS database, schema_name AS schema, table_name AS name,
    list(column_name ORDER BY column_index) AS column_names, list(data_type ORDER BY column_index) AS column_types,
    database_name = 'temp' AS temporary
FROM duckdb_columns()
GROUP BY ALL ORDER BY ALL
"""


def describe(execution: Execution) -> Result:
    """A row for each column of a table or query."""
    clauses, command = execution.command.clauses, execution.command
    assert isinstance(clauses, Describe)
    is_query = (
        clauses.query.stop - clauses.query.start > 1 and command.tokens.kinds[clauses.query.start] != "name"
    )
    query = command.query(clauses.query) if is_query else command.query("FROM", clauses.query)
    found = execution.columns(query)
    if clauses.summarize:
        selects = " UNION ALL ".join(map(_summary, found.names, found.types))
        pieces: list[str | Part] = [
            f"WITH {_ALL} AS (",
            *([] if is_query else ["FROM"]),
            clauses.query,
            f") {selects}",
        ]
        return execution.rows(command.query(*pieces), execution.state)
    definition = None if is_query else _definition(execution, clauses.query)
    rows = []
    for place, (name, data_type) in enumerate(zip(found.names, found.types, strict=True)):
        column = ColumnDefinition(name, data_type) if definition is None else definition.columns[place]
        null = "YES" if column.nullable else "NO"
        rows.append((name, type_name(data_type), null, _key(definition, name), column.default, None))
    return listed(_DESCRIPTION, rows)


def _summary(name: str, data_type: DataType) -> str:
    """The query for the row that SUMMARIZE gives of a column. Quantiles are exact, as is the number of distinct values."""
    column = quoted(name)
    is_date = data_type.is_timestamp or data_type.kind is TypeKind.DATE
    values = {
        "min": f"CAST(min({column}) AS VARCHAR)",
        "max": f"CAST(max({column}) AS VARCHAR)",
        "approx_unique": f"count(DISTINCT {column})",
        "avg": _text(f"avg({column})", data_type.is_numeric or is_date),
        "std": _text(f"stddev({column})", data_type.is_numeric),
    }
    for percent in (25, 50, 75):
        quantile = f"quantile_cont({column}, {percent / 100})"
        if is_date:
            quantile = f"quantile_disc({column}, {percent / 100})"
        values[f"q{percent}"] = _text(f"CAST({quantile} AS {data_type})", data_type.is_numeric or is_date)
    values["count"] = "count(*)"
    missing = f"100.0 * (count(*) - count({column})) / nullif(count(*), 0)"
    values["null_percentage"] = f"CAST({missing} AS DECIMAL(9, 2))"
    described = {"column_name": _literal(name), "column_type": _literal(type_name(data_type))}
    items = (f"{value} AS {quoted(key)}" for key, value in {**described, **values}.items())
    return f"SELECT {', '.join(items)} FROM {_ALL}"


def _text(expression: str, there_is: bool) -> str:
    return f"CAST({expression if there_is else 'NULL'} AS VARCHAR)"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


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
    """The names of tables and views; of SHOW ALL TABLES with their columns."""
    clauses = execution.command.clauses
    assert isinstance(clauses, ShowTables)
    if clauses.all:
        return execution.rows(execution.command.query(_ALL_TABLES), execution.state)
    return listed(_NAMES, [(name,) for name in sorted(execution.state.names(), key=str.lower)])
