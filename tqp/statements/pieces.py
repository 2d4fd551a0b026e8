"""Pieces of the queries that changes of tables ask, and what is read from their answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tqp.core.definitions import ColumnDefinition
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import in_quotes
from tqp.data.sources.stored_tables import ROW_ID, Rows, StoredTable
from tqp.planner.syntax.parts import Name, Part
from tqp.result import Result
from tqp.statements.execution import Execution

#: A piece of a query; see `Command.query`.
Piece = str | Part


def cast(column: ColumnDefinition, value: Part | None) -> list[Piece]:
    """A value, or the default, as a value of the column's type."""
    given: Piece = value if value is not None else column.default or "NULL"
    return ["CAST((", given, f") AS {column.data_type})"]


def places_of(table: StoredTable, names: Sequence[Name]) -> list[int]:
    """Where the columns stand. Raises BindError for one that is not there, or stands twice."""
    places = [table.definition.place_of(name.text, name.span) for name in names]
    for number, place in enumerate(places):
        if place in places[:number]:
            raise BindError(f'the column "{names[number].text}" is given twice', names[number].span)
    return places


def places_by_name(table: StoredTable, names: Sequence[str]) -> list[int]:
    """Where the columns of these names stand. Raises BindError for one that is not there, or stands twice."""
    places = [table.definition.place_of(name) for name in names]
    twice = next((name for number, name in enumerate(names) if places[number] in places[:number]), None)
    if twice is not None:
        raise BindError(f'the query has two columns "{twice}"')
    return places


def row_ids(found: Result) -> Rows:
    """The first column of an answer, which holds places of rows."""
    values = found._table.columns[0].values
    assert values is not None
    return values.cpu().numpy().astype(np.int64)


def others(table: StoredTable, rows: Sequence[Rows]) -> Rows:
    """All rows but these."""
    stays = np.ones(table.num_rows, np.bool_)
    stays[np.concatenate(rows)] = False
    return np.flatnonzero(stays)


def check_row_ids(table: StoredTable, what: str) -> None:
    """Raises UnsupportedError where a column hides the places of the rows."""
    if ROW_ID not in table.hidden_names:
        raise UnsupportedError(f'{what} a table with a column "{ROW_ID}" is not supported')


def wrong_count(table: StoredTable, columns: Sequence[Name] | None, expected: int, given: int) -> BindError:
    """The error for a row that has more or less values than the table, or the list of columns."""
    what = f'table "{table.name}" has' if columns is None else "the list names"
    return BindError(f"{what} {expected} column{'s' if expected != 1 else ''}, but {given} values are given")


def aliased(table: StoredTable, alias: Name | None) -> str:
    """The table in FROM, whatever schemas are searched."""
    return table.place.in_quotes + (f" AS {in_quotes(alias.text)}" if alias is not None else "")


def told(execution: Execution, rows: StoredTable, returning: Part, alias: Name | None) -> Result:
    """What RETURNING says of the rows."""
    execution.refuse_subquery(returning, "RETURNING")
    query = execution.command.query("SELECT", returning, f"FROM {aliased(rows, alias)}", of_rows=True)
    return execution.rows(query, execution.state.with_table(rows))
