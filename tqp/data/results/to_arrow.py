"""Columns and tables as Arrow, in the types that DuckDB exports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.errors import ExecutionError
from tqp.core.time_limits import DAYS_PER_MONTH, MICROSECONDS_PER_DAY
from tqp.core.zoned_times import clock_of_stored, universal_clock_of_stored
from tqp.data.arrow_buffers import INTERVAL_ITEM, AnyArray, BoolArray, pack_bits
from tqp.data.arrow_types import Purpose, arrow_type_of, stored_fields
from tqp.data.bits import packed_bits
from tqp.data.column import Column, Table, elements_in_order, fields_of
from tqp.data.nested import Lists, Structs
from tqp.data.string_buffers import string_array
from tqp.data.unsigned_words import words_of
from tqp.data.uuids import UUID_BYTES, uuid_bytes, uuid_texts

_MAX_DAYS = np.iinfo(np.int64).max // MICROSECONDS_PER_DAY - 1
_MAX_ELEMENTS = np.iinfo(np.int32).max
_WIDE_KINDS = (TypeKind.DECIMAL, TypeKind.HUGEINT, TypeKind.UHUGEINT, TypeKind.UUID)


def table_to_arrow(table: Table) -> pa.Table:
    """The table with exact types; VARCHAR is large_string where a column holds more than 2 GiB. Names may repeat."""
    arrays = [column_to_arrow(name, column) for name, column in zip(table.names, table.columns, strict=True)]
    if not arrays:
        return pa.table({})
    return pa.Table.from_arrays(arrays, names=list(table.names))


def column_to_arrow(name: str, column: Column, purpose: Purpose = Purpose.RESULT) -> pa.Array:
    """One column; `name` is for the message of the ExecutionError that an interval beyond Arrow's range raises.

    `purpose`: how types leave of which Arrow has not all, see `arrow_type_of`.
    """
    data_type, num_rows = column.data_type, column.num_rows
    if data_type.kind is TypeKind.NULL:
        return pa.nulls(num_rows)
    if data_type.is_string:
        texts = string_array(column)
        is_packed = data_type.kind is TypeKind.BIT and purpose is Purpose.RESULT
        return packed_bits(texts) if is_packed else texts
    validity = column.host_validity
    if column.nested is not None:
        return _nested(name, column, validity, purpose)
    assert column.values is not None
    values = column.values.detach().cpu()
    bitmap = pack_bits(validity)
    arrow_type = arrow_type_of(data_type, purpose)
    if data_type.is_enum:
        return _dictionary(column, validity)
    if data_type.kind is TypeKind.UUID and purpose is not Purpose.STORAGE:
        return _uuids(values, bitmap, purpose)
    if data_type.kind is TypeKind.TIME_TZ:
        values = _clocks(values, validity, purpose)
    if data_type.kind is TypeKind.ARRAY:
        elements = pa.Array.from_buffers(
            pa.float32(), values.numel(), [None, _buffer(values.contiguous().numpy())]
        )
        return pa.Array.from_buffers(arrow_type, num_rows, [bitmap], children=[elements])
    if data_type.kind is TypeKind.BOOLEAN:
        data = pack_bits(values.numpy())
    elif data_type.kind is TypeKind.INTERVAL:
        data = _buffer(_intervals(name, values, validity))
    elif data_type.kind in _WIDE_KINDS:
        if data_type.kind is TypeKind.UHUGEINT and purpose is not Purpose.STORAGE:
            values = _signed(name, values, validity)
        data = _buffer(_low_word_first(values))
    else:
        data = _buffer(_fixed_width(values, data_type, arrow_type))
    return pa.Array.from_buffers(arrow_type, num_rows, [bitmap, data])


def _uuids(values: Tensor, bitmap: pa.Buffer | None, purpose: Purpose) -> pa.Array:
    if purpose is Purpose.FILE:
        content = _buffer(uuid_bytes(values).numpy())
        storage = pa.Array.from_buffers(pa.binary(UUID_BYTES), len(values), [bitmap, content])
        return pa.ExtensionArray.from_storage(pa.uuid(), storage)
    texts = uuid_texts(values)
    offsets = np.arange(len(values) + 1, dtype=np.int32) * texts.shape[1]
    return pa.Array.from_buffers(pa.string(), len(values), [bitmap, _buffer(offsets), _buffer(texts.numpy())])


def _clocks(values: Tensor, validity: BoolArray | None, purpose: Purpose) -> Tensor:
    """Times with a zone as their kind of Arrow type has them, int64 [n]; zeros under a NULL."""
    values = values.to(torch.int64)
    if purpose is Purpose.RESULT:
        values = clock_of_stored(values)
    elif purpose is Purpose.FILE:
        values = universal_clock_of_stored(values).remainder(MICROSECONDS_PER_DAY)
    return values if validity is None else values * torch.from_numpy(validity)


def _nested(name: str, column: Column, validity: BoolArray | None, purpose: Purpose) -> pa.Array:
    """A LIST or MAP as a list array, whose elements are copied where they do not lie in row order; a STRUCT as a struct array."""
    data_type = column.data_type
    arrow_type, bitmap = arrow_type_of(data_type, purpose), pack_bits(validity)
    if data_type.is_union and purpose is Purpose.RESULT:
        return _union(name, column, arrow_type)
    if isinstance(column.nested, Structs):
        return _structs(name, column, arrow_type, bitmap, purpose)
    if data_type.kind is TypeKind.ARRAY:
        return _fixed_lists(name, column, bitmap, purpose)
    elements, lengths = elements_in_order(column)
    if data_type.kind is TypeKind.MAP:
        child = _entries(name, elements, arrow_type, purpose)
    else:
        child = column_to_arrow(name, elements, purpose)
    if elements.num_rows > _MAX_ELEMENTS:
        raise ExecutionError(
            f'column "{name}": its lists hold more than 2^31 elements together, too many for Arrow'
        )
    offsets = np.zeros(column.num_rows + 1, np.int32)
    np.cumsum(lengths.numpy(), out=offsets[1:])
    return pa.Array.from_buffers(arrow_type, column.num_rows, [bitmap, _buffer(offsets)], children=[child])


def _fixed_lists(name: str, column: Column, bitmap: pa.Buffer | None, purpose: Purpose) -> pa.Array:
    """An ARRAY: a row that is NULL has elements, too, those of any other; so has one within a struct that is NULL."""
    data_type, lists = column.data_type, column.nested
    assert isinstance(lists, Lists)
    arrow_type = arrow_type_of(data_type, purpose)
    is_whole = lists.lengths == data_type.size
    if column.validity is not None:
        is_whole &= column.validity
    if not bool(is_whole.all()):
        if not bool(is_whole.any()):
            return pa.nulls(column.num_rows, arrow_type)
        starts = torch.where(is_whole, lists.starts, lists.starts[is_whole][0])
        lists = lists._replace(starts=starts, lengths=torch.full_like(lists.lengths, data_type.size))
    elements, _ = elements_in_order(replace(column, validity=None, nested=lists))
    child = column_to_arrow(name, elements, purpose)
    return pa.Array.from_buffers(arrow_type, column.num_rows, [bitmap], children=[child])


def _entries(name: str, elements: Column, arrow_type: pa.MapType, purpose: Purpose) -> pa.Array:
    """Keys and values of maps. No key is NULL, on which writers of Parquet rely; pyarrow before 26 ends the process where keys
    have a bitmap all the same."""
    assert isinstance(elements.nested, Structs)
    keys, items = elements.nested.fields
    entries = replace(elements, nested=Structs((keys._replace(validity=None), items)))
    return _structs(name, entries, pa.struct([arrow_type.key_field, arrow_type.item_field]), None, purpose)


def _structs(
    name: str, column: Column, arrow_type: pa.DataType, bitmap: pa.Buffer | None, purpose: Purpose
) -> pa.Array:
    types = stored_fields(column.data_type)
    fields = (replace(field, data_type=each) for field, each in zip(fields_of(column), types, strict=True))
    children = [column_to_arrow(name, field, purpose) for field in fields]
    if pa.types.is_null(children[0].type):  # keys of an empty map have a type all the same
        children[0] = children[0].cast(arrow_type.field(0).type)
    return pa.StructArray.from_buffers(arrow_type, column.num_rows, [bitmap], children=children)


def _union(name: str, column: Column, arrow_type: pa.UnionType) -> pa.UnionArray:
    """A sparse union. One that is NULL, for which Arrow has no form, leaves as its first member that is NULL."""
    tag, *members = fields_of(column)
    assert tag.values is not None
    tags, validity = tag.values.to(torch.int8), column.validity
    if validity is not None:
        tags = tags * validity
        members = [
            replace(each, validity=validity if each.validity is None else each.validity & validity)
            for each in members
        ]
    children = [column_to_arrow(name, member) for member in members]
    return pa.UnionArray.from_sparse(
        pa.array(tags.cpu().numpy()), children, [field.name for field in arrow_type]
    )


def _dictionary(column: Column, validity: BoolArray | None) -> pa.Array:
    """An ENUM as an ordered dictionary of all its values."""
    assert column.values is not None
    arrow_type = arrow_type_of(column.data_type)
    mask = None if validity is None else ~validity
    positions = pa.array(column.values.cpu().numpy(), arrow_type.index_type, mask=mask)
    categories = pa.array(column.data_type.categories, arrow_type.value_type)
    return pa.DictionaryArray.from_arrays(positions, categories, ordered=True)


def _buffer(values: AnyArray) -> pa.Buffer:
    """Shares the array's memory; a table's tensors are never written to once it is built."""
    return pa.py_buffer(np.ascontiguousarray(values))


def _fixed_width(values: Tensor, data_type: DataType, arrow_type: pa.DataType) -> AnyArray:
    if values.dim() == 2:  # UBIGINT beyond 2^63 comes as two words
        values = values[:, 1]
    items = values.numpy()
    if data_type.is_float:
        return items
    return items.astype(f"{'u' if data_type.bounds[0] == 0 else 'i'}{arrow_type.bit_width // 8}", copy=False)


def _signed(name: str, values: Tensor, validity: BoolArray | None) -> Tensor:
    """Stored UHUGEINT as integers of 128 bits with a sign, zeros under a NULL. Raises ExecutionError for one that is none."""
    words = words_of(values)
    if validity is not None:
        words = words * torch.from_numpy(validity).unsqueeze(1)
    if bool((words[:, 0] < 0).any()):
        raise ExecutionError(
            f'column "{name}" holds a UHUGEINT beyond 127 bits, which Arrow does not have; cast it to VARCHAR'
        )
    return words


def _low_word_first(values: Tensor) -> AnyArray:
    """int64 [n, 2] as Arrow's 128-bit decimals have it."""
    items = values.numpy()
    result = np.empty((len(items), 2), np.int64)
    if items.ndim == 2:
        result[:, 0], result[:, 1] = items[:, 1], items[:, 0]
    else:
        result[:, 0] = items
        np.right_shift(result[:, 0], 63, out=result[:, 1])
    return result


