"""An Arrow column as a `Column`: picks the encoding, hands strings and integers to their own files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from tqp.core.datatypes import BIT, FLOAT, DataType, TypeKind
from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.core.schema import NO_ESTIMATES, ColumnEstimates
from tqp.core.zoned_times import stored_time
from tqp.data.arrow_buffers import INTERVAL_ITEM, AnyArray, tensor_of, unpack_bits, values_view
from tqp.data.arrow_types import HUGEINT_ARRAY, data_type_of, type_of_values
from tqp.data.bits import unpacked_bits
from tqp.data.column import Column
from tqp.data.encoding.floats import encode_floats
from tqp.data.encoding.integers import MICROSECONDS_OF, encode_integers, joined_validity
from tqp.data.encoding.nested import encode_nested, fields_of_union
from tqp.data.encoding.strings import encode_strings
from tqp.data.uuids import uuid_values


def encode_column(name: str, column: pa.ChunkedArray | pa.Array, device: torch.device) -> Column:
    """The Column of an Arrow column, with exact statistics, on `device`; shares Arrow's memory where it can.

    `name` is for error messages. Raises UnsupportedError for a type tqp does not have, ExecutionError for a value
    that its logical type cannot hold.

    >>> encode_column("x", pa.array([3, None, 500]), torch.device("cpu")).values
    tensor([  3,   3, 500], dtype=torch.int16)
    """
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return encode_chunks(name, chunks, type_of_values(column, name), device)


def encode_chunks(
    name: str,
    chunks: Sequence[pa.Array],
    data_type: DataType,
    device: torch.device,
    *,
    are_distinct: bool = False,
) -> Column:
    """As `encode_column`, from pieces; the chunks of an integer-like column may differ in Arrow type.

    `are_distinct`: as `encode_strings` has it.
    """
    with reporting(name):
        chunks = [plain(chunk, name, data_type) for chunk in chunks if len(chunk)]
        if data_type.is_string:
            encoded = encode_strings(name, chunks, data_type, are_distinct=are_distinct)
        elif data_type.is_integer_like:
            encoded = encode_integers(name, chunks, data_type)
        elif data_type.is_float:
            encoded = encode_floats(chunks, data_type)
        elif data_type.is_nested:
            encode_inner = partial(encode_chunks, name, device=torch.device("cpu"))
            encoded = encode_nested(chunks, data_type, encode_inner)
        else:
            encoded = _encode_other(name, chunks, data_type)
    if all(chunk.null_count == len(chunk) for chunk in chunks):
        encoded = replace(encoded, facts=replace(encoded.facts, is_null=True))
    return encoded.to(device)


@contextmanager
def reporting(name: str) -> Iterator[None]:
    """Turns what Arrow raises in the block into an ExecutionError that names the column."""
    try:
        yield
    except pa.ArrowException as error:
        raise ExecutionError(f'column "{name}" cannot be read: {error}') from error


def plain(chunk: pa.Array, name: str, data_type: DataType) -> pa.Array:
    """The chunk without wrappings: extension types, run ends, dictionaries of anything but strings."""
    if isinstance(chunk.type, pa.BaseExtensionType):
        return plain(_storage(chunk, name), name, data_type)
    if pa.types.is_run_end_encoded(chunk.type):
        return plain(pc.run_end_decode(chunk), name, data_type)
    if data_type.is_enum and pa.types.is_dictionary(chunk.type):
        return chunk.indices
    if pa.types.is_dictionary(chunk.type) and not data_type.is_string:
        return plain(chunk.dictionary.take(chunk.indices), name, data_type)
    if pa.types.is_decimal(chunk.type) and chunk.type.scale < 0:
        return chunk.cast(pa.decimal128(data_type.precision, 0))
    if pa.types.is_union(chunk.type):
        return fields_of_union(chunk)
    if pa.types.is_float16(chunk.type):
        return chunk.cast(pa.float32())
    if pa.types.is_time(chunk.type) and data_type.kind is TypeKind.TIME_TZ:
        return _stored_times(chunk)
    return chunk


def _storage(chunk: pa.ExtensionArray, name: str) -> pa.Array:
    """What an extension array holds, as the values of the logical type that it is read as."""
    match chunk.type.extension_name:
        case "arrow.uuid":
            return _uuid_integers(chunk.storage)
        case "arrow.opaque" if data_type_of(chunk.type, name) == BIT:
            return unpacked_bits(name, chunk.storage)
        case "arrow.bool8":
            return pc.not_equal(chunk.storage, 0)
        case _:
            return chunk.storage


def _stored_times(chunk: pa.Array) -> pa.Array:
    """The stored integers of times of day in UTC; nanoseconds are cut."""
    clock = chunk.cast(pa.time64("us"), safe=False).view(pa.int64())
    return pa.array(
        stored_time(clock.fill_null(0).to_numpy(), 0), mask=chunk.is_null().to_numpy(zero_copy_only=False)
    )


def _uuid_integers(storage: pa.FixedSizeBinaryArray) -> pa.Array:
    """The stored integers of UUIDs as 128-bit decimals, which are what Arrow has of that width."""
    bitmap, content = storage.buffers()
    items = np.frombuffer(content, np.uint8)[: 16 * (storage.offset + len(storage))].reshape(-1, 16)
    words = uuid_values(torch.from_numpy(items.copy())).flip(1).contiguous()
    return pa.Array.from_buffers(
        HUGEINT_ARRAY.storage_type,
        len(storage),
        [bitmap, pa.py_buffer(words.numpy())],
        offset=storage.offset,
    )


def _encode_other(name: str, chunks: Sequence[pa.Array], data_type: DataType) -> Column:
    num_rows = sum(len(chunk) for chunk in chunks)
    validity = joined_validity(chunks)
    estimates = NO_ESTIMATES
    match data_type.kind:
        case TypeKind.NULL:
            values = torch.zeros(num_rows, dtype=torch.int8)
            estimates = ColumnEstimates(0.0)
        case TypeKind.BOOLEAN:
            parts = [unpack_bits(chunk.buffers()[1], chunk.offset, len(chunk)) for chunk in chunks]
            values = torch.from_numpy(np.concatenate(parts) if parts else np.empty(0, np.bool_))
            estimates = ColumnEstimates(2.0)
        case TypeKind.INTERVAL:
            values = torch.from_numpy(
                np.concatenate([_intervals(name, chunk) for chunk in chunks] or [_NO_INTERVALS])
            )
        case TypeKind.ARRAY:
            values = _joined_arrays(name, chunks, data_type.size)
        case _:
            raise UnsupportedError(f'column "{name}" has the type {data_type}, which cannot be loaded')
    if validity is not None and data_type.kind is not TypeKind.NULL:
        values = values.clone()  # may be Arrow's own memory
        values[torch.from_numpy(~validity)] = 0
    return Column(data_type, num_rows, values, tensor_of(validity), estimates=estimates)


def _joined_arrays(name: str, chunks: Sequence[pa.Array], size: int) -> Tensor:
    """float32 [n, size] from fixed-size lists."""
    parts = []
    for chunk in chunks:
        elements = chunk.values.slice(chunk.offset * size, len(chunk) * size)
        if elements.null_count:
            # A NULL list may have NULL elements under it; a valid one may not.
            per_row = pc.is_null(elements).to_numpy(zero_copy_only=False).reshape(-1, size).any(axis=1)
            if (per_row & chunk.is_valid().to_numpy(zero_copy_only=False)).any():
                raise UnsupportedError(
                    f'column "{name}" has a NULL inside an array, which tqp does not support'
                )
        parts.append(elements.cast(pa.float32()))
    values = encode_floats(parts, FLOAT).values
    assert values is not None
    return values.view(-1, size)


_NO_INTERVALS = np.empty((0, 3), np.int64)


def _intervals(name: str, chunk: pa.Array) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """int64 [n, 3]: months, days, microseconds. Arrow's nanoseconds are cut towards zero, as DuckDB does."""
    result = np.zeros((len(chunk), 3), np.int64)
    if pa.types.is_duration(chunk.type):
        multiply, divide = MICROSECONDS_OF[chunk.type.unit]
        ticks = values_view(chunk, np.int64)
        limit = np.iinfo(np.int64).max // multiply
        if multiply > 1 and np.any(np.abs(ticks[chunk.is_valid().to_numpy(zero_copy_only=False)]) > limit):
            raise ExecutionError(f'column "{name}" holds a duration that is out of range for INTERVAL')
        result[:, 2] = ticks * multiply if divide == 1 else _toward_zero(ticks, divide)
    else:
        items = values_view(chunk, INTERVAL_ITEM)
        result[:, 0], result[:, 1] = items["months"], items["days"]
        result[:, 2] = _toward_zero(items["nanoseconds"], 1_000)
    return result


def _toward_zero(values: AnyArray, divisor: int) -> AnyArray:
    result: AnyArray = np.sign(values) * (np.abs(values) // divisor)
    return result
