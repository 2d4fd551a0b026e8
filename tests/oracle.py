"""Answers of tqp held against DuckDB's on small tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

import tqp


def assert_same_rows(tables: Mapping[str, pa.Table], query: str, **options: Any) -> None:
    """Both engines give the same rows in the same order; `options` are those of `tqp.connect`."""
    with tqp.connect(threads=2, **options) as connection, duckdb.connect() as oracle:
        for name, table in tables.items():
            connection.register(name, table)
            oracle.register(name, table)
        assert connection.sql(query).fetchall() == oracle.sql(query).fetchall()
