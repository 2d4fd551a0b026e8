"""Frames and series of pandas and Polars as registered tables. Neither is imported: what comes in brings it along."""

from __future__ import annotations

import functools
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from tqp.core.datatypes import DataType
from tqp.core.errors import BindError, Error
from tqp.data.arrow_buffers import AnyArray
from tqp.data.arrow_types import type_of_values
from tqp.data.column import Column
from tqp.data.encoding.chosen_rows import rows_of_chunks
from tqp.data.encoding.columns import encode_column
from tqp.data.sources.base import Source
from tqp.data.sources.objects.numpy_arrays import arrow_of_numpy
from tqp.data.sources.objects.python_objects import arrow_of_objects, hugeint_array
from tqp.data.sources.streamed import is_plain_text, texts_streamed

#: From this version on pandas copies a column when it is written to, if its memory is shared.
_COPIES_ON_WRITE = 3


def is_from(data: object, package: str, class_name: str) -> bool:
    """Whether `data` is an instance of package.….class_name, without importing the package.

    >>> import fractions
    >>> is_from(fractions.Fraction(1), "numbers", "Rational"), is_from(1, "pandas", "Series")
    (True, False)
    """
    return any(
        kind.__name__ == class_name and kind.__module__.partition(".")[0] == package
        for kind in type(data).__mro__
    )


class PandasSource(Source):
    """A pandas data frame as it is when registered; a column goes through Arrow when first touched, without the index.

    As in DuckDB, NaN is NULL, but not in a column that Arrow holds.
    """

    reads_rows = True

    def __init__(self, name: str, frame: Any, device: torch.device) -> None:
        super().__init__(name, frame.columns, device)
        self.num_rows = len(frame)
        self._frame, self._copies = _unchanging(frame)
        self._dtypes = list(frame.dtypes)
        self._arrow: dict[int, pa.Array | pa.ChunkedArray] = {}

    def _type_at(self, position: int) -> DataType:
        dtype = self._dtypes[position]
        # a categorical is looked at itself: its dtype holds the categories, which are to be hashed only if they are text
        known = None if hasattr(dtype, "categories") else _type_of_dtype(dtype)
        return known or type_of_values(self._convert(position), self.column_names[position])

    def _encode(self, position: int) -> Column:
        column = encode_column(self.column_names[position], self._convert(position), self.device)
        self._arrow.pop(position, None)
        return column

    def streamed(self, names: Iterable[str], texts: Collection[str], num_bytes: int) -> Source | None:
        return texts_streamed(self, texts, num_bytes)

    def plain_texts(self, name: str) -> Sequence[pa.Array] | None:
        position = self._position(name)
        data_type = self._type_at(position)
        if not data_type.is_string:
            return None
        values = self._convert(position)
        chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        return chunks if is_plain_text(values.type, data_type) else None

    def chunks_of_rows(self, position: int, rows: AnyArray) -> list[pa.Array] | None:
        values = self._convert(position)
        return rows_of_chunks(values.chunks if isinstance(values, pa.ChunkedArray) else [values], rows)

    def _convert(self, position: int) -> pa.Array | pa.ChunkedArray:
        """Kept, as finding a type may have made it; of two threads that convert a column at once, both make the same."""
        found = self._arrow.get(position)
        if found is None:
            copy = self._copies.get(position)
            series = self._frame.iloc[:, position] if copy is None else copy
            where = f'column "{self.column_names[position]}" of table "{self.name}"'
            found = self._arrow[position] = arrow_of_series(series, where)
        return found


@functools.lru_cache(64)
def _type_of_dtype(dtype: Any) -> DataType | None:
    """The type of a column of that dtype; None where it shows in the values only, or there is none."""
    if dtype == object:
        return None
    try:
        values = arrow_of_series(sys.modules["pandas"].Series([], dtype=dtype), "")
        return None if pa.types.is_dictionary(values.type) else type_of_values(values, "")
    except Error:  # which the values themselves raise with the column's name
        return None


