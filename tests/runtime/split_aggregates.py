"""For tests of rules that aggregate in steps: answers are DuckDB's, and the plan has as many steps as it should have."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

import tqp
from tests.oracle import duckdb_database


def num_aggregates(connection: tqp.Connection, query: str) -> int:
    """The aggregates in the query's logical plan."""
    return connection.explain(query).partition("Physical plan")[0].count("Aggregate")


def assert_split(
    tables: Mapping[str, pa.Table], table: str, expected: Mapping[str, int], backend: str, order: str = ""
) -> None:
    """Compares queries, in which `{0}` stands for the table, with DuckDB; of table "t" their aggregates are as many as expected."""
    with tqp.connect(threads=2, backend=backend, batch_rows=500) as connection, duckdb_database() as oracle:
        for name, data in tables.items():
            connection.register(name, data)
            oracle.register(name, data)
        for query, number in expected.items():
            text = query.format(table) + order
            found, answer = connection.sql(text), oracle.sql(text)
            assert [*map(str, found.types)] == [*map(str, answer.types)], text
            assert repr(found.fetchall()) == repr(answer.fetchall()), text
            if table == "t":
                assert num_aggregates(connection, text) == number, text
