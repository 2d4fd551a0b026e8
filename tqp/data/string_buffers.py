"""Strings over Arrow's buffers, and Arrow arrays from Strings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import torch

from tqp.core.datatypes import TypeKind
from tqp.core.errors import ExecutionError
from tqp.data.arrow_buffers import AnyArray, BoolArray, borrow, pack_bits
from tqp.data.column import Column
from tqp.data.strings import Strings

_MIN_SHARED_ROWS = 1_000
_INT32_MAX = 2**31 - 1
#: Windows of a byte buffer that a string view can point into start every 1 GiB and overlap, as its offset is an int32.
_WINDOW = 2**30


def strings_of(name: str, chunks: Sequence[pa.Array], validity: BoolArray | None) -> Strings:
    """All rows of large_binary arrays as Strings on the CPU; NULL rows get length 0.

    One chunk is shared, several are copied into one buffer. `name` is for the error message.
    """
    all_offsets = [_offsets(chunk) for chunk in chunks]
    lengths = np.empty(sum(len(chunk) for chunk in chunks), np.int32)
    position = 0
    for chunk, offsets in zip(chunks, all_offsets, strict=True):
        sizes = np.diff(offsets)
        if len(sizes) and sizes.max() > _INT32_MAX:
            raise ExecutionError(f'column "{name}" holds a string longer than 2 GiB')
        lengths[position : position + len(chunk)] = sizes
        position += len(chunk)
    if validity is not None:
        lengths[~validity] = 0
    if len(chunks) == 1:
        starts, data = _shared(chunks[0], all_offsets[0])
    else:
        starts, data = _concatenated(chunks, all_offsets)
    return Strings(starts, torch.from_numpy(lengths), data)


def string_array(column: Column, validity: BoolArray | None) -> pa.Array:
    """The Arrow array of a VARCHAR or BLOB column on any device: string or binary, the large kinds beyond 2 GiB."""
    assert column.pool is not None
    as_text = column.data_type.kind is TypeKind.VARCHAR
    pool = Strings(*(tensor.detach().cpu() for tensor in column.pool))
    if column.values is not None and pool.num_rows == 0:  # every row is NULL
        return pa.nulls(column.num_rows, pa.string() if as_text else pa.binary())
    if column.values is not None:
        codes = column.values.detach().cpu().long()
        lengths = pool.lengths[codes]
        if pool.num_rows <= column.num_rows:  # a dictionary: build its entries once
            entries = _adjacent_strings(pool, None, as_text)
            if entries is None:
                entries = _binary_view(pool, None, as_text).cast(_LARGE[as_text])
            mask = None if validity is None else ~validity
            return _narrowed(entries.take(pa.array(codes.numpy(), mask=mask)), as_text, int(lengths.sum()))
        pool = Strings(pool.starts[codes], lengths, pool.data)
    if validity is not None:
        pool = pool._replace(lengths=pool.lengths * torch.from_numpy(validity))
    array = _adjacent_strings(pool, validity, as_text)
    if array is None:
        array = _binary_view(pool, validity, as_text)
    return _narrowed(array, as_text, int(pool.lengths.sum()))


_SMALL = {True: pa.string(), False: pa.binary()}
_LARGE = {True: pa.large_string(), False: pa.large_binary()}


def _narrowed(array: pa.Array, as_text: bool, num_bytes: int) -> pa.Array:
    """With 32-bit offsets if the bytes allow it."""
    return array.cast((_SMALL if num_bytes <= _INT32_MAX else _LARGE)[as_text])


def _adjacent_strings(pool: Strings, validity: BoolArray | None, as_text: bool) -> pa.Array | None:
    """An array over the same bytes if each string follows the one before, as in a column that went through unchanged.

    None otherwise, and for short columns, which should not keep a long buffer alive.
    """
    if pool.num_rows < _MIN_SHARED_ROWS:
        return None
    offsets = torch.empty(pool.num_rows + 1, dtype=torch.int64)
    torch.add(pool.starts, pool.lengths, out=offsets[1:])
    offsets[0] = pool.starts[0]
    if not torch.equal(offsets[:-1], pool.starts):
        return None
    buffers = [pack_bits(validity), pa.py_buffer(offsets.numpy()), pa.py_buffer(pool.data.numpy())]
    return pa.Array.from_buffers(_LARGE[as_text], pool.num_rows, buffers)


def _binary_view(strings: Strings, validity: BoolArray | None, as_text: bool) -> pa.Array:
    """A string_view (or binary_view) array over the bytes of CPU Strings, which are not copied."""
    starts, lengths = strings.starts.numpy(), strings.lengths.numpy()
    data = strings.data.numpy()
    num_rows = len(starts)
    views = np.zeros((num_rows, 4), np.int32)
    views[:, 0] = lengths
    is_long = lengths > 12
    _fill_prefixes(views, np.flatnonzero(~is_long), starts, lengths, data, 12)
    long_rows = np.flatnonzero(is_long)
    _fill_prefixes(views, long_rows, starts, lengths, data, 4)
    views[long_rows, 2] = starts[long_rows] // _WINDOW
    views[long_rows, 3] = starts[long_rows] % _WINDOW
    windows = [pa.py_buffer(data[at : at + 2 * _WINDOW - 1]) for at in range(0, len(data), _WINDOW)]
    arrow_type = pa.string_view() if as_text else pa.binary_view()
    return pa.Array.from_buffers(arrow_type, num_rows, [pack_bits(validity), pa.py_buffer(views), *windows])


def _fill_prefixes(
    views: AnyArray, rows: AnyArray, starts: AnyArray, lengths: AnyArray, data: AnyArray, width: int
) -> None:
    """Put the first `width` bytes of these rows' strings (zeros past their end) into their views."""
    if len(rows) == 0 or len(data) == 0:
        return
    columns = np.arange(width)
    taken = data[np.minimum(starts[rows, None] + columns, len(data) - 1)]
    taken[columns >= lengths[rows, None]] = 0
    views.view(np.uint8).reshape(-1, 16)[rows, 4 : 4 + width] = taken


