"""ALTER TABLE of the fields of structs, which may stand in lists (as `element`) and maps (as `key` and `value`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import torch

from tqp.core.datatypes import DataType, TypeKind, struct
from tqp.core.definitions import TableDefinition
from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.core.keywords import lower_ascii
from tqp.data.column import column_of
from tqp.data.encoding.nested import vector_of
from tqp.data.nested import Lists, Structs, Vector, take_vector
from tqp.data.sources.stored_tables import StoredTable
from tqp.planner.syntax.clauses import AddColumn, DropColumn, RenameColumn
from tqp.planner.syntax.parts import Name
from tqp.planner.syntax.tokens import tokenize
from tqp.statements.execution import Execution

#: Values with their type.
Typed = tuple[DataType, Vector]


def alter_field(
    execution: Execution, table: StoredTable, alteration: AddColumn | DropColumn | RenameColumn
) -> StoredTable:
    """The next version of the table; the same one where IF [NOT] EXISTS leaves it as it is."""
    name = alteration.column.name if isinstance(alteration, AddColumn) else alteration.column
    first, *path = (*name.qualifiers, name.text)
    definition = table.definition
    if isinstance(alteration, DropColumn) and alteration.if_exists and not definition.has_column(first):
        return table
    place = definition.place_of(first, name.span)
    column = definition.columns[place]
    _check_unread(definition, column.name, name)
    values = vector_of(table.column(column.name))
    match alteration:
        case AddColumn():
            change = _adding(execution, alteration, table.device)
        case DropColumn():
            change = _dropping(alteration)
        case RenameColumn():
            change = _renaming(alteration)
    found = _changed((column.data_type, values), path, change, name)
    if found is None:
        return table
    data_type, (made, validity) = found
    columns = list(definition.columns)
    columns[place] = dataclasses.replace(column, data_type=data_type)
    return table.with_column(
        dataclasses.replace(definition, columns=tuple(columns)),
        place,
        column_of(data_type, table.num_rows, made, validity),
    )


#: What becomes of the fields of a struct, each its name with its values, and of how many rows these are; None if nothing does.
Change = Callable[[dict[str, Typed], int], dict[str, Typed] | None]


def _changed(typed: Typed, path: Sequence[str], change: Change, name: Name) -> Typed | None:
    """The values with a change of the fields among which the last name of the path is one."""
    data_type, (values, validity) = typed
    if isinstance(values, Lists) and data_type.kind in (TypeKind.LIST, TypeKind.MAP):
        inner = path if data_type.kind is TypeKind.MAP else path[1:]
        if len(path) < 2 or data_type.kind is TypeKind.LIST and lower_ascii(path[0]) != "element":
            raise BindError(
                f'"{path[0]}" is no field of {data_type}; "element" has those of a list', name.span
            )
        found = _changed((data_type.element, values.elements), inner, change, name)
        if found is None:
            return None
        element, vector = found
        return dataclasses.replace(data_type, children=(element,)), Vector(
            values._replace(elements=vector), validity
        )
    if not isinstance(values, Structs) or data_type.kind is not TypeKind.STRUCT or data_type.is_tuple:
        raise BindError(f'"{path[0]}" is no field of {data_type}, which has none with names', name.span)
    fields: dict[str, Typed] | None = dict(
        zip(data_type.names, zip(data_type.children, values.fields, strict=True), strict=True)
    )
    assert fields is not None
    if len(path) == 1:
        fields = change(fields, values.num_rows)
    else:
        field = _field(fields, path[0], name)
        inside = _changed(fields[field], path[1:], change, name)
        fields = None if inside is None else {**fields, field: inside}
    if fields is None:
        return None
    vectors = tuple(vector for _, vector in fields.values())
    return struct({each: kind for each, (kind, _) in fields.items()}), Vector(Structs(vectors), validity)


def _found(fields: dict[str, Typed], name: str) -> str | None:
    return next((each for each in fields if lower_ascii(each) == lower_ascii(name)), None)


def _field(fields: dict[str, Typed], text: str, name: Name) -> str:
    field = _found(fields, text)
    if field is None:
        raise BindError(f'there is no field "{text}"{nearest(text, fields)}', name.span)
    return field


def _adding(execution: Execution, alteration: AddColumn, device: torch.device) -> Change:
    column, name = alteration.column, alteration.column.name
    assert column.type is not None
    data_type = execution.type_of(column.type)
    value = "NULL" if column.default is None else column.default
    query = execution.command.query("SELECT CAST((", value, f") AS {data_type})")

    def change(fields: dict[str, Typed], num_rows: int) -> dict[str, Typed] | None:
        if _found(fields, name.text) is not None:
            if alteration.if_not_exists:
                return None
            raise BindError(f'there is a field "{name.text}" already', name.span)
        (one,) = execution.rows(query, execution.state)._table.columns
        vector = vector_of(one)
        rows = torch.zeros(num_rows, dtype=torch.int64, device=device)
        return {**fields, name.text: (data_type, take_vector(vector, rows))}

    return change


def _dropping(alteration: DropColumn) -> Change:
    name = alteration.column

    def change(fields: dict[str, Typed], num_rows: int) -> dict[str, Typed] | None:
        if alteration.if_exists and _found(fields, name.text) is None:
            return None
        gone = _field(fields, name.text, name)
        if len(fields) == 1:
            raise BindError("the only field of a struct cannot be dropped", name.span)
        return {field: typed for field, typed in fields.items() if field != gone}

    return change


def _renaming(alteration: RenameColumn) -> Change:
    name, new = alteration.column, alteration.name

    def change(fields: dict[str, Typed], num_rows: int) -> dict[str, Typed] | None:
        old = _field(fields, name.text, name)
        if _found(fields, new.text) is not None:
            raise BindError(f'there is a field "{new.text}" already', new.span)
        return {new.text if field == old else field: typed for field, typed in fields.items()}

    return change


def _check_unread(definition: TableDefinition, column: str, name: Name) -> None:
    """Raises UnsupportedError where a constraint or a generated column reads the column."""
    texts = [*definition.checks, *(each.expression for each in definition.generated)]
    tokens = map(tokenize, texts)
    names = {lower_ascii(each.name(place)) for each in tokens for place in range(len(each.stops) - 1)}
    if lower_ascii(column) in names or any(column in key.columns for key in definition.keys):
        raise UnsupportedError(
            f'the column "{column}" is part of a constraint or of a generated column, and so its fields cannot be changed',
            name.span,
        )
