"""`make_source`: any object that can be registered, as a table that the planner and the runtime can read."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from tqp.core.errors import BindError
from tqp.data.sources.base import Source
from tqp.data.sources.files import file_source
from tqp.data.sources.objects.arrow_tables import ArrowSource
from tqp.data.sources.objects.frames import PandasSource, is_from, table_of_pandas, table_of_polars
from tqp.data.sources.objects.lazy_tables import consume, lazy_table
from tqp.data.sources.objects.tensors import TensorSource

_ACCEPTED = (
    "an Arrow table, record batch, array or reader, anything with __arrow_c_stream__ or __arrow_c_array__, a pandas or Polars"
    " data frame or series, NumPy arrays, a dict of NumPy arrays or torch tensors, a list or generator of dicts, tuples or frames,"
    " or the path of Parquet or CSV files"
)
#: The name of the column where what is registered is one without a name.
_ONE_COLUMN = "value"


def make_source(name: str, data: object, device: torch.device, for_one_query: bool = False) -> Source:
    """The source for `data` registered as `name`; see the message of the BindError it raises for what is accepted.

    `for_one_query`: of what is lazy, only the columns that it asks for are read.

    >>> source = make_source("t", {"x": __import__("numpy").arange(3)}, torch.device("cpu"))
    >>> source.num_rows, str(source.column_type("x"))
    (3, 'BIGINT')
    """
    source = consume(name, lambda: lazy_table(name, data, device)) if for_one_query else None
    if source is None:
        source = _source(name, data, device)
    if not source.column_names:
        raise BindError(f'table "{name}" has no columns; a table needs at least one')
    return source


def _source(name: str, data: Any, device: torch.device) -> Source:
    if isinstance(data, Source):
        return data
    if isinstance(data, (str, os.PathLike)) or _is_list_of(data, (str, os.PathLike)):
        return file_source(name, data, device)
    if isinstance(data, pa.Table):
        return ArrowSource(name, data, device, owner=data)
    if isinstance(data, pa.RecordBatch):
        return ArrowSource(name, pa.Table.from_batches([data]), device, owner=data)
    if isinstance(data, Mapping):
        return TensorSource(name, consume(name, lambda: dict(data)), device)
    if is_from(data, "pandas", "DataFrame"):
        return PandasSource(name, data, device)
    if is_from(data, "pandas", "Series"):
        return PandasSource(name, data.to_frame(_ONE_COLUMN), device)
    if isinstance(data, Iterator) and not isinstance(data, (pa.RecordBatchReader, io.IOBase)):
        data = consume(name, lambda: list(data))
        if not data:
            raise BindError(f'table "{name}": the iterator gives nothing; what it gave before is gone')
    columns = _columns(data)
    if columns is not None:
        return TensorSource(name, columns, device)
    table = consume(name, lambda: _arrow_table(name, data))
    if table is None:
        kind = type(data)
        raise BindError(
            f'table "{name}": cannot read a {kind.__module__}.{kind.__qualname__}; tqp reads {_ACCEPTED}'
        )
    return ArrowSource(name, table, device)


def _columns(data: Any) -> dict[str, Any] | None:
    """What is one column, or an array or list of columns, by the names that DuckDB gives them; None for anything else."""
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        return {_ONE_COLUMN: data}
    if isinstance(data, np.ndarray) and data.ndim == 1 and data.dtype.names:
        return {field: data[field] for field in data.dtype.names}
    if is_from(data, "polars", "Series"):
        return {data.name or _ONE_COLUMN: data}
    if isinstance(data, (np.ndarray, Tensor)) and data.ndim == 1:
        return {"column0": data}
    if isinstance(data, np.ndarray) and data.ndim == 2 or _is_list_of(data, np.ndarray):
        return {f"column{number}": values for number, values in enumerate(data)}
    if _is_list_of(data, Mapping):
        names = dict.fromkeys(key for row in data for key in row)
        return {name: [row.get(name) for row in data] for name in names}
    if _is_list_of(data, tuple) and len(set(map(len, data))) == 1:
        fields = getattr(data[0], "_fields", [f"column{number}" for number in range(len(data[0]))])
        return dict(zip(fields, map(list, zip(*data, strict=True)), strict=True))
    return None


def _arrow_table(name: str, data: Any) -> pa.Table | None:
    if isinstance(data, (list, tuple)) and data:
        parts = [_arrow_table(name, part) for part in data]
        tables = [part for part in parts if part is not None]
        return pa.concat_tables(tables) if len(tables) == len(parts) else None
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return data if isinstance(data, pa.Table) else pa.Table.from_batches([data])
    if is_from(data, "pandas", "DataFrame"):
        return table_of_pandas(name, data)
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    if is_from(data, "polars", "LazyFrame"):
        data = data.collect()
    if is_from(data, "polars", "DataFrame"):
        return table_of_polars(name, data)
    if is_from(data, "pyarrow", "Dataset") or is_from(data, "pyarrow", "Scanner"):
        return data.to_table()
    if is_from(data, "datasets", "Dataset"):  # of Hugging Face
        return _arrow_table(name, data.with_format("arrow")[:])
    if type(data).__name__ == "PyCapsule":
        data = _StreamOf(data)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data).read_all()
    if hasattr(data, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(data)])
    return None


class _StreamOf:
    """What gives a capsule that holds a stream of record batches to those who ask for it."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._capsule


def _is_list_of(data: object, kinds: type | tuple[type, ...]) -> bool:
    return isinstance(data, (list, tuple)) and bool(data) and all(isinstance(item, kinds) for item in data)
