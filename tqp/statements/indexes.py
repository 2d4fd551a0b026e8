"""CREATE INDEX and DROP INDEX: tables are scanned, so that of an index only its name is kept, and that it is unique."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tqp.catalog.state import CatalogState
from tqp.core.definitions import IndexDefinition, UniqueKey
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii, quoted
from tqp.data.sources.stored_tables import StoredTable
from tqp.planner.syntax.clauses import CreateIndex, Drop
from tqp.planner.syntax.parts import Name, Part
from tqp.planner.syntax.words import COLUMN_NAMES
from tqp.result import Result
from tqp.statements.constraints import check_key_type, check_unique
from tqp.statements.execution import Execution, made


def create_index(execution: Execution) -> Result:
    """Notes the index with its table. A unique one is a constraint: raises ConstraintError where the rows break it."""
    clauses = execution.command.clauses
    assert isinstance(clauses, CreateIndex)
    execution.refuse_parameters("an index")
    with execution.session.catalog.writing:
        table = execution.state.stored_table(clauses.table)
        if _table_with(execution.state, clauses.name.text, (table.place.schema,)) is not None:
            if clauses.if_not_exists:
                return made()
            raise BindError(f'there is an index "{clauses.name.text}" already', clauses.name.span)
        columns = [_column(execution, table, item) for item in clauses.items]
        key = None
        if clauses.is_unique:
            if None in columns:
                raise UnsupportedError(
                    "a unique index of anything but columns is not supported", clauses.name.span
                )
            key = UniqueKey(tuple(dict.fromkeys(name for name in columns if name is not None)))
            check_unique(execution, table, key)
        items = tuple(
            f"({execution.command.source(item)})" if column is None else quoted(column)
            for item, column in zip(clauses.items, columns, strict=True)
        )
        index = IndexDefinition(clauses.name.text, items, key)
        definition = replace(table.definition, indexes=(*table.definition.indexes, index))
        execution.session.catalog.change(lambda state: state.with_table(table.defined(definition)))
    return made()


def _column(execution: Execution, table: StoredTable, item: Part) -> str | None:
    """The column that an item names; None of another expression, which is bound, so that what can never be computed is an error."""
    tokens = execution.command.tokens
    if item.stop == item.start + 1 and tokens.kinds[item.start] in COLUMN_NAMES:
        span = execution.command.span(item)
        place = table.definition.place_of(tokens.name(item.start), span)
        check_key_type(table.definition.columns[place], span)
        return table.definition.names[place]
    execution.refuse_subquery(item, "an index")
    query = execution.command.query("SELECT 1 FROM", table.place.in_quotes, "WHERE (", item, ") IS NULL")
    execution.session.queries.types(query, execution.state)
    return None


def _table_with(state: CatalogState, name: str, schemas: Sequence[str]) -> StoredTable | None:
    """The table of one of the schemas with the index of that name; None if there is none."""
    found = [table for table, index in state.indexes() if lower_ascii(index.name) == lower_ascii(name)]
    return next((table for schema in schemas for table in found if table.place.schema == schema), None)


def table_of_index(state: CatalogState, name: Name) -> StoredTable | None:
    """The table with the index that is named; None if there is none. Raises BindError for a schema that is none."""
    return _table_with(state, name.text, state.schemas_named(name.qualifiers, name.span) or state.searched())


def without_index(state: CatalogState, clauses: Drop) -> CatalogState:
    """The state without an index. Raises BindError if there is none of that name."""
    name = clauses.name
    try:
        table = table_of_index(state, name)
    except BindError:
        if clauses.if_exists:
            return state
        raise
    if table is None:
        if clauses.if_exists:
            return state
        raise state.no_such("index", name, (index.name for _, index in state.indexes()))
    left = tuple(
        index for index in table.definition.indexes if lower_ascii(index.name) != lower_ascii(name.text)
    )
    return state.with_table(table.defined(replace(table.definition, indexes=left)))
