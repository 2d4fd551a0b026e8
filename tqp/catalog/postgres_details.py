"""pg_catalog: what hangs on tables and types, such as constraints, indexes, defaults, comments and labels, with the columns that DuckDB has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tqp.catalog.constraint_tables import constraints
from tqp.catalog.definitions_as_sql import create_index
from tqp.catalog.engine_tables import functions, index_expressions, prepared_statements
from tqp.catalog.objects import columns_of_object
from tqp.catalog.postgres_tables import (
    OWNER,
    namespace,
    numbered,
    numbered_indexes,
    numbered_sequences,
    numbered_types,
)
from tqp.catalog.state import CatalogState
from tqp.catalog.system_table import Row, SystemTable, table_of
from tqp.core.datatypes import TypeKind
from tqp.core.names import TEMPORARY, ObjectName
from tqp.data.sources.stored_tables import StoredTable
from tqp.planner.catalog_protocol import Catalog

#: The letters of the kinds of constraints.
_CONTYPES = {"PRIMARY KEY": "p", "UNIQUE": "u", "FOREIGN KEY": "f", "CHECK": "c", "NOT NULL": "x"}
#: The first number of the constraints of a table, from its own.
_PER_TABLE = 1_000_000
#: The number of pg_class, in which tables and views are described.
_CLASSES = "pg_class"


def _tables(state: CatalogState) -> dict[ObjectName, int]:
    return {
        each.what.definition.place: number
        for number, each in numbered(state)
        if isinstance(each.what, StoredTable)
    }


def _constraints(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    tables = _tables(state)
    for row in constraints(state, catalog):
        is_temporary = row["database_name"] == TEMPORARY
        table = tables[ObjectName.of(row["table_name"], row["schema_name"], is_temporary)]
        yield {
            "oid": table * _PER_TABLE + row["constraint_index"],
            "conname": row["constraint_text"],
            "connamespace": namespace(state, row["schema_name"]),
            "contype": _CONTYPES[row["constraint_type"]],
            "conrelid": table,
            "conkey": row["constraint_column_indexes"],
            "conbin": row["expression"],
            **dict.fromkeys("convalidated conislocal".split(), True),
            **dict.fromkeys("condeferrable condeferred connoinherit".split(), False),
            **dict.fromkeys("contypid conindid conparentid confrelid coninhcount".split(), 0),
        }


def _indexes(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    tables = _tables(state)
    for number, table, index in numbered_indexes(state):
        yield {
            "indexrelid": number,
            "indrelid": tables[table.definition.place],
            "indisunique": index.unique is not None,
            "indexprs": index_expressions(index),
            **dict.fromkeys("indnatts indnkeyatts".split(), 0),
            **dict.fromkeys("indimmediate indisvalid indisready indislive".split(), True),
            **dict.fromkeys(
                "indisprimary indisexclusion indisclustered indcheckxmin indisreplident".split(), False
            ),
        }


def _index_definitions(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for _, table, index in numbered_indexes(state):
        yield {
            "schemaname": table.definition.schema,
            "tablename": table.name,
            "indexname": index.name,
            "indexdef": create_index(table.definition, index),
        }


def _defaults(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for number, each in numbered(state):
        for place, column in enumerate(columns_of_object(each, catalog), 1):
            if column.default is not None:
                yield {"oid": place, "adrelid": number, "adnum": place, "adbin": column.default}


def _descriptions(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    """Those that COMMENT ON has given."""
    for number, each in numbered(state):
        comments = [each.comment, *(column.comment for column in columns_of_object(each, catalog))]
        for place, comment in enumerate(comments):
            if comment is not None:
                yield {"objoid": number, "classoid": _CLASSES, "objsubid": place, "description": comment}


def _labels(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for number, _, data_type in numbered_types(state):
        if data_type.kind is TypeKind.ENUM:
            for place, label in enumerate(data_type.categories or (), 1):
                yield {"enumtypid": number, "enumsortorder": place, "enumlabel": label}


def _sequences(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for number, sequence in numbered_sequences(state):
        each = sequence.definition
        yield {
            "seqrelid": number,
            "seqtypid": 0,
            "seqstart": each.start,
            "seqincrement": each.increment,
            "seqmax": each.maximum,
            "seqmin": each.minimum,
            "seqcache": 0,
            "seqcycle": each.cycles,
        }


def _sequence_definitions(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for _, sequence in numbered_sequences(state):
        each = sequence.definition
        yield {
            "schemaname": each.schema,
            "sequencename": each.name,
            "sequenceowner": OWNER,
            "data_type": 0,
            "start_value": each.start,
            "min_value": each.minimum,
            "max_value": each.maximum,
            "increment_by": each.increment,
            "cycle": each.cycles,
            "cache_size": 0,
            "last_value": sequence.last,
        }


def _functions(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for number, each in enumerate(functions(state, catalog)):
        kind = str(each["function_type"])
        yield {
            "oid": number,
            "proname": each["function_name"],
            "pronamespace": namespace(state, each["schema_name"]),
            "prokind": "a" if kind == "aggregate" else "w" if kind == "window" else "f",
            "proretset": kind.startswith("table"),
            "proparallel": "u",
            "pronargs": len(each["parameters"]),
            "prorettype": each.get("return_type"),
            "proargtypes": each["parameter_types"],
            "proargnames": each["parameters"],
            "prosqlbody": each.get("macro_definition"),
            "proisagg": kind == "aggregate",
            **dict.fromkeys("procost prorows prosupport pronargdefaults".split(), 0),
            **dict.fromkeys("prosecdef proleakproof proisstrict".split(), False),
        }


def _dependencies(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    """Foreign keys on the tables that they refer to, and indexes on theirs."""
    tables = _tables(state)
    found = [
        (tables[key.place], tables[place], "n")
        for place, table in state.tables.items()
        if isinstance(table, StoredTable)
        for key in table.definition.foreign_keys
    ]
    found += [(tables[table.definition.place], number, "a") for number, table, _ in numbered_indexes(state)]
    for on, of, kind in found:
        yield {"classid": 0, "objid": on, "objsubid": 0, "refclassid": 0, "refobjid": of, "refobjsubid": 0, "deptype": kind}  # fmt: skip


def _access_methods(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    yield {"oid": 0, "amname": "art", "amtype": "i"}


def _tablespaces(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    yield {"oid": 0, "spcname": "pg_default", "spcowner": 0}


def _none(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    return iter(())


_DEPENDENCIES = table_of(
    _dependencies, "classid:l objid:l objsubid:i refclassid:l refobjid:l refobjsubid:i deptype"
)
POSTGRES_DETAILS: Mapping[str, SystemTable] = {
    "pg_catalog.pg_constraint": table_of(
        _constraints,
        "oid:l conname connamespace:l contype condeferrable:b condeferred:b convalidated:b conrelid:l contypid:i"
        " conindid:i conparentid:i confrelid:i confupdtype:n confdeltype:n confmatchtype:n conislocal:b coninhcount:i"
        " connoinherit:b conkey:p confkey:n conpfeqop:n conppeqop:n conffeqop:n conexclop:n conbin",
    ),
    "pg_catalog.pg_index": table_of(
        _indexes,
        "indexrelid:l indrelid:l indnatts:i indnkeyatts:i indisunique:b indisprimary:b indisexclusion:b indimmediate:b"
        " indisclustered:b indisvalid:b indcheckxmin:b indisready:b indislive:b indisreplident:b indkey:q"
        " indcollation:p indclass:p indoption:q indexprs indpred:n",
    ),
    "pg_catalog.pg_indexes": table_of(
        _index_definitions, "schemaname tablename indexname tablespace:n indexdef"
    ),
    "pg_catalog.pg_attrdef": table_of(_defaults, "oid:i adrelid:l adnum:i adbin"),
    "pg_catalog.pg_description": table_of(_descriptions, "objoid:l classoid objsubid:i description"),
    "pg_catalog.pg_enum": table_of(_labels, "oid:n enumtypid:l enumsortorder:i enumlabel"),
    "pg_catalog.pg_sequence": table_of(
        _sequences,
        "seqrelid:l seqtypid:i seqstart:l seqincrement:l seqmax:l seqmin:l seqcache:i seqcycle:b",
    ),
    "pg_catalog.pg_sequences": table_of(
        _sequence_definitions,
        "schemaname sequencename sequenceowner data_type:i start_value:l min_value:l max_value:l increment_by:l cycle:b"
        " cache_size:i last_value:l",
    ),
    "pg_catalog.pg_proc": table_of(
        _functions,
        "oid:l proname pronamespace:l proowner:n prolang:n procost:i prorows:i provariadic prosupport:i prokind prosecdef:b"
        " proleakproof:b proisstrict:b proretset:b provolatile proparallel pronargs:l pronargdefaults:i prorettype"
        " proargtypes:a proallargtypes:n proargmodes:n proargnames:a proargdefaults:n protrftypes:n prosrc:n probin:n"
        " prosqlbody proconfig:n proacl:n proisagg:b",
    ),
    "pg_catalog.pg_prepared_statements": table_of(
        prepared_statements,
        "name statement prepare_time:n parameter_types:a result_types:a from_sql:n generic_plans:n custom_plans:n",
    ),
    "pg_catalog.pg_depend": _DEPENDENCIES,
    "duckdb_dependencies()": _DEPENDENCIES,
    "pg_catalog.pg_am": table_of(_access_methods, "oid:i amname amhandler:n amtype"),
    "pg_catalog.pg_tablespace": table_of(_tablespaces, "oid:i spcname spcowner:i spcacl:n spcoptions:n"),
    "pg_catalog.pg_collation": table_of(_none, "oid:l collname"),
}
