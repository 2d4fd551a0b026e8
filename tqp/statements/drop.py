"""DROP of what CREATE makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tqp.catalog.state import CatalogState
from tqp.core.errors import BindError
from tqp.core.names import MAIN, SYSTEM_SCHEMAS, ObjectName
from tqp.planner.syntax.clauses import Drop
from tqp.result import Result
from tqp.statements.execution import Execution, done
from tqp.statements.foreign_keys import check_unreferred
from tqp.statements.indexes import without_index
from tqp.statements.schemas import schema_of
from tqp.statements.sequences import check_unused, tables_with


def drop(execution: Execution) -> Result:
    """Takes it out of the catalog. Raises BindError where it is not there, unless IF EXISTS is said."""
    clauses = execution.command.clauses
    assert isinstance(clauses, Drop)

    def next_state(state: CatalogState) -> CatalogState:
        if clauses.kind == "macro":
            place = _place(state, clauses, state.macros, (macro.name for macro in state.macros.values()))
            return state if place is None else state.without_macro(place)
        if clauses.kind == "type":
            place = _place(state, clauses, state.types, (place.name for place in state.types))
            return state if place is None else state.without_type(place)
        if clauses.kind == "sequence":
            return _without_sequence(execution, state, clauses)
        if clauses.kind == "schema":
            return _without_schema(state, clauses)
        if clauses.kind == "index":
            return without_index(state, clauses)
        place = _place(state, clauses, {**state.tables, **state.views}, state.names())
        found = state.kind_at(place)
        if place is None or found is None:
            return state
        if found != clauses.kind:
            name = clauses.name
            raise BindError(f'"{name.text}" is a {found}; DROP {found.upper()} drops it', name.span)
        check_unreferred(state, place, clauses.name.span, "dropped")
        return state.without(place)

    execution.session.catalog.change(next_state)
    return done()


def _place(
    state: CatalogState, clauses: Drop, items: Mapping[ObjectName, object], known: Iterable[str]
) -> ObjectName | None:
    """Where it stands among the items; None where there is none and IF EXISTS is said. Raises BindError otherwise."""
    try:
        place = state.found(state.looked_up(clauses.name), items)
    except BindError:
        if clauses.if_exists:
            return None
        raise
    if place is None and not clauses.if_exists:
        raise state.no_such(clauses.kind, clauses.name, known)
    return place


def _without_schema(state: CatalogState, clauses: Drop) -> CatalogState:
    """With CASCADE also without all that stands in it."""
    name = clauses.name
    schema = schema_of(name)
    if schema == MAIN or schema in SYSTEM_SCHEMAS:
        raise BindError(f'the schema "{name.text}" cannot be dropped', name.span)
    if schema not in state.schemas:
        if clauses.if_exists:
            return state
        raise state.no_such("schema", name, state.schemas.values())
    if not clauses.cascades and not state.is_empty(schema):
        raise BindError(
            f'the schema "{name.text}" is not empty; DROP SCHEMA ... CASCADE drops what is in it', name.span
        )
    return state.without_schema(schema)


def _without_sequence(execution: Execution, state: CatalogState, clauses: Drop) -> CatalogState:
    """With CASCADE also without the tables that draw from it."""
    known = (each.definition.name for each in state.sequences.values())
    place = _place(state, clauses, state.sequences, known)
    if place is None:
        return state
    if not clauses.cascades:
        check_unused(execution, state, place, clauses.name.span)
    for table in tables_with(execution, state, place):
        check_unreferred(state, table.place, clauses.name.span, "dropped")
        state = state.without(table.place)
    return state.without_sequence(place)
