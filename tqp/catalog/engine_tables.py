"""What there is of the engine itself, as tables: its settings, types, functions, keywords and rules, and variables."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping

from tqp.catalog.definitions_as_sql import (
    create_index,
    create_sequence,
    macro_body,
)
from tqp.catalog.settings import shown_size
from tqp.catalog.state import CatalogState
from tqp.catalog.system_table import Row, SystemTable, table_of
from tqp.catalog.value_texts import text_of
from tqp.core.datatypes import NULL, DataType
from tqp.core.definitions import IndexDefinition
from tqp.core.dialect import CODENAME, VERSION
from tqp.core.keywords import (
    COLUMN_AND_FUNCTION_WORDS,
    COLUMN_WORDS,
    FUNCTION_WORDS,
    RESERVED,
    UNRESERVED,
    lower_ascii,
)
from tqp.core.names import DATABASE, MAIN, TEMPORARY
from tqp.data.results.value_text import inner_text
from tqp.planner.catalog_protocol import Catalog
from tqp.planner.functions.overloads import shown_types
from tqp.planner.functions.registry import signatures
from tqp.planner.optimizer import RULES


def _settings(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for name, setting in sorted(catalog.settings().items()):
        yield {
            "name": name,
            "value": setting.text,
            "description": setting.description,
            "input_type": str(setting.data_type),
            "scope": "LOCAL",
            "aliases": [],
        }


#: By logical type: its number, bytes, category and names.
_TYPES: Mapping[str, tuple[int, int | None, str | None, str]] = {
    "BOOLEAN": (10, 1, "BOOLEAN", "bool boolean logical"),
    "TINYINT": (11, 1, "NUMERIC", "int1 tinyint"),
    "SMALLINT": (12, 2, "NUMERIC", "int16 int2 short smallint"),
    "INTEGER": (13, 4, "NUMERIC", "int int32 int4 integer integral signed"),
    "BIGINT": (14, 8, "NUMERIC", "bigint int64 int8 long oid"),
    "HUGEINT": (50, 16, "NUMERIC", "hugeint int128"),
    "UTINYINT": (28, 1, "NUMERIC", "uint8 utinyint"),
    "USMALLINT": (29, 2, "NUMERIC", "uint16 usmallint"),
    "UINTEGER": (30, 4, "NUMERIC", "uint32 uinteger"),
    "UBIGINT": (31, 8, "NUMERIC", "ubigint uint64"),
    "UHUGEINT": (49, 16, "NUMERIC", "uhugeint uint128"),
    "DECIMAL": (21, None, "NUMERIC", "dec decimal numeric"),
    "FLOAT": (22, 4, "NUMERIC", "float float4 real"),
    "DOUBLE": (23, 8, "NUMERIC", "double float8"),
    "DATE": (15, 4, "DATETIME", "date"),
    "TIME": (16, 8, "DATETIME", "time"),
    "TIME WITH TIME ZONE": (34, 8, "DATETIME", "timetz"),
    "TIMESTAMP": (19, 8, "DATETIME", "datetime timestamp timestamp_us"),
    "TIMESTAMP_S": (17, 8, "DATETIME", "timestamp_s"),
    "TIMESTAMP_MS": (18, 8, "DATETIME", "timestamp_ms"),
    "TIMESTAMP_NS": (20, 8, "DATETIME", "timestamp_ns"),
    "TIMESTAMP WITH TIME ZONE": (32, 8, "DATETIME", "timestamptz"),
    "INTERVAL": (27, 16, "DATETIME", "interval"),
    "VARCHAR": (25, 16, "STRING", "bpchar char nvarchar string text varchar"),
    "BLOB": (26, 16, None, "binary blob bytea varbinary"),
    "BIT": (36, 16, None, "bit bitstring"),
    "UUID": (54, 16, None, "guid uuid"),
    "LIST": (101, 16, "COMPOSITE", "list"),
    "STRUCT": (100, 0, "COMPOSITE", "row struct"),
    "MAP": (102, 16, "COMPOSITE", "map"),
    "UNION": (107, 0, "COMPOSITE", "union"),
    "ARRAY": (108, 0, "COMPOSITE", "array"),
    "ENUM": (104, None, None, "enum"),
}


def type_number(data_type: DataType) -> int | None:
    """The number of the logical type, None of one without any."""
    found = _TYPES.get(logical_type(data_type))
    return None if found is None else found[0]


def logical_type(data_type: DataType) -> str:
    """The name of a type without what it is made of."""
    kind = data_type.kind.name
    return str(data_type) if str(data_type) in _TYPES else kind


_PLAIN: Row = {"tags": [], "parameters": [], "parameter_types": []}


def built_in_types() -> Iterator[tuple[str, int, int | None, str | None, str]]:
    """Logical types with their numbers, bytes, categories and first names."""
    for logical, (number, size, category, names) in _TYPES.items():
        yield logical, number, size, category, names.split()[0]


def _types(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    place = {"database_name": DATABASE, "schema_name": MAIN}
    for logical, (number, size, category, names) in _TYPES.items():
        for name in names.split():
            yield {
                **place,
                "type_oid": number if name == names.split()[0] else None,
                "type_name": name,
                "type_size": size,
                "logical_type": logical,
                "type_category": category,
                "internal": True,
                **_PLAIN,
            }
    for at, data_type in state.types.items():
        logical = logical_type(data_type)
        _, size, category, _ = _TYPES.get(logical, (0, None, None, ""))
        yield {
            "database_name": TEMPORARY if at.schema == TEMPORARY else DATABASE,
            "schema_name": state.schemas.get(at.schema, MAIN),
            "type_name": at.name,
            "type_size": size,
            "logical_type": logical,
            "type_category": category,
            "internal": False,
            **_PLAIN,
            "labels": list(data_type.categories) if data_type.categories is not None else None,
        }


def functions(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    """All overloads of functions, and macros."""
    system = {"database_name": "system", "schema_name": MAIN, "internal": True}
    for kind, name, alias_of, overloads in signatures():
        for overload in overloads:
            types, result = shown_types(overload)
            yield {
                **system,
                "function_name": name,
                "alias_of": alias_of,
                "function_type": kind,
                "return_type": result,
                "parameters": [f"col{place}" for place in range(len(types))],
                "parameter_types": types,
                "tags": [],
            }
    forms = [(macro, form) for macro in state.macros.values() for form in macro.forms]
    for macro, form in forms:
        yield {
            "database_name": TEMPORARY if macro.temporary else DATABASE,
            "schema_name": macro.schema,
            "function_name": macro.name,
            "comment": macro.comment,
            "function_type": "table_macro" if macro.is_table else "macro",
            "parameters": list(form.parameters),
            "parameter_types": [
                str(form.types[each]) if each in form.types else None for each in form.parameters
            ],
            "macro_definition": macro_body(macro, form),
            "tags": [],
            "internal": False,
        }


def _variables(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for name, value in state.variables.items():
        shown = str(NULL if value.value is None else value.data_type)
        yield {"name": name, "value": text_of(value), "type": shown}


def _keywords(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for category, words in (
        ("reserved", RESERVED),
        ("unreserved", UNRESERVED),
        ("column_name", COLUMN_WORDS | COLUMN_AND_FUNCTION_WORDS),
        ("type_function", FUNCTION_WORDS | COLUMN_AND_FUNCTION_WORDS),
    ):
        for word in sorted(words):
            yield {"keyword_name": lower_ascii(word), "keyword_category": category}


def _optimizers(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    """The rules that can be switched off, and those that cannot."""
    return ({"name": name} for name, _ in RULES)


def _version(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    yield {"library_version": VERSION, "source_id": "", "codename": CODENAME}


def index_expressions(index: IndexDefinition) -> str:
    """What an index is over, as a list in a text."""
    return f"[{', '.join(map(inner_text, index.items))}]"


def _indexes(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for table, index in state.indexes():
        yield {
            "database_name": TEMPORARY if table.definition.temporary else DATABASE,
            "schema_name": table.definition.schema,
            "index_name": index.name,
            "comment": index.comment,
            "table_name": table.name,
            "tags": [],
            "is_unique": index.unique is not None,
            "is_primary": False,
            "expressions": index_expressions(index),
            "sql": create_index(table.definition, index),
        }


def _sequences(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for sequence in state.sequences.values():
        each = sequence.definition
        yield {
            "database_name": TEMPORARY if each.temporary else DATABASE,
            "schema_name": each.schema,
            "sequence_name": each.name,
            "tags": [],
            "temporary": each.temporary,
            "start_value": each.start,
            "min_value": each.minimum,
            "max_value": each.maximum,
            "increment_by": each.increment,
            "cycle": each.cycles,
            "last_value": sequence.last,
            "sql": create_sequence(each.name, sequence),  # in DuckDB, too, without quotes and schema
        }


#: What memory is used for, in DuckDB's words. Here tables are known to use it.
_TAGS = """BASE_TABLE HASH_TABLE PARQUET_READER CSV_READER ORDER_BY ART_INDEX COLUMN_DATA METADATA OVERFLOW_STRINGS IN_MEMORY_TABLE
    ALLOCATOR EXTENSION TRANSACTION EXTERNAL_FILE_CACHE WINDOW OBJECT_CACHE""".split()


def _memory(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for tag in _TAGS:
        used = _bytes_of_tables(state) if tag == "IN_MEMORY_TABLE" else 0
        yield {"tag": tag, "memory_usage_bytes": used, "temporary_storage_bytes": 0}


def _bytes_of_tables(state: CatalogState) -> int:
    """What their columns take that queries have read."""
    return sum(table.memory_bytes for table in state.tables.values())


def _database_size(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    """Nothing is stored: all is in memory."""
    limit = catalog.settings()["memory_limit"].text
    yield {
        "database_name": DATABASE,
        "database_size": "0 bytes",
        "wal_size": "0 bytes",
        "memory_usage": shown_size(_bytes_of_tables(state)),
        "memory_limit": limit,
        **dict.fromkeys("block_size total_blocks used_blocks free_blocks".split(), 0),
    }


def prepared_statements(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    """Those of PREPARE, as they are written."""
    for each in state.prepared.values():
        types = None if each.types is None else [str(kind or "UNKNOWN") for kind in each.types]
        yield {
            "name": each.name,
            "statement": each.text,
            "parameter_types": ["UNKNOWN"] * each.num_parameters or None,
            "result_types": types,
        }


def _connections(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    """The tables of a connection are its own."""
    yield {"count": 1}


def _agent(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    yield {"user_agent": "tqp"}


def _platform(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    machine = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64"}.get(
        platform.machine(), platform.machine()
    )
    system = {"darwin": "osx"}.get(lower_ascii(platform.system()), lower_ascii(platform.system()))
    yield {"platform": f"{system}_{machine}"}


def _none(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    return iter(())


ENGINE_TABLES: Mapping[str, SystemTable] = {
    "duckdb_settings()": table_of(_settings, "name value description input_type scope aliases:a"),
    "duckdb_types()": table_of(
        _types,
        "database_name database_oid:l schema_name schema_oid:l type_oid:l type_name type_size:l logical_type type_category"
        " comment tags:m internal:b extension_name labels:a parameters:a parameter_types:a varargs",
    ),
    "duckdb_functions()": table_of(
        functions,
        "database_name database_oid schema_name function_name alias_of function_type description comment tags:m return_type"
        " parameters:a parameter_types:a varargs macro_definition has_side_effects:b internal:b extension_name"
        " function_oid:l examples:a stability categories:a",
    ),
    "duckdb_indexes()": table_of(
        _indexes,
        "database_name database_oid:l schema_name schema_oid:l index_name index_oid:l table_name table_oid:l comment"
        " tags:m is_unique:b is_primary:b expressions sql",
    ),
    "duckdb_sequences()": table_of(
        _sequences,
        "database_name database_oid:l schema_name schema_oid:l sequence_name sequence_oid:l comment tags:m temporary:b"
        " start_value:l min_value:l max_value:l increment_by:l cycle:b last_value:l sql",
    ),
    "duckdb_variables()": table_of(_variables, "name value type"),
    "duckdb_keywords()": table_of(_keywords, "keyword_name keyword_category"),
    "duckdb_optimizers()": table_of(_optimizers, "name"),
    "duckdb_extensions()": table_of(
        _none,
        "extension_name loaded:b installed:b install_path description aliases:a extension_version install_mode"
        " installed_from signature_key_fingerprint",
    ),
    "duckdb_secrets()": table_of(_none, "name type provider persistent:b storage scope:a secret_string"),
    "duckdb_temporary_files()": table_of(_none, "path size:l"),
    "duckdb_memory()": table_of(_memory, "tag memory_usage_bytes:l temporary_storage_bytes:l"),
    "duckdb_prepared_statements()": table_of(
        prepared_statements, "name statement parameter_types:a result_types:a"
    ),
    "duckdb_logs()": table_of(_none, "context_id:u timestamp:z type log_level message"),
    "duckdb_log_contexts()": table_of(
        _none, "context_id:u scope connection_id:u transaction_id:u query_id:u thread_id:u"
    ),
    "duckdb_connection_count()": table_of(_connections, "count:u"),
    "duckdb_secret_types()": table_of(_none, "type default_provider extension"),
    "pragma_database_size()": table_of(
        _database_size,
        "database_name database_size block_size:l total_blocks:l used_blocks:l free_blocks:l wal_size memory_usage"
        " memory_limit",
    ),
    "pragma_platform()": table_of(_platform, "platform"),
    "pragma_user_agent()": table_of(_agent, "user_agent"),
    "pragma_version()": table_of(_version, "library_version source_id codename"),
}
