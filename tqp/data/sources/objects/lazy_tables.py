"""Lazy frames and datasets among the caller's variables: read once for a query, of the columns that it names, without rows that
simple conditions of it rule out.
"""

from __future__ import annotations

import functools
import operator
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import torch

from tqp.core.datatypes import DataType
from tqp.core.errors import BindError, Error, ExecutionError
from tqp.core.schema import RowConditions
from tqp.data.arrow_types import type_of_values
from tqp.data.column import Column
from tqp.data.encoding.columns import encode_column
from tqp.data.sources.base import Source
from tqp.data.sources.objects.frames import is_from, table_of_polars

#: A column by its name, as the frame has it, and a condition on its values: see `tqp.core.schema.ValueCondition`. The constants
#: are of the column's type.
Condition = tuple[str, str, pa.Array]
#: All conditions of one of them hold; None: nothing is asked.
Wanted = Sequence[Sequence[Condition]] | None
#: Gives some columns, by their names, in their order, of at least the rows that are wanted.
ReadColumns = Callable[[Sequence[str], Wanted], pa.Table]

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


def consume(name: str, read: Callable[[], Any]) -> Any:
    """`read()`, with what it raises as a BindError that names the table."""
    try:
        return read()
    except Error:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        raise BindError(f'table "{name}" cannot be read: {reason}') from error


class LazyTable(Source):
    """What `read` gives of the columns that are asked for first, all of them if their number of rows is asked for before.

    For one query: what is read of it later may be of another state of what it is read from.
    """

    def __init__(
        self, name: str, empty: pa.Table, read: ReadColumns, device: torch.device, wanted: Wanted = None
    ) -> None:
        """`empty`: its columns, without rows."""
        super().__init__(name, empty.column_names, device)
        self._empty, self._read, self._wanted, self._lock = empty, read, wanted, threading.Lock()
        self._restricted: dict[Any, LazyTable] = {}
        self._columns: dict[int, pa.ChunkedArray] = {}
        self._num_rows: int | None = None

    @property
    def num_rows(self) -> int:  # type: ignore[override]
        """Exact."""
        if self._num_rows is None:
            self._fetch(range(len(self.column_names)))
        assert self._num_rows is not None
        return self._num_rows

    def can_be_restricted(self, names: Iterable[str]) -> bool:
        """Whether nothing has been read yet."""
        return self._wanted is None and not self._columns

    def restricted(self, conditions: RowConditions) -> LazyTable:
        """Of the rows that satisfy conditions which mean the same wherever they are asked; the table itself without such."""
        asked = conditions.alternatives
        if asked not in self._restricted:
            alternatives = [
                [
                    (self._empty.column_names[position], each.function, values)
                    for each in conjuncts
                    for position in [self._position(each.column)]
                    for values in [_constants(self._empty.field(position).type, each.values)]
                    if values is not None
                ]
                for conjuncts in asked
            ]
            if not all(alternatives):
                return self
            self._restricted[asked] = LazyTable(self.name, self._empty, self._read, self.device, alternatives)
        return self._restricted[asked]

    def encode(self, names: Iterable[str]) -> None:
        wanted = list(dict.fromkeys(names))
        self._fetch([self._position(name) for name in wanted] or [0])  # of one, to count its rows
        super().encode(wanted)

    def _type_at(self, position: int) -> DataType:
        return type_of_values(self._empty.column(position), self.column_names[position])

    def _encode(self, position: int) -> Column:
        self._fetch([position])
        return encode_column(self.column_names[position], self._columns[position], self.device)

    def _fetch(self, positions: Iterable[int]) -> None:
        """Read those of the columns that are not there yet. Raises BindError naming the table if that fails."""
        with self._lock:
            missing = [position for position in positions if position not in self._columns]
            if not missing:
                return
            names = [self._empty.column_names[position] for position in missing]
            table = consume(self.name, lambda: self._read(names, self._wanted))
            if self._num_rows not in (None, table.num_rows):
                raise ExecutionError(f'table "{self.name}" changed while it was read; run the query again')
            self._num_rows = table.num_rows
            self._columns.update(zip(missing, table.columns, strict=True))


def lazy_table(name: str, data: Any, device: torch.device) -> LazyTable | None:
    """The source for a Polars lazy frame or an Arrow dataset whose columns can be read by their names; None for anything else."""
    if is_from(data, "polars", "LazyFrame"):
        frame = data.limit(0).collect()
        if any(dtype.base_type().__name__ == "Object" for dtype in frame.dtypes):
            return None  # whose type the values tell
        return LazyTable(
            name,
            table_of_polars(name, frame),
            lambda names, wanted: table_of_polars(name, _of_polars(data, wanted).select(names).collect()),
            device,
        )
    if is_from(data, "pyarrow", "Dataset") and len(set(data.schema.names)) == len(data.schema.names):
        return LazyTable(
            name,
            data.schema.empty_table(),
            lambda names, wanted: data.to_table(names, filter=_of_arrow(data.schema, wanted)),
            device,
        )
    return None


def _constants(arrow_type: pa.DataType, values: Sequence[int | str]) -> pa.Array | None:
    """Storage values of a column of that type in Arrow; None where comparisons with them may mean something else there: floats
    have another NaN, and categories another order.
    """
    if not values:
        return pa.nulls(0)
    if pa.types.is_integer(arrow_type) or arrow_type in (pa.string(), pa.large_string(), pa.string_view()):
        return pa.array(values, arrow_type)
    if pa.types.is_date32(arrow_type):
        return pa.array(values, pa.int32()).view(arrow_type)
    if pa.types.is_timestamp(arrow_type):
        return pa.array(values, pa.int64()).view(arrow_type)
    return None


def _any_of(wanted: Sequence[Sequence[Condition]], made: Callable[[str, str, pa.Array], Any]) -> Any:
    """An expression of Arrow or Polars, of what is `made` of each condition."""
    alternatives = [
        functools.reduce(operator.and_, (made(*each) for each in conjuncts)) for conjuncts in wanted
    ]
    return functools.reduce(operator.or_, alternatives)


def _of_arrow(schema: pa.Schema, wanted: Wanted) -> pc.Expression | None:
    """A filter of a dataset; None where there is none, or Arrow has none for columns of these types, such as string views."""
    if wanted is None:
        return None
    try:
        for data_type in set(schema.types):
            pa.nulls(1, data_type).filter(pa.array([True]))
    except pa.ArrowNotImplementedError:
        return None

    def made(name: str, function: str, values: pa.Array) -> pc.Expression:
        field = pc.field(name)
        if function in _COMPARISONS:
            return _COMPARISONS[function](field, values[0])
        if function == "in":
            return field.isin(values)
        return field.is_null() if function == "is_null" else field.is_valid()

    return _any_of(wanted, made)


def _of_polars(frame: Any, wanted: Wanted) -> Any:
    """The rows of a lazy frame that are wanted."""
    polars = sys.modules["polars"]

    def made(name: str, function: str, values: pa.Array) -> Any:
        column = polars.col(name)
        if function in _COMPARISONS:
            # by its storage value: a number of days may be no date of Python's
            constants = polars.from_arrow(values)
            stored = constants.to_physical()
            constant = polars.lit(stored[0], dtype=stored.dtype).cast(constants.dtype)
            return _COMPARISONS[function](column, constant)
        if function == "in":
            return column.is_in(polars.lit(polars.from_arrow(values)).implode())
        return column.is_null() if function == "is_null" else column.is_not_null()

    return frame if wanted is None else frame.filter(_any_of(wanted, made))
