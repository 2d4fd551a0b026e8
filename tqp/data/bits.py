"""BIT in Arrow as DuckDB has it: a byte that counts the bits missing to whole bytes, then these bits as ones, and the bits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tqp.core.errors import ExecutionError
from tqp.data.arrow_buffers import AnyArray

_ZERO = ord("0")
_BITS_OF_BYTE = 8


def packed_bits(texts: pa.Array) -> pa.Array:
    """The digits of a string array in DuckDB's form, as binary."""
    offsets, content = _buffers_of(texts)
    lengths = np.diff(offsets)
    missing = -lengths % _BITS_OF_BYTE
    sizes = 1 + (lengths + missing) // _BITS_OF_BYTE
    sizes[texts.is_null().to_numpy(zero_copy_only=False)] = 0
    ends = np.cumsum(sizes)
    packed = np.full(int(ends[-1]) if len(ends) else 0, 0xFF, np.uint8)
    is_written = sizes > 0
    first = (ends - sizes)[is_written]
    bits = np.unpackbits(packed)
    bits[_places((first + 1) * _BITS_OF_BYTE + missing[is_written], lengths[is_written])] = content - _ZERO
    packed = np.packbits(bits)
    packed[first] = missing[is_written]
    return _array_of(packed, ends, texts).cast(pa.binary())


def unpacked_bits(name: str, packed: pa.Array) -> pa.Array:
    """The digits of binary values in DuckDB's form, as large_string. Raises ExecutionError for bytes of another form.

    `name`: of the column, for the message.
    """
    offsets, content = _buffers_of(packed)
    is_written = packed.is_valid().to_numpy(zero_copy_only=False)
    first, sizes = offsets[:-1][is_written], np.diff(offsets)[is_written]
    missing = content[first[sizes > 0]].astype(np.int64)
    lengths = np.zeros(len(packed), np.int64)
    if len(missing) < len(first) or (missing >= _BITS_OF_BYTE).any() or (missing > 8 * (sizes - 1)).any():
        raise ExecutionError(f'column "{name}" holds bytes that are no BIT as DuckDB writes it')
    lengths[is_written] = (sizes - 1) * _BITS_OF_BYTE - missing
    bits = np.unpackbits(content)[_places((first + 1) * _BITS_OF_BYTE + missing, lengths[is_written])]
    return _array_of(bits + _ZERO, np.cumsum(lengths), packed).cast(pa.large_string())


def _buffers_of(array: pa.Array) -> tuple[AnyArray, AnyArray]:
    """The n + 1 offsets of strings or binary values from 0, and their bytes; NULL has none."""
    filled = pc.fill_null(array.cast(pa.large_binary()), b"")
    offsets = np.frombuffer(filled.buffers()[1], np.int64, len(array) + 1, 8 * filled.offset)
    content = filled.buffers()[2]
    data = np.frombuffer(content, np.uint8) if content is not None else np.empty(0, np.uint8)
    return offsets - offsets[0], data[offsets[0] : offsets[-1]]


def _places(starts: AnyArray, lengths: AnyArray) -> AnyArray:
    """So many places from each start on, one after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def _array_of(content: AnyArray, ends: AnyArray, like: pa.Array) -> pa.Array:
    """large_binary values that end at these places, NULL where `like` is."""
    offsets = np.concatenate(([0], ends)).astype(np.int64)
    array = pa.Array.from_buffers(
        pa.large_binary(), len(like), [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    )
    return (
        pc.if_else(like.is_valid(), array, pa.scalar(None, pa.large_binary())) if like.null_count else array
    )
