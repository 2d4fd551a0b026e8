"""Columns as Arrow arrays of the texts that CAST to VARCHAR gives, made by its kernels; and such texts put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tqp.core.datatypes import TypeKind, holds_json
from tqp.core.errors import UnsupportedError
from tqp.core.process.memory_budget import check
from tqp.data.column import Column, Table
from tqp.data.results.display import cell_texts
from tqp.data.results.to_arrow import column_to_arrow
from tqp.data.string_buffers import string_array
from tqp.operators.strings.layout import to_arrow
from tqp.operators.text.strftime import strftime
from tqp.operators.text.value_format import formatter

#: Formats of strftime() by the kinds of the dates and timestamps that are written by them.
TimeFormats = Mapping[TypeKind, str]
NO_FORMATS: TimeFormats = {}
#: Rows whose text is in memory at a time.
_BLOCK_ROWS = 131_072


def blocks(tables: Iterable[Table]) -> Iterator[Table]:
    """The rows of which text is made at a time; of a table without rows it is one block."""
    for table in tables:
        for start in range(0, max(table.num_rows, 1), _BLOCK_ROWS):
            check()
            yield table.cut(start, min(start + _BLOCK_ROWS, table.num_rows))


def text_array(column: Column, formats: TimeFormats = NO_FORMATS) -> pa.LargeStringArray:
    """The text of each value; NULL stays NULL."""
    data_type = column.data_type
    if data_type.kind in (TypeKind.VARCHAR, TypeKind.BIT):
        return string_array(column).cast(pa.large_string())
    if data_type.kind is TypeKind.NULL:
        return pa.nulls(column.num_rows, pa.large_string())
    if data_type.is_enum:
        return column_to_arrow("", column).cast(pa.large_string())
    if data_type.is_nested and holds_json(data_type):
        raise UnsupportedError(f"{data_type} in a file of text is not supported; cast it to VARCHAR")
    pattern = formats.get(data_type.kind)
    write = (
        formatter(data_type) if pattern is None else partial(strftime, pattern=pattern, data_type=data_type)
    )
    if write is None or column.values is None:
        return pa.array(cell_texts(column), pa.large_string())
    return to_arrow(
        write(column.values.detach().cpu()), None if column.validity is None else column.validity.cpu()
    )


def beside(*parts: pa.LargeStringArray | str, between: str = "") -> pa.LargeStringArray:
    """For each row the texts of all parts, one after the other; a text is the same in all rows."""
    return pc.binary_join_element_wise(
        *(pa.scalar(part, pa.large_string()) if isinstance(part, str) else part for part in (*parts, between))
    )


def bytes_of(texts: pa.LargeStringArray) -> pa.Buffer:
    """The bytes of all texts one after the other, of which none is NULL."""
    if not len(texts):
        return pa.py_buffer(b"")
    offsets = np.frombuffer(texts.buffers()[1], np.int64, len(texts) + 1, 8 * texts.offset)
    first, last = int(offsets[0]), int(offsets[-1])
    return texts.buffers()[2].slice(first, last - first) if last > first else pa.py_buffer(b"")
