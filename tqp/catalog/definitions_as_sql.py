"""The statements that make what a catalog holds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from tqp.catalog.sequences import Sequence
from tqp.catalog.state import CatalogState, Kind
from tqp.core.datatypes import DataType
from tqp.core.definitions import (
    ColumnDefinition,
    ForeignKey,
    IndexDefinition,
    TableDefinition,
    UniqueKey,
)
from tqp.core.keywords import quoted, quoted_text
from tqp.core.names import MAIN, TEMPORARY, ObjectName, shown
from tqp.data.sources.stored_tables import StoredTable
from tqp.planner.catalog_protocol import Macro, MacroForm, View

_SELECT = "SELECT "


#: What a query reads of a kind, "macro" or "view", also by way of others.
NamesRead = Callable[[str, Kind], Collection[ObjectName]]


def schema_statements(state: CatalogState, names_read: NamesRead) -> Iterator[str]:
    """Of all that is not temporary and was made by statements, in an order in which nothing is read before it is made."""
    yield from (f"CREATE SCHEMA {quoted(name)};" for schema, name in state.schemas.items() if schema != MAIN)
    for place, data_type in state.types.items():
        if place.schema != TEMPORARY:
            yield create_type(shown(place.name, state.schemas[place.schema]), data_type)
    for sequence in state.sequences.values():
        if not sequence.definition.temporary:
            yield create_sequence(shown(sequence.definition.name, sequence.definition.schema), sequence)
    tables = [table.definition for table in kept_tables(state)]
    of_tables = {
        name for table in tables for query in _queries_of(table) for name in names_read(query, "macro")
    }
    macros = [macro for macro in state.macros.values() if not macro.temporary]
    yield from (create_macro(macro) for macro in macros if macro.place in of_tables)
    yield from map(create_table, tables)
    yield from (create_macro(macro) for macro in macros if macro.place not in of_tables)
    views = [view for view in state.views.values() if not view.temporary and not view.is_relation]
    # a view reads more views than those do that it reads
    yield from map(
        create_view, sorted(views, key=lambda view: len(names_read(f"FROM {view.place.in_quotes}", "view")))
    )
    for indexed, index in state.indexes():
        if not indexed.definition.temporary:
            yield create_index(indexed.definition, index)
            yield from _comment("INDEX", shown(index.name, indexed.definition.schema), index.comment)
    for table in tables:
        name = shown(table.name, table.schema)
        yield from _comment("TABLE", name, table.comment)
        for column in table.all_columns:
            yield from _comment("COLUMN", f"{name}.{quoted(column.name)}", column.comment)
    for view in views:
        name = shown(view.name, view.schema)
        yield from _comment("VIEW", name, view.comment)
        for column_name, comment in view.comments.items():
            yield from _comment("COLUMN", f"{name}.{quoted(column_name)}", comment)
    for macro in macros:
        kind = "MACRO TABLE" if macro.is_table else "MACRO"
        yield from _comment(kind, shown(macro.name, macro.schema), macro.comment)


def kept_tables(state: CatalogState) -> list[StoredTable]:
    """The tables that are not temporary; those that others refer to come before these."""
    stored = [table for table in state.tables.values() if isinstance(table, StoredTable)]
    left = {table.place: table for table in stored if not table.definition.temporary}
    found: list[StoredTable] = []
    while left:
        for place, table in left.items():
            keys = table.definition.foreign_keys
            if all(key.place == place or key.place not in left for key in keys):
                found.append(left.pop(place))
                break
    return found


def _comment(kind: str, name: str, comment: str | None) -> Iterator[str]:
    if comment is not None:
        yield f"COMMENT ON {kind} {name} IS {quoted_text(comment)};"


def _queries_of(definition: TableDefinition) -> Iterator[str]:
    """Queries of the defaults, checks and generated columns of a table."""
    yield from (f"SELECT {each.default}" for each in definition.columns if each.default is not None)
    conditions = (*definition.checks, *(each.expression for each in definition.generated))
    yield from (f"SELECT {each} FROM {definition.place.in_quotes}" for each in conditions)


def create_table(definition: TableDefinition) -> str:
    """CREATE TABLE; keys of one column stand beside it."""
    generated = {each.place: each for each in definition.generated}
    parts = [
        f"{quoted(column.name)} {column.data_type} GENERATED ALWAYS AS({generated[place].expression})"
        if place in generated
        else _column(column, definition)
        for place, column in enumerate(definition.all_columns)
    ]
    parts += [foreign_key_text(key) for key in definition.foreign_keys]
    parts += [f"CHECK(({check}))" for check in definition.checks]
    parts += [key_text(key) for key in definition.keys if len(key.columns) > 1]
    kind = "TEMP TABLE" if definition.temporary else "TABLE"
    return f"CREATE {kind} {shown(definition.name, definition.schema)}({', '.join(parts)});"


def _column(column: ColumnDefinition, definition: TableDefinition) -> str:
    parts = [quoted(column.name), column.data_type.declared]
    if column.default is not None:
        parts.append(f"DEFAULT({column.default})")
    keys = [key for key in definition.keys if column.name in key.columns]
    if not column.nullable and not any(key.is_primary for key in keys):
        parts.append("NOT NULL")
    parts += ["PRIMARY KEY" if key.is_primary else "UNIQUE" for key in keys if len(key.columns) == 1]
    return " ".join(parts)


def key_text(key: UniqueKey) -> str:
    """A key as a constraint of its table."""
    return f"{'PRIMARY KEY' if key.is_primary else 'UNIQUE'}({', '.join(map(quoted, key.columns))})"


def foreign_key_text(key: ForeignKey) -> str:
    """A foreign key as a constraint of its table."""
    columns, referenced = (", ".join(map(quoted, names)) for names in (key.columns, key.referenced))
    return f"FOREIGN KEY ({columns}) REFERENCES {shown(key.table, key.schema)}({referenced})"


def create_sequence(name: str, sequence: Sequence) -> str:
    """CREATE SEQUENCE, of one that begins with the number that would be drawn next. `name`: as SQL says it."""
    each = sequence.definition
    return (
        f"CREATE SEQUENCE {name} INCREMENT BY {each.increment} MINVALUE {each.minimum}"
        f" MAXVALUE {each.maximum} START {sequence.next} {'CYCLE' if each.cycles else 'NO CYCLE'};"
    )


def create_index(definition: TableDefinition, index: IndexDefinition) -> str:
    """CREATE INDEX, with expressions as they were written."""
    kind = "INDEX" if index.unique is None else "UNIQUE INDEX"
    return f"CREATE {kind} {quoted(index.name)} ON {shown(definition.name, definition.schema)}({', '.join(index.items)});"


def create_view(view: View) -> str:
    """CREATE VIEW, with the query as it was written."""
    kind = "TEMP VIEW" if view.temporary else "VIEW"
    columns = f" ({', '.join(map(quoted, view.columns))})" if view.columns else ""
    return f"CREATE {kind} {shown(view.name, view.schema)}{columns} AS {view.query.text};"


def create_type(name: str, data_type: DataType) -> str:
    """CREATE TYPE. `name`: as SQL says it."""
    return f"CREATE TYPE {name} AS {data_type};"


def create_macro(macro: Macro) -> str:
    """CREATE MACRO, with the bodies as they were written."""
    forms = []
    for form in macro.forms:
        parameters = [
            quoted(each)
            + (f" {form.types[each]}" if each in form.types else "")
            + (f" := {_expression(form.defaults[each].text)}" if each in form.defaults else "")
            for each in form.parameters
        ]
        table = "TABLE " if macro.is_table else ""
        forms.append(f"({', '.join(parameters)}) AS {table}{macro_body(macro, form)}")
    return f"CREATE MACRO {shown(macro.name, macro.schema)}{', '.join(forms)};"


def macro_body(macro: Macro, form: MacroForm) -> str:
    """The expression or query of a form of a macro."""
    text = form.body.text if macro.is_table else _expression(form.body.text)
    return f"({text})"


def _expression(text: str) -> str:
    """Of the query that puts an expression out, the expression."""
    assert text.startswith(_SELECT)
    return text[len(_SELECT) :]