def _offsets(chunk: pa.Array) -> AnyArray:
    """The n + 1 offsets of a large_binary array into its byte buffer."""
    if len(chunk) == 0:
        return np.zeros(1, np.int64)
    return np.frombuffer(chunk.buffers()[1], np.int64, count=len(chunk) + 1, offset=chunk.offset * 8)


def _shared(chunk: pa.Array, offsets: AnyArray) -> tuple[torch.Tensor, torch.Tensor]:
    first, last = int(offsets[0]), int(offsets[-1])
    data = borrow(chunk.buffers()[2], torch.uint8, first, last - first)
    if first == 0:
        return borrow(chunk.buffers()[1], torch.int64, chunk.offset, len(chunk)), data
    return torch.from_numpy(offsets[:-1] - first), data


def _concatenated(
    chunks: Sequence[pa.Array], all_offsets: Sequence[AnyArray]
) -> tuple[torch.Tensor, torch.Tensor]:
    starts = np.empty(sum(len(chunk) for chunk in chunks), np.int64)
    data = np.empty(sum(int(offsets[-1] - offsets[0]) for offsets in all_offsets), np.uint8)
    row = byte = 0
    for chunk, offsets in zip(chunks, all_offsets, strict=True):
        first, size = int(offsets[0]), int(offsets[-1] - offsets[0])
        np.add(offsets[:-1], byte - first, out=starts[row : row + len(chunk)])
        if size:
            data[byte : byte + size] = np.frombuffer(chunk.buffers()[2], np.uint8, count=size, offset=first)
        row, byte = row + len(chunk), byte + size
    return torch.from_numpy(starts), torch.from_numpy(data)
