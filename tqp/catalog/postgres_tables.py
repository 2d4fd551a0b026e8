"""pg_catalog and sqlite_master: the catalog as clients of PostgreSQL and SQLite look for it, with the columns that DuckDB has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tqp.catalog.definitions_as_sql import create_index, create_table, create_view
from tqp.catalog.engine_tables import built_in_types, type_number
from tqp.catalog.objects import CatalogObject, columns_of_object, objects_of
from tqp.catalog.sequences import Sequence
from tqp.catalog.state import CatalogState
from tqp.catalog.system_table import Row, SystemTable, table_of
from tqp.core.datatypes import DataType, TypeKind
from tqp.core.definitions import IndexDefinition, TableDefinition
from tqp.core.keywords import lower_ascii
from tqp.core.names import MAIN, ObjectName
from tqp.data.sources.stored_tables import StoredTable
from tqp.planner.catalog_protocol import Catalog, View

OWNER = "duckdb"
#: Numbers of what has none of its own: the first of the schemas, of which `main` is the first, of the tables and views, and of the types of CREATE TYPE.
_NAMESPACE, _FIRST, _FIRST_TYPE = 1, 1_000, 500
#: PostgreSQL's names of types, where they differ.
_POSTGRES = {
    "SMALLINT": "int2",
    "INTEGER": "int4",
    "BIGINT": "int8",
    "FLOAT": "float4",
    "DOUBLE": "float8",
    "DECIMAL": "numeric",
    "VARCHAR": "varchar",
    "BLOB": "bytea",
    "UUID": "uuid",
}


def _definition(each: CatalogObject) -> TableDefinition | None:
    return each.what.definition if isinstance(each.what, StoredTable) else None


def _has_index(definition: TableDefinition) -> bool:
    return bool(definition.keys or definition.indexes)


def _statement(each: CatalogObject) -> str | None:
    if isinstance(each.what, StoredTable):
        return create_table(each.what.definition)
    return create_view(each.what) if isinstance(each.what, View) else None


def numbered(state: CatalogState) -> Iterator[tuple[int, CatalogObject]]:
    """Tables and views with their numbers."""
    return enumerate(objects_of(state), _FIRST)


def numbered_sequences(state: CatalogState) -> Iterator[tuple[int, Sequence]]:
    """Sequences with their numbers, behind those of tables and views."""
    return enumerate(state.sequences.values(), _FIRST + len(objects_of(state)))


def numbered_indexes(state: CatalogState) -> Iterator[tuple[int, StoredTable, IndexDefinition]]:
    """Indexes with their numbers, behind those of sequences, and their tables."""
    first = _FIRST + len(objects_of(state)) + len(state.sequences)
    return ((number, *each) for number, each in enumerate(state.indexes(), first))


def numbered_types(state: CatalogState) -> Iterator[tuple[int, ObjectName, DataType]]:
    """The types of CREATE TYPE with their numbers."""
    return ((number, *each) for number, each in enumerate(state.types.items(), _FIRST_TYPE))


def namespace(state: CatalogState, schema: str) -> int:
    """The number of a schema."""
    return _NAMESPACE + list(state.schemas).index(lower_ascii(schema))


def _tables(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for _, each in numbered(state):
        definition = _definition(each)
        if definition is not None:
            yield {
                "schemaname": each.schema,
                "tablename": each.name,
                "tableowner": OWNER,
                "hasindexes": _has_index(definition),
                "hasrules": False,
                "hastriggers": False,
            }


def _views(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for _, each in numbered(state):
        if each.is_view:
            yield {
                "schemaname": each.schema,
                "viewname": each.name,
                "viewowner": OWNER,
                "definition": _statement(each),
            }


#: What is the same of every table, view, sequence and index.
_OF_CLASSES: Mapping[str, Any] = {
    "reltuples": 0.0,
    "relispopulated": True,
    **dict.fromkeys(
        "reltype reloftype relowner relam relfilenode reltablespace relpages relallvisible reltoastrelid"
        " reltoastidxid relrewrite relfrozenxid".split(),
        0,
    ),
    **dict.fromkeys(
        "relisshared relhasoids relhasrules relhastriggers relhassubclass relrowsecurity relispartition".split(),
        False,
    ),
}


def _classes(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for number, each in numbered(state):
        definition = _definition(each)
        keys = () if definition is None else definition.keys
        yield {
            **_OF_CLASSES,
            "oid": number,
            "relname": each.name,
            "relnamespace": namespace(state, each.schema),
            "relhasindex": definition is not None and _has_index(definition),
            "relpersistence": "t" if each.temporary else "p",
            "relkind": "v" if each.is_view else "r",
            "relnatts": len(columns_of_object(each, catalog)),
            "relchecks": 0 if definition is None else len(definition.checks),
            "relhaspkey": any(key.is_primary for key in keys),
        }
    others: list[tuple[int, str, str, str, bool, int | None]] = [
        (number, each.definition.schema, each.definition.name, "S", each.definition.temporary, 0)
        for number, each in numbered_sequences(state)
    ]
    others += [
        (number, table.definition.schema, index.name, "i", True, None)
        for number, table, index in numbered_indexes(state)
    ]
    for number, schema, name, kind, temporary, count in others:
        yield {
            **_OF_CLASSES,
            "oid": number,
            "relname": name,
            "relnamespace": namespace(state, schema),
            "relhasindex": False,
            "relpersistence": "t" if temporary else "p",
            "relkind": kind,
            "relnatts": count,
            "relchecks": 0,
            "relhaspkey": False,
        }


def _modifier(data_type: DataType) -> int:
    """What a type is of beside its name: of a DECIMAL its digits, and of those the ones behind the point."""
    return data_type.precision * 1_000 + data_type.scale if data_type.is_decimal else -1


def _attributes(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for number, each in numbered(state):
        for place, column in enumerate(columns_of_object(each, catalog), 1):
            yield {
                "attrelid": number,
                "attname": column.name,
                "atttypid": type_number(column.data_type),
                "attnum": place,
                "attcacheoff": -1,
                "atttypmod": _modifier(column.data_type),
                "attnotnull": not column.nullable,
                "atthasdef": column.default is not None,
                "attidentity": "",
                "attgenerated": "",
                "attislocal": True,
                **dict.fromkeys("attstattarget attndims attinhcount attcollation".split(), 0),
                **dict.fromkeys("attbyval atthasmissing attisdropped".split(), False),
            }


def _namespaces(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for number, schema in enumerate(state.schemas.values(), _NAMESPACE):
        yield {"oid": number, "nspname": schema, "nspowner": 0}


def _databases(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for number, name in enumerate(("memory", "system", "temp")):
        yield {"oid": number, "datname": name, "datallowconn": True, "datistemplate": False}


def _types(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for logical, number, size, category, name in built_in_types():
        yield {
            "oid": number,
            "typname": _POSTGRES.get(logical, name),
            "typnamespace": _NAMESPACE,
            "typowner": 0,
            "typlen": size,
            "typbyval": False,
            "typtype": "b",
            "typcategory": {
                "NUMERIC": "N",
                "STRING": "S",
                "DATETIME": "D",
                "BOOLEAN": "B",
                "COMPOSITE": "C",
            }.get(category or "", "X"),
            "typispreferred": False,
            "typisdefined": True,
            "typalign": "d",
            "typstorage": "p",
        }
    for number, place, data_type in numbered_types(state):
        is_enum = data_type.kind is TypeKind.ENUM
        yield {
            "oid": number,
            "typname": place.name,
            "typnamespace": namespace(state, state.schemas.get(place.schema, MAIN)),
            "typowner": 0,
            "typbyval": False,
            "typtype": "e" if is_enum else "b",
            "typcategory": "E" if is_enum else "X",
            "typispreferred": False,
            "typisdefined": True,
            "typalign": "d",
            "typstorage": "p",
        }


def _settings(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for name, setting in sorted(catalog.settings().items()):
        yield {
            "name": name,
            "setting": setting.text,
            "short_desc": setting.description,
            "vartype": str(setting.data_type),
        }


def _master(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for _, each in numbered(state):
        statement = _statement(each)
        if statement is not None:
            kind = "view" if each.is_view else "table"
            yield {"type": kind, "name": each.name, "tbl_name": each.name, "rootpage": 0, "sql": statement}
    for indexed, index in state.indexes():
        statement = create_index(indexed.definition, index)
        yield {"type": "index", "name": index.name, "tbl_name": indexed.name, "rootpage": 0, "sql": statement}


_MASTER = table_of(_master, "type name tbl_name rootpage:i sql")
POSTGRES_TABLES: Mapping[str, SystemTable] = {
    "pg_catalog.pg_tables": table_of(
        _tables, "schemaname tablename tableowner tablespace:n hasindexes:b hasrules:b hastriggers:b"
    ),
    "pg_catalog.pg_views": table_of(_views, "schemaname viewname viewowner definition"),
    "pg_catalog.pg_class": table_of(
        _classes,
        "oid:l relname relnamespace:l reltype:i reloftype:i relowner:i relam:i relfilenode:i reltablespace:i relpages:i"
        " reltuples:f relallvisible:i reltoastrelid:i reltoastidxid:i relhasindex:b relisshared:b relpersistence relkind"
        " relnatts:l relchecks:l relhasoids:b relhaspkey:b relhasrules:b relhastriggers:b relhassubclass:b"
        " relrowsecurity:b relispopulated:b relreplident:n relispartition:b relrewrite:i relfrozenxid:i relminmxid:n"
        " relacl:n reloptions:n relpartbound:n",
    ),
    "pg_catalog.pg_attribute": table_of(
        _attributes,
        "attrelid:l attname atttypid:l attstattarget:i attlen:n attnum:i attndims:i attcacheoff:i atttypmod:i attbyval:b"
        " attstorage:n attalign:n attnotnull:b atthasdef:b atthasmissing:b attidentity attgenerated attisdropped:b"
        " attislocal:b attinhcount:i attcollation:i attcompression:n attacl:n attoptions:n attfdwoptions:n attmissingval:n",
    ),
    "pg_catalog.pg_namespace": table_of(_namespaces, "oid:l nspname nspowner:i nspacl:n"),
    "pg_catalog.pg_database": table_of(_databases, "oid:l datname datallowconn:b datistemplate:b"),
    "pg_catalog.pg_type": table_of(
        _types,
        "oid:l typname typnamespace:l typowner:i typlen:l typbyval:b typtype typcategory typispreferred:b typisdefined:b"
        " typdelim:n typrelid:n typsubscript:n typelem:n typarray:n typinput:n typoutput:n typreceive:n typsend:n"
        " typmodin:n typmodout:n typanalyze:n typalign typstorage typnotnull:n typbasetype:n typtypmod:n typndims:n"
        " typcollation:n typdefaultbin:n typdefault:n typacl:n",
    ),
    "pg_catalog.pg_settings": table_of(_settings, "name setting short_desc vartype"),
    "pg_catalog.sqlite_master": _MASTER,
    "pg_catalog.sqlite_schema": _MASTER,
}
