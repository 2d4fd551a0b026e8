"""What a connection keeps of its tables, with the bytes that each thing takes."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import torch

from tqp.data.column import Table
from tqp.data.sources.base import Source
from tqp.data.sources.make_source import make_source
from tqp.result import Result

_SCHEMA = pa.schema(
    [("table_name", pa.string()), ("column_name", pa.string()), ("kept", pa.string()), ("bytes", pa.int64())]
)


def ledger(tables: Iterable[Source]) -> Result:
    """A row for each thing that is kept of a column, in the order of the tables and of their columns."""
    rows = [(table.name, *each) for table in tables for each in table.kept()]
    arrays = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(_SCHEMA)]
    source = make_source("ledger", pa.table(arrays, schema=_SCHEMA), torch.device("cpu"))
    columns = tuple(map(source.column, source.column_names))
    names = tuple(source.column_names)
    return Result(names, tuple(column.data_type for column in columns), Table(names, columns, len(rows)))
