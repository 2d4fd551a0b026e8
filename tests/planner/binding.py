"""A table with a column of every type, for tests of the binder, and DuckDB over the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb

from tqp.core.datatypes import (
    BIGINT,
    BLOB,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    HUGEINT,
    INTEGER,
    INTERVAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMP_S,
    TIMESTAMP_TZ,
    TINYINT,
    UBIGINT,
    UINTEGER,
    USMALLINT,
    UTINYINT,
    VARCHAR,
    DataType,
    decimal,
)
from tqp.core.names import ObjectName
from tqp.core.schema import NO_ESTIMATES, NO_FACTS, ColumnEstimates, ColumnFacts
from tqp.planner.bind import BoundStatement, bind
from tqp.planner.catalog_protocol import OrderDefaults

T_COLUMNS: dict[str, DataType] = {
    "ti": TINYINT,
    "si": SMALLINT,
    "i": INTEGER,
    "bi": BIGINT,
    "hi": HUGEINT,
    "ut": UTINYINT,
    "us": USMALLINT,
    "ui": UINTEGER,
    "ub": UBIGINT,
    "d152": decimal(15, 2),
    "d93": decimal(9, 3),
    "d182": decimal(18, 2),
    "d180": decimal(18, 0),
    "d380": decimal(38, 0),
    "f": FLOAT,
    "d": DOUBLE,
    "s": VARCHAR,
    "dt": DATE,
    "ts": TIMESTAMP,
    "tm": TIME,
    "b": BOOLEAN,
    "iv": INTERVAL,
    "bl": BLOB,
    "tz": TIMESTAMP_TZ,
    "tss": TIMESTAMP_S,
    "tns": TIMESTAMP_NS,
}
TABLES: dict[str, dict[str, DataType]] = {
    "t": T_COLUMNS,
    "u": {"i": INTEGER, "j": BIGINT, "Name": VARCHAR},
}


class FakeTable:
    """A table without rows that remembers which columns it had to encode."""

    num_rows = 0

    def __init__(self, name: str, columns: Mapping[str, DataType]) -> None:
        self.name = name
        self.columns = columns
        self.encoded: list[str] = []

    @property
    def place(self) -> ObjectName:
        return ObjectName.of(self.name)

    @property
    def hidden_names(self) -> Sequence[str]:
        return ()

    @property
    def column_names(self) -> Sequence[str]:
        return list(self.columns)

    def column_type(self, name: str) -> DataType:
        return self.columns[name]

    def encode(self, names: Iterable[str]) -> None:
        self.encoded.extend(names)

    def column_nullable(self, name: str) -> bool:
        return True

    def column_facts(self, name: str) -> ColumnFacts:
        return NO_FACTS

    def column_estimates(self, name: str) -> ColumnEstimates:
        return NO_ESTIMATES

    def dictionary_size(self, name: str) -> int | None:
        return None

    def dictionary_encode(self, name: str) -> bool: ...


class NoTables:
    """A catalog with nothing in it, which others widen."""

    def lookup(self, name: str, schemas: tuple[str, ...] = ()) -> Any:
        return None

    def lookup_definition(self, name: str, schemas: tuple[str, ...] = ()) -> None:
        return None

    def lookup_view(self, name: str, schemas: tuple[str, ...] = ()) -> None:
        return None

    def lookup_macro(self, name: str, schemas: tuple[str, ...] = ()) -> None:
        return None

    def schemas_named(self, names: Sequence[str], span: object) -> tuple[str, ...]:
        return tuple(names)

    def search_path(self) -> Sequence[str]:
        return ("main",)

    def seen_from(self, view: object) -> NoTables:
        return self

    def macro_names(self) -> Sequence[str]:
        return ()

    def lookup_files(self, paths: Sequence[str], kind: str | None = None, options: object = None) -> None:
        return None

    def query_time(self) -> int:
        return 0

    def order_defaults(self) -> OrderDefaults:
        return OrderDefaults()

    def table_names(self) -> Sequence[str]:
        return ()

    def lookup_type(self, name: str, schemas: tuple[str, ...] = ()) -> None:
        return None

    def lookup_setting(self, name: str) -> None:
        return None

    def settings(self) -> dict[str, Any]:
        return {}

    def lookup_variable(self, name: str) -> None:
        return None

    def lookup_function(self, name: str) -> None:
        return None

    def function_names(self) -> Sequence[str]:
        return ()


class FakeCatalog(NoTables):
    def __init__(self) -> None:
        self.tables = {name: FakeTable(name, columns) for name, columns in TABLES.items()}

    def lookup(self, name: str, schemas: tuple[str, ...] = ()) -> FakeTable | None:
        return self.tables.get(name.lower())

    def table_names(self) -> Sequence[str]:
        return list(self.tables)


def bound(query: str, parameters: Any = None, catalog: FakeCatalog | None = None) -> BoundStatement:
    return bind(query, catalog or FakeCatalog(), parameters)


def described(query: str, parameters: Any = None) -> list[tuple[str, str]]:
    """(name, type) of each output column, as we see it."""
    statement = bound(query, parameters)
    return [(name, str(made.data_type)) for name, made in zip(statement.names, statement.plan.schema)]


def duckdb_with_tables() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, columns in TABLES.items():
        definitions = ", ".join(f'"{column}" {data_type}' for column, data_type in columns.items())
        connection.execute(f"CREATE TABLE {name} ({definitions})")
    return connection


def duckdb_described(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[str, str]]:
    """(name, type) of each output column, as DuckDB sees it."""
    description = connection.execute(query).description
    return [(name, str(kind)) for name, kind, *_ in description]
