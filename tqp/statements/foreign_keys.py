"""FOREIGN KEY: declared by CREATE TABLE, and kept by every version of the tables on both of its sides.

A statement is judged by what it leaves: rows may refer to rows that it makes, and to those of their own table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tqp.catalog.state import CatalogState
from tqp.core.definitions import ForeignKey, TableDefinition
from tqp.core.errors import BindError, ConstraintError
from tqp.core.keywords import in_quotes
from tqp.core.names import ObjectName
from tqp.data.sources.stored_tables import StoredTable
from tqp.planner.parse import Span
from tqp.planner.syntax.clauses import ForeignKeyClause
from tqp.planner.syntax.parts import Name
from tqp.statements.execution import Execution

#: What SQL calls the rows that are new.
_NEW = "%new"


def with_foreign_keys(
    execution: Execution, definition: TableDefinition, clauses: Sequence[ForeignKeyClause]
) -> TableDefinition:
    """The definition with these; its own keys are declared already. Raises BindError for what cannot be referred to."""
    return replace(
        definition, foreign_keys=tuple(_foreign_key(execution, definition, each) for each in clauses)
    )


def _foreign_key(execution: Execution, definition: TableDefinition, clause: ForeignKeyClause) -> ForeignKey:
    referred = _referred(execution.state, definition, clause.table)
    places = [definition.place_of(name.text, name.span) for name in clause.columns]
    if clause.referenced:
        others = [referred.place_of(name.text, name.span) for name in clause.referenced]
    else:
        primary = next((key for key in referred.keys if key.is_primary), None)
        if primary is None:
            raise BindError(f'table "{referred.name}" has no PRIMARY KEY to refer to', clause.table.span)
        others = [referred.place_of(name) for name in primary.columns]
    if len(places) != len(others):
        raise BindError(
            f"a foreign key of {len(places)} columns cannot refer to a key of {len(others)}",
            clause.columns[0].span,
        )
    names = tuple(referred.names[place] for place in others)
    if not any(sorted(key.columns) == sorted(names) for key in referred.keys):
        listed = ", ".join(names)
        raise BindError(
            f'table "{referred.name}" has no PRIMARY KEY or UNIQUE of ({listed}) to refer to',
            clause.table.span,
        )
    for name, place, other in zip(clause.columns, places, others, strict=True):
        own, its = definition.columns[place], referred.columns[other]
        if own.data_type != its.data_type:
            raise BindError(
                f'the column "{own.name}" is of type {own.data_type}, and the column "{its.name}" that it refers to of type {its.data_type}',
                name.span,
            )
    columns = tuple(definition.names[place] for place in places)
    return ForeignKey(columns, referred.name, referred.schema, referred.temporary, names)


def _referred(state: CatalogState, definition: TableDefinition, name: Name) -> TableDefinition:
    """The table that a foreign key refers to, which stands in the schema of its own."""
    own = definition.place
    schemas = state.schemas_named(name.qualifiers, name.span) or (own.schema,)
    if own.schema not in schemas:
        raise BindError("a foreign key refers to a table of its own schema", name.span)
    place = ObjectName.of(name.text)._replace(schema=own.schema)
    if place == own:
        return definition
    table = state.tables.get(place)
    if isinstance(table, StoredTable):
        return table.definition
    kind = state.kind_at(place)
    if kind is None:
        raise state.no_such(
            "table", name, (table.name for at, table in state.tables.items() if at.schema == own.schema)
        )
    raise BindError(
        f'"{name.text}" is no table made by CREATE TABLE, to which a foreign key refers', name.span
    )


def referring(state: CatalogState, place: ObjectName) -> Iterator[tuple[StoredTable, ForeignKey]]:
    """The foreign keys that refer to a table, each with its own."""
    for table in state.tables.values():
        if isinstance(table, StoredTable):
            yield from ((table, key) for key in table.definition.foreign_keys if key.place == place)


def columns_in_foreign_keys(state: CatalogState, definition: TableDefinition) -> set[str]:
    """The columns of a table that refer to others, or are referred to."""
    own = {name for key in definition.foreign_keys for name in key.columns}
    return own | {name for _, key in referring(state, definition.place) for name in key.referenced}


def check_unreferred(state: CatalogState, place: ObjectName, span: Span | None, what: str) -> None:
    """Raises BindError where other tables refer to one that is to go: `what` says how."""
    for table, _ in referring(state, place):
        if table.place != place:
            raise BindError(
                f'a foreign key of table "{table.name}" refers to "{state.tables[place].name}", which cannot be {what} before that',
                span,
            )


def check_referring(
    execution: Execution, version: StoredTable, changed: StoredTable, names: Sequence[str]
) -> None:
    """Raises ConstraintError where a new row refers to a row that is not there. `names`: of the columns that are new."""
    for key in version.definition.foreign_keys:
        if any(name in names for name in key.columns):
            definition = replace(changed.definition, name=_NEW, temporary=True, generated=())
            new = changed.defined(definition)
            found = _without_partner(
                execution, execution.state.with_table(version).with_table(new), new.place, key
            )
            if found is not None:
                shown = _shown(key.referenced, found)
                raise ConstraintError(
                    f'a new row of table "{version.name}" refers to the key "{shown}", which table "{key.table}" does not have'
                )


def check_referred(execution: Execution, version: StoredTable, places: Sequence[int] | None = None) -> None:
    """Raises ConstraintError where a version lacks keys that rows refer to. `places`: of the columns that changed; None: rows went."""
    names = None if places is None else {version.definition.names[place] for place in places}
    state = execution.state.with_table(version)
    for table, key in referring(state, version.place):
        if names is not None and names.isdisjoint(key.referenced):
            continue
        found = _without_partner(execution, state, table.place, key)
        if found is not None:
            shown = _shown(key.columns, found)
            raise ConstraintError(
                f'the key "{shown}" of table "{table.name}" still refers to table "{key.table}"'
            )


def _without_partner(
    execution: Execution, state: CatalogState, place: ObjectName, key: ForeignKey
) -> Sequence[object] | None:
    """The values of a row that refers to none that is there; None where there is no such row."""
    columns = [f"o.{in_quotes(name)}" for name in key.columns]
    pairs = zip(columns, key.referenced, strict=True)
    matches = " AND ".join(f"{column} = r.{in_quotes(name)}" for column, name in pairs)
    there = " AND ".join(f"{column} IS NOT NULL" for column in columns)
    text = (
        f"SELECT {', '.join(columns)} FROM {place.in_quotes} AS o ANTI JOIN {key.place.in_quotes} AS r ON {matches}"
        f" WHERE {there} LIMIT 1"
    )
    return execution.rows_of(text, state).fetchone()


def _shown(names: Sequence[str], values: Sequence[object]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True))
