"""Polars frames and series as Arrow, with what Polars itself does not export. Polars is not imported."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tqp.data.sources.python_objects import arrow_of_objects, hugeint_array


def table_of_polars(name: str, frame: Any) -> pa.Table:
    """A Polars data frame as an Arrow table; BindError naming a column whose values no type holds."""
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
