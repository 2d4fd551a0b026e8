"""information_schema and duckdb_tables(): what the catalog holds, as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import torch

from tqp.catalog.engine_tables import ENGINE_TABLES
from tqp.catalog.objects import CatalogObject, columns_of_object, objects_of
from tqp.catalog.postgres_tables import POSTGRES_TABLES
from tqp.catalog.state import CatalogState
from tqp.core.datatypes import DataType, TypeKind
from tqp.data.sources.arrow_tables import ArrowSource
from tqp.data.sources.base import Source
from tqp.data.sources.stored_tables import StoredTable
from tqp.planner.catalog_protocol import Catalog

_TEXT, _INT, _LONG, _BOOL = pa.string(), pa.int32(), pa.int64(), pa.bool_()


def system_table(name: str, state: CatalogState, catalog: Catalog, device: torch.device) -> Source | None:
    """The table of that name, such as "information_schema.tables"; None if there is none. `catalog`: where views look."""
    if name in _OF_ROWS:
        columns, rows_of = _OF_ROWS[name]
        schema = list(columns)
        values = [tuple(map(row.get, dict(schema))) for row in rows_of(state, catalog)]
    elif name in _TABLES:
        schema, rows = _TABLES[name]
        values = list(rows(objects_of(state), catalog))
    else:
        return None
    arrays = [pa.array([row[place] for row in values], kind) for place, (_, kind) in enumerate(schema)]
    return ArrowSource(name, pa.table(arrays, [column for column, _ in schema]), device)


_OF_ROWS = {**ENGINE_TABLES, **POSTGRES_TABLES}


def _table_rows(objects: Sequence[CatalogObject], catalog: Catalog) -> Iterator[tuple[Any, ...]]:
    for each in objects:
        kind = "VIEW" if each.is_view else "LOCAL TEMPORARY" if each.temporary else "BASE TABLE"
        action = "PRESERVE" if kind == "LOCAL TEMPORARY" else None
        insertable = "NO" if each.is_view else "YES"
        yield (each.database, "main", each.name, kind, *[None] * 5, insertable, "NO", action, None)


def _column_rows(objects: Sequence[CatalogObject], catalog: Catalog) -> Iterator[tuple[Any, ...]]:
    for each in objects:
        for number, column in enumerate(columns_of_object(each, catalog), 1):
            null = "YES" if column.nullable else "NO"
            yield (
                each.database,
                "main",
                each.name,
                column.name,
                number,
                column.default,
                null,
                str(column.data_type),
                None,
                None,
                *_precision(column.data_type),
            )


def _precision(data_type: DataType) -> tuple[int | None, int | None, int | None]:
    """Digits, what they count in, and how many stand after the point."""
    if data_type.is_decimal:
        return data_type.precision, 10, data_type.scale
    if data_type.is_float:
        return (24 if data_type.kind is TypeKind.FLOAT else 53), 2, 0
    if data_type.is_integer:
        low, high = data_type.bounds
        return (high - low).bit_length(), 2, 0
    return None, None, None


def _duckdb_tables(objects: Sequence[CatalogObject], catalog: Catalog) -> Iterator[tuple[Any, ...]]:
    for each in objects:
        if isinstance(each.what, StoredTable):
            definition = each.what.definition
            has_key = any(key.is_primary for key in definition.keys)
            counts = (each.what.num_rows, len(definition.columns), len(definition.checks))
            yield (each.database, "main", each.name, False, each.temporary, has_key, *counts)


def _duckdb_columns(objects: Sequence[CatalogObject], catalog: Catalog) -> Iterator[tuple[Any, ...]]:
    for each in objects:
        for number, column in enumerate(columns_of_object(each, catalog), 1):
            yield (
                each.database,
                "main",
                each.name,
                column.name,
                number,
                False,
                column.default,
                column.nullable,
                str(column.data_type),
            )


def _duckdb_views(objects: Sequence[CatalogObject], catalog: Catalog) -> Iterator[tuple[Any, ...]]:
    for each in objects:
        if each.is_view:
            yield (
                each.database,
                "main",
                each.name,
                False,
                each.temporary,
                len(columns_of_object(each, catalog)),
            )


#: Databases, and the schemas in them: that of the statements' tables, that of this room, and that of what was registered.
_DATABASES: Mapping[str, Sequence[str]] = {
    "memory": ("main",),
    "system": ("information_schema", "main"),
    "temp": ("main",),
}


def _duckdb_databases(objects: Sequence[CatalogObject], catalog: Catalog) -> Iterator[tuple[Any, ...]]:
    for database in _DATABASES:
        yield database, None, None, database != "memory", "duckdb", False, False, None


def _duckdb_schemas(objects: Sequence[CatalogObject], catalog: Catalog) -> Iterator[tuple[Any, ...]]:
    for database, schemas in _DATABASES.items():
        for schema in schemas:
            yield database, schema, None, True, None, None


def _schema_rows(objects: Sequence[CatalogObject], catalog: Catalog) -> Iterator[tuple[Any, ...]]:
    for database, schemas in _DATABASES.items():
        for schema in schemas:
            yield database, schema, "duckdb", None, None, None, None


def _schema(names: str, **others: pa.DataType) -> list[tuple[str, pa.DataType]]:
    """Columns of text, but for the others."""
    return [(name, others.get(name, _TEXT)) for name in names.split()]


_Rows = Callable[[Sequence[CatalogObject], Catalog], Iterator[tuple[Any, ...]]]
_TABLES: Mapping[str, tuple[list[tuple[str, pa.DataType]], _Rows]] = {
    "information_schema.tables": (
        _schema(
            "table_catalog table_schema table_name table_type self_referencing_column_name reference_generation"
            " user_defined_type_catalog user_defined_type_schema user_defined_type_name is_insertable_into is_typed"
            " commit_action TABLE_COMMENT"
        ),
        _table_rows,
    ),
    "information_schema.columns": (
        _schema(
            "table_catalog table_schema table_name column_name ordinal_position column_default is_nullable data_type"
            " character_maximum_length character_octet_length numeric_precision numeric_precision_radix numeric_scale",
            ordinal_position=_INT,
            character_maximum_length=_INT,
            character_octet_length=_INT,
            numeric_precision=_INT,
            numeric_precision_radix=_INT,
            numeric_scale=_INT,
        ),
        _column_rows,
    ),
    "information_schema.schemata": (
        _schema(
            "catalog_name schema_name schema_owner default_character_set_catalog default_character_set_schema"
            " default_character_set_name sql_path"
        ),
        _schema_rows,
    ),
    "duckdb_databases()": (
        _schema(
            "database_name path comment internal type readonly encrypted cipher",
            internal=_BOOL,
            readonly=_BOOL,
            encrypted=_BOOL,
        ),
        _duckdb_databases,
    ),
    "duckdb_schemas()": (
        _schema("database_name schema_name comment internal sql parent_schema", internal=_BOOL),
        _duckdb_schemas,
    ),
    "duckdb_tables()": (
        _schema(
            "database_name schema_name table_name internal temporary has_primary_key estimated_size column_count"
            " check_constraint_count",
            internal=_BOOL,
            temporary=_BOOL,
            has_primary_key=_BOOL,
            estimated_size=_LONG,
            column_count=_LONG,
            check_constraint_count=_LONG,
        ),
        _duckdb_tables,
    ),
    "duckdb_columns()": (
        _schema(
            "database_name schema_name table_name column_name column_index internal column_default is_nullable data_type",
            column_index=_INT,
            internal=_BOOL,
            is_nullable=_BOOL,
        ),
        _duckdb_columns,
    ),
    "duckdb_views()": (
        _schema(
            "database_name schema_name view_name internal temporary column_count",
            internal=_BOOL,
            temporary=_BOOL,
            column_count=_LONG,
        ),
        _duckdb_views,
    ),
}
