"""Result: the rows of a query and their ways out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from torch import Tensor

from tqp.core.arguments import unique_names
from tqp.core.datatypes import INTERVAL, DataType
from tqp.core.errors import ExecutionError
from tqp.data.column import Table
from tqp.data.results.display import html_table, text_table
from tqp.data.results.to_arrow import column_to_arrow, interval_to_duration, table_to_arrow
from tqp.data.results.to_python import python_values
from tqp.data.results.to_tensors import Decimals, StringsAs, tensors_by_name

if TYPE_CHECKING:
    import pandas
    import polars

#: Rows turned into Python objects at a time while iterating.
_FETCH_ROWS = 65_536


class Result:
    """The immutable answer of one query. Names may repeat, as they may in SQL.

    >>> import tqp
    >>> tqp.sql("SELECT 1 AS one, 'a' AS letter").fetchall()
    [(1, 'a')]
    """

    def __init__(self, names: tuple[str, ...], types: tuple[DataType, ...], table: Table) -> None:
        self._names = names
        self._types = types
        self._table = Table(names, table.columns, table.num_rows)
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
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self._table.num_rows, len(self._names)

    def __len__(self) -> int:
        return self._table.num_rows

    def to_arrow(self) -> pa.Table:
        """A pyarrow.Table in the types DuckDB would export."""
        return table_to_arrow(self._table)

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

        Repeated names become a, a_1, ...
        """
        try:
            import polars
        except ImportError as error:
            raise _missing("polars", "to_polars") from error
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
        """All rows as tuples of Python objects, the ones DuckDB gives: int, float, Decimal, str, bytes, date, datetime,
        time, timedelta, bool, None."""
        return list(self)

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
        columns = [python_values(column.cut(start, stop)) for column in self._table.columns]
        return list(zip(*columns, strict=True))

    def __repr__(self) -> str:
        return text_table(self._table)

    def _repr_html_(self) -> str:
        return html_table(self._table)


def _missing(package: str, method: str) -> ExecutionError:
    return ExecutionError(f"{method} needs {package}, which is not installed: pip install {package}")
