"""Column and Table: what tensors a registered table or a result consists of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.core.schema import NO_ESTIMATES, NO_FACTS, ColumnEstimates, ColumnFacts
from tqp.data.arrow_buffers import BoolArray
from tqp.data.nested import Lists, Nested, Structs, Values, count_of, cut, flattened, mapped, take, tensors_in
from tqp.data.strings import Strings


@dataclass(frozen=True, slots=True)
class Column:
    """n values of one logical type on one device.

    `values` by type: BOOLEAN bool [n]; integer-like types int8/16/32/64 [n], the narrowest that holds the values, or
    int64 [n, 2] (high, low; see `tqp.operators.numbers.wide`) when 64 bits do not; FLOAT float32 [n]; DOUBLE float64 [n];
    INTERVAL int64 [n, 3] (months, days, microseconds); ARRAY float32 [n, size]; NULL int8 [n];
    VARCHAR and BLOB: codes int8/16/32/64 [n] into `pool`, or None, meaning that row i is entry i of the pool;
    LIST, STRUCT, MAP and UNION: None, their values are in `nested`.
    """

    KEPT: ClassVar[str] = "values"

    data_type: DataType
    num_rows: int
    values: Tensor | None
    # bool [n], True = valid; None = no NULLs; values under NULL are any safe value or index
    validity: Tensor | None = None
    pool: Strings | None = None
    # entries are distinct, so codes are equal where the strings are
    pool_is_dictionary: bool = False
    # and sorted by bytes, so codes compare like the strings
    pool_is_sorted: bool = False
    facts: ColumnFacts = field(default=NO_FACTS)
    estimates: ColumnEstimates = field(default=NO_ESTIMATES)
    nested: Nested | None = None

    def tensors(self) -> list[Tensor]:
        """Every tensor the column consists of."""
        parts = (self.values, self.validity, *(self.pool or ()))
        return [tensor for tensor in parts if tensor is not None] + tensors_in(self.nested)

    @property
    def nbytes(self) -> int:
        """Memory taken by the tensors, and by the texts of an ENUM; a view counts as what it shows."""
        return sum(tensor.nbytes for tensor in self.tensors()) + self.data_type.categories.nbytes

    @property
    def host_validity(self) -> BoolArray | None:
        """The validity in main memory."""
        return None if self.validity is None else self.validity.cpu().numpy()

    def to(self, device: torch.device) -> Column:
        """The column with all its tensors on `device`; itself if they are there already."""
        if all(tensor.device == device for tensor in self.tensors()):
            return self
        values, validity = (
            each if each is None else each.to(device) for each in (self.values, self.validity)
        )
        pool = self.pool and type(self.pool)(*(tensor.to(device) for tensor in self.pool))
        nested: Any = None if self.nested is None else mapped(self.nested, lambda tensor: tensor.to(device))
        return replace(self, values=values, validity=validity, pool=pool, nested=nested)

    def cut(self, start: int, stop: int) -> Column:
        """Rows start to stop (exclusive), as views; without statistics."""
        rows = slice(start, stop)
        values, validity = (each if each is None else each[rows] for each in (self.values, self.validity))
        pool = self.pool
        if pool is not None and values is None:
            pool = pool._replace(starts=pool.starts[rows], lengths=pool.lengths[rows])
        nested: Any = None if self.nested is None else cut(self.nested, start, stop)
        return self._of_rows(max(0, min(stop, self.num_rows) - start), values, validity, pool, nested)

    def take(self, rows: Tensor) -> Column:
        """The rows of these numbers, int64 [m]; without statistics."""
        rows = rows.to(self.tensors()[0].device)
        values, validity = (each if each is None else each[rows] for each in (self.values, self.validity))
        pool: Any = self.pool
        if pool is not None and values is None:
            pool = take(pool, rows)
        nested: Any = None if self.nested is None else take(self.nested, rows)
        return self._of_rows(rows.shape[0], values, validity, pool, nested)

    def _of_rows(
        self, num_rows: int, values: Tensor | None, validity: Tensor | None, pool: Any, nested: Any
    ) -> Column:
        """Some of the rows, stored as these are; without statistics."""
        return Column(
            self.data_type,
            num_rows,
            values,
            validity,
            pool,
            self.pool_is_dictionary,
            self.pool_is_sorted,
            nested=nested,
        )


def column_of(data_type: DataType, num_rows: int, values: Values, validity: Tensor | None) -> Column:
    """A column of values that are no codes."""
    if isinstance(values, Strings):
        return Column(data_type, num_rows, None, validity, values)
    if isinstance(values, Tensor):
        return Column(data_type, num_rows, values, validity)
    return Column(data_type, num_rows, None, validity, nested=values)


def fields_of(column: Column) -> list[Column]:
    """The fields of a STRUCT column, of a UNION its tag and its members, as columns of their own."""
    assert isinstance(column.nested, Structs)
    fields = zip(column.data_type.children, column.nested.fields, strict=True)
    return [column_of(each, column.num_rows, *field) for each, field in fields]


def elements_in_order(column: Column) -> tuple[Column, Tensor]:
    """The elements of a LIST or MAP column, one list after the other, as a column of their own, and how many each row has."""
    lists = column.nested
    assert isinstance(lists, Lists)
    elements, lengths = flattened(lists, column.validity)
    return column_of(column.data_type.element, count_of(elements.values), *elements), lengths.cpu()


def entries_in_order(column: Column) -> tuple[Column, Column, Tensor]:
    """As `elements_in_order`, of a MAP column: its keys and its values."""
    entries, lengths = elements_in_order(column)
    keys, values = fields_of(entries)
    return keys, values, lengths


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns of equal length; a result, or what lies between two pipelines."""

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    num_rows: int

    def cut(self, start: int, stop: int) -> Table:
        """Rows start to stop (exclusive), as views."""
        return Table(self.names, tuple(column.cut(start, stop) for column in self.columns), stop - start)

    def take(self, rows: Tensor) -> Table:
        """The rows of these numbers, int64 [m]; without statistics."""
        return Table(self.names, tuple(column.take(rows) for column in self.columns), rows.shape[0])