def _unchanging(frame: Any) -> tuple[Any, dict[int, Any]]:
    """The frame as it is now, whatever is written to it later, and by their places copies of columns that it does not keep so.

    As long as a shallow copy lives, pandas copies a column of a NumPy type or in Arrow's memory before it writes to it; others
    can be written to in place.
    """
    if int(sys.modules["pandas"].__version__.partition(".")[0]) < _COPIES_ON_WRITE:
        return frame.copy(deep=True), {}
    written = [position for position, dtype in enumerate(frame.dtypes) if not _is_copied_on_write(dtype)]
    return frame.copy(deep=False), {position: frame.iloc[:, position].copy(deep=True) for position in written}


def _is_copied_on_write(dtype: Any) -> bool:
    """Whether pandas hands out the values of such a column for reading only."""
    return (
        isinstance(dtype, np.dtype)
        or hasattr(dtype, "pyarrow_dtype")
        or getattr(dtype, "storage", None) == "pyarrow"
    )


class _Held:
    """Memory of a series that keeps the series alive: as long as it lives, pandas copies its values before it writes to them.

    Columns may share that memory, and results theirs.
    """

    def __init__(self, values: np.ndarray[Any, Any], series: Any) -> None:
        self.__array_interface__ = values.__array_interface__
        self._held = values, series


def arrow_of_series(series: Any, where: str) -> pa.Array | pa.ChunkedArray:
    """The values of a series as Arrow; `where`: which column, for messages. Raises BindError naming it."""
    if isinstance(series.dtype, np.dtype):
        values = series.to_numpy()
        return arrow_of_numpy(
            np.asarray(_Held(values, series)) if series.dtype.kind in "biufmM" else values, where
        )
    if hasattr(series, "cat"):
        return _dictionary(series.cat.codes.to_numpy(), _arrow_of_categories(series.cat.categories, where))
    if hasattr(series, "sparse"):
        return arrow_of_series(series.sparse.to_dense(), where)
    if series.dtype.kind == "f" and hasattr(series.array, "_mask"):
        return arrow_of_numpy(series.to_numpy(series.dtype.numpy_dtype, na_value=np.nan), where)
    try:
        return pa.array(series, from_pandas=True)
    except UnicodeEncodeError:
        return arrow_of_objects(series.tolist(), where)  # whose message says more
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise BindError(f"{where} cannot be read: {error}") from error


def _arrow_of_categories(categories: Any, where: str) -> pa.Array | pa.ChunkedArray:
    """The values of a pandas index; of objects without pandas, which fails for text that is no Unicode."""
    if categories.dtype == object:
        return arrow_of_objects(categories.tolist(), where)
    return arrow_of_series(categories.to_series(), where)


def _dictionary(codes: Any, categories: Any) -> pa.Array:
    indices = pa.array(codes, mask=codes < 0)
    if isinstance(categories, pa.ChunkedArray):
        categories = categories.combine_chunks()
    if isinstance(categories.type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(categories.type, categories.storage.take(indices))
    if pa.types.is_null(categories.type):  # of no categories
        categories = categories.cast(pa.string())
    return pa.DictionaryArray.from_arrays(indices, categories, ordered=True)


def table_of_pandas(name: str, frame: Any) -> pa.Table:
    """A pandas data frame as an Arrow table, without the index; BindError naming a column whose values no type holds."""
    names = [str(column) for column in frame.columns]
    arrays = [
        arrow_of_series(frame.iloc[:, position], f'column "{column}" of table "{name}"')
        for position, column in enumerate(names)
    ]
    return pa.table(arrays, names=names) if arrays else pa.table({})


def table_of_polars(name: str, frame: Any) -> pa.Table:
    """A Polars data frame as an Arrow table, with what Polars itself does not export; BindError naming a column whose values no type holds."""
    arrays = [
        arrow_of_polars(series, f'column "{series.name}" of table "{name}"') for series in frame.get_columns()
    ]
    return pa.table(arrays, names=frame.columns) if arrays else pa.table({})


def arrow_of_polars(series: Any, where: str) -> pa.Array | pa.ChunkedArray:
    """The values of a Polars series; `where`: which column, for messages."""
    match series.dtype.base_type().__name__:
        case "Object":  # would come as memory addresses
            return arrow_of_objects(series.to_list(), where)
        case "Int128" | "UInt128":  # which Arrow does not have
            return hugeint_array(series.to_list(), where)
        case _:
            return pa.chunked_array(series)
