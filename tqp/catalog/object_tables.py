"""information_schema, duckdb_tables() and their kin: what the catalog holds, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tqp.catalog.definitions_as_sql import create_table, create_view
from tqp.catalog.objects import columns_of_object, objects_of
from tqp.catalog.state import CatalogState
from tqp.catalog.system_table import Row, SystemTable, table_of
from tqp.core.datatypes import DataType, TypeKind
from tqp.core.names import DATABASE, MAIN, SYSTEM_SCHEMAS, TEMPORARY
from tqp.data.sources.stored_tables import StoredTable
from tqp.planner.catalog_protocol import Catalog, View

#: That of the statements' tables, that of this room, and that of what is temporary or was registered.
_DATABASES = (DATABASE, "system", TEMPORARY)


def _tables(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for each in objects_of(state):
        kind = "VIEW" if each.is_view else "LOCAL TEMPORARY" if each.temporary else "BASE TABLE"
        yield {
            "table_catalog": each.database,
            "table_schema": each.schema,
            "table_name": each.name,
            "table_type": kind,
            "is_insertable_into": "NO" if each.is_view else "YES",
            "is_typed": "NO",
            "commit_action": "PRESERVE" if kind == "LOCAL TEMPORARY" else None,
            "TABLE_COMMENT": each.comment,
        }


def _columns(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    """Of information_schema.columns."""
    for each in _duckdb_columns(state, catalog):
        yield {
            **each,
            "table_catalog": each["database_name"],
            "table_schema": each["schema_name"],
            "ordinal_position": each["column_index"],
            "is_nullable": "YES" if each["is_nullable"] else "NO",
            "is_generated": "ALWAYS" if each["is_generated"] else "NEVER",
            "COLUMN_COMMENT": each["comment"],
        }


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


def _duckdb_tables(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for each in objects_of(state):
        if isinstance(each.what, StoredTable):
            definition = each.what.definition
            yield {
                "database_name": each.database,
                "schema_name": each.schema,
                "table_name": each.name,
                "comment": each.comment,
                "internal": False,
                "temporary": each.temporary,
                "has_primary_key": any(key.is_primary for key in definition.keys),
                "estimated_size": each.what.num_rows,
                "column_count": len(definition.all_columns),
                "index_count": sum(map(len, (definition.keys, definition.foreign_keys, definition.indexes))),
                "tags": [],
                "check_constraint_count": len(definition.checks),
                "sql": create_table(definition),
            }


def _duckdb_columns(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for each in objects_of(state):
        generated = each.what.definition.generated if isinstance(each.what, StoredTable) else ()
        computed = {column.place: f"({column.expression})" for column in generated}
        for number, column in enumerate(columns_of_object(each, catalog), 1):
            expression = computed.get(number - 1)
            if expression is not None:
                expression = f"CAST({expression} AS {column.data_type})"
            precision, radix, scale = _precision(column.data_type)
            yield {
                "database_name": each.database,
                "schema_name": each.schema,
                "table_name": each.name,
                "column_name": column.name,
                "column_index": number,
                "comment": column.comment,
                "internal": False,
                "column_default": column.default if expression is None else expression,
                "is_nullable": column.nullable,
                "data_type": str(column.data_type),
                "numeric_precision": precision,
                "numeric_precision_radix": radix,
                "numeric_scale": scale,
                "tags": [],
                "is_generated": expression is not None,
                "generation_expression": expression,
            }


def _duckdb_views(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for each in objects_of(state):
        if each.is_view:
            yield {
                "database_name": each.database,
                "schema_name": each.schema,
                "view_name": each.name,
                "comment": each.comment,
                "internal": False,
                "temporary": each.temporary,
                "column_count": len(columns_of_object(each, catalog)),
                "tags": [],
                "is_bound": True,
                "sql": create_view(each.what) if isinstance(each.what, View) else None,
            }


def _views(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    """Of information_schema.views."""
    unchangeable = ("is_updatable", "is_insertable_into", "is_trigger_updatable", "is_trigger_deletable")
    for each in _duckdb_views(state, catalog):
        yield {
            "table_catalog": each["database_name"],
            "table_schema": each["schema_name"],
            "table_name": each["view_name"],
            "view_definition": each["sql"],
            "check_option": "NONE",
            **dict.fromkeys((*unchangeable, "is_trigger_insertable_into"), "NO"),
        }


def _databases(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for database in _DATABASES:
        yield {
            "database_name": database,
            "tags": [],
            "options": [],
            "internal": database != DATABASE,
            "type": "duckdb",
            "readonly": False,
            "encrypted": False,
        }


def _duckdb_schemas(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    own = [(DATABASE, schema) for schema in state.schemas.values()]
    for database, schema in (
        *own,
        *(("system", each) for each in sorted((*SYSTEM_SCHEMAS, MAIN))),
        (TEMPORARY, MAIN),
    ):
        internal = database != DATABASE or schema == MAIN
        yield {"database_name": database, "schema_name": schema, "tags": [], "internal": internal}


def _schemata(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    """Of information_schema.schemata."""
    for each in _duckdb_schemas(state, catalog):
        yield {**each, "catalog_name": each["database_name"], "schema_owner": "duckdb"}


OBJECT_TABLES: Mapping[str, SystemTable] = {
    "information_schema.tables": table_of(
        _tables,
        "table_catalog table_schema table_name table_type self_referencing_column_name reference_generation"
        " user_defined_type_catalog user_defined_type_schema user_defined_type_name is_insertable_into is_typed"
        " commit_action TABLE_COMMENT",
    ),
    "information_schema.columns": table_of(
        _columns,
        "table_catalog table_schema table_name column_name ordinal_position:i column_default is_nullable data_type"
        " character_maximum_length:i character_octet_length:i numeric_precision:i numeric_precision_radix:i"
        " numeric_scale:i datetime_precision:i interval_type interval_precision:i character_set_catalog"
        " character_set_schema character_set_name collation_catalog collation_schema collation_name domain_catalog"
        " domain_schema domain_name udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name"
        " maximum_cardinality:l dtd_identifier is_self_referencing:b is_identity:b identity_generation identity_start"
        " identity_increment identity_maximum identity_minimum identity_cycle:b is_generated generation_expression"
        " is_updatable:b COLUMN_COMMENT",
    ),
    "information_schema.views": table_of(
        _views,
        "table_catalog table_schema table_name view_definition check_option is_updatable is_insertable_into"
        " is_trigger_updatable is_trigger_deletable is_trigger_insertable_into",
    ),
    "information_schema.schemata": table_of(
        _schemata,
        "catalog_name schema_name schema_owner default_character_set_catalog default_character_set_schema"
        " default_character_set_name sql_path",
    ),
    "duckdb_databases()": table_of(
        _databases,
        "database_name database_oid:l path comment tags:m internal:b type readonly:b encrypted:b cipher options:m",
    ),
    "duckdb_schemas()": table_of(
        _duckdb_schemas,
        "oid:l database_name database_oid:l schema_name comment tags:m internal:b sql parent_schema parent_schema_oid:l",
    ),
    "duckdb_tables()": table_of(
        _duckdb_tables,
        "database_name database_oid:l schema_name schema_oid:l table_name table_oid:l comment tags:m internal:b temporary:b"
        " has_primary_key:b estimated_size:l column_count:l index_count:l check_constraint_count:l sql",
    ),
    "duckdb_columns()": table_of(
        _duckdb_columns,
        "database_name database_oid:l schema_name schema_oid:l table_name table_oid:l column_name column_index:i comment"
        " internal:b column_default is_nullable:b data_type data_type_id:l character_maximum_length:i numeric_precision:i"
        " numeric_precision_radix:i numeric_scale:i tags:m is_generated:b generation_expression",
    ),
    "duckdb_views()": table_of(
        _duckdb_views,
        "database_name database_oid:l schema_name schema_oid:l view_name view_oid:l comment tags:m internal:b temporary:b"
        " column_count:l sql is_bound:b",
    ),
}
