"""ALTER TABLE and ALTER VIEW."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from tqp.core.datatypes import DataType
from tqp.core.definitions import ColumnDefinition, GeneratedColumn, TableDefinition
from tqp.core.errors import BindError, ExecutionError, UnsupportedError
from tqp.core.keywords import in_quotes, lower_ascii
from tqp.data.column import Column
from tqp.data.sources.stored_tables import StoredTable
from tqp.planner.syntax.clauses import (
    AddColumn,
    AddKey,
    Alter,
    Alteration,
    ChangeDefault,
    ChangeNullable,
    ChangeType,
    ColumnClause,
    DropColumn,
    KeyClause,
    RenameColumn,
    RenameTable,
)
from tqp.planner.syntax.parts import Name, Part
from tqp.planner.syntax.tokens import tokenize
from tqp.result import Result
from tqp.statements.alter_fields import alter_field
from tqp.statements.constraints import check_constraints
from tqp.statements.create import column_definition, default_text, with_keys
from tqp.statements.execution import Execution, done
from tqp.statements.foreign_keys import check_unreferred, columns_in_foreign_keys


def alter(execution: Execution) -> Result:
    """Makes the next version of a table, or gives a table or view another name."""
    clauses, catalog = execution.command.clauses, execution.session.catalog
    assert isinstance(clauses, Alter)
    execution.refuse_parameters("ALTER")
    with catalog.writing:
        if clauses.if_exists and not _is_there(execution, clauses.name):
            return done()
        if isinstance(clauses.alteration, RenameTable):
            _rename(execution, clauses, clauses.alteration.name)
            return done()
        table = execution.state.stored_table(clauses.name)
        changed = _altered(execution, table, clauses.alteration)
        if changed is not table:
            _check_without_indexes(table, clauses)
        catalog.change(lambda state: state.with_table(changed))
    return done()


def _altered(execution: Execution, table: StoredTable, alteration: Alteration) -> StoredTable:
    match alteration:
        case (
            AddColumn(column=ColumnClause(name=Name(qualifiers=(_, *_))))
            | DropColumn(column=Name(qualifiers=(_, *_)))
            | RenameColumn(column=Name(qualifiers=(_, *_)))
        ):
            return alter_field(execution, table, alteration)
    return _ALTERATIONS[type(alteration)](execution, table, alteration)


def _rename(execution: Execution, clauses: Alter, name: Name) -> None:
    catalog, state = execution.session.catalog, execution.state
    old = state.place_of(clauses.name)
    new = None if old is None else old._replace(name=lower_ascii(name.text))
    if new != old and state.kind_at(new) is not None:
        raise BindError(f'there is a table or view "{name.text}" already', name.span)
    view = None if old is None else state.views.get(old)
    if view is not None:
        renamed_view = dataclasses.replace(view, name=name.text)
        catalog.change(lambda state: state.without(view.place).with_view(renamed_view))
        return
    table = state.stored_table(clauses.name)
    if clauses.kind == "view":
        raise BindError(f'"{table.name}" is a table; ALTER TABLE renames it', clauses.name.span)
    _check_without_indexes(table, clauses)
    check_unreferred(state, table.place, clauses.name.span, "renamed")
    definition = table.definition
    checks = tuple(_renamed_in(check, table.name, name.text, is_table=True) for check in definition.checks)
    foreign_keys = tuple(
        dataclasses.replace(key, table=name.text) if key.place == table.place else key
        for key in definition.foreign_keys
    )
    renamed = table.defined(
        dataclasses.replace(definition, name=name.text, checks=checks, foreign_keys=foreign_keys)
    )
    catalog.change(lambda state: state.without(table.place).with_table(renamed))


def _is_there(execution: Execution, name: Name) -> bool:
    try:
        return execution.state.place_of(name) is not None
    except BindError:  # its schema is none
        return False


def _check_without_indexes(table: StoredTable, clauses: Alter) -> None:
    """Raises BindError where indexes depend on what would change, as in DuckDB."""
    indexes = table.definition.indexes
    if indexes and not isinstance(clauses.alteration, AddColumn | ChangeDefault):
        raise BindError(
            f'table "{table.name}" has an index, "{indexes[0].name}"; DROP INDEX comes before this change',
            clauses.name.span,
        )


def _rename_column(execution: Execution, table: StoredTable, alteration: RenameColumn) -> StoredTable:
    definition, name = table.definition, alteration.name
    column = definition.column(alteration.column.text, alteration.column.span)
    old = column.name
    _check_unreferred_column(execution, definition, old, alteration.column, "renamed")
    if definition.has_column(name.text) and lower_ascii(name.text) != lower_ascii(old):
        raise BindError(f'the table has a column "{name.text}" already', name.span)
    definition = definition.changed(column, dataclasses.replace(column, name=name.text))
    keys = tuple(
        dataclasses.replace(key, columns=tuple(name.text if each == old else each for each in key.columns))
        for key in definition.keys
    )
    checks = tuple(_renamed_in(check, old, name.text) for check in definition.checks)
    generated = tuple(
        dataclasses.replace(each, expression=_renamed_in(each.expression, old, name.text))
        for each in definition.generated
    )
    return table.defined(dataclasses.replace(definition, keys=keys, checks=checks, generated=generated))


def _add_column(execution: Execution, table: StoredTable, alteration: AddColumn) -> StoredTable:
    definition, name = table.definition, alteration.column.name
    if definition.has_column(name.text):
        if alteration.if_not_exists:
            return table
        raise BindError(f'the table has a column "{name.text}" already', name.span)
    if alteration.column.generated is not None:
        raise UnsupportedError("ALTER TABLE ADD of a generated column is not supported", name.span)
    column = column_definition(execution, alteration.column, definition.schema)
    place = len(definition.columns)
    values = None
    if column.default is not None:
        values = _values(execution, table, column.data_type, alteration.column.default)
    definition = dataclasses.replace(definition, columns=(*definition.columns, column))
    if alteration.is_unique:
        definition = with_keys(definition, [KeyClause((name,), False)])
    changed = table.with_column(definition, place, values)
    check_constraints(execution, changed, changed, [place])
    return changed


def _add_key(execution: Execution, table: StoredTable, alteration: AddKey) -> StoredTable:
    changed = table.defined(with_keys(table.definition, [alteration.key]))
    check_constraints(execution, changed, changed)
    return changed


def _drop_column(execution: Execution, table: StoredTable, alteration: DropColumn) -> StoredTable:
    definition, column = table.definition, alteration.column
    if alteration.if_exists and not definition.has_column(column.text):
        return table
    kept = tuple(
        each for each in definition.generated if lower_ascii(each.column.name) != lower_ascii(column.text)
    )
    if len(kept) < len(definition.generated):
        (gone,) = set(definition.generated) - set(kept)
        _check_free(definition, gone.column.name, column, "dropped")
        return table.defined(dataclasses.replace(definition, generated=_moved(kept, gone.place)))
    place = definition.place_of(column.text, column.span)
    name = definition.names[place]
    _check_unreferred_column(execution, definition, name, column, "dropped")
    definition = dataclasses.replace(definition, checks=_checks_without(definition, name))
    _check_free(definition, name, column, "dropped")
    if len(definition.columns) == 1:
        raise BindError("the only column of a table cannot be dropped", column.span)
    columns = (*definition.columns[:place], *definition.columns[place + 1 :])
    generated = _moved(definition.generated, definition.all_columns.index(definition.columns[place]))
    return table.without_column(dataclasses.replace(definition, columns=columns, generated=generated), place)


def _checks_without(definition: TableDefinition, name: str) -> tuple[str, ...]:
    """The checks but for those that read this column and no other."""

    def reads(check: str, column: str) -> bool:
        return _renamed_in(check, column, "") != check

    others = [each.name for each in definition.all_columns if each.name != name]
    return tuple(
        each
        for each in definition.checks
        if not reads(each, name) or any(reads(each, other) for other in others)
    )


def _moved(generated: tuple[GeneratedColumn, ...], gone: int) -> tuple[GeneratedColumn, ...]:
    """The places of generated columns where there is no column any more at a place."""
    return tuple(dataclasses.replace(each, place=each.place - (each.place > gone)) for each in generated)


def _change_type(execution: Execution, table: StoredTable, alteration: ChangeType) -> StoredTable:
    definition, column = table.definition, alteration.column
    place = definition.place_of(column.text, column.span)
    _check_unreferred_column(execution, definition, definition.names[place], column, "given another type")
    _check_free(definition, definition.names[place], column, "given another type")
    data_type = execution.type_of(alteration.type, alteration.collation)
    values = _values(execution, table, data_type, alteration.value or in_quotes(definition.names[place]))
    changed = dataclasses.replace(definition.columns[place], data_type=data_type)
    return table.with_column(_with(definition, place, changed), place, values)


def _change_default(execution: Execution, table: StoredTable, alteration: ChangeDefault) -> StoredTable:
    definition = table.definition
    place = definition.place_of(alteration.column.text, alteration.column.span)
    column = definition.columns[place]
    default = None
    if alteration.value is not None:
        default = default_text(execution, alteration.value, column.data_type, definition.schema)
    return table.defined(_with(definition, place, dataclasses.replace(column, default=default)))


def _change_nullable(execution: Execution, table: StoredTable, alteration: ChangeNullable) -> StoredTable:
    definition = table.definition
    place = definition.place_of(alteration.column.text, alteration.column.span)
    column = definition.columns[place]
    if alteration.nullable and any(key.is_primary and column.name in key.columns for key in definition.keys):
        raise BindError("a column of the PRIMARY KEY is never NULL", alteration.column.span)
    validity = None if alteration.nullable else table.column(column.name).validity
    if validity is not None and not bool(validity.all()):
        raise ExecutionError(f'column "{column.name}" of table "{table.name}" holds NULLs')
    changed = dataclasses.replace(column, nullable=alteration.nullable)
    return table.defined(_with(definition, place, changed))


_ALTERATIONS: dict[type, Callable[..., StoredTable]] = {
    RenameColumn: _rename_column,
    AddColumn: _add_column,
    AddKey: _add_key,
    DropColumn: _drop_column,
    ChangeType: _change_type,
    ChangeDefault: _change_default,
    ChangeNullable: _change_nullable,
}


def _with(definition: TableDefinition, place: int, column: ColumnDefinition) -> TableDefinition:
    columns = (*definition.columns[:place], column, *definition.columns[place + 1 :])
    return dataclasses.replace(definition, columns=columns)


def _values(
    execution: Execution, table: StoredTable, data_type: DataType, value: Part | str | None
) -> Column:
    """An expression for all rows, as values of a type."""
    assert value is not None
    query = execution.command.query("SELECT CAST((", value, f") AS {data_type}) FROM {table.place.in_quotes}")
    return execution.rows(query, execution.state)._table.columns[0]


def _check_unreferred_column(
    execution: Execution, definition: TableDefinition, name: str, column: Name, what: str
) -> None:
    """Raises BindError where a foreign key has the column of that name, or refers to it."""
    if name in columns_in_foreign_keys(execution.state, definition):
        raise BindError(f'the column "{name}" is part of a foreign key, and so cannot be {what}', column.span)


def _check_free(definition: TableDefinition, name: str, column: Name, what: str) -> None:
    """Raises UnsupportedError where a constraint reads the column, or a generated column."""
    in_key = any(name in key.columns for key in definition.keys)
    read = [*definition.checks, *(each.expression for each in definition.generated)]
    if in_key or any(_renamed_in(text, name, "") != text for text in read):
        raise UnsupportedError(
            f'the column "{name}" is part of a constraint or of a generated column, and so cannot be {what}',
            column.span,
        )


def _renamed_in(text: str, old: str, new: str, *, is_table: bool = False) -> str:
    """An expression in which a column has another name, or the table before its columns."""
    tokens = tokenize(text)
    for index in reversed(range(len(tokens.stops) - 1)):
        following = tokens.kinds[index + 1]
        is_meant = following == "." if is_table else following not in ("(", ".")
        if is_meant and lower_ascii(tokens.name(index)) == lower_ascii(old):
            text = text[: tokens.starts[index]] + in_quotes(new) + text[tokens.stops[index] :]
    return text
