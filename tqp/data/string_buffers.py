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
from tqp.data.strings import OrderedStrings, Strings

_MIN_SHARED_ROWS = 1_000
_INT32_MAX = 2**31 - 1
#: Rows of one length up to this are copied by one gather, in a third of the time; longer ones by a memcpy each.
COPIED_TOGETHER = 64
#: Bytes up to which rows are copied byte by byte: 2.5 ns each, where the calls for copying whole strings take 60 us more.
FEW_BYTES = 16_384


def strings_of(name: str, chunks: Sequence[pa.Array], validity: BoolArray | None) -> OrderedStrings:
    """All rows of large_binary arrays as Strings on the CPU; NULL rows get length 0.

    One chunk is shared, several are copied into one. `name` is for the error message.
    """
    chunk = chunks[0] if len(chunks) == 1 else pa.concat_arrays([pa.array([], pa.large_binary()), *chunks])
    offsets = _offsets(chunk)
    sizes = np.diff(offsets)
    if len(sizes) and sizes.max() > _INT32_MAX:
        raise ExecutionError(f'column "{name}" holds a string longer than 2 GiB')
    lengths = sizes.astype(np.int32)
    if validity is not None:
        lengths[~validity] = 0
    starts, data = _shared(chunk, offsets)
    return OrderedStrings(starts, torch.from_numpy(lengths), data)


def string_array(column: Column) -> pa.Array:
    """The Arrow array of a VARCHAR, BIT or BLOB column on any device: string or binary, the large kinds beyond 2 GiB.

    The caller's own thread makes it, where torch would divide each longer operation among threads that then wait, spinning, for
    the next one, while a query's workers need their processors: so it is made by numpy.
    """
    assert column.pool is not None
    as_text, validity = column.data_type.kind is not TypeKind.BLOB, column.host_validity
    pool = Strings(*(tensor.detach().cpu() for tensor in column.pool))
    if column.values is not None and pool.num_rows == 0:  # every row is NULL
        return pa.nulls(column.num_rows, pa.string() if as_text else pa.binary())
    codes, starts, lengths = None, pool.starts.numpy(), pool.lengths.numpy()
    if column.values is not None:
        codes = column.values.detach().cpu().numpy().astype(np.int64, copy=False)
        lengths = lengths.take(codes)
    if column.num_rows <= FEW_BYTES:
        starts_of_rows = starts if codes is None else starts.take(codes)
        lengths_of_rows = lengths if validity is None else lengths * validity
        if lengths_of_rows.sum() <= FEW_BYTES:
            data = pool.data.numpy()
            return _copied_bytes(starts_of_rows, lengths_of_rows, data, validity, as_text)
    if codes is not None:
        if pool.num_rows <= column.num_rows:  # a dictionary: build its entries once
            entries = _adjacent_strings(pool, None, as_text)
            if entries is None:
                entries = _copied_strings(pool, None, as_text)
            mask = None if validity is None else ~validity
            return _narrowed(entries.take(pa.array(codes, mask=mask)), as_text, int(lengths.sum()))
        pool = Strings(torch.from_numpy(starts.take(codes)), torch.from_numpy(lengths), pool.data)
    if validity is not None:
        pool = pool._replace(lengths=torch.from_numpy(pool.lengths.numpy() * validity))
    array = _adjacent_strings(pool, validity, as_text)
    if array is None:
        array = _copied_strings(pool, validity, as_text)
    return _narrowed(array, as_text, int(pool.lengths.numpy().sum()))


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
    starts = pool.starts.numpy()
    offsets = np.empty(pool.num_rows + 1, np.int64)
    np.add(starts, pool.lengths.numpy(), out=offsets[1:])
    offsets[0] = starts[0]
    if not np.array_equal(offsets[:-1], starts):
        return None
    buffers = [pack_bits(validity), pa.py_buffer(offsets), pa.py_buffer(pool.data.numpy())]
    return pa.Array.from_buffers(_LARGE[as_text], pool.num_rows, buffers)


