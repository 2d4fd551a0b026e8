"""Columns of tables that statements change: what a query put out as Arrow arrays of storage values, and back.

Such an array holds what a `Column` holds, over the same memory where it can be: the integers of a decimal, the positions in an
ENUM, the codes and entries of a dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from tqp.core.datatypes import DataType
from tqp.data.arrow_buffers import pack_bits
from tqp.data.arrow_types import Purpose
from tqp.data.column import Column
from tqp.data.encoding.columns import encode_chunks
from tqp.data.encoding.string_views import as_binary
from tqp.data.encoding.string_words import is_text
from tqp.data.results.to_arrow import column_to_arrow
from tqp.data.string_buffers import string_array

#: Rows of a column: encoded, or storage values that are yet to be.
Chunk: TypeAlias = Column | pa.Array

#: A tensor that is a view of this many times its own bytes is copied, so that the rest can be freed.
_MUCH_LARGER = 2


def storage_array(name: str, column: Column) -> pa.Array:
    """The rows of a column in storage values; `name` is for errors."""
    data_type, values = column.data_type, column.values
    if data_type.is_string:
        return _texts(column)
    if values is None or not data_type.is_integer_like or values.dim() == 2:
        return column_to_arrow(name, column, Purpose.STORAGE)
    host = values.detach().cpu()
    if host.untyped_storage().nbytes() > _MUCH_LARGER * host.nbytes:
        host = host.clone()
    items = np.ascontiguousarray(host.numpy())
    bitmap = pack_bits(column.host_validity)
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(items.dtype), column.num_rows, [bitmap, pa.py_buffer(items)]
    )


def _texts(column: Column) -> pa.Array:
    """A dictionary array where there is a dictionary of fewer entries than rows."""
    pool, codes = column.pool, column.values
    if codes is None or pool is None or not column.pool_is_dictionary or pool.num_rows > column.num_rows:
        return string_array(column)
    entries = Column(column.data_type, pool.num_rows, None, None, pool)
    validity = column.host_validity
    mask = None if validity is None else ~validity
    return pa.DictionaryArray.from_arrays(
        pa.array(codes.detach().cpu().numpy(), mask=mask), string_array(entries)
    )


def encode_stored(name: str, chunks: Sequence[Chunk], data_type: DataType, device: torch.device) -> Column:
    """The rows of all chunks as one encoded column on `device`. What dictionaries they have are of columns, or were made here."""
    if len(chunks) == 1 and isinstance(chunks[0], Column):
        return chunks[0]
    arrays = [array for array in (_array_of(name, chunk) for chunk in chunks) if len(array)]
    if data_type.is_string:
        arrays = _alike(arrays)
    return encode_chunks(name, arrays, data_type, device, are_distinct=True)


def take_stored(
    name: str, chunks: Sequence[Chunk], rows: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> Chunk:
    """The given rows of what all chunks hold together."""
    arrays = _alike([_array_of(name, chunk) for chunk in chunks])
    if not arrays:
        return pa.nulls(len(rows))
    whole = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
    return whole.take(pa.array(rows))


def nulls_stored(name: str, num_rows: int, data_type: DataType, device: torch.device) -> Chunk:
    """So many NULLs."""
    if data_type.is_integer_like:
        return pa.nulls(num_rows, pa.int8())
    empty = encode_chunks(name, [], data_type, device)
    return column_to_arrow(name, empty, Purpose.STORAGE).take(pa.nulls(num_rows, pa.int64()))


def _array_of(name: str, chunk: Chunk) -> pa.Array:
    return storage_array(name, chunk) if isinstance(chunk, Column) else chunk


def _alike(arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """The arrays in one Arrow type, which can hold the values of all."""
    types = {array.type for array in arrays}
    if len(types) <= 1:
        return list(arrays)
    if any(map(pa.types.is_dictionary, types)):
        return [_as_dictionary(array) for array in arrays]
    if any(map(is_text, types)):
        return [as_binary(array) for array in arrays]
    if all(pa.types.is_integer(each) or pa.types.is_decimal(each) for each in types):
        common = max(types, key=_capacity)
        return [_widened(array, common) for array in arrays]
    return list(arrays)


def _capacity(data_type: pa.DataType) -> tuple[int, bool]:
    """Greater for a type that holds the values of a lesser one: no UBIGINT is negative."""
    return data_type.bit_width, pa.types.is_unsigned_integer(data_type)


def _widened(array: pa.Array, common: pa.DataType) -> pa.Array:
    if array.type == common:
        return array
    if not pa.types.is_decimal(common):
        return pc.cast(array, common)
    # storage values: the digits count, not the scale of the type that carries them
    whole = pc.cast(array, pa.decimal128(38, 0))
    return pa.Array.from_buffers(common, len(whole), whole.buffers(), whole.null_count, whole.offset)


def _as_dictionary(array: pa.Array) -> pa.Array:
    encoded = array if pa.types.is_dictionary(array.type) else pc.dictionary_encode(array)
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(pa.int32()), as_binary(encoded.dictionary))
