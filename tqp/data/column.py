"""Column and Table: what tensors a registered table or a result consists of."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.core.schema import NO_ESTIMATES, NO_FACTS, ColumnEstimates, ColumnFacts
from tqp.data.strings import Strings


@dataclass(frozen=True, slots=True)
class Column:
    """n values of one logical type on one device.

    `values` by type: BOOLEAN bool [n]; integer-like types int8/16/32/64 [n], the narrowest that holds the values, or
    int64 [n, 2] (high, low; see `tqp.operators.numbers.wide`) when 64 bits do not; FLOAT float32 [n]; DOUBLE float64 [n];
    INTERVAL int64 [n, 3] (months, days, microseconds); ARRAY float32 [n, size]; NULL int8 [n];
    VARCHAR and BLOB: codes int8/16/32/64 [n] into `pool`, or None, meaning that row i is entry i of the pool.
    """

    data_type: DataType
    num_rows: int
    values: Tensor | None
    # bool [n], True = valid; None = no NULLs; values under NULL are any safe value or index
    validity: Tensor | None = None
    pool: Strings | None = None
    # entries sorted by bytes and distinct, so codes compare like the strings
    pool_is_dictionary: bool = False
    facts: ColumnFacts = field(default=NO_FACTS)
    estimates: ColumnEstimates = field(default=NO_ESTIMATES)


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns of equal length; a result, or what lies between two pipelines."""

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    num_rows: int
