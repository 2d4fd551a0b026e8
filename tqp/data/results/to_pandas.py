"""Columns as pandas series, with the dtypes that DuckDB chooses. Imported only where pandas is wanted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas

from tqp.core import time_limits
from tqp.core.datatypes import TICKS_PER_SECOND, TypeKind, holds_kind
from tqp.core.errors import ExecutionError
from tqp.data.column import Column, elements_in_order
from tqp.data.results.to_arrow import column_to_arrow, interval_microseconds
from tqp.data.results.to_python import python_values, where_valid
from tqp.data.results.to_tensors import decimal_to_double
from tqp.data.results.value_text import date_text

#: Of Python's objects.
_OBJECTS = (
    *(TypeKind.NULL, TypeKind.TIME, TypeKind.TIME_TZ, TypeKind.BLOB, TypeKind.UUID),
    *(TypeKind.MAP, TypeKind.UNION),
)
#: Inside of others: Arrow gives pandas no unions, and bits as bytes in structs, too.
_NOT_OF_ARROW = (TypeKind.UNION, TypeKind.BIT)
#: NumPy's names of units by how many make a second.
_UNITS = {1: "s", 10**3: "ms", 10**6: "us", 10**9: "ns"}


def column_to_pandas(name: str, column: Column) -> Any:
    """The pandas.Series of a column; see `Result.to_pandas` for the dtypes."""
    kind = column.data_type.kind
    validity = column.host_validity
    if validity is not None and validity.all():  # a column may have lost its NULLs on the way
        validity = None
    if kind in _OBJECTS:
        return pandas.Series(python_values(column), dtype=object)
    if kind is TypeKind.BIT:
        return pandas.Series(column_to_arrow(name, column).to_pylist(), dtype=object)
    if column.data_type.is_vector:
        return _vectors(column, validity)
    if column.data_type.is_nested and any(holds_kind(column.data_type, each) for each in _NOT_OF_ARROW):
        return pandas.Series(where_valid(column, _objects(name, column)), dtype=object)
    if kind in (TypeKind.VARCHAR, TypeKind.ENUM) or column.data_type.is_nested:
        return column_to_arrow(name, column).to_pandas(maps_as_pydicts="strict")
    assert column.values is not None
    if column.data_type.is_timestamp or kind in (TypeKind.DATE, TypeKind.INTERVAL):
        ticks, unit = _ticks(name, column)
        if validity is not None:
            ticks = np.where(validity, ticks, np.iinfo(np.int64).min)  # NaT
        code = "m" if kind is TypeKind.INTERVAL else "M"
        series = pandas.Series(ticks.view(f"{code}8[{unit}]"))
        return series.dt.tz_localize("UTC") if kind is TypeKind.TIMESTAMP_TZ else series
    if kind is TypeKind.UHUGEINT:
        return pandas.Series(
            [math.nan if each is None else float(each) for each in python_values(column)], dtype="float64"
        )
    if column.data_type.is_decimal or kind is TypeKind.HUGEINT:
        return _floats(decimal_to_double(column.values, column.data_type.scale).cpu().numpy(), validity)
    values = column_to_arrow(name, column)
    if column.data_type.is_float:
        return _floats(column.values.cpu().numpy(), validity)
    if validity is None:
        return _owned(values.to_numpy(zero_copy_only=False))
    filled = values.fill_null(False if kind is TypeKind.BOOLEAN else 0).to_numpy(zero_copy_only=False)
    arrays = pandas.arrays
    array_type = arrays.BooleanArray if kind is TypeKind.BOOLEAN else arrays.IntegerArray
    return pandas.Series(array_type(filled, ~validity))


def _objects(name: str, column: Column) -> list[Any]:
    """Lists as arrays of what their elements are in pandas, structs as dicts of Python's objects."""
    if not column.data_type.has_elements:
        return python_values(column)
    elements, lengths = elements_in_order(column)
    values = column_to_pandas(name, elements).to_numpy(object)
    return np.split(values, lengths.cumsum(0).tolist())[:-1]


def _vectors(column: Column, validity: Any) -> Any:
    """A float32 array in each row, or None."""
    assert column.values is not None
    rows = np.empty(column.num_rows, object)
    rows[:] = list(np.array(column.values.cpu().numpy()))
    if validity is not None:
        rows[~validity] = None
    return pandas.Series(rows, dtype=object)


def _owned(values: Any) -> Any:
    """A series of its own: the values may be those of a registered table, and a data frame is written to."""
    return pandas.Series(np.array(values), copy=False)


def _floats(values: Any, validity: Any) -> Any:
    if validity is None:
        return _owned(values)
    return pandas.Series(np.where(validity, values, np.asarray(np.nan, values.dtype)), copy=False)


def _ticks(name: str, column: Column) -> tuple[Any, str]:
    """(int64 [n], unit of a NumPy date)."""
    assert column.values is not None
    values = column.values.cpu().numpy()
    match column.data_type.kind:
        case TypeKind.DATE:
            return _microseconds_of_days(name, values, column), "us"
        case TypeKind.INTERVAL:
            return interval_microseconds(name, column), "us"
        case kind:
            return values.astype(np.int64), _UNITS[TICKS_PER_SECOND[kind]]


def _microseconds_of_days(name: str, days: Any, column: Column) -> Any:
    """int64 [n]; raises ExecutionError where NumPy's dates end, as for infinite ones."""
    ticks = days.astype(np.int64) * time_limits.MICROSECONDS_PER_DAY
    beyond = np.abs(days.astype(np.int64)) > np.iinfo(np.int64).max // time_limits.MICROSECONDS_PER_DAY
    if column.validity is not None:
        beyond &= column.validity.cpu().numpy()
    if beyond.any():
        text = date_text(int(days[beyond.argmax()]))
        raise ExecutionError(f'column "{name}": pandas has no date {text}; cast the column to VARCHAR')
    return ticks
