"""CREATE TABLE, CREATE VIEW and DROP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tqp.catalog.state import CatalogState
from tqp.core.definitions import ColumnDefinition, TableDefinition, UniqueKey
from tqp.core.errors import BindError, nearest
from tqp.core.keywords import in_quotes, lower_ascii
from tqp.data.sources.stored_tables import StoredTable, table_of_rows
from tqp.planner.catalog_protocol import View
from tqp.planner.parse import parse
from tqp.planner.syntax.clauses import ColumnClause, CreateTable, CreateView, Drop, KeyClause
from tqp.planner.syntax.definition_grammar import BUILT_IN_SCHEMAS
from tqp.planner.syntax.parts import Name
from tqp.result import Result
from tqp.statements.constraints import check_key_type
from tqp.statements.execution import Execution, counted, done, is_there, made
from tqp.statements.indexes import without_index
from tqp.statements.sequences import check_unused, tables_with


def create_table(execution: Execution) -> Result:
    """CREATE TABLE; with AS, how many rows it has."""
    clauses, session = execution.command.clauses, execution.session
    assert isinstance(clauses, CreateTable)
    with session.catalog.writing:
        if is_there(clauses, "table", execution.state.kind_of(clauses.name.text)):
            return made()
        if clauses.query is None:
            definition = _definition(execution, clauses)
            table = StoredTable.empty(definition, session.device)
        else:
            table = _table_of_query(execution, clauses)
        session.catalog.change(lambda state: state.with_table(table))
    return made() if clauses.query is None else counted(table.num_rows)


def _table_of_query(execution: Execution, clauses: CreateTable) -> StoredTable:
    assert clauses.query is not None
    query = execution.command.query(clauses.query)
    if not clauses.with_data:
        query = execution.command.query("SELECT * FROM (", clauses.query, ") LIMIT 0")
    answer = execution.rows(query, execution.state)
    names = _renamed(clauses.name, answer.columns, [column.name for column in clauses.columns])
    session, name, temporary = execution.session, clauses.name.text, clauses.temporary
    return table_of_rows(name, names, answer.types, answer._table, session.device, temporary=temporary)


def _renamed(name: Name, names: Sequence[str], given: Sequence[Name]) -> Sequence[str]:
    if len(given) > len(names):
        raise BindError(
            f'"{name.text}" has {len(names)} columns, and {len(given)} names are given', given[-1].span
        )
    return [*(each.text for each in given), *names[len(given) :]]


def _definition(execution: Execution, clauses: CreateTable) -> TableDefinition:
    """What CREATE TABLE declares. Raises BindError for what does not go together."""
    command = execution.command
    execution.refuse_parameters("a table")
    columns = tuple(column_definition(execution, column) for column in clauses.columns)
    for number, column in enumerate(clauses.columns):
        if lower_ascii(column.name.text) in (lower_ascii(each.name) for each in columns[:number]):
            raise BindError(f'the table has two columns "{column.name.text}"', column.name.span)
    checks = tuple(map(command.source, clauses.checks))
    definition = TableDefinition(clauses.name.text, columns, (), checks, clauses.temporary)
    definition = with_keys(definition, clauses.keys)
    table = StoredTable.empty(definition, execution.session.device)
    for check in clauses.checks:
        query = command.query("SELECT 1 FROM", in_quotes(definition.name), "WHERE", check)
        execution.session.queries.types(query, execution.state.with_table(table))
    return definition


def column_definition(execution: Execution, clause: ColumnClause) -> ColumnDefinition:
    """A column as it is declared. Raises what a default raises that cannot be computed."""
    command = execution.command
    assert clause.type is not None
    data_type = execution.type_of(clause.type)
    if clause.default is None:
        return ColumnDefinition(clause.name.text, data_type, clause.nullable)
    query = command.query("SELECT CAST((", clause.default, f") AS {data_type})")
    execution.session.queries.types(query, execution.state)
    return ColumnDefinition(clause.name.text, data_type, clause.nullable, command.source(clause.default))


def with_keys(definition: TableDefinition, clauses: Sequence[KeyClause]) -> TableDefinition:
    """The definition with more keys; a column of the PRIMARY KEY is never NULL. Raises BindError for what can be no key."""
    keys = _keys(definition, clauses)
    primary = {name for key in keys if key.is_primary for name in key.columns}
    columns = tuple(
        replace(column, nullable=column.nullable and column.name not in primary)
        for column in definition.columns
    )
    return replace(definition, columns=columns, keys=keys)


def _keys(definition: TableDefinition, clauses: Sequence[KeyClause]) -> tuple[UniqueKey, ...]:
    found = [*definition.keys]
    for clause in clauses:
        if clause.is_primary and any(key.is_primary for key in found):
            raise BindError("a table has one PRIMARY KEY", clause.columns[0].span)
        places = [definition.place_of(name.text, name.span) for name in clause.columns]
        for number, place in enumerate(places):
            if place in places[:number]:
                name = clause.columns[number]
                raise BindError(f'the column "{name.text}" stands twice in one key', name.span)
            check_key_type(definition.columns[place], clause.columns[number].span)
        found.append(UniqueKey(tuple(definition.names[place] for place in places), clause.is_primary))
    return tuple(found)


def create_view(execution: Execution) -> Result:
    """CREATE VIEW: its query is bound once now, so that what can never be read is an error."""
    clauses, command = execution.command.clauses, execution.command
    assert isinstance(clauses, CreateView)
    execution.refuse_parameters("a view")
    with execution.session.catalog.writing:
        if is_there(clauses, "view", execution.state.kind_of(clauses.name.text)):
            return made()
        view = View(
            clauses.name.text,
            parse(command.source(clauses.query)),
            tuple(name.text for name in clauses.columns),
            clauses.temporary,
        )
        names = execution.session.queries.describe(
            command.query(clauses.query), execution.state, execution.variables
        ).names
        _renamed(clauses.name, names, clauses.columns)
        execution.session.catalog.change(lambda state: state.with_view(view))
    return made()


def drop(execution: Execution) -> Result:
    """DROP of what CREATE makes."""
    clauses = execution.command.clauses
    assert isinstance(clauses, Drop)
    name = clauses.name

    def next_state(state: CatalogState) -> CatalogState:
        if clauses.kind == "macro":
            if lower_ascii(name.text) in state.macros or clauses.if_exists:
                return state.without_macro(name.text)
            known = [macro.name for macro in state.macros.values()]
            raise BindError(f'there is no macro "{name.text}"{nearest(name.text, known)}', name.span)
        if clauses.kind == "type":
            if lower_ascii(name.text) in state.types or clauses.if_exists:
                return state.without_type(name.text)
            raise BindError(f'there is no type "{name.text}"{nearest(name.text, state.types)}', name.span)
        if clauses.kind == "schema":
            return _without_schema(state, clauses)
        if clauses.kind == "index":
            return without_index(state, clauses)
        if clauses.kind == "sequence":
            return _without_sequence(execution, state, clauses)
        found = state.kind_of(name.text)
        if found is None and clauses.if_exists:
            return state
        if found is None:
            raise BindError(
                f'there is no {clauses.kind} "{name.text}"{nearest(name.text, state.names())}', name.span
            )
        if found != clauses.kind:
            raise BindError(f'"{name.text}" is a {found}; DROP {found.upper()} drops it', name.span)
        return state.without(name.text)

    execution.session.catalog.change(next_state)
    return done()


def _without_schema(state: CatalogState, clauses: Drop) -> CatalogState:
    """The state as it is: there are no schemas but those that nobody drops."""
    name = clauses.name
    if lower_ascii(name.text) in BUILT_IN_SCHEMAS:
        raise BindError(f'the schema "{name.text}" cannot be dropped', name.span)
    if not clauses.if_exists:
        raise BindError(f'there is no schema "{name.text}"', name.span)
    return state


def _without_sequence(execution: Execution, state: CatalogState, clauses: Drop) -> CatalogState:
    """With CASCADE also without the tables that draw from it."""
    name = clauses.name
    if lower_ascii(name.text) not in state.sequences:
        if clauses.if_exists:
            return state
        known = [each.definition.name for each in state.sequences.values()]
        raise BindError(f'there is no sequence "{name.text}"{nearest(name.text, known)}', name.span)
    if not clauses.cascades:
        check_unused(execution, state, name)
    for table in tables_with(execution, state, name.text):
        state = state.without(table.name)
    return state.without_sequence(name.text)
