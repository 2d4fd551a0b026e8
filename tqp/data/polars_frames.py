"""Polars frames and series as Arrow, with what Polars itself does not export. Polars is not imported."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tqp.data.python_objects import arrow_of_objects

#: Types that have no Arrow form: Python objects, which would come as memory addresses, and integers of 128 bits.
_WITHOUT_ARROW = ("Object", "Int128", "UInt128")


def table_of_polars(name: str, frame: Any) -> pa.Table:
    """A Polars data frame as an Arrow table; BindError naming a column whose values no type holds."""
    arrays = [
        arrow_of_polars(series, f'column "{series.name}" of table "{name}"') for series in frame.get_columns()
    ]
    return pa.table(arrays, names=frame.columns) if arrays else pa.table({})


def arrow_of_polars(series: Any, where: str) -> pa.Array | pa.ChunkedArray:
    """The values of a Polars series; `where`: which column, for messages."""
    if series.dtype.base_type().__name__ in _WITHOUT_ARROW:
        return arrow_of_objects(series.to_list(), where)
    return pa.chunked_array(series)
