"""`make_source`: any object that can be registered, as a table that the planner and the runtime can read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import torch

from tqp.core.errors import BindError, Error
from tqp.data.files import file_source
from tqp.data.frames import ArrowSource, PandasSource
from tqp.data.source_base import Source
from tqp.data.tensors import TensorSource

_ACCEPTED = (
    "an Arrow table, record batch or reader, anything with __arrow_c_stream__ or __arrow_c_array__, a pandas or Polars"
    " data frame, a dict of NumPy arrays or torch tensors, or the path of Parquet or CSV files"
)


def make_source(name: str, data: object, device: torch.device) -> Source:
    """The source for `data` registered as `name`; see the message of the BindError it raises for what is accepted.

    >>> source = make_source("t", {"x": __import__("numpy").arange(3)}, torch.device("cpu"))
    >>> source.num_rows, str(source.column_type("x"))
    (3, 'BIGINT')
    """
    if isinstance(data, Source):
        return data
    if isinstance(data, (str, os.PathLike)) or _is_list_of(data, (str, os.PathLike)):
        return file_source(name, data, device)
    if isinstance(data, pa.Table):
        return ArrowSource(name, data, device, owner=data)
    if isinstance(data, pa.RecordBatch):
        return ArrowSource(name, pa.Table.from_batches([data]), device, owner=data)
    if _is_list_of(data, pa.RecordBatch):
        return ArrowSource(name, _consume(name, lambda: pa.Table.from_batches(data)), device)
    if isinstance(data, pa.RecordBatchReader):
        return ArrowSource(name, _consume(name, data.read_all), device)
    if isinstance(data, Mapping):
        return TensorSource(name, data, device)
    if _is_from(data, "pandas", "DataFrame"):
        return PandasSource(name, data, device)
    if _is_from(data, "polars", "LazyFrame"):
        data = _consume(name, data.collect)  # type: ignore[attr-defined]
    if _is_from(data, "pyarrow", "Dataset"):
        return ArrowSource(name, _consume(name, data.to_table), device)  # type: ignore[attr-defined]
    if hasattr(data, "__arrow_c_stream__") and not _is_from(data, "pandas", "Series"):
        return ArrowSource(name, _consume(name, lambda: _from_stream(data)), device)
    if hasattr(data, "__arrow_c_array__"):
        return ArrowSource(
            name, _consume(name, lambda: pa.Table.from_batches([pa.record_batch(data)])), device
        )
    kind = type(data)
    raise BindError(
        f'table "{name}": cannot read a {kind.__module__}.{kind.__qualname__}; tqp reads {_ACCEPTED}'
    )


def _from_stream(data: Any) -> pa.Table:
    reader = pa.RecordBatchReader.from_stream(data)
    return reader.read_all()


def _consume(name: str, read: Callable[[], Any]) -> Any:
    """`read()`, with what it raises as a BindError that names the table."""
    try:
        return read()
    except Error:
        raise
    except Exception as error:
        raise BindError(f'table "{name}" cannot be read: {error}') from error


def _is_list_of(data: object, kinds: type | tuple[type, ...]) -> bool:
    return isinstance(data, (list, tuple)) and bool(data) and all(isinstance(item, kinds) for item in data)


def _is_from(data: object, package: str, class_name: str) -> bool:
    """Whether `data` is an instance of package.….class_name, without importing the package."""
    return any(
        kind.__name__ == class_name and kind.__module__.partition(".")[0] == package
        for kind in type(data).__mro__
    )
