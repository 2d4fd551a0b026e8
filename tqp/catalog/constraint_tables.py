"""duckdb_constraints(), and the views of information_schema over it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tqp.catalog.definitions_as_sql import foreign_key_text, key_text
from tqp.catalog.state import CatalogState
from tqp.catalog.system_table import Row, SystemTable, table_of
from tqp.core.definitions import ForeignKey, TableDefinition
from tqp.core.keywords import lower_ascii, quoted
from tqp.core.names import DATABASE, TEMPORARY
from tqp.data.sources.stored_tables import StoredTable
from tqp.planner.catalog_protocol import Catalog
from tqp.planner.syntax.tokens import tokenize

#: What the names of constraints end in.
_ENDINGS = {
    "PRIMARY KEY": "pkey",
    "UNIQUE": "key",
    "FOREIGN KEY": "fkey",
    "CHECK": "check",
    "NOT NULL": "not_null",
}


def constraints(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    """Keys and checks in the order in which they are kept, then what must not be NULL."""
    for table in state.tables.values():
        if not isinstance(table, StoredTable):
            continue
        definition = table.definition
        found: list[tuple[str, str, str | None, tuple[str, ...], ForeignKey | None]] = [
            ("PRIMARY KEY" if key.is_primary else "UNIQUE", key_text(key), None, key.columns, None)
            for key in definition.keys
        ]
        found += [
            ("FOREIGN KEY", foreign_key_text(key), None, key.columns, key) for key in definition.foreign_keys
        ]
        found += [
            ("CHECK", f"CHECK(({check}))", f"({check})", _columns_in(check, definition), None)
            for check in definition.checks
        ]
        found += [
            ("NOT NULL", "NOT NULL", None, (column.name,), None)
            for column in definition.columns
            if not column.nullable
        ]
        for number, (kind, text, expression, columns, foreign) in enumerate(found):
            ending = _ENDINGS[kind]
            referenced = () if foreign is None else foreign.referenced
            yield {
                "database_name": TEMPORARY if definition.temporary else DATABASE,
                "schema_name": definition.schema,
                "table_name": table.name,
                "constraint_index": number,
                "constraint_type": kind,
                "constraint_text": text,
                "expression": expression,
                "constraint_column_indexes": [definition.place_of(each) for each in columns],
                "constraint_column_names": list(columns),
                "constraint_name": "_".join((table.name, *columns, *referenced, ending)),
                "referenced_table": None if foreign is None else foreign.table,
                "referenced_column_names": list(referenced),
            }


def _columns_in(check: str, definition: TableDefinition) -> tuple[str, ...]:
    """The columns that a condition reads, in the order in which it names them first."""
    tokens = tokenize(check)
    columns = {lower_ascii(name): name for name in definition.names}
    names = (
        lower_ascii(tokens.name(index))
        for index in range(len(tokens.stops) - 1)
        if tokens.kinds[index + 1] not in ("(", ".")
    )
    return tuple(dict.fromkeys(columns[name] for name in names if name in columns))


def _named(row: Row) -> Row:
    """A constraint with the names that information_schema has for where it and its table stand."""
    database, schema = row["database_name"], row["schema_name"]
    return {
        **row,
        "constraint_catalog": database,
        "constraint_schema": schema,
        "table_catalog": database,
        "table_schema": schema,
    }


def _check_constraints(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for each in map(_named, constraints(state, catalog)):
        kind, columns = each["constraint_type"], each["constraint_column_names"]
        if kind in ("CHECK", "NOT NULL"):
            clause = each["constraint_text"] if kind == "CHECK" else f"{quoted(columns[0])} IS NOT NULL"
            yield {**each, "check_clause": clause}


def _table_constraints(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for each in map(_named, constraints(state, catalog)):
        kind = each["constraint_type"]
        yield {
            **each,
            "constraint_type": "CHECK" if kind == "NOT NULL" else kind,
            "is_deferrable": "NO",
            "initially_deferred": "NO",
            "enforced": "YES",
            "nulls_distinct": "YES",
        }


def _key_column_usage(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for each in map(_named, constraints(state, catalog)):
        if each["constraint_type"] not in ("CHECK", "NOT NULL"):
            is_foreign = each["constraint_type"] == "FOREIGN KEY"
            for place, column in enumerate(each["constraint_column_names"], 1):
                yield {
                    **each,
                    "column_name": column,
                    "ordinal_position": place,
                    "position_in_unique_constraint": place if is_foreign else None,
                }


def _constraint_table_usage(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    return (row for row in map(_named, constraints(state, catalog)) if row["constraint_type"] != "NOT NULL")


def _constraint_column_usage(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    for each in _constraint_table_usage(state, catalog):
        for column in each["constraint_column_names"]:
            yield {**each, "column_name": column}


def _referential_constraints(state: CatalogState, catalog: Catalog) -> Iterator[Row]:
    """Foreign keys, each with the key of the other table."""
    found = list(map(_named, constraints(state, catalog)))
    keys = {
        _key(row, row["table_name"], row["constraint_column_names"]): row["constraint_name"]
        for row in found
        if row["constraint_type"] in ("PRIMARY KEY", "UNIQUE")
    }
    for each in found:
        if each["constraint_type"] == "FOREIGN KEY":
            yield {
                **each,
                "unique_constraint_catalog": each["constraint_catalog"],
                "unique_constraint_schema": each["constraint_schema"],
                "unique_constraint_name": keys[
                    _key(each, each["referenced_table"], each["referenced_column_names"])
                ],
                "match_option": "NONE",
                "update_rule": "NO ACTION",
                "delete_rule": "NO ACTION",
            }


def _key(row: Row, table: str, columns: list[str]) -> tuple[str, ...]:
    """A key by the names of its table and columns; a foreign key is of a table in its own schema."""
    return tuple(map(lower_ascii, (row["constraint_catalog"], row["constraint_schema"], table, *columns)))


CONSTRAINT_TABLES: Mapping[str, SystemTable] = {
    "duckdb_constraints()": table_of(
        constraints,
        "database_name database_oid:l schema_name schema_oid:l table_name table_oid:l constraint_index:l constraint_type"
        " constraint_text expression constraint_column_indexes:p constraint_column_names:a constraint_name"
        " referenced_table referenced_column_names:a",
    ),
    "information_schema.table_constraints": table_of(
        _table_constraints,
        "constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name constraint_type"
        " is_deferrable initially_deferred enforced nulls_distinct",
    ),
    "information_schema.check_constraints": table_of(
        _check_constraints, "constraint_catalog constraint_schema constraint_name check_clause"
    ),
    "information_schema.key_column_usage": table_of(
        _key_column_usage,
        "constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name column_name"
        " ordinal_position:l position_in_unique_constraint:l",
    ),
    "information_schema.referential_constraints": table_of(
        _referential_constraints,
        "constraint_catalog constraint_schema constraint_name unique_constraint_catalog unique_constraint_schema"
        " unique_constraint_name match_option update_rule delete_rule",
    ),
    "information_schema.constraint_column_usage": table_of(
        _constraint_column_usage,
        "table_catalog table_schema table_name column_name constraint_catalog constraint_schema constraint_name"
        " constraint_type constraint_text",
    ),
    "information_schema.constraint_table_usage": table_of(
        _constraint_table_usage,
        "table_catalog table_schema table_name constraint_catalog constraint_schema constraint_name constraint_type",
    ),
}
