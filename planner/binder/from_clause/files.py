"""Files in FROM: `FROM 'sales.parquet'`, and functions of paths or patterns, such as read_csv(), read_text() and glob()."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlglot import exp

from tqp.core.datatypes import BOOLEAN, NULL, TIMESTAMP, VARCHAR, DataType, TypeKind
from tqp.core.errors import BindError, Error
from tqp.core.file_kinds import WHOLE_FILES, FileKind
from tqp.core.keywords import lower_ascii
from tqp.core.read_options import NO_OPTIONS, ReadOptions
from tqp.core.schema import Field, TableSource
from tqp.planner.algebra.expressions import Call, Expression, Literal, conjunction
from tqp.planner.algebra.logical_plan import Filter, Project
from tqp.planner.algebra.node import grow
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.coercion import cast_to, null_after
from tqp.planner.binder.from_clause.constant_arguments import is_named, literal_argument, split_arguments
from tqp.planner.binder.from_clause.file_options import GivenOptions, read_options
from tqp.planner.binder.scope import ScopeColumn
from tqp.planner.binder.select.output import BoundQuery
from tqp.planner.catalog_protocol import RejectingScan
from tqp.planner.parse import Span, span_of

#: What each function reads, whatever the names of the files say.
FILE_FUNCTIONS: dict[str, FileKind] = {
    "read_parquet": "parquet",
    "parquet_scan": "parquet",
    "read_csv": "csv",
    "read_csv_auto": "csv",
    "read_json": "json",
    "read_json_auto": "json",
    "read_ndjson": "json",
    "read_ndjson_auto": "json",
    "glob": "names",
    "read_text": "text",
    "read_blob": "blob",
    "parquet_schema": "Parquet schema",
    "parquet_metadata": "Parquet column chunks",
    "parquet_file_metadata": "Parquet footers",
    "parquet_kv_metadata": "Parquet key values",
    "read_json_objects": "JSON values",
    "read_json_objects_auto": "JSON values",
    "read_ndjson_objects": "JSON lines",
    "sniff_csv": "CSV layout",
}

#: A column's place, or the name of one that there is none of, and the type that it is cast to, if one is said.
TypedPlace = tuple[int | str, DataType | None]


@dataclass(frozen=True, slots=True)
class WantedColumns:
    """Which columns of a file are wanted, as what, and how their values are written; `are_keys`: of JSON objects.

    `never_null`: see `GivenOptions`.
    """

    places: Sequence[TypedPlace]
    options: ReadOptions
    are_keys: bool = False
    never_null: frozenset[str] = frozenset()


def file_named(context: BindContext, name: str, span: Span | None) -> TableSource | None:
    """The file, or the files that match the pattern, of that name; None if that is no name of a file."""
    return _files(context, [name], None, span)


def relation_name(path: str) -> str:
    """What a file is called in a query: its name up to the first dot; a pattern cannot be named, as in DuckDB."""
    if re.search(r"[*?\[]", path):
        return ""
    return re.split(r"[/\\]", path)[-1].partition(".")[0]


def bind_file_function(
    context: BindContext, call: exp.Anonymous, span: Span | None
) -> tuple[TableSource, WantedColumns]:
    """The table that read_parquet() and the like give of a path or a list of paths, and which of its columns are wanted."""
    name = lower_ascii(call.name)
    given = read_options(FILE_FUNCTIONS[name], name, list(filter(is_named, call.expressions)))
    paths, _ = split_arguments(call)
    if len(paths) != 1:
        raise BindError(f"{name}() takes a path, or a list of paths", span)
    [path] = paths
    found = _paths(context, path, name)
    if FILE_FUNCTIONS[name] == "CSV layout" and isinstance(path, exp.Array):
        raise BindError(f"{name}() takes one path", span)
    if not found and FILE_FUNCTIONS[name] not in WHOLE_FILES:
        raise BindError(f"{name}() needs at least one file to read", span)
    table = _files(context, found, FILE_FUNCTIONS[name], span, given.options)
    assert table is not None
    if given.columns is not None:
        names = list(table.column_names)
        places = [names.index(each) if each in names else each for each in given.columns]
        said = [given.types[lower_ascii(each)] for each in given.columns]
        return table, WantedColumns(list(zip(places, said, strict=True)), given.options, are_keys=True)
    missing = given.never_null.difference(map(lower_ascii, table.column_names))
    if missing:
        raise BindError(f'force_not_null names a column "{min(missing)}", which the file does not have', span)
    types = _types(given, table, span)
    if given.rejects is not None:
        casts = {place: each for place, each in enumerate(types) if each is not None}
        context.catalog.store_rejects(RejectingScan(given.rejects, table, given.options, casts), span)
    return table, WantedColumns(list(enumerate(types)), given.options, never_null=given.never_null)


def _types(given: GivenOptions, table: TableSource, span: Span | None) -> list[DataType | None]:
    """For each column the type that is said, if one is."""
    names = [lower_ascii(name) for name in table.column_names]
    types: list[DataType | None] = [None] * len(names)
    for key, data_type in given.types.items():
        place = names.index(key) if key in names else key
        if isinstance(place, str) or place >= len(names):
            shown = f'column "{key}"' if isinstance(key, str) else f"column number {key + 1}"
            raise BindError(f"a type is given for a {shown}, which the file does not have", span)
        types[place] = data_type
    return types


def with_types(context: BindContext, bound: BoundQuery, wanted: WantedColumns) -> BoundQuery:
    """Columns cast to the types that are given for them, when they are first referred to.

    Where errors are ignored, all are cast, and the rows that hold what is not of its type are left out; of JSON it is NULL.
    """
    if all(data_type is None for _, data_type in wanted.places) and not wanted.never_null:
        return bound
    plan, columns, options = bound.plan, bound.columns, wanted.options

    def read(place: int | str, data_type: DataType | None) -> Expression:
        if isinstance(place, str):
            return Literal(None, data_type or NULL)
        value = columns[place].reference()
        if data_type is None:
            return value
        if value.data_type.is_json and data_type.kind is TypeKind.VARCHAR and not data_type.is_json:
            return Call("json_extract_string", (value, Literal("$", VARCHAR)), VARCHAR)
        text = _plain_number(value, options) if data_type.is_numeric else value
        written = options.format_of(data_type)
        if options.ignore_errors and written is not None and value.data_type == VARCHAR:
            text = Call("try_strptime", (value, Literal(written, VARCHAR)), TIMESTAMP)
        return cast_to(text, data_type, None, is_try=options.ignore_errors)

    if options.ignore_errors and not wanted.are_keys:
        kept = [
            _reads(columns[place].reference(), read(place, data_type))
            for place, data_type in wanted.places
            if data_type is not None and not isinstance(place, str)
        ]
        plan = Filter(plan, conjunction(tuple(kept)))
    project = Project(plan, (), ())

    def made_not_null(name: str, value: Expression) -> Expression:
        if lower_ascii(name) not in wanted.never_null:
            return value
        empty: Expression = Literal("", VARCHAR)
        if value.data_type != VARCHAR:
            message = f'the column "{name}" holds an empty value, which force_not_null does not let be NULL'
            empty = null_after(Call("error", (Literal(message, VARCHAR),), VARCHAR), value.data_type)
        return Call("coalesce", (value, empty), value.data_type)

    def name_of(place: int | str) -> str:
        return place if isinstance(place, str) else columns[place].name

    def make(place: int | str, data_type: DataType | None) -> Field:
        value = made_not_null(name_of(place), read(place, data_type))
        made = context.new_field(name_of(place), value.data_type)
        grow(project, fields=(*project.fields, made), outputs=(*project.outputs, value))
        return made

    typed = [
        ScopeColumn(name_of(place), partial(make, place, data_type)) for place, data_type in wanted.places
    ]
    taken = {lower_ascii(column.name) for column in typed}
    typed += [
        ScopeColumn(column.name, partial(make, place, None), is_hidden=True)
        for place, column in enumerate(columns)
        if column.is_hidden and lower_ascii(column.name) not in taken
    ]
    return BoundQuery(project, typed)


def _reads(text: Expression, value: Expression) -> Expression:
    """Is there a value, unless there is no text?"""
    has_value = Call("not", (Call("is_null", (value,), BOOLEAN),), BOOLEAN)
    return Call("or", (Call("is_null", (text,), BOOLEAN), has_value), BOOLEAN)


def _plain_number(value: Expression, options: ReadOptions) -> Expression:
    """A number as SQL writes it, without what stands between groups of its digits."""
    if value.data_type == VARCHAR:
        for old, new in ((options.thousands, ""), (options.decimal_separator, ".")):
            if old and old != new:
                value = Call("replace", (value, Literal(old, VARCHAR), Literal(new, VARCHAR)), VARCHAR)
    return value


def _paths(context: BindContext, node: exp.Expr, name: str) -> list[str]:
    """The paths that an argument says: a text, or a list of texts."""
    found = literal_argument(context, node, name)
    paths: tuple[Any, ...] = found.value if isinstance(found.value, tuple) else (found.value,)
    for path in paths:
        if not isinstance(path, str):
            shown = "NULL" if path is None else found.data_type
            raise BindError(f"{name}() takes the path of a file as text, not {shown}", span_of(node))
    return list(paths)


def _files(
    context: BindContext,
    paths: list[str],
    kind: FileKind | None,
    span: Span | None,
    options: ReadOptions = NO_OPTIONS,
) -> TableSource | None:
    try:
        return context.catalog.lookup_files(paths, kind, options)
    except Error as error:
        if error.span is not None or not isinstance(error, BindError):
            raise
        raise BindError(error.message, span) from error
