"""A table of the engine: its columns, and what makes its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from tqp.catalog.state import CatalogState
from tqp.planner.catalog_protocol import Catalog

#: Arrow's types by a letter; text without one.
_KINDS = {
    "": pa.string(),
    "i": pa.int32(),
    "l": pa.int64(),
    "b": pa.bool_(),
    "n": pa.null(),
    "f": pa.float32(),
    "a": pa.list_(pa.string()),
    "u": pa.uint64(),
    "z": pa.timestamp("us", "UTC"),
    "q": pa.list_(pa.int32()),
    "p": pa.list_(pa.int64()),
    "m": pa.map_(pa.string(), pa.string()),
}

#: A row has the values of some columns by name; the others are NULL.
Row = Mapping[str, Any]
RowsOf = Callable[[CatalogState, Catalog], Iterator[Row]]


class SystemTable(NamedTuple):
    """Columns, and what makes the rows."""

    columns: Sequence[tuple[str, pa.DataType]]
    rows: RowsOf


def table_of(rows: RowsOf, columns: str) -> SystemTable:
    """With the columns of these names, each of text, or with the letter of its type behind a colon."""
    parts = (each.partition(":") for each in columns.split())
    return SystemTable([(name, _KINDS[kind]) for name, _, kind in parts], rows)
