"""What every version of a table has to keep: NOT NULL, CHECK, UNIQUE, PRIMARY KEY and FOREIGN KEY."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tqp.core.datatypes import TypeKind
from tqp.core.definitions import ColumnDefinition, GeneratedColumn, UniqueKey
from tqp.core.errors import BindError, ConstraintError, ExecutionError
from tqp.core.keywords import in_quotes, in_quotes_joined
from tqp.data.sources.stored_tables import StoredTable
from tqp.planner.parse import Span
from tqp.statements.execution import Execution
from tqp.statements.foreign_keys import check_referring


def check_constraints(
    execution: Execution, version: StoredTable, changed: StoredTable, places: Sequence[int] | None = None
) -> None:
    """Raises ConstraintError where a version breaks one of its constraints.

    `changed`: its rows that are new; `places`: of the columns that are, by default all.
    """
    if changed.num_rows == 0:
        return
    definition = version.definition
    names = [definition.names[place] for place in places or range(len(definition.columns))]
    for column in definition.columns:
        if column.name in names and not column.nullable:
            _check_not_null(changed, column.name)
    for each in definition.generated:
        _check_generated(execution, changed, each)
    for condition in definition.checks:
        state = execution.state.with_table(changed)
        text = f"SELECT 1 FROM {version.place.in_quotes} WHERE NOT ({condition}) LIMIT 1"
        if len(execution.rows_of(text, state)):
            raise ConstraintError(
                f'a row of table "{version.name}" breaks the constraint CHECK ({condition})'
            )
    for key in definition.unique_keys:
        if any(name in names for name in key.columns):
            check_unique(execution, version, key)
    check_referring(execution, version, changed, names)


def _check_generated(execution: Execution, changed: StoredTable, generated: GeneratedColumn) -> None:
    text = f"SELECT {in_quotes(generated.column.name)} FROM {changed.place.in_quotes}"
    try:
        execution.rows_of(text, execution.state.with_table(changed))
    except ExecutionError as error:
        raise ConstraintError(
            f'the generated column "{generated.column.name}" of table "{changed.name}" cannot be computed of a new row: {error.message}'
        ) from None


def _check_not_null(changed: StoredTable, name: str) -> None:
    validity = changed.column(name).validity
    if validity is not None and not bool(validity.all()):
        raise ConstraintError(
            f'column "{name}" of table "{changed.name}" is NOT NULL, and a new value is NULL'
        )


def check_key_type(column: ColumnDefinition, span: Span | None) -> None:
    """Raises BindError for a column of a key or an index whose type DuckDB has no keys of."""
    kind = column.data_type
    if kind.is_nested or kind.is_vector or kind.kind is TypeKind.INTERVAL:
        raise BindError(
            f'the column "{column.name}" of type {kind} cannot be a key; only columns of plain values can',
            span,
        )


def check_unique(execution: Execution, version: StoredTable, key: UniqueKey) -> None:
    """Raises ConstraintError where rows have the same values in the columns of a key."""
    if len(key.columns) == 1 and version.column(key.columns[0]).facts.is_unique:
        return
    columns = in_quotes_joined(key.columns)
    there = " AND ".join(f"{in_quotes(name)} IS NOT NULL" for name in key.columns)
    text = f"SELECT {columns} FROM {version.place.in_quotes} WHERE {there} GROUP BY {columns} HAVING count(*) > 1 LIMIT 1"
    found = execution.rows_of(text, execution.state.with_table(version)).fetchone()
    if found is not None:
        raise ConstraintError(_duplicate(version, key, found))


def _duplicate(version: StoredTable, key: UniqueKey, values: Sequence[Any]) -> str:
    kind = "PRIMARY KEY" if key.is_primary else "UNIQUE"
    shown = ", ".join(f"{name}: {value}" for name, value in zip(key.columns, values, strict=True))
    return f'duplicate key "{shown}" breaks the {kind} of table "{version.name}"'
