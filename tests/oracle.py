"""Answers of tqp held against DuckDB's on small tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa

import tqp
from tqp.data.arrow_types import ZONED_TIME_ARRAY


def assert_same_rows(tables: Mapping[str, pa.Table], query: str, **options: Any) -> None:
    """Both engines give the same rows in the same order; `options` are those of `tqp.connect`."""
    with tqp.connect(threads=2, **options) as connection, duckdb.connect() as oracle:
        for name, table in tables.items():
            connection.register(name, table)
            oracle.register(name, table)
        assert connection.sql(query).fetchall() == oracle.sql(query).fetchall()


def arrow_of(relation: duckdb.DuckDBPyRelation) -> pa.Table:
    """What DuckDB answers as Arrow; ENUMs as ordered dictionaries, UUIDs and times with a zone as such, which it does not
    say that they are."""
    table = relation.to_arrow_table()
    for place, (field, data_type) in enumerate(zip(table.schema, relation.types, strict=True)):
        if data_type.id == "enum":
            values = pa.array(dict(data_type.children)["values"], pa.string())
            nothing = pa.array([], field.type.index_type)
            indices = [chunk.indices for chunk in table.column(place).chunks] or [nothing]
            chunks = [pa.DictionaryArray.from_arrays(each, values, ordered=True) for each in indices]
            table = table.set_column(place, field.name, pa.chunked_array(chunks))
        if data_type.id == "uuid":
            texts = table.column(place).to_pylist()
            content = pa.array([text and UUID(text).bytes for text in texts], pa.binary(16))
            uuids = pa.ExtensionArray.from_storage(pa.uuid(), content)
            table = table.set_column(place, field.name, uuids)
        if str(data_type) == "TIME WITH TIME ZONE":
            stored = (
                relation.project(f'timetz_byte_comparable("{field.name}")::BIGINT').to_arrow_table().column(0)
            )
            times = pa.ExtensionArray.from_storage(ZONED_TIME_ARRAY, stored.combine_chunks())
            table = table.set_column(place, field.name, times)
    return table
