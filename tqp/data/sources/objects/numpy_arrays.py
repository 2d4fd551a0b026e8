"""NumPy arrays as Arrow arrays, and copies of those that somebody may still write to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tqp.core.errors import BindError, Error, UnsupportedError
from tqp.data.sources.objects.python_objects import arrow_of_numpy_moments, arrow_of_objects, with_nulls

Array = np.ndarray[Any, Any]

_REFUSED_KINDS = {"c": "complex numbers", "V": "raw memory"}


def arrow_of_numpy(values: Array, where: str) -> pa.Array:
    """A 1-d array as Arrow, over the same memory where that is possible; NaN, NaT and what a mask hides are NULL.

    `where`: which column, for messages. Raises BindError or UnsupportedError for an array that no SQL type holds.
    """
    if isinstance(values, np.ma.MaskedArray):
        return _masked(values, where)
    kind = values.dtype.kind
    if values.dtype.names:
        fields = [arrow_of_numpy(values[name], f'field "{name}" of {where}') for name in values.dtype.names]
        return pa.StructArray.from_arrays(fields, values.dtype.names)
    if kind in _REFUSED_KINDS:
        raise UnsupportedError(
            f"{where} holds {_REFUSED_KINDS[kind]} ({values.dtype}), which are not supported"
        )
    if kind == "f" and values.dtype.itemsize > 8:
        raise UnsupportedError(f"{where} is of type {values.dtype}; convert it with .astype('float64')")
    if kind in "OUST":  # fixed-width text goes by way of objects, as Arrow ends it at the first NUL
        made = arrow_of_objects(values.tolist(), where)
        return made if kind == "O" else made.cast(pa.binary() if kind == "S" else pa.string())
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    try:
        if kind == "f":
            return with_nulls(values, np.isnan(values))
        return arrow_of_numpy_moments(values) if kind in "mM" else pa.array(values)
    except Error as error:
        raise type(error)(f"{where}: {error.message}") from None
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise BindError(f"{where} cannot be read: {error}") from error


def _masked(values: np.ma.MaskedArray[Any, Any], where: str) -> pa.Array:
    shown = arrow_of_numpy(values.data, where)
    mask = np.ma.getmaskarray(values)
    if not mask.any():
        return shown
    rows = np.where(mask, -1, np.arange(len(values)))
    return shown.take(pa.array(rows, mask=mask))


def arrow_of_vectors(values: Array, where: str) -> pa.Array:
    """A 2-d array of 32-bit floats as fixed-size lists, over the same memory; rows that a mask hides are NULL.

    Raises BindError for a row of which the mask hides some values only.
    """
    hidden = None
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        hidden = mask.all(axis=1)
        if not np.array_equal(hidden, mask.any(axis=1)):
            raise BindError(
                f"{where} masks some values of a row; FLOAT[n] has no NULL inside: mask all of the row or none"
            )
    floats = np.ascontiguousarray(np.ma.getdata(values), np.float32)
    nulls = None if hidden is None or not hidden.any() else pa.array(hidden)
    return pa.FixedSizeListArray.from_arrays(pa.array(floats.reshape(-1)), values.shape[1], mask=nulls)


def unchanging(values: Array) -> Array:
    """The array itself if nobody can write to its memory, else a copy."""
    return values if _is_read_only(values) else values.copy()


def _is_read_only(values: Any) -> bool:
    if isinstance(values, np.ma.MaskedArray):
        return False
    while isinstance(values, np.ndarray):
        if values.flags.writeable:
            return False
        values = values.base
    return values is None or isinstance(values, (bytes, pa.Buffer, pa.Array))
