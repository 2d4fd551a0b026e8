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
from tqp.data.arrow_types import data_type_of
from tqp.data.column import Column
from tqp.data.encode import encode_column
from tqp.data.source_base import Source

_HALF_FLOATS = (torch.float16, torch.bfloat16)


class TensorSource(Source):
    """Columns of equal length by name; moved to the source's device when first touched.

    A 2-d float32 array is a column of FLOAT[size]. As in DuckDB, NaN in a NumPy array is NULL; in a tensor it is NaN.
    """

    def __init__(self, name: str, data: Mapping[Any, Any], device: torch.device) -> None:
        super().__init__(name, data.keys(), device)
        self._data = [
            self._checked(column, values)
            for column, values in zip(self.column_names, data.values(), strict=True)
        ]
        lengths = {column: len(values) for column, values in zip(self.column_names, self._data, strict=True)}
        if len(set(lengths.values())) > 1:
            text = ", ".join(f'"{column}" {length}' for column, length in lengths.items())
            raise BindError(f'table "{name}": columns must have equal lengths, but have {text}')
        self._num_rows = next(iter(lengths.values()), 0)

    @property
    def num_rows(self) -> int:
        return self._num_rows

    def _checked(self, column: str, values: Any) -> Any:
        """A NumPy array, tensor or Arrow array of one dimension, or two of 32-bit floats."""
        if isinstance(values, (pa.Array, pa.ChunkedArray)):
            return values
        if isinstance(values, (list, tuple, range)):
            return self._from_objects(column, list(values))
        if not isinstance(values, (np.ndarray, Tensor)):
            raise BindError(
                f'column "{column}" of table "{self.name}" is a {type(values).__name__}; a dict must hold NumPy arrays,'
                " torch tensors, Arrow arrays or lists"
            )
        if (
            values.ndim == 2
            and values.shape[1] > 0
            and values.dtype in (np.float32, torch.float32, *_HALF_FLOATS)
        ):
            return values if isinstance(values, Tensor) else torch.from_numpy(_shareable(values))
        if values.ndim != 1:
            raise BindError(
                f'column "{column}" of table "{self.name}" has shape {tuple(values.shape)} and type {values.dtype}; a column'
                " has one dimension, or two of 32-bit floats"
            )
        if isinstance(values, Tensor):
            return values
        return (
            self._from_objects(column, values) if values.dtype == object else self._from_numpy(column, values)
        )

    def _from_objects(self, column: str, values: Any) -> pa.Array:
        try:
            return pa.array(values, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise BindError(
                f'column "{column}" of table "{self.name}" cannot be read: {error}; give it values of one type'
            ) from error

    def _from_numpy(self, column: str, values: np.ndarray[Any, Any]) -> pa.Array:
        if values.dtype.kind == "M" and np.datetime_data(values.dtype)[0] in ("h", "m"):
            values = values.astype("datetime64[s]")
        if not values.dtype.isnative:
            values = values.astype(values.dtype.newbyteorder("="))
        return self._from_objects(column, values)

    def _type_at(self, position: int) -> DataType:
        values = self._data[position]
        if isinstance(values, Tensor):
            if values.ndim == 2:
                return datatypes.array(values.shape[1])
            values = _arrow_of(values[:0], self.column_names[position])
        return data_type_of(values.type, self.column_names[position])

    def _encode(self, position: int) -> Column:
        values = self._data[position]
        if not isinstance(values, Tensor):
            return encode_column(self.column_names[position], values, self.device)
        if values.ndim == 2:
            matrix = values.detach().to(device=self.device, dtype=torch.float32).contiguous()
            return Column(datatypes.array(matrix.shape[1]), len(matrix), matrix)
        return encode_column(
            self.column_names[position], _arrow_of(values, self._where(position)), self.device
        )

    def with_gradient(self, name: str) -> Tensor | None:
        values = self._data[self._position(name)]
        if not isinstance(values, Tensor) or not values.requires_grad:
            return None
        dtype = torch.float32 if values.dtype in _HALF_FLOATS else values.dtype
        return values.to(device=self.device, dtype=dtype)

    def _where(self, position: int) -> str:
        return self.column_names[position]


def _shareable(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array itself, or a copy of one that torch does not take: read-only, or read backwards."""
    return values if values.flags.c_contiguous and values.flags.writeable else np.array(values)


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
