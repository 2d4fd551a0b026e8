"""Integer-like Arrow columns (integers, decimals, dates, times, timestamps) as the narrowest tensor that holds them.

Two passes over blocks that fit a core's cache: bounds first, then narrowing into one preallocated array, so that no
column is ever copied at full width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import DTypeLike

from tqp.core.datatypes import DataType
from tqp.core.errors import ExecutionError
from tqp.core.schema import ColumnStatistics
from tqp.data.arrow_buffers import AnyArray, BoolArray, validity_of, values_view
from tqp.data.column import Column
from tqp.data.column_facts import BLOCK, estimate_distinct, integer_statistics

_INT64 = np.iinfo(np.int64)
_MICROSECONDS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}


@dataclass(frozen=True, slots=True)
class _Layout:
    """How an Arrow type stores a value: `words` items of `dtype`, low word first; `* multiply // divide` gives ours."""

    dtype: DTypeLike
    words: int = 1
    multiply: int = 1
    divide: int = 1

    def convert(self, value: int) -> int:
        return value * self.multiply // self.divide


def encode_integers(name: str, chunks: Sequence[pa.Array], data_type: DataType) -> Column:
    """A Column on the CPU from chunks of integer-like Arrow types; `name` is for the error message.

    Raises ExecutionError if a value is out of range for its logical type (a timestamp in coarse units).
    """
    num_rows = sum(len(chunk) for chunk in chunks)
    validity = joined_validity(chunks)
    bounds = _bounds(name, chunks, data_type)
    minimum, maximum = bounds or (0, 0)
    if _fit_64_bits(minimum, maximum):
        values = _narrow_values(chunks, num_rows, narrowest(minimum, maximum))
        if validity is not None:
            values[~validity] = minimum  # a safe index where a value is one
        statistics = integer_statistics(values, validity, *(bounds or (None, None)))
    else:
        values = _wide_values(chunks, num_rows)
        if validity is not None:
            values[~validity] = split_words(minimum)
        statistics = ColumnStatistics(minimum, maximum, estimate_distinct(values[:, 1], validity))
    return Column(
        data_type,
        num_rows,
        torch.from_numpy(values),
        None if validity is None else torch.from_numpy(validity),
        statistics=statistics,
    )


def compact(name: str, chunk: pa.Array, data_type: DataType) -> pa.Array:
    """The same storage values as the narrowest signed Arrow integers, or the chunk itself where 64 bits do not suffice.

    Lets a reader keep the pieces of a long column small until all of them are there.
    """
    minimum, maximum = _bounds(name, [chunk], data_type) or (0, 0)
    if not _fit_64_bits(minimum, maximum):
        return chunk
    values = _narrow_values([chunk], len(chunk), narrowest(minimum, maximum))
    validity = validity_of(chunk)
    return pa.array(values, mask=None if validity is None else ~validity)


def _fit_64_bits(minimum: int, maximum: int) -> bool:
    return _INT64.min <= minimum and maximum <= _INT64.max


def narrowest(minimum: int, maximum: int) -> np.dtype[np.signedinteger]:
    """The smallest of int8/16/32/64 that holds both."""
    for dtype in (np.int8, np.int16, np.int32):
        if np.iinfo(dtype).min <= minimum and maximum <= np.iinfo(dtype).max:
            return np.dtype(dtype)
    return np.dtype(np.int64)


def split_words(value: int) -> tuple[int, int]:
    """A 128-bit integer as (high, low), both as the signed 64-bit integers that wide tensors hold."""
    low = value & (2**64 - 1)
    return value >> 64, low - 2**64 if low >= 2**63 else low


def joined_validity(chunks: Sequence[pa.Array]) -> BoolArray | None:
    """The validity of all chunks one after the other, bool [n]; None where there is no NULL."""
    if not any(chunk.null_count for chunk in chunks):
        return None
    parts = (validity_of(chunk) for chunk in chunks)
    return np.concatenate(
        [
            np.ones(len(chunk), np.bool_) if part is None else part
            for chunk, part in zip(chunks, parts, strict=True)
        ]
    )


def _layout(arrow_type: pa.DataType) -> _Layout:
    if pa.types.is_decimal(arrow_type):
        width = arrow_type.bit_width
        return _Layout(np.int32) if width == 32 else _Layout(np.int64, words=width // 64)
    if pa.types.is_date64(arrow_type):
        return _Layout(np.int64, divide=86_400_000)
    if pa.types.is_date32(arrow_type):
        return _Layout(np.int32)
    if pa.types.is_time(arrow_type) or (pa.types.is_timestamp(arrow_type) and arrow_type.tz is not None):
        multiply, divide = _MICROSECONDS[arrow_type.unit]
        return _Layout(
            np.int32 if pa.types.is_time32(arrow_type) else np.int64, multiply=multiply, divide=divide
        )
    if pa.types.is_timestamp(arrow_type):
        return _Layout(np.int64)
    return _Layout(arrow_type.to_pandas_dtype())


def _blocks(chunks: Sequence[pa.Array]) -> Iterator[tuple[AnyArray, BoolArray | None, _Layout]]:
    """(stored items [k] or [k, words], validity [k] or None, what the items mean) of consecutive blocks."""
    for chunk in chunks:
        layout = _layout(chunk.type)
        items = values_view(chunk, layout.dtype, layout.words)
        validity = validity_of(chunk)
        for start in range(0, len(chunk), BLOCK):
            stop = start + BLOCK
            yield items[start:stop], None if validity is None else validity[start:stop], layout


def _bounds(name: str, chunks: Sequence[pa.Array], data_type: DataType) -> tuple[int, int] | None:
    """Smallest and largest storage value among the valid ones; None if there is none."""
    lows, highs = [], []
    for items, validity, layout in _blocks(chunks):
        if validity is not None:
            items = items[validity]
        if len(items):
            low, high = map(layout.convert, _block_bounds(items))
            if layout.multiply > 1 and not _fit_64_bits(low, high):
                raise ExecutionError(f'column "{name}" holds a value that is out of range for {data_type}')
            lows.append(low)
            highs.append(high)
    return (min(lows), max(highs)) if lows else None


def _block_bounds(items: AnyArray) -> tuple[int, int]:
    if items.ndim == 1:
        return int(items.min()), int(items.max())
    low, high = np.ascontiguousarray(items[:, 0]), items[:, 1]
    if np.array_equal(low >> 63, high):  # the high word only repeats the sign
        return int(low.min()), int(low.max())
    unsigned = low.view(np.uint64)
    smallest, largest = high.min(), high.max()
    return (
        (int(smallest) << 64) + int(unsigned[high == smallest].min()),
        (int(largest) << 64) + int(unsigned[high == largest].max()),
    )


def _narrow_values(chunks: Sequence[pa.Array], num_rows: int, dtype: DTypeLike) -> AnyArray:
    values = np.empty(num_rows, dtype)
    position = 0
    for items, _, layout in _blocks(chunks):
        block = items if items.ndim == 1 else items[:, 0]
        if layout.multiply > 1:
            block = block.astype(np.int64) * layout.multiply
        elif layout.divide > 1:
            block = block // layout.divide
        np.copyto(values[position : position + len(block)], block, casting="unsafe")
        position += len(block)
    return values


def _wide_values(chunks: Sequence[pa.Array], num_rows: int) -> AnyArray:
    """int64 [n, 2], high word first, where Arrow has the low word first."""
    values = np.empty((num_rows, 2), np.int64)
    position = 0
    for items, _, _ in _blocks(chunks):
        part = values[position : position + len(items)]
        if items.ndim == 2:
            part[:, 0], part[:, 1] = items[:, 1], items[:, 0]
        elif items.dtype == np.uint64:
            part[:, 0], part[:, 1] = 0, items.view(np.int64)
        else:
            part[:, 0], part[:, 1] = items >> 63, items
        position += len(items)
    return values
