"""Calls of a constant NULL: what is text of them bends to what it is compared with, or does not, as in DuckDB."""

from __future__ import annotations

import duckdb
import pytest

import tqp
from tests.oracle import duckdb_database
from tqp.planner.functions.registry import SCALARS

_ARGUMENTS = (
    *("NULL", "NULL, NULL", "NULL, 'a'", "NULL, 1", "'a', NULL", "NULL, 1, 2"),
    *(f"NULL::{each}" for each in ("VARCHAR", "BLOB", "BIGINT", "DATE", "TIMESTAMP", "DOUBLE")),
)
#: Whose text for the order, or the bounds, is wrong: tqp asks before it knows of the NULL, or the other way round. And cardinality()
#: and to_json(), which DuckDB gives any number of arguments if one is NULL.
_OTHERWISE = frozenset(
    "list_sort list_reverse_sort array_sort array_reverse_sort list_slice array_length list_resize array_resize cardinality to_json json_quote".split()
)


def _names() -> list[str]:
    spelled = {name for function in SCALARS.values() for form in function.forms for name in form.split()}
    return sorted(name for name in spelled - _OTHERWISE if name.isidentifier())


def _type(connection: duckdb.DuckDBPyConnection | tqp.Connection, sql: str) -> str | None:
    """Of the only column; None where the query is refused."""
    try:
        if isinstance(connection, tqp.Connection):
            return str(connection.sql(sql).types[0])
        return str(connection.execute(sql).description[0][1])  # type: ignore[index]
    except (duckdb.Error, tqp.Error) as error:
        return "unsupported" if isinstance(error, tqp.UnsupportedError) else None


@pytest.mark.parametrize("start", range(4))
def test_texts_bend(start: int) -> None:
    differences = []
    with duckdb_database() as oracle, tqp.connect() as connection:
        for name in _names()[start::4]:
            for arguments in _ARGUMENTS:
                for sql in (f"SELECT {name}({arguments}) >= 1", f"SELECT greatest(1, {name}({arguments}))"):
                    expected, actual = _type(oracle, sql), _type(connection, sql)
                    if actual not in (expected, "unsupported"):
                        differences.append((sql, expected, actual))
    assert not differences
