"""Result: the rows of a query and their ways out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch import Tensor

from tqp.core.arguments import check_count, check_integer, unique_names
from tqp.core.datatypes import INTERVAL, DataType, TypeKind, holds_kind
from tqp.core.errors import BindError, ExecutionError, UnsupportedError
from tqp.data.column import Table
from tqp.data.results.display import MAX_ROWS, html_table, text_table
from tqp.data.results.to_arrow import column_to_arrow, interval_to_duration, table_to_arrow
from tqp.data.results.to_numpy import column_to_numpy
from tqp.data.results.to_python import python_values
from tqp.data.results.to_tensors import Decimals, StringsAs, tensors_by_name
from tqp.writing.ways_to_files import WaysToFiles

if TYPE_CHECKING:
    import pandas
    import polars

#: Rows turned into Python objects at a time while iterating.
_FETCH_ROWS = 65_536
#: Rows that DuckDB computes together.
_VECTOR_ROWS = 2048


class Result(WaysToFiles):
    """The immutable answer of one query. Names may repeat, as they may in SQL.

    >>> import tqp
    >>> tqp.sql("SELECT 1 AS one, 'a' AS letter").fetchall()
    [(1, 'a')]
    """

    def __init__(self, names: tuple[str, ...], types: tuple[DataType, ...], table: Table) -> None:
        self._names = names
        self._types = types
        self._table = table if table.names == names else Table(names, table.columns, table.num_rows)
        self._fetched = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names, in order."""
        return self._names

    @property
    def types(self) -> tuple[DataType, ...]:
        """Column types, in order; `str(type)` is the SQL name."""
        return self._types

    @property
    def dtypes(self) -> tuple[DataType, ...]:
        """`types`."""
        return self._types

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self._table.num_rows, len(self._names)

    def __len__(self) -> int:
        return self._table.num_rows

    def to_arrow(self) -> pa.Table:
        """A pyarrow.Table in the types DuckDB would export."""
        return table_to_arrow(self._table)

    def to_arrow_reader(self, batch_size: int = 1_000_000) -> pa.RecordBatchReader:
        """The rows of `to_arrow` as batches of so many at most."""
        check_count("batch_size", batch_size, "a batch has at least one row")
        table = self.to_arrow()
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(batch_size))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface: any Arrow library takes a Result as a table."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas data frame with DuckDB's choice of dtypes; needs pandas installed.

        DECIMAL and HUGEINT become float64, dates datetime64, intervals timedelta64 (a month being 30 days), integers and
        booleans with NULLs pandas' nullable types, FLOAT[n] a NumPy array in each row. Repeated names become a, a_1, ...
        docs/data.md has the whole table.
        """
        try:
            import pandas
        except ImportError as error:
            raise _missing("pandas", "to_pandas") from error
        from tqp.data.results.to_pandas import column_to_pandas

        names = unique_names(self._names)
        series = [
            column_to_pandas(name, column) for name, column in zip(names, self._table.columns, strict=True)
        ]
        return pandas.DataFrame(dict(zip(names, series, strict=True)), index=pandas.RangeIndex(len(self)))

    def to_polars(self) -> polars.DataFrame:
        """A Polars data frame; needs polars installed. INTERVAL becomes a duration with 30 days a month.

        Repeated names become a, a_1, ... Raises UnsupportedError for UNIONs, which Polars does not have.
        """
        try:
            import polars
        except ImportError as error:
            raise _missing("polars", "to_polars") from error
        for name, data_type in zip(self._names, self._types, strict=True):
            if holds_kind(data_type, TypeKind.UNION):
                raise UnsupportedError(
                    f'column "{name}" is {data_type}, and Polars has no unions; cast it to VARCHAR, or read its members'
                )
        arrays = [
            interval_to_duration(name, column)
            if column.data_type == INTERVAL
            else column_to_arrow(name, column)
            for name, column in zip(self._names, self._table.columns, strict=True)
        ]
        frame = polars.from_arrow(pa.Table.from_arrays(arrays, names=list(unique_names(self._names))))
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_torch(self, *, decimals: Decimals = "float", strings: StringsAs = "error") -> dict[str, Tensor]:
        """A tensor per column on the query's device.

        Integers come in their logical width (UINTEGER and USMALLINT in the next signed one, UBIGINT and HUGEINT as int64),
        DATE as int32 days and timestamps as int64 ticks since 1970 in the type's unit, TIME as int64 microseconds, INTERVAL
        as int64 [n, 3] (months, days, microseconds), FLOAT[k] as float32 [n, k]. DECIMAL is float64, or with
        `decimals="scaled"` the exact int64 that counts units of the last digit. Strings raise ExecutionError unless
        `strings="codes"`, which gives each row's place among the column's sorted distinct values, int64.

        A column `name` that contains NULL comes with `name__validity`, bool [n], True where there is a value; what
        stands in the others is unspecified. Repeated names become a, a_1, ... The tensors are
        the caller's own: what is written to them changes neither a table nor another result.
        """
        tensors = tensors_by_name(self._names, self._table.columns, decimals, strings)
        shared = {
            tensor.untyped_storage().data_ptr()
            for column in self._table.columns
            for tensor in column.tensors()
        }
        return {
            name: tensor.clone() if tensor.untyped_storage().data_ptr() in shared else tensor
            for name, tensor in tensors.items()
        }

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows, but for those that fetchone or fetchmany gave, as tuples of Python objects, the ones DuckDB gives: int, float,
        Decimal, str, bytes, date, datetime, time, timedelta, bool, None."""
        rows: list[tuple[Any, ...]] = []
        for start in range(self._fetched, len(self), _FETCH_ROWS):
            rows += self._rows(start, min(start + _FETCH_ROWS, len(self)))
        return rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row not yet fetched by fetchone, or None after the last."""
        if self._fetched >= len(self):
            return None
        (row,) = self._rows(self._fetched, self._fetched + 1)
        self._fetched += 1
        return row

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(self), _FETCH_ROWS):
            yield from self._rows(start, min(start + _FETCH_ROWS, len(self)))

    def _rows(self, start: int, stop: int) -> list[tuple[Any, ...]]:
        if not self._table.columns:
            return [()] * (stop - start)
        columns = self._table.columns
        if stop - start < len(self):
            columns = tuple(column.cut(start, stop) for column in columns)
        return list(zip(*map(python_values, columns), strict=True))

    def iter_rows(self) -> Iterator[tuple[Any, ...]]:
        """All rows, made some at a time; `for row in result` is the same."""
        return iter(self)

    def to_dicts(self) -> list[dict[str, Any]]:
        """A dict for each row, by the names of columns; repeated ones become a, a_1, ..."""
        names = unique_names(self._names)
        return [dict(zip(names, row, strict=True)) for row in self]

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """The next rows not yet fetched by fetchone or fetchmany, `size` at most."""
        stop = min(len(self), self._fetched + max(check_integer("size", size), 0))
        rows = self._rows(self._fetched, stop)
        self._fetched = stop
        return rows

    def fetch_df_chunk(self, vectors_per_chunk: int = 1) -> pandas.DataFrame:
        """The next rows not yet fetched as a pandas frame: 2048 for each vector, at most."""
        check_count("vectors_per_chunk", vectors_per_chunk, "a chunk holds at least one vector")
        start = self._fetched
        self._fetched = min(len(self), start + vectors_per_chunk * _VECTOR_ROWS)
        columns = tuple(column.cut(start, self._fetched) for column in self._table.columns)
        rows = Table(self._names, columns, self._fetched - start)
        return Result(self._names, self._types, rows).to_pandas()

    def fetchnumpy(self) -> dict[str, NDArray[Any]]:
        """A NumPy array per column, masked where there are NULLs: numbers in their width (DECIMAL and HUGEINT as float64),
        dates and timestamps as datetime64, text and the like as objects. Repeated names become a, a_1, ..."""
        names = unique_names(self._names)
        return {
            name: column_to_numpy(name, column)
            for name, column in zip(names, self._table.columns, strict=True)
        }

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """[rows, columns]; of one column [rows]. NULL is NaN, NaT or None."""
        arrays = [_without_mask(values) for values in self.fetchnumpy().values()]
        if len(arrays) == 1:
            return np.asarray(arrays[0], dtype=dtype)
        return np.asarray(np.stack(arrays, axis=1) if arrays else np.empty((len(self), 0)), dtype=dtype)

    @property
    def description(self) -> list[tuple[str, DataType, None, None, None, None, None]]:
        """Name and type of each column, as PEP 249 has it."""
        return [
            (name, kind, None, None, None, None, None)
            for name, kind in zip(self._names, self._types, strict=True)
        ]

    # the names that DuckDB and Polars have for the ways out

    def df(self) -> pandas.DataFrame:
        """`to_pandas`."""
        return self.to_pandas()

    def fetchdf(self) -> pandas.DataFrame:
        """`to_pandas`."""
        return self.to_pandas()

    @overload
    def pl(self, *, lazy: Literal[False] = False) -> polars.DataFrame: ...

    @overload
    def pl(self, *, lazy: Literal[True]) -> polars.LazyFrame: ...

    def pl(self, *, lazy: bool = False) -> polars.DataFrame | polars.LazyFrame:
        """`to_polars`; with `lazy` as a lazy frame over it."""
        return self.to_polars().lazy() if lazy else self.to_polars()

    def arrow(self) -> pa.Table:
        """`to_arrow`."""
        return self.to_arrow()

    def fetch_arrow_table(self) -> pa.Table:
        """`to_arrow`."""
        return self.to_arrow()

    def to_arrow_table(self) -> pa.Table:
        """`to_arrow`."""
        return self.to_arrow()

    def fetch_record_batch(self, rows_per_batch: int = 1_000_000) -> pa.RecordBatchReader:
        """`to_arrow_reader`."""
        return self.to_arrow_reader(rows_per_batch)

    def to_df(self) -> pandas.DataFrame:
        """`to_pandas`."""
        return self.to_pandas()

    def fetch_df(self) -> pandas.DataFrame:
        """`to_pandas`."""
        return self.to_pandas()

    def torch(self) -> dict[str, Tensor]:
        """`to_torch`."""
        return self.to_torch()

    def show(
        self,
        max_rows: int | None = MAX_ROWS,
        max_width: int | None = None,
        *,
        max_col_width: int | None = None,
        null_value: str | None = None,
        render_mode: object = None,
    ) -> None:
        """Print the first and last rows, `max_rows` at most, and as many columns as fit into `max_width` characters, by default
        those of the terminal; `max_col_width`: of a value, `null_value`: the text of NULL."""
        rows = MAX_ROWS if max_rows is None else max_rows
        check_count("max_rows", rows, "at least one row is shown")
        check_count("max_width", max_width, "at least one character is wanted")
        check_count("max_col_width", max_col_width, "at least one character is wanted")
        if render_mode is not None and str(render_mode).rpartition(".")[2].lower() not in ("rows", "0"):
            raise UnsupportedError(f"render_mode={render_mode!r} of show() is not supported; rows are lines")
        if not isinstance(null_value, str | None):
            raise BindError(f"null_value={null_value!r}: give a text")
        print(text_table(self._table, max_width, rows, max_col_width, null_value))

    def _to_write(self) -> Table:
        return self._table

    def __repr__(self) -> str:
        return text_table(self._table)

    def _repr_html_(self) -> str:
        return html_table(self._table)


def _without_mask(values: NDArray[Any]) -> NDArray[Any]:
    """NaN, NaT or None where there is a NULL."""
    mask = np.ma.getmaskarray(values)
    if not mask.any():
        return np.asarray(values)
    is_time, is_object = values.dtype.kind in "mM", values.dtype == object
    filled = np.array(values if is_time or is_object else values.astype(np.float64))
    filled[mask] = "NaT" if is_time else None if is_object else np.nan
    return filled


def _missing(package: str, method: str) -> ExecutionError:
    return ExecutionError(f"{method} needs {package}, which is not installed: pip install {package}")
