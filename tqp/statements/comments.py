"""COMMENT ON what stands in a catalog."""

from __future__ import annotations

from dataclasses import replace

from tqp.catalog.state import CatalogState
from tqp.core.errors import BindError, nearest
from tqp.core.keywords import lower_ascii
from tqp.planner.parse import parse
from tqp.planner.syntax.clauses import Comment
from tqp.planner.syntax.parts import Name
from tqp.result import Result
from tqp.statements.execution import Execution, done
from tqp.statements.indexes import table_of_index


def comment(execution: Execution) -> Result:
    """Keeps a text with a table, view, column, macro or index, or takes it away. Raises BindError for what is none."""
    clauses, catalog = execution.command.clauses, execution.session.catalog
    assert isinstance(clauses, Comment)
    name, text = clauses.name, clauses.text
    with catalog.writing:
        state = execution.state
        if clauses.kind == "index":
            table = table_of_index(state, name)
            if table is None:
                raise state.no_such("index", name, (index.name for _, index in state.indexes()))
            indexes = tuple(
                replace(each, comment=text) if lower_ascii(each.name) == lower_ascii(name.text) else each
                for each in table.definition.indexes
            )
            changed = state.with_table(table.defined(replace(table.definition, indexes=indexes)))
        elif clauses.kind == "macro":
            place = state.found(state.looked_up(name), state.macros)
            if place is None:
                raise state.no_such("macro", name, (macro.name for macro in state.macros.values()))
            changed = state.with_macro(replace(state.macros[place], comment=text))
        else:
            changed = _on_table(execution, state, name, clauses.column, text)
        catalog.change(lambda _: changed)
    return done()


def _on_table(
    execution: Execution, state: CatalogState, name: Name, column: Name | None, text: str | None
) -> CatalogState:
    """With the comment on a table or view, or on a column of it."""
    place = state.place_of(name)
    if place is None or place in state.tables:
        table = state.stored_table(name)
        definition = table.definition
        if column is None:
            return state.with_table(table.defined(replace(definition, comment=text)))
        found = definition.column(column.text, column.span)
        return state.with_table(table.defined(definition.changed(found, replace(found, comment=text))))
    view = state.views[place]
    if column is None:
        return state.with_view(replace(view, comment=text))
    names = execution.session.queries.describe(parse(f"FROM {place.in_quotes}"), state).names
    if lower_ascii(column.text) not in map(lower_ascii, names):
        hint = nearest(column.text, names)
        raise BindError(f'view "{view.name}" has no column "{column.text}"{hint}', column.span)
    comments = {**view.comments, lower_ascii(column.text): text}
    return state.with_view(replace(view, comments=comments))