def _copied_bytes(
    starts: AnyArray, lengths: AnyArray, data: AnyArray, validity: BoolArray | None, as_text: bool
) -> pa.Array:
    """An array of rows of few bytes. NULL rows have length 0."""
    offsets, joined = joined_bytes(starts, lengths, data)
    buffers = [pack_bits(validity), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(joined)]
    return pa.Array.from_buffers(_SMALL[as_text], len(lengths), buffers)


def joined_bytes(starts: AnyArray, lengths: AnyArray, data: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Where each row of few bytes begins, and where the last one ends, int64 [n + 1]; and the bytes one row after the other.

    Each byte is found by itself.
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    positions = np.repeat(starts - offsets[:-1], lengths)
    positions += np.arange(len(positions))
    return offsets, data.take(positions)


def _copied_strings(strings: Strings, validity: BoolArray | None, as_text: bool) -> pa.Array:
    """An array of the rows one after the other, in bytes of its own."""
    _, offsets, data = gathered(strings).buffers()
    return pa.Array.from_buffers(_LARGE[as_text], strings.num_rows, [pack_bits(validity), offsets, data])


def gathered(strings: Strings) -> pa.LargeBinaryArray:
    """The rows of Strings on the CPU as an array of its own, one memcpy per row (ten times faster than by byte index).

    Arrow's take does the copying. It is given an array of 2n binary values with the offsets [start, end, start, end,
    ..., limit], of which it takes the even ones; the odd ones, of any length, are never looked at.
    """
    count = strings.num_rows
    if count == 0:
        return pa.array([], pa.large_binary())
    starts, lengths = strings.starts.numpy(), strings.lengths.numpy()
    width = int(lengths[0])
    if 0 < width <= COPIED_TOGETHER and lengths.min() == width == lengths.max():
        return _gathered_rows(strings, width)
    offsets = np.empty(2 * count + 1, np.int64)
    firsts, ends = offsets[:-1:2], offsets[1::2]
    low = starts.min()
    np.subtract(starts, low, out=firsts)
    np.add(firsts, lengths, out=ends)
    size = ends.max()
    # Arrow allots (last offset - first offset) / 2n bytes a value before it copies: let that be the true mean.
    offsets[-1] = min(firsts[0] + 2 * int(lengths.sum(dtype=np.int64)), size)
    data = np.ascontiguousarray(strings.data[low : low + size].numpy())
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    slices = pa.Array.from_buffers(pa.large_binary(), 2 * count, buffers)
    return slices.take(pa.array(np.arange(0, 2 * count, 2)))


def _gathered_rows(strings: Strings, width: int) -> pa.LargeBinaryArray:
    """As `gathered`, of rows of one length: those of a view whose row i is the bytes from i on."""
    bytes_from = np.ndarray((strings.data.shape[0] - width + 1,), f"V{width}", strings.data.numpy(), 0, (1,))
    data = bytes_from[strings.starts.numpy()].view(np.uint8)
    offsets = np.arange(0, (strings.num_rows + 1) * width, width)
    return pa.Array.from_buffers(
        pa.large_binary(), strings.num_rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def is_utf8(strings: Strings) -> bool:
    """Whether each of the Strings, on the CPU, is UTF-8. Bytes that belong to none of them do not matter."""
    data = strings.data.numpy()
    if len(data) == 0 or data.view(np.int8).min() >= 0:  # ASCII
        return True
    return _is_cut_from_utf8(strings, data) or _is_valid(gathered(strings))


def _is_cut_from_utf8(strings: Strings, data: AnyArray) -> bool:
    """Whether all bytes together are UTF-8, and no string starts or ends inside of a character."""
    buffers = [None, pa.py_buffer(np.array([0, len(data)])), pa.py_buffer(data)]
    if not _is_valid(pa.Array.from_buffers(pa.large_binary(), 1, buffers)):
        return False
    starts = strings.starts.numpy()
    cuts = np.concatenate([starts, starts + strings.lengths.numpy()])
    return not np.any(data.take(cuts[cuts < len(data)]) & 0xC0 == 0x80)


def _is_valid(array: pa.LargeBinaryArray) -> bool:
    try:
        array.cast(pa.large_string())  # looks at each value
    except pa.ArrowInvalid:
        return False
    return True


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
