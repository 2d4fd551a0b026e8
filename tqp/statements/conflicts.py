"""INSERT of rows whose keys may be there: OR IGNORE, OR REPLACE and ON CONFLICT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tqp.core.definitions import UniqueKey
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import in_quotes, in_quotes_joined, lower_ascii
from tqp.data.column import Table
from tqp.data.sources.stored_tables import ROW_ID, Rows, StoredTable
from tqp.planner.parse import ParsedStatement, parse
from tqp.planner.syntax.change_clauses import Conflict, Insert
from tqp.result import Result
from tqp.statements.execution import Execution
from tqp.statements.pieces import Piece, aliased, cast, others, places_by_name, places_of, row_ids

#: What SQL calls the rows that are to be inserted.
_NEW = "excluded"


def resolved(
    execution: Execution, clauses: Insert, conflict: Conflict, table: StoredTable, rows: Table
) -> tuple[StoredTable, StoredTable]:
    """The next version of the table, and its rows that were inserted or updated. Of rows with one key, the first counts."""
    keys = _keys(table, conflict)
    values = [each.value for each in conflict.assignments or ()]
    for part in (*values, conflict.condition):
        if part is not None:
            execution.refuse_subquery(part, "DO UPDATE SET")
    if ROW_ID not in table.hidden_names or lower_ascii(table.name) == _NEW:
        raise UnsupportedError(
            f'ON CONFLICT of a table "{_NEW}", or one with a column "{ROW_ID}", is not supported'
        )
    empty = StoredTable.empty(
        replace(table.definition, name=_NEW, temporary=True, generated=()), table.device
    )
    new = empty.with_rows(rows)
    new = new.with_kept(others(new, [_repeated(execution, new, key) for key in keys]))
    found = [_conflicting(execution, table, new, key) for key in keys]
    conflicts = any(len(rows_of_key) for rows_of_key in found)
    version, updated = table, np.empty(0, np.int64)
    if not conflict.ignores and conflicts:
        version, updated = _updated(execution, clauses, conflict, table, new, keys[0])
    if conflicts:
        new = new.with_kept(others(new, found))
    version = version.with_rows(_answer(execution, f"FROM {_NEW}", table, new)._table)
    told = np.concatenate([updated, np.arange(table.num_rows, version.num_rows)])
    return version, version.with_kept(told)


def _keys(table: StoredTable, conflict: Conflict) -> Sequence[UniqueKey]:
    """The keys that are looked at: of an update one."""
    keys = table.definition.unique_keys
    if conflict.columns is not None:
        places = places_of(table, conflict.columns)
        named = {table.definition.names[place] for place in places}
        keys = tuple(key for key in keys if set(key.columns) == named)[:1]
        if not keys:
            listed = ", ".join(name.text for name in conflict.columns)
            raise BindError(
                f'table "{table.name}" has no PRIMARY KEY or UNIQUE of ({listed})', conflict.columns[0].span
            )
    if not keys:
        raise BindError(
            f'table "{table.name}" has neither PRIMARY KEY nor UNIQUE, so that no row can conflict'
        )
    if len(keys) > 1 and not conflict.ignores:
        raise BindError(
            f'table "{table.name}" has several keys: ON CONFLICT (columns) DO UPDATE says of which one a row is updated'
        )
    return keys


def _answer(
    execution: Execution, query: ParsedStatement | str, table: StoredTable, new: StoredTable
) -> Result:
    parsed = parse(query) if isinstance(query, str) else query
    return execution.rows(parsed, execution.state.with_table(table).with_table(new))


def _repeated(execution: Execution, new: StoredTable, key: UniqueKey) -> Rows:
    """The rows whose key an earlier one has."""
    columns, number = in_quotes_joined(key.columns), in_quotes("%number")
    there = " AND ".join(f"{in_quotes(name)} IS NOT NULL" for name in key.columns)
    numbered = f"SELECT {ROW_ID} AS r, row_number() OVER (PARTITION BY {columns} ORDER BY {ROW_ID}) AS {number} FROM {_NEW}"
    return row_ids(
        _answer(execution, f"SELECT r FROM ({numbered} WHERE {there}) WHERE {number} > 1", new, new)
    )


def _conflicting(execution: Execution, table: StoredTable, new: StoredTable, key: UniqueKey) -> Rows:
    """The rows whose key is in the table."""
    text = f"SELECT {ROW_ID} FROM {_NEW} SEMI JOIN {table.place.in_quotes} USING ({in_quotes_joined(key.columns)})"
    return row_ids(_answer(execution, text, table, new))


def _updated(
    execution: Execution,
    clauses: Insert,
    conflict: Conflict,
    table: StoredTable,
    new: StoredTable,
    key: UniqueKey,
) -> tuple[StoredTable, Rows]:
    """The version with the rows that are updated, and which these are.

    The values are asked for in a subquery of the table alone, where a bare name is that of its column.
    """
    name = clauses.alias.text if clauses.alias is not None else table.name
    items: list[Piece] = []
    if conflict.assignments is None:
        places = [
            place
            for place in _given(execution, clauses, table)
            if table.definition.names[place] not in key.columns
        ]
        for place in places:
            items += [f", {_NEW}.{in_quotes(table.definition.names[place])} AS {in_quotes(f'%{place}')}"]
    else:
        places = places_of(table, [assignment.column for assignment in conflict.assignments])
        for place, assignment in zip(places, conflict.assignments, strict=True):
            items += [
                ", ",
                *cast(table.definition.columns[place], assignment.value),
                f"AS {in_quotes(f'%{place}')}",
            ]
    matches = " AND ".join(
        f"{in_quotes(name)}.{in_quotes(each)} = {_NEW}.{in_quotes(each)}" for each in key.columns
    )
    pieces = [f"SELECT u.* FROM {_NEW}, LATERAL (SELECT {in_quotes(name)}.{ROW_ID} AS r", *items]
    pieces += [f"FROM {aliased(table, clauses.alias)} WHERE {matches}"]
    if conflict.condition is not None:
        pieces += ["AND (", conflict.condition, ")"]
    found = _answer(execution, execution.command.query(*pieces, ") AS u"), table, new)
    rows = row_ids(found)
    order = np.argsort(rows)
    values = {
        place: table.chunk(place, column, order)
        for place, column in zip(places, found._table.columns[1:], strict=True)
    }
    return table.with_values(rows[order], values), rows[order]


def _given(execution: Execution, clauses: Insert, table: StoredTable) -> Sequence[int]:
    """The columns that the statement has values for."""
    if clauses.columns is not None:
        return places_of(table, clauses.columns)
    if clauses.by_name and clauses.query is not None:
        query = execution.command.query(clauses.query)
        names = execution.session.queries.describe(
            query, execution.state, execution.variables, execution.params
        ).names
        return places_by_name(table, names)
    return range(len(table.definition.columns))
