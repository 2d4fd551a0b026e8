"""Columns as NumPy arrays, masked where there are NULLs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tqp.core.datatypes import INTERVAL, TypeKind
from tqp.data.column import Column
from tqp.data.results.to_arrow import column_to_arrow, interval_to_duration
from tqp.data.results.to_python import python_values


def column_to_numpy(name: str, column: Column) -> NDArray[Any]:
    """[n]: numbers in their own width (HUGEINT, UHUGEINT and DECIMAL as float64), dates and timestamps as datetime64, INTERVAL as
    timedelta64 with 30 days a month, BIT as the bytes that it is in Arrow, everything else as Python objects. Where there is a NULL, a masked array."""
    data_type = column.data_type
    if data_type.kind is TypeKind.UHUGEINT:
        return _masked(np.array([float(each or 0) for each in python_values(column)]), column)
    if data_type.is_decimal or data_type.kind is TypeKind.HUGEINT:
        array = column_to_arrow(name, column).cast(pa.float64())
    elif data_type == INTERVAL:
        array = interval_to_duration(name, column)
    elif (
        data_type.is_numeric or data_type.is_timestamp or data_type.kind in (TypeKind.DATE, TypeKind.BOOLEAN)
    ):
        array = column_to_arrow(name, column)
    else:
        values = np.empty(column.num_rows, object)
        is_bits = data_type.kind is TypeKind.BIT  # bytes as those of Arrow
        values[:] = column_to_arrow(name, column).to_pylist() if is_bits else python_values(column)
        return _masked(values, column)
    if pa.types.is_date32(array.type):
        array = array.cast(pa.timestamp("s"))
    if array.null_count == 0:
        plain: NDArray[Any] = array.to_numpy(zero_copy_only=False)
        return plain
    filler = False if pa.types.is_boolean(array.type) else pa.scalar(0, pa.int64()).cast(array.type)
    filled = pc.fill_null(array, filler).to_numpy(zero_copy_only=False)
    return np.ma.masked_array(filled, array.is_null().to_numpy(zero_copy_only=False))


def _masked(values: NDArray[Any], column: Column) -> NDArray[Any]:
    return values if column.validity is None else np.ma.masked_array(values, ~column.validity.cpu().numpy())