def _intervals(name: str, values: Tensor, validity: BoolArray | None) -> AnyArray:
    items = values.numpy()
    nanoseconds_limit = np.iinfo(np.int64).max // 1_000
    too_long = np.abs(items[:, 2]) > nanoseconds_limit
    if (too_long if validity is None else too_long & validity).any():
        raise ExecutionError(
            f'column "{name}": an interval is too long for Arrow, which counts nanoseconds in 64 bits'
        )
    result = np.empty(len(items), INTERVAL_ITEM)
    result["months"], result["days"] = items[:, 0], items[:, 1]
    result["nanoseconds"] = items[:, 2] * 1_000
    return result


def interval_microseconds(name: str, column: Column) -> AnyArray:
    """INTERVAL values as int64 [n] microseconds for libraries that know no months, a month being 30 days as in DuckDB.

    Raises ExecutionError naming the column where 64 bits do not suffice.
    """
    assert column.values is not None
    months, days, microseconds = column.values.cpu().numpy().T
    total_days = months * DAYS_PER_MONTH + days
    if np.any(np.abs(total_days) + np.abs(microseconds // MICROSECONDS_PER_DAY) > _MAX_DAYS):
        raise ExecutionError(f'column "{name}": an interval is too long to count its microseconds in 64 bits')
    result: AnyArray = total_days * MICROSECONDS_PER_DAY + microseconds
    return result


def interval_to_duration(name: str, column: Column) -> pa.Array:
    """An INTERVAL column as Arrow durations in microseconds; see `interval_microseconds`."""
    mask = None if column.validity is None else ~column.validity.cpu().numpy()
    return pa.array(interval_microseconds(name, column), pa.duration("us"), mask=mask)
