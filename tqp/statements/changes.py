"""INSERT, UPDATE, DELETE and TRUNCATE: each asks one query, and makes the next version of a table of what that answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from tqp.core.datatypes import BIGINT, DataType
from tqp.core.keywords import in_quotes
from tqp.data.column import Column, Table
from tqp.data.sources.stored_tables import ROW_ID, StoredTable
from tqp.planner.parse import ParsedStatement
from tqp.planner.syntax.change_clauses import Delete, Insert, Update
from tqp.planner.syntax.parts import Name, Part
from tqp.result import Result
from tqp.statements.conflicts import resolved
from tqp.statements.constraints import check_constraints
from tqp.statements.execution import Execution, counted
from tqp.statements.foreign_keys import check_referred
from tqp.statements.pieces import (
    Piece,
    aliased,
    cast,
    check_row_ids,
    others,
    places_by_name,
    places_of,
    row_ids,
    told,
    wrong_count,
)
from tqp.statements.plain_rows import plain_rows


def insert(execution: Execution) -> Result:
    """INSERT: how many rows, or what RETURNING says of them."""
    clauses = execution.command.clauses
    assert isinstance(clauses, Insert)
    with execution.session.catalog.writing:
        table = execution.state.stored_table(clauses.table)
        rows = _new_rows(execution, clauses, table)
        if clauses.conflict is not None:
            version, new = resolved(execution, clauses, clauses.conflict, table, rows)
            check_referred(execution, version)
        else:
            version, new = table.with_rows(rows), _empty(table).with_rows(rows)
        return _replace(execution, version, new, clauses.returning, clauses.alias)


def insert_rows(execution: Execution, name: Name, columns: Sequence[Name] | None, source: Piece) -> Result:
    """Inserts what a query answers: how many rows."""
    with execution.session.catalog.writing:
        table = execution.state.stored_table(name)
        rows = _rows_of_query(execution, table, source, columns)
        return _replace(execution, table.with_rows(rows), _empty(table).with_rows(rows), None)


def update(execution: Execution) -> Result:
    """UPDATE: how many rows, or what RETURNING says of them as they are then."""
    clauses = execution.command.clauses
    assert isinstance(clauses, Update)
    with execution.session.catalog.writing:
        table = execution.state.stored_table(clauses.table)
        places = places_of(table, [assignment.column for assignment in clauses.assignments])
        items: list[Piece] = []
        for place, assignment in zip(places, clauses.assignments, strict=True):
            column = table.definition.columns[place]
            items += [", ", *cast(column, assignment.value)]
        found = execution.rows(_affected(execution, clauses, table, items), execution.state)
        rows, first = np.unique(row_ids(found), return_index=True)  # of several partners the first counts
        values = {
            place: table.chunk(place, column, first)
            for place, column in zip(places, found._table.columns[1:], strict=True)
        }
        version = table.with_values(rows, values)
        changed = version.with_kept(rows)
        check_referred(execution, version, places)
        return _replace(execution, version, changed, clauses.returning, clauses.alias, places)


def delete(execution: Execution) -> Result:
    """DELETE and TRUNCATE: how many rows, or what RETURNING says of them."""
    clauses = execution.command.clauses
    assert isinstance(clauses, Delete)
    with execution.session.catalog.writing:
        table = execution.state.stored_table(clauses.table)
        if clauses.condition is None and clauses.others is None:
            rows = np.arange(table.num_rows)
            version = _empty(table)
        else:
            found = execution.rows(_affected(execution, clauses, table, []), execution.state)
            rows = np.unique(row_ids(found))
            version = table.with_kept(others(table, [rows])) if len(rows) else table
        check_referred(execution, version)
        answer: Result = counted(len(rows))
        if clauses.returning is not None:
            places = {ROW_ID: Column(BIGINT, len(rows), torch.from_numpy(rows).to(table.device))}
            deleted = table.with_kept(rows).with_hidden(places)
            answer = told(execution, deleted, clauses.returning, clauses.alias)
        execution.session.catalog.change(lambda state: state.with_table(version))
        return answer


def _empty(table: StoredTable) -> StoredTable:
    return StoredTable.empty(table.definition, table.device)


def _replace(
    execution: Execution,
    version: StoredTable,
    new: StoredTable,
    returning: Part | None,
    alias: Name | None = None,
    places: Sequence[int] | None = None,
) -> Result:
    """The version in place of the one before, if its new rows may be so: how many these are, or what RETURNING says of them."""
    check_constraints(execution, version, new, places)
    answer: Result = counted(new.num_rows)
    if returning is not None:
        answer = told(execution, new.with_hidden({}), returning, alias)
    if new.num_rows:
        execution.session.catalog.change(lambda state: state.with_table(version))
    return answer


# the rows of INSERT


def _new_rows(execution: Execution, clauses: Insert, table: StoredTable) -> Table:
    definition = table.definition
    if clauses.query is not None:
        return _rows_of_query(execution, table, clauses.query, clauses.columns, clauses.by_name)
    if clauses.columns is None:
        places = list(range(len(definition.columns)))
    else:
        places = places_of(table, clauses.columns)
    for row in clauses.rows or ():
        if len(row) != len(places):
            raise wrong_count(table, clauses.columns, len(places), len(row))
    plain = plain_rows(execution, table, places, clauses.rows or ())
    if plain is not None:
        return plain._table
    pieces: list[Piece] = ["VALUES"]
    for number, row in enumerate(clauses.rows if clauses.rows is not None else ((),)):
        given = dict(zip(places, row))
        pieces.append(", (" if number else "(")
        for place, column in enumerate(definition.columns):
            value = given.get(place)
            is_default = value is None or execution.command.source(value).upper() == "DEFAULT"
            pieces += [", "] * bool(place) + cast(column, None if is_default else value)
        pieces.append(")")
    return execution.rows(execution.command.query(*pieces), execution.state)._table


def _rows_of_query(
    execution: Execution,
    table: StoredTable,
    query: Piece,
    names: Sequence[Name] | None,
    by_name: bool = False,
) -> Table:
    """What a query answers, as rows of the table: columns that are neither among the names nor by name get their defaults."""
    columns = table.definition.columns
    listed = None if names is None else places_of(table, names)
    with_default = [place for place, column in enumerate(columns) if column.default is not None]
    if listed is None and not by_name:
        with_default = []  # all columns are given

    def arranged(outputs: Sequence[str]) -> list[tuple[int | None, DataType]]:
        given = len(outputs) - len(with_default)
        if by_name:
            places = places_by_name(table, outputs[:given])
        else:
            places = list(range(len(columns))) if listed is None else listed
            if len(places) != given:
                raise wrong_count(table, names, len(places), given)
        defaults = {place: given + number for number, place in enumerate(with_default)}
        sources = {**defaults, **{place: number for number, place in enumerate(places)}}
        return [(sources.get(place), column.data_type) for place, column in enumerate(columns)]

    if not with_default:
        parsed = execution.command.query(query)
    else:
        pieces: list[Piece] = ["SELECT *"]
        for place in with_default:
            pieces += [", ", *cast(columns[place], None)]
        parsed = execution.command.query(*pieces, "FROM (", query, ")")
    return execution.rows(parsed, execution.state, arranged)._table


# the rows of UPDATE and DELETE


def _affected(
    execution: Execution, clauses: Update | Delete, table: StoredTable, items: Sequence[Piece]
) -> ParsedStatement:
    """The query for the places of the rows, and what else is asked of them."""
    check_row_ids(table, "UPDATE and DELETE of")
    name = clauses.alias.text if clauses.alias is not None else table.name
    pieces: list[Piece] = [
        f"SELECT {in_quotes(name)}.{ROW_ID}",
        *items,
        f"FROM {aliased(table, clauses.alias)}",
    ]
    if clauses.others is not None:
        pieces += [", ", clauses.others]
    if clauses.condition is not None:
        pieces += ["WHERE", clauses.condition]
    return execution.command.query(*pieces, of_rows=True)
