"""A dict of NumPy arrays, torch tensors or Arrow arrays as a registered table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from tqp.core import datatypes
from tqp.core.datatypes import DataType
from tqp.core.errors import BindError
from tqp.data.arrow_types import type_of_values
from tqp.data.column import Column
from tqp.data.encoding.columns import encode_column
from tqp.data.encoding.device_columns import LEFT_TO_THE_HOST, encode_on_device
from tqp.data.sources.base import Source
from tqp.data.sources.objects.frames import arrow_of_polars, arrow_of_series, is_from
from tqp.data.sources.objects.numpy_arrays import arrow_of_numpy, arrow_of_vectors, unchanging
from tqp.data.sources.objects.python_objects import arrow_of_objects

_HALF_FLOATS = (torch.float16, torch.bfloat16)


class TensorSource(Source):
    """Columns of equal length by name, as they are when registered; moved to the source's device when first touched.

    A 2-d float32 array is a column of FLOAT[size]. As in DuckDB, NaN in a NumPy array is NULL; in a tensor it is NaN.
    """

    def __init__(self, name: str, data: Mapping[Any, Any], device: torch.device) -> None:
        super().__init__(name, data.keys(), device)
        #: Tensors that are trained: programs with gradients read them as they are when they run.
        self._parameters = {
            position: values
            for position, values in enumerate(data.values())
            if isinstance(values, Tensor) and values.requires_grad
        }
        self._data = [
            self._checked(column, values)
            for column, values in zip(self.column_names, data.values(), strict=True)
        ]
        lengths = {column: len(values) for column, values in zip(self.column_names, self._data, strict=True)}
        if len(set(lengths.values())) > 1:
            text = ", ".join(f'"{column}" {length}' for column, length in lengths.items())
            raise BindError(f'table "{name}": columns must have equal lengths, but have {text}')
        self.num_rows = next(iter(lengths.values()), 0)

    def _checked(self, column: str, values: Any) -> pa.Array | pa.ChunkedArray | Tensor:
        """The values in a form that nobody else writes to."""
        where = f'column "{column}" of table "{self.name}"'
        if isinstance(values, (pa.Array, pa.ChunkedArray)):
            return values
        if isinstance(values, (list, tuple, range)):
            return arrow_of_objects(values, where)
        if is_from(values, "pandas", "Series"):
            return arrow_of_series(values.copy(deep=True), where)
        if is_from(values, "polars", "Series"):
            return arrow_of_polars(values, where)
        if isinstance(values, Tensor):
            return self._checked_tensor(where, values)
        if not isinstance(values, np.ndarray):
            raise BindError(
                f"{where} is a {type(values).__name__}; a dict must hold NumPy arrays, torch tensors, Arrow arrays,"
                " series or lists"
            )
        if (
            values.ndim == 2
            and values.shape[1] > 0
            and values.dtype.newbyteorder("=") in (np.float32, np.float16)
        ):
            return arrow_of_vectors(unchanging(values), where)
        if values.ndim != 1:
            raise BindError(f"{where} has {_shape(values)}")
        return arrow_of_numpy(unchanging(values), where)

    def _checked_tensor(self, where: str, values: Tensor) -> Tensor:
        kind = _kind(values)
        if kind != "strided":
            raise BindError(f"{where} is a {kind} tensor; make it a dense one, for example with .to_dense()")
        is_vectors = (
            values.ndim == 2 and values.shape[1] > 0 and values.dtype in (torch.float32, *_HALF_FLOATS)
        )
        if values.ndim != 1 and not is_vectors:
            raise BindError(f"{where} has {_shape(values)}")
        return values.detach().clone()

    def _type_at(self, position: int) -> DataType:
        values = self._data[position]
        if isinstance(values, Tensor):
            if values.ndim == 2:
                return datatypes.array(values.shape[1])
            values = _arrow_of(torch.empty(0, dtype=values.dtype), self.column_names[position])
        return type_of_values(values, self.column_names[position])

    def _encode(self, position: int) -> Column:
        values = self._data[position]
        if not isinstance(values, Tensor):
            return encode_column(self.column_names[position], values, self.device)
        if values.ndim == 2:
            return encode_on_device(values.to(self.device), self._type_at(position))
        is_there = values.device == self.device and values.device.type != "cpu"
        if is_there and values.dtype not in LEFT_TO_THE_HOST:
            return encode_on_device(values, self._type_at(position))
        name = self.column_names[position]
        return encode_column(name, _arrow_of(values, name), self.device)

    def with_gradient(self, name: str) -> Tensor | None:
        values = self._parameters.get(self._position(name))
        if values is None:
            return None
        dtype = torch.float32 if values.dtype in _HALF_FLOATS else values.dtype
        return values.to(device=self.device, dtype=dtype)


def _shape(values: Any) -> str:
    shape, dtype = tuple(values.shape), values.dtype
    return f"shape {shape} and type {dtype}; a column has one dimension, or two of 32-bit floats: convert to float32"


def _kind(values: Tensor) -> str:
    if values.is_nested:
        return "nested"
    if values.is_quantized or values.is_meta:
        return "quantized" if values.is_quantized else "meta"
    return str(values.layout).removeprefix("torch.")


def _arrow_of(values: Tensor, column: str) -> pa.Array:
    """A 1-d tensor as an Arrow array over the same memory where it is on the CPU already."""
    try:
        host = values.detach().cpu()
        if host.dtype in _HALF_FLOATS:
            host = host.float()
        return pa.array(host.numpy(), from_pandas=False)
    except (pa.ArrowException, TypeError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        raise BindError(
            f'column "{column}" is a tensor of {values.dtype} that cannot be read: {reason}'
        ) from error
