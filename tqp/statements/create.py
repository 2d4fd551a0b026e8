"""CREATE TABLE and CREATE VIEW."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tqp.core.datatypes import DataType
from tqp.core.definitions import ColumnDefinition, GeneratedColumn, TableDefinition, UniqueKey
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import in_quotes, in_quotes_joined, lower_ascii
from tqp.core.names import ObjectName
from tqp.data.sources.stored_tables import StoredTable, table_of_rows
from tqp.planner.catalog_protocol import View
from tqp.planner.parse import parse
from tqp.planner.syntax.clauses import ColumnClause, CreateTable, CreateView, KeyClause
from tqp.planner.syntax.parts import Name, Part
from tqp.result import Result
from tqp.statements.constraints import check_key_type
from tqp.statements.execution import Execution, counted, is_there, made
from tqp.statements.foreign_keys import check_unreferred, with_foreign_keys
from tqp.statements.sequences import with_schemas


def create_table(execution: Execution) -> Result:
    """CREATE TABLE; with AS, how many rows it has."""
    clauses, session = execution.command.clauses, execution.session
    assert isinstance(clauses, CreateTable)
    with session.catalog.writing:
        schema = execution.schema_for(clauses.name, clauses.temporary)
        place = ObjectName.of(clauses.name.text, schema, clauses.temporary)
        definition = _definition(execution, clauses, schema) if clauses.query is None else None
        if is_there(clauses, "table", execution.state.kind_at(place)):
            if clauses.query is not None:
                query = execution.command.query(clauses.query)
                session.queries.describe(query, execution.state, execution.variables, execution.params)
            return made()
        check_unreferred(execution.state, place, clauses.name.span, "replaced")
        if definition is not None:
            table = StoredTable.empty(definition, session.device)
        else:
            table = _table_of_query(execution, clauses, schema)
        session.catalog.change(lambda state: state.with_table(table))
    return made() if clauses.query is None else counted(table.num_rows)


def _table_of_query(execution: Execution, clauses: CreateTable, schema: str) -> StoredTable:
    assert clauses.query is not None
    query = execution.command.query(clauses.query)
    if not clauses.with_data:
        query = execution.command.query("SELECT * FROM (", clauses.query, ") LIMIT 0")
    answer = execution.rows(query, execution.state)
    names = _renamed(clauses.name, answer.columns, [column.name for column in clauses.columns])
    return table_of_rows(
        clauses.name.text,
        names,
        answer.types,
        answer._table,
        execution.session.device,
        temporary=clauses.temporary,
        schema=schema,
    )


def _renamed(name: Name, names: Sequence[str], given: Sequence[Name]) -> Sequence[str]:
    if len(given) > len(names):
        raise BindError(
            f'"{name.text}" has {len(names)} columns, and {len(given)} names are given', given[-1].span
        )
    return [*(each.text for each in given), *names[len(given) :]]


def _definition(execution: Execution, clauses: CreateTable, schema: str) -> TableDefinition:
    """What CREATE TABLE declares. Raises BindError for what does not go together."""
    command = execution.command
    execution.refuse_parameters("a table")
    stored = [column for column in clauses.columns if column.generated is None]
    if not stored:
        raise BindError("a table has at least one column that is not generated", clauses.name.span)
    columns = tuple(column_definition(execution, column, schema) for column in stored)
    for number, column in enumerate(clauses.columns):
        if lower_ascii(column.name.text) in (
            lower_ascii(each.name.text) for each in clauses.columns[:number]
        ):
            raise BindError(f'the table has two columns "{column.name.text}"', column.name.span)
    checks = tuple(map(command.source, clauses.checks))
    definition = TableDefinition(clauses.name.text, columns, (), checks, clauses.temporary, schema)
    definition = with_keys(definition, clauses.keys)
    definition = with_foreign_keys(execution, definition, clauses.foreign_keys)
    definition = _with_generated(execution, clauses, definition)
    table = StoredTable.empty(definition, execution.session.device)
    for check in clauses.checks:
        execution.refuse_subquery(check, "CHECK")
        query = command.query("SELECT 1 FROM", definition.place.in_quotes, "WHERE", check)
        execution.session.queries.types(query, execution.state.with_table(table))
    return definition


def _with_generated(
    execution: Execution, clauses: CreateTable, definition: TableDefinition
) -> TableDefinition:
    """With the columns that are computed. Raises BindError for what cannot be computed of the others row by row."""
    command, queries = execution.command, execution.session.queries
    state = execution.state.with_table(StoredTable.empty(definition, execution.session.device))
    computed, found = definition.place.in_quotes, []
    for place, each in _in_order(execution, clauses):
        assert each.generated is not None
        source = f'{computed} AS "%row"'  # expressions name columns, not the table
        span = command.span(each.generated)
        execution.refuse_subquery(each.generated, "a generated column")
        queries.types(command.query("SELECT 1 FROM", source, "WHERE (", each.generated, ") IS NULL"), state)
        query = command.query("SELECT (", each.generated, ") FROM", source)
        if queries.is_random(query, state):
            raise UnsupportedError("a generated column of random numbers is not supported", span)
        (data_type,) = queries.types(query, state)
        if each.type is not None:
            data_type = execution.type_of(each.type)
        column = ColumnDefinition(each.name.text, data_type)
        found.append(GeneratedColumn(place, column, command.source(each.generated)))
        value = f"CAST(({found[-1].expression}) AS {data_type}) AS {in_quotes(column.name)}"
        computed = f"(SELECT *, {value} FROM {source})"
    return replace(definition, generated=tuple(found))


def _in_order(execution: Execution, clauses: CreateTable) -> Iterator[tuple[int, ColumnClause]]:
    """The generated columns and their places, each after those that it reads. Raises BindError where there is no such order."""
    tokens = execution.command.tokens
    left = {
        lower_ascii(each.name.text): (place, each)
        for place, each in enumerate(clauses.columns)
        if each.generated is not None
    }
    reads = {
        name: {
            lower_ascii(tokens.name(index))
            for index in range(each.generated.start, each.generated.stop)
            if tokens.kinds[index + 1] != "("  # not a function
        }
        for name, (_, each) in left.items()
        if each.generated is not None
    }
    while left:
        ready = [name for name in left if reads[name].isdisjoint(left)]
        if not ready:
            _, each = next(iter(left.values()))
            raise BindError(f'the generated column "{each.name.text}" is computed of itself', each.name.span)
        for name in ready:
            yield left.pop(name)


def column_definition(execution: Execution, clause: ColumnClause, schema: str) -> ColumnDefinition:
    """A column of a table in the schema as it is declared. Raises what a default raises that cannot be computed."""
    assert clause.type is not None
    data_type = execution.type_of(clause.type, clause.collation)
    if clause.default is None:
        return ColumnDefinition(clause.name.text, data_type, clause.nullable)
    return ColumnDefinition(
        clause.name.text,
        data_type,
        clause.nullable,
        default_text(execution, clause.default, data_type, schema),
    )


def default_text(execution: Execution, default: Part, data_type: DataType, schema: str) -> str:
    """The SQL of a default. Raises what it raises if it cannot be computed."""
    execution.refuse_subquery(default, "DEFAULT")
    query = execution.command.query("SELECT CAST((", default, f") AS {data_type})")
    execution.session.queries.types(query, execution.state)
    return with_schemas(execution.command.source(default), execution.state, schema)


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
        schema = execution.schema_for(clauses.name, clauses.temporary)
        place = ObjectName.of(clauses.name.text, schema, clauses.temporary)
        if is_there(clauses, "view", execution.state.kind_at(place)):
            return made()
        query, text = command.query(clauses.query), command.source(clauses.query)
        if clauses.recursive:
            name, columns = (
                in_quotes(clauses.name.text),
                in_quotes_joined(each.text for each in clauses.columns),
            )
            text = f"WITH RECURSIVE {name}({columns}) AS ({text}) SELECT {columns} FROM {name}"
            query = parse(text)
        view = View(
            clauses.name.text,
            parse(text),
            tuple(name.text for name in clauses.columns),
            clauses.temporary,
            schema,
        )
        state = execution.state.with_path((schema, *execution.state.path))  # as the view looks for names
        names = execution.session.queries.describe(query, state, execution.variables).names
        _renamed(clauses.name, names, clauses.columns)
        execution.session.catalog.change(lambda state: state.with_view(view))
    return made()
