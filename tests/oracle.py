"""Answers of tqp held against DuckDB's on small tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from itertools import count
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pyarrow as pa

import tqp
from tqp.data.arrow_buffers import pack_bits
from tqp.data.arrow_types import UHUGEINT_ARRAY, ZONED_TIME_ARRAY

#: DuckDB's own Arrow type of BIT, if it is asked to lose nothing.
BIT_ARRAY = pa.opaque(pa.binary(), "bit", "DuckDB")


_NUMBERS = count()


@contextmanager
def duckdb_database() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to DuckDB whose database is empty and its own, for most of what `duckdb.connect()` is for.

    All are of one instance, as to start one takes 25 ms of a processor: what is set or created for a whole instance
    (functions, secrets, attached files), and the name of the database, is not for such a connection.
    """
    name = f"own_{next(_NUMBERS)}"
    with _instance().cursor() as connection:
        connection.execute(f"ATTACH ':memory:' AS {name}; USE {name}")
        try:
            yield connection
        finally:
            with _instance().cursor() as other:
                connection.close()
                other.execute(f"DETACH {name}")


@cache
def _instance() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


class _Tables(dict[str, pa.Table]):
    """Tables as a key: another mapping of the same names to the same objects is equal."""

    def _identities(self) -> tuple[tuple[str, int], ...]:
        return tuple((name, id(table)) for name, table in self.items())

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self._identities())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Tables) and self._identities() == other._identities()


def duckdb_rows(tables: Mapping[str, pa.Table], query: str) -> list[tuple[Any, ...]]:
    """DuckDB's rows, which tests of the same query under other settings share; not to be changed."""
    return _duckdb_rows(_Tables(tables), query)


@lru_cache(maxsize=256)
def _duckdb_rows(tables: _Tables, query: str) -> list[tuple[Any, ...]]:
    return _reading(tables).sql(query).fetchall()


@lru_cache(maxsize=8)
def _reading(tables: _Tables) -> duckdb.DuckDBPyConnection:
    """A connection to DuckDB with the tables, which are its own: registered tables are temporary views."""
    oracle = _instance().cursor()
    for name, table in tables.items():
        oracle.register(name, table)
    return oracle


def assert_same_rows(tables: Mapping[str, pa.Table], query: str, **options: Any) -> None:
    """Both engines give the same rows in the same order; `options` are those of `tqp.connect`."""
    with tqp.connect(threads=2, **options) as connection:
        for name, table in tables.items():
            connection.register(name, table)
        assert connection.sql(query).fetchall() == duckdb_rows(tables, query)


def answer_of(connection: duckdb.DuckDBPyConnection | tqp.Connection, query: str) -> object:
    """Names and types of the columns, and the rows; None of what is refused."""
    try:
        found = connection.execute(query)
    except (duckdb.Error, tqp.Error):
        return None
    description = found.description
    assert description is not None
    return [each[0] for each in description], [str(each[1]) for each in description], found.fetchall()


def unsigned_array(low: pa.Array, high: pa.Array) -> pa.ExtensionArray:
    """A UHUGEINT column of tqp of the two words of its values, uint64 with the same NULLs."""
    words = np.empty((len(low), 2), np.uint64)
    words[:, 0] = low.fill_null(0).to_numpy()
    words[:, 1] = high.fill_null(0).to_numpy() ^ np.uint64(2**63)
    storage_type = UHUGEINT_ARRAY.storage_type
    valid = low.is_valid().to_numpy(zero_copy_only=False)
    storage = pa.Array.from_buffers(storage_type, len(low), [pack_bits(valid), pa.py_buffer(words)])
    return pa.ExtensionArray.from_storage(UHUGEINT_ARRAY, storage)


def with_bits(relation: duckdb.DuckDBPyRelation) -> pa.Table:
    """What DuckDB answers as Arrow; BITs as such."""
    table = relation.to_arrow_table()
    for place, (field, data_type) in enumerate(zip(table.schema, relation.types, strict=True)):
        if "BIT" in str(data_type):
            table = table.set_column(
                place, field.name, table.column(place).cast(_with_bits(field.type, data_type))
            )
    return table


def _with_bits(arrow: pa.DataType, data_type: Any) -> pa.DataType:
    """The Arrow type with that of BIT for the bytes that are BITs."""
    if data_type.id not in ("list", "array", "struct", "map"):
        return BIT_ARRAY if str(data_type) == "BIT" else arrow
    children = [each for _, each in data_type.children if not isinstance(each, int)]
    given = (
        (arrow.key_type, arrow.item_type)
        if data_type.id == "map"
        else [arrow.field(place).type for place in range(arrow.num_fields)]
    )
    inner = [_with_bits(*pair) for pair in zip(given, children, strict=True)]
    match data_type.id:
        case "list":
            return pa.list_(arrow.field(0).with_type(inner[0]))
        case "array":
            return pa.list_(arrow.field(0).with_type(inner[0]), arrow.list_size)
        case "map":
            return pa.map_(*inner)
    return pa.struct([field.with_type(each) for field, each in zip(arrow, inner, strict=True)])


def arrow_of(relation: duckdb.DuckDBPyRelation) -> pa.Table:
    """What DuckDB answers as Arrow; ENUMs as ordered dictionaries, UUIDs, BITs and times with a zone as such, which it does not
    say that they are."""
    table = with_bits(relation)
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
        if str(data_type) == "UHUGEINT":  # the bits of which it gives Arrow as those of a signed integer
            words = (
                f'("{field.name}" {part})::UBIGINT'
                for part in ("% 18446744073709551616", "// 18446744073709551616")
            )
            low, high = (
                column.combine_chunks()
                for column in relation.project(", ".join(words)).to_arrow_table().columns
            )
            table = table.set_column(place, field.name, unsigned_array(low, high))
        if str(data_type) == "TIME WITH TIME ZONE":
            stored = (
                relation.project(f'timetz_byte_comparable("{field.name}")::BIGINT').to_arrow_table().column(0)
            )
            times = pa.ExtensionArray.from_storage(ZONED_TIME_ARRAY, stored.combine_chunks())
            table = table.set_column(place, field.name, times)
    return table
