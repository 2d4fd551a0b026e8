"""Build, move, join and export `Strings`: what concerns where the bytes lie, not what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from tqp.core.process.memory_budget import reserve
from tqp.data.backend import is_host
from tqp.data.repeats import repeated
from tqp.data.string_buffers import COPIED_TOGETHER, FEW_BYTES, gathered, joined_bytes
from tqp.data.strings import OrderedStrings, Strings
from tqp.operators.memory import allocation
from tqp.operators.memory.arrays import host_form
from tqp.operators.numbers import elementwise
from tqp.operators.strings.scan import windows

#: A buffer is used as it is when it is at most this many times the bytes that the slices need; else it is compacted.
_SLACK = 4
#: Rows that are cut from the buffer one by one, 0.15 us each: making them contiguous first takes 120 us.
_FEW_ROWS = 1024
#: A buffer of so few bytes a row is copied as it is: to look which of them rows need takes as long.
_FEW_BYTES = 32
_SAMPLE_ROWS = 256
_PLACE_BYTES = 12


def take(strings: Strings, rows: Tensor) -> Strings:
    """Rows of `strings` by index, int32 or int64 [m]; no bytes are moved."""
    return Strings(
        torch.index_select(strings.starts, 0, rows),
        torch.index_select(strings.lengths, 0, rows),
        strings.data,
    )


def cut(strings: Strings, start: int, stop: int) -> Strings:
    """Rows start..stop of `strings` as views."""
    return type(strings)(strings.starts[start:stop], strings.lengths[start:stop], strings.data)


def of_equal_lengths(content: Tensor) -> Strings:
    """Each row of uint8 [n, width] as a string."""
    num_rows, width = content.shape
    starts = torch.arange(num_rows, device=content.device) * width
    return Strings(starts, torch.full_like(starts, width, dtype=torch.int32), content.reshape(-1))


def rows_of_block(strings: Strings, num_bytes: int) -> int:
    """How many rows have about so many bytes, their places and lengths included; all of them on other devices."""
    num_rows = strings.num_rows
    if num_rows == 0 or not is_host(strings.starts):
        return max(num_rows, 1)
    sample = strings.lengths[:: -(-num_rows // _SAMPLE_ROWS)]
    return int(num_bytes // (_PLACE_BYTES + float(sample.numpy().mean()))) + 1


def broadcast(strings: Strings, num_rows: int) -> Strings:
    """One row repeated `num_rows` times, without copying its bytes; other Strings are returned as they are."""
    if strings.num_rows != 1 or num_rows == 1:
        return strings
    return Strings(
        strings.starts.expand(num_rows).contiguous(),
        strings.lengths.expand(num_rows).contiguous(),
        strings.data,
    )


def extent(strings: Strings) -> tuple[int, int]:
    """Lowest start and highest end over all rows; (0, 0) without rows."""
    if strings.num_rows == 0:
        return 0, 0
    if is_host(strings.starts):
        starts = strings.starts.numpy()
        if isinstance(strings, OrderedStrings):
            return int(starts[0]), int(starts[-1]) + int(strings.lengths.numpy()[-1])
        return int(starts.min()), int(row_ends(strings).max())
    return int(strings.starts.min()), int((strings.starts + strings.lengths).max())


def total_length(strings: Strings) -> int:
    """Sum of the lengths in bytes."""
    return int(strings.lengths.sum(dtype=torch.int64))


def is_contiguous(strings: Strings) -> bool:
    """Whether each row starts where the row before it ends."""
    if strings.num_rows < 2:
        return True
    if is_host(strings.starts):
        starts, lengths = strings.starts.numpy(), strings.lengths.numpy()
        if starts[-1] - starts[0] != lengths[:-1].sum(dtype=np.int64):  # less to read than all places
            return False
        return bool(np.array_equal(starts[:-1] + lengths[:-1], starts[1:]))
    ends = strings.starts[:-1] + strings.lengths[:-1]
    return torch.equal(ends, strings.starts[1:])


def row_ends(strings: Strings) -> npt.NDArray[np.int64]:
    """Where each row ends, in main memory: int64 [n]."""
    result = strings.lengths.numpy().astype(np.int64)  # NumPy adds integers of two widths at half the speed
    result += strings.starts.numpy()
    return result


def ordered(strings: Strings) -> Strings:
    """The same strings, copied unless they already lie in row order, disjoint, with only modest gaps between."""
    return strings if is_ordered(strings) else compact(strings)


def is_ordered(strings: Strings) -> bool:
    """Whether the strings lie in row order, disjoint, with only modest gaps between."""
    if strings.num_rows < 2 or isinstance(strings, OrderedStrings):
        return True
    if not is_host(strings.starts):
        ends = strings.starts + strings.lengths
        in_order = bool((ends[:-1] <= strings.starts[1:]).all())
        return in_order and int(ends[-1] - strings.starts[0]) <= _SLACK * total_length(strings)
    starts, stops = strings.starts.numpy(), row_ends(strings)
    total = int(strings.lengths.numpy().sum())
    return bool(stops[-1] - starts[0] <= _SLACK * total and (stops[:-1] <= starts[1:]).all())


def compact(strings: Strings) -> Strings:
    """The same strings with their bytes contiguous in row order, starting at offset 0 of `data`."""
    if is_contiguous(strings):
        low, high = extent(strings)
        return Strings(strings.starts - low, strings.lengths, strings.data[low:high])
    on_host = is_host(strings.starts)
    if on_host and strings.num_rows <= FEW_BYTES:
        lengths = strings.lengths.numpy()
        if lengths.sum() <= FEW_BYTES:
            offsets, joined = joined_bytes(strings.starts.numpy(), lengths, strings.data.numpy())
            return Strings(torch.from_numpy(offsets[:-1]), strings.lengths, torch.from_numpy(joined))
    width = int(strings.lengths[0]) if on_host else 0
    if 0 < width <= COPIED_TOGETHER and bool((strings.lengths.numpy() == width).all()):
        reserve(strings.num_rows * width)
        data = torch.from_numpy(windows(strings.data.numpy(), width, strings.starts.numpy()))
        return of_equal_lengths(data.view(-1, width))
    ends = strings.lengths.cumsum(0, dtype=torch.int64)
    starts = ends - strings.lengths
    total = int(ends[-1])
    reserve(total)
    if on_host:
        data = _buffer_tensor(gathered(strings).buffers()[2], total, pa.uint8())
    else:
        data = _gather_bytes(strings, starts, total)
    return Strings(starts, strings.lengths, data)


def compact_rows(strings: Strings, rows: Tensor) -> Strings:
    """What `compact` makes of rows by index, int32 or int64 [m]."""
    lengths = host_form(strings.lengths)
    width = int(lengths[0]) if strings.num_rows else 0
    if 0 < width <= COPIED_TOGETHER and bool((lengths == width).all()):
        return of_equal_lengths(torch.index_select(compact(strings).data.view(-1, width), 0, rows))
    return compact(take(strings, rows))


def _gather_bytes(strings: Strings, starts: Tensor, total: int) -> Tensor:
    """The bytes of all rows one after the other, one index per byte."""
    shift = repeated(strings.starts - starts, strings.lengths, total)
    return torch.index_select(strings.data, 0, shift + torch.arange(total, device=shift.device))


def concatenate(parts: Sequence[Strings]) -> Strings:
    """The rows of all parts in order. Parts over one buffer share it; other bytes are copied once.

    A part that needs little of a large buffer is compacted before its bytes are copied. At least one part.
    """
    if len(parts) == 1:
        return parts[0]
    parts = in_one_buffer(parts)
    return Strings(
        allocation.concatenate([part.starts for part in parts]),
        allocation.concatenate([part.lengths for part in parts]),
        parts[0].data,
    )


def in_one_buffer(parts: Sequence[Strings]) -> Sequence[Strings]:
    """The parts as slices of one buffer, as `concatenate` makes it."""
    by_buffer: dict[tuple[int, int], list[int]] = {}
    for position, part in enumerate(parts):
        by_buffer.setdefault((part.data.data_ptr(), part.data.shape[0]), []).append(position)
    if len(by_buffer) == 1:
        return parts
    moved: list[Strings] = list(parts)
    buffers: list[Tensor] = []
    offset = 0
    for positions in by_buffer.values():
        joined = concatenate([parts[position] for position in positions])
        low, high, few = 0, joined.data.shape[0], _FEW_BYTES * joined.num_rows
        if high > few:
            low, high = extent(joined)
        if high - low > few and high - low > _SLACK * total_length(joined):
            joined = compact(joined)
            low, high = 0, joined.data.shape[0]
        counts = [parts[position].num_rows for position in positions]
        starts = torch.split(joined.starts + (offset - low), counts)
        for position, piece in zip(positions, starts, strict=True):
            moved[position] = parts[position]._replace(starts=piece)
        buffers.append(joined.data[low:high])
        offset += high - low
    data = torch.cat(buffers)
    return [Strings(part.starts, part.lengths, data) for part in moved]


def choose(conditions: Sequence[Tensor], values: Sequence[Strings], default: Strings | None) -> Strings:
    """CASE: in each row the value of the first true condition (bool [n]), else `default` (None: the empty string).

    Values have n rows or one. Their bytes are brought into one buffer, and not copied if they are in one already.
    """
    num_rows = max(condition.numel() for condition in conditions)
    default = default if default is not None else from_list([b""], conditions[0].device)
    *given, other = in_one_buffer([*values, broadcast(default, num_rows)])
    starts, lengths = other.starts, other.lengths
    for condition, value in zip(reversed(conditions), reversed(given), strict=True):
        starts = elementwise.choose(condition, value.starts, starts, torch.int64)
        lengths = elementwise.choose(condition, value.lengths, lengths, torch.int32)
    return Strings(starts, lengths, other.data)


def choose_made(
    conditions: Sequence[Tensor], values: Sequence[tuple[Strings, Tensor | None]], num_rows: int
) -> Strings:
    """CASE of `num_rows` rows, where some values, of which the last one is the default, were made for their rows alone.

    With those are exactly the rows (int64 [m]) in which they are chosen, to which they are written; others are chosen first.
    """
    parts = in_one_buffer([strings for strings, _ in values])
    whole = [
        (condition, part)
        for condition, part, (_, rows) in zip([*conditions, None], parts, values, strict=True)
        if rows is None
    ]
    if whole:
        chosen = broadcast(whole[-1][1], num_rows)
        starts, lengths = chosen.starts, chosen.lengths
        if len(whole) == 1:  # maybe a table's own
            starts, lengths = starts.clone(), lengths.clone()
    else:
        lengths = torch.zeros(num_rows, dtype=torch.int32, device=parts[0].lengths.device)
        starts = lengths.to(torch.int64)
    for condition, part in reversed(whole[:-1]):
        assert condition is not None
        starts = elementwise.choose(condition, part.starts, starts, torch.int64)
        lengths = elementwise.choose(condition, part.lengths, lengths, torch.int32)
    for part, (_, rows) in zip(parts, values, strict=True):
        if rows is not None:
            starts.index_copy_(0, rows, part.starts)
            lengths.index_copy_(0, rows, part.lengths)
    return Strings(starts, lengths, parts[0].data)


def spread(strings: Strings, rows: Tensor, num_rows: int) -> Strings:
    """`num_rows` strings: those at `rows` (int64 [m]) are the m given ones, the others empty. No bytes are moved."""
    lengths = torch.zeros(num_rows, dtype=torch.int32, device=rows.device)
    if strings.num_rows == 0:
        return Strings(lengths.to(torch.int64), lengths, strings.data)
    starts = strings.starts[:1].repeat(num_rows)  # not 0, which may be far from the others
    return Strings(
        starts.index_copy_(0, rows, strings.starts),
        lengths.index_copy_(0, rows, strings.lengths),
        strings.data,
    )


def replace_rows(strings: Strings, rows: Tensor, others: Strings) -> Strings:
    """The strings, but for those at `rows` (int64 [m]), in whose places the m others stand."""
    if rows.shape[0] == strings.num_rows:
        return take(
            others, torch.empty_like(rows).scatter_(0, rows, torch.arange(rows.shape[0], device=rows.device))
        )
    joined = concatenate([strings, others])
    places = torch.arange(strings.num_rows, device=rows.device)
    places[rows] = torch.arange(strings.num_rows, joined.num_rows, device=rows.device)
    return take(joined, places)


def from_list(values: Sequence[str | bytes | None], device: torch.device | str = "cpu") -> Strings:
    """Strings of Python values; None becomes an empty string (its validity is the caller's)."""
    encoded = [value.encode() if isinstance(value, str) else value or b"" for value in values]
    lengths = torch.tensor([len(value) for value in encoded], dtype=torch.int32)
    ends = lengths.cumsum(0, dtype=torch.int64)
    joined = b"".join(encoded)
    data = torch.from_numpy(np.frombuffer(joined, dtype=np.uint8).copy())
    return Strings((ends - lengths).to(device), lengths.to(device), data.to(device))


def to_list(strings: Strings) -> list[bytes]:
    """The value of every row as Python bytes."""
    if is_host(strings.starts) and strings.num_rows <= _FEW_ROWS:
        data = strings.data.numpy().data
        rows = zip(strings.starts.tolist(), strings.lengths.tolist(), strict=True)
        return [bytes(data[start : start + length]) for start, length in rows]
    dense = to_host(compact(strings))
    content = dense.data.numpy().tobytes()
    starts, lengths = dense.starts.tolist(), dense.lengths.tolist()
    return [content[start : start + length] for start, length in zip(starts, lengths, strict=True)]


def to_host(strings: Strings) -> Strings:
    """The same strings in main memory; itself when they are there."""
    return Strings(strings.starts.cpu(), strings.lengths.cpu(), strings.data.cpu())


def from_arrow(array: pa.Array[Any] | pa.ChunkedArray[Any], device: torch.device | str = "cpu") -> Strings:
    """Strings of any Arrow string or binary array, over its own buffer where it is of a `large` type.

    NULL rows get length 0; their validity is the caller's.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not (pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)):
        array = array.cast(pa.large_string() if _is_text(array.type) else pa.large_binary())
    _, offset_buffer, data_buffer = array.buffers()
    if len(array) == 0:
        return from_list([], device)
    offsets = _buffer_tensor(offset_buffer, array.offset + len(array) + 1, pa.int64())[array.offset :]
    size = int(offsets[-1])
    data = _buffer_tensor(data_buffer, size, pa.uint8()) if size else torch.empty(0, dtype=torch.uint8)
    lengths = (offsets[1:] - offsets[:-1]).to(torch.int32)
    if array.null_count:
        lengths *= torch.from_numpy(array.is_valid().to_numpy(zero_copy_only=False))
    return Strings(offsets[:-1].to(device), lengths.to(device), data.to(device))


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_string_view(data_type))


def _buffer_tensor(buffer: pa.Buffer, count: int, data_type: pa.DataType) -> Tensor:
    """The first `count` values of an Arrow buffer as a tensor over the same memory."""
    if count == 0:
        return torch.empty(0, dtype=torch.uint8 if data_type == pa.uint8() else torch.int64)
    tensor: Tensor = from_dlpack(pa.Array.from_buffers(data_type, count, [None, buffer]))
    return tensor


def to_arrow(strings: Strings, validity: Tensor | None = None) -> pa.LargeStringArray:
    """A LargeStringArray, zero-copy where the rows are contiguous. `validity`: bool [n], True = valid."""
    array: pa.LargeStringArray = _export(strings, validity, pa.large_string())
    return array


def pieces_from_arrow(parts: pa.ListArray, device: torch.device) -> tuple[Tensor, Strings]:
    """Texts that Arrow cut apart: where the pieces of each begin, and where the last ones end, int64 [n + 1]; and all pieces."""
    offsets = torch.from_numpy(np.array(parts.offsets, np.int64)).to(device)
    return offsets, from_arrow(parts.values, device)


def to_arrow_binary(strings: Strings, validity: Tensor | None = None) -> pa.LargeBinaryArray:
    """A LargeBinaryArray, zero-copy where the rows are contiguous. `validity`: bool [n], True = valid."""
    array: pa.LargeBinaryArray = _export(strings, validity, pa.large_binary())
    return array


def _export(strings: Strings, validity: Tensor | None, data_type: pa.DataType) -> Any:
    if strings.num_rows == 0:
        return pa.array([], data_type)
    strings = to_host(strings if is_contiguous(strings) else compact(strings))
    last = strings.starts[-1:] + strings.lengths[-1:]
    offsets = torch.cat([strings.starts, last]).numpy()
    bitmap = None
    if validity is not None:
        bitmap = pa.py_buffer(np.packbits(validity.cpu().numpy(), bitorder="little"))
    buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(strings.data.contiguous().numpy())]
    return pa.Array.from_buffers(data_type, strings.num_rows, buffers)
