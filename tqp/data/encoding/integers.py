"""Integer-like Arrow columns (integers, decimals, dates, times, timestamps) as the narrowest tensor that holds them.

One pass over blocks that fit a core's cache finds the bounds and narrows into one preallocated array, of the width that the
bounds expected need. A piece that has other values gets an array of its own, and where there are such pieces, or the width
was too large, all are copied at the end. No column is ever copied at full width: one that needs it shares Arrow's memory where
that is a single chunk without NULLs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import DTypeLike
from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.core.errors import ExecutionError
from tqp.core.schema import ColumnEstimates, ColumnFacts
from tqp.data.arrow_buffers import AnyArray, BoolArray, borrow, tensor_of, validity_of, values_view
from tqp.data.column import Column
from tqp.data.encoding.column_facts import estimate_distinct, integer_statistics
from tqp.data.sharing import WORTH_SHARING, share

Bounds = tuple[int, int]
Item = TypeVar("Item")

_INT64 = np.iinfo(np.int64)
_DTYPES: list[np.dtype[np.signedinteger]] = [
    np.dtype(each) for each in (np.int8, np.int16, np.int32, np.int64)
]
_TENSORS = dict(
    zip([dtype.str for dtype in _DTYPES], (torch.int8, torch.int16, torch.int32, torch.int64), strict=True)
)
_LARGEST = [int(np.iinfo(dtype).max) for dtype in _DTYPES]
#: Rows that one thread takes at a time, and those that are looked at and then narrowed, while the second cache holds them (128-bit
#: decimals take 2 MB). Fewer would cost more at the interpreter lock, which threads pass on with each step.
_PIECE, _BLOCK = 262_144, 131_072
#: Rows at either end of a chunk by which the bounds of all are guessed.
_GUESSED_BY = 256
#: By the unit in which Arrow counts: what times that, divided by what, gives microseconds.
MICROSECONDS_OF = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}


@dataclass(frozen=True, slots=True)
class _Layout:
    """How an Arrow type stores a value: `words` items of `dtype`, low word first; `* multiply // divide` gives ours."""

    dtype: DTypeLike
    words: int = 1
    multiply: int = 1
    divide: int = 1
    #: Whether the division must leave no rest, or digits would be lost.
    is_exact: bool = False

    def convert(self, value: int) -> int:
        return value * self.multiply // self.divide


class IntegerPieces:
    """Collects the pieces of a column in any order, from several threads, each narrowed as soon as it is there.

    `expected`: bounds of its valid values, which decide the width that is tried first; None: nothing is known. `name` is for
    error messages.
    """

    def __init__(
        self,
        name: str,
        data_type: DataType,
        num_rows: int,
        expected: Bounds | None,
        stored: Tensor | None = None,
    ) -> None:
        """`stored`: where all pieces lie already, one after the other, as values of the column; nobody writes to it."""
        self._name, self._data_type, self._num_rows = name, data_type, num_rows
        dtype = None if expected is None else _dtype_of(expected)
        self._values = None if stored is None else stored.numpy()
        self._is_stored = self._values is not None and self._values.dtype == dtype
        if not self._is_stored:
            self._values = None if dtype is None else np.empty(num_rows, dtype)
        self._pieces: list[_Piece] = []

    def put(self, first: int, chunk: pa.Array) -> None:
        """Add the values from row `first` on. Raises ExecutionError if a value is out of range for its logical type."""
        into = self._values
        target = None if into is None or self._is_stored else into[first : first + len(chunk)]
        bounds = self._narrow_into(chunk, target)
        own: AnyArray | pa.Array | None = None
        needed = _dtype_of(bounds)
        if needed is None:
            own = chunk
        elif into is None or not np.can_cast(needed, into.dtype):
            own = np.empty(len(chunk), needed)
            self._narrow_into(chunk, own)
        # Appending is one step for other threads.
        self._pieces.append(_Piece(first, len(chunk), bounds, validity_of(chunk), own))

    def _narrow_into(self, chunk: pa.Array, target: AnyArray | None) -> Bounds | None:
        return narrow(self._name, chunk, self._data_type, target)

    def column(self) -> Column:
        """The whole column on the CPU; all pieces were put."""
        pieces, data_type, num_rows = sorted(self._pieces, key=_Piece.order), self._data_type, self._num_rows
        validity = joined_parts([(piece.rows, piece.validity) for piece in pieces], num_rows)
        bounds = all_bounds(piece.bounds for piece in pieces)
        dtype, (minimum, maximum) = _dtype_of(bounds), bounds or (0, 0)
        if dtype is not None:
            values = self._joined(pieces, dtype)
            if validity is not None:
                values[~validity] = minimum  # a safe index where a value is one
            facts, estimates = integer_statistics(values, validity, *(bounds or (None, None)))
        else:
            values = _wide_values([self._chunk(piece) for piece in pieces], num_rows)
            if validity is not None:
                values[~validity] = split_words(minimum)
            facts = ColumnFacts(minimum, maximum)
            estimates = ColumnEstimates(estimate_distinct(values[:, 1], validity))
        facts = replace(facts, is_null=bounds is None)
        return Column(
            data_type, num_rows, tensor_of(values), tensor_of(validity), facts=facts, estimates=estimates
        )

    def _joined(self, pieces: Sequence[_Piece], dtype: np.dtype[np.signedinteger]) -> AnyArray:
        """The values of all pieces in one array, which is the one they were put into where they all were, and fit it."""
        values = self._values
        if values is not None and values.dtype == dtype and all(piece.own is None for piece in pieces):
            return values
        if len(pieces) == 1 and pieces[0].own is not None:
            only: AnyArray = pieces[0].own
            return only
        joined = np.empty(self._num_rows, dtype)

        def copy(piece: _Piece) -> None:
            np.copyto(joined[piece.rows], self._values_of(piece), casting="unsafe")

        _share_if_long(copy, pieces, self._num_rows)
        return joined

    def _values_of(self, piece: _Piece) -> AnyArray:
        if piece.own is not None:
            own: AnyArray = piece.own
            return own
        assert self._values is not None
        return self._values[piece.rows]

    def _chunk(self, piece: _Piece) -> pa.Array:
        values = self._values_of(piece)
        return values if isinstance(values, pa.Array) else pa.array(values)


class _Piece(NamedTuple):
    first: int
    num_rows: int
    bounds: Bounds | None
    validity: BoolArray | None
    #: Its values where they do not fit those of the column: the narrowest integers, or an Arrow array that needs 128 bits.
    own: Any

    def order(self) -> int:
        return self.first

    @property
    def rows(self) -> slice:
        return slice(self.first, self.first + self.num_rows)


def encode_integers(name: str, chunks: Sequence[pa.Array], data_type: DataType) -> Column:
    """A Column on the CPU from chunks of integer-like Arrow types; `name` is for the error message.

    Raises ExecutionError if a value is out of range for its logical type (a timestamp in coarse units).
    """
    cut, first = [], 0
    for chunk in chunks:
        for start in range(0, len(chunk), _PIECE):
            cut.append((first + start, chunk.slice(start, _PIECE)))
        first += len(chunk)
    expected = all_bounds(narrow(name, end, data_type, None) for end in _ends(chunks))
    pieces = IntegerPieces(name, data_type, first, expected, stored_values(chunks))
    _share_if_long(lambda piece: pieces.put(*piece), cut, first)
    return pieces.column()


def stored_values(chunks: Sequence[pa.Array]) -> Tensor | None:
    """The memory of a column whose values need no change but, perhaps, narrowing; None where there is no such."""
    if len(chunks) != 1 or chunks[0].null_count:
        return None
    [chunk] = chunks
    layout = _layout(chunk.type)
    dtype = _TENSORS.get(np.dtype(layout.dtype).str)
    if dtype is None or layout.words > 1 or layout.multiply > 1 or layout.divide > 1:
        return None
    return borrow(chunk.buffers()[1], dtype, chunk.offset, len(chunk))


def _share_if_long(function: Callable[[Item], None], pieces: Sequence[Item], num_rows: int) -> None:
    """function(piece) of each, on several threads if they have many rows together."""
    if num_rows >= WORTH_SHARING:
        share(function, pieces)
    else:
        for piece in pieces:
            function(piece)


def expected_bounds(arrow_type: pa.DataType, stored: Bounds) -> Bounds | None:
    """What values stored as integers of that Arrow type, within bounds, are between; None where that takes more than 64 bits."""
    low, high = map(_layout(arrow_type).convert, stored)
    return (low, high) if low <= high and _fit_64_bits(low, high) else None


def _fit_64_bits(minimum: int, maximum: int) -> bool:
    return _INT64.min <= minimum and maximum <= _INT64.max


def narrowest(minimum: int, maximum: int) -> np.dtype[np.signedinteger]:
    """The smallest of int8/16/32/64 that holds both."""
    largest = max(maximum, ~minimum)
    return next((dtype for dtype, most in zip(_DTYPES, _LARGEST) if largest <= most), _DTYPES[-1])


def split_words(value: int) -> tuple[int, int]:
    """A 128-bit integer as (high, low), both as the signed 64-bit integers that wide tensors hold."""
    low = value & (2**64 - 1)
    return value >> 64, low - 2**64 if low >= 2**63 else low


def joined_validity(chunks: Sequence[pa.Array]) -> BoolArray | None:
    """The validity of all chunks one after the other, bool [n]; None where there is no NULL."""
    ends = list(itertools.accumulate(map(len, chunks), initial=0))
    parts = [
        (slice(start, stop), validity_of(chunk))
        for chunk, (start, stop) in zip(chunks, itertools.pairwise(ends), strict=True)
    ]
    return joined_parts(parts, ends[-1])


def joined_parts(parts: Iterable[tuple[slice, BoolArray | None]], num_rows: int) -> BoolArray | None:
    """The validity of rows whose parts' are given; None where there is no NULL."""
    with_nulls = [(rows, valid) for rows, valid in parts if valid is not None]
    if not with_nulls:
        return None
    validity = np.ones(num_rows, np.bool_)
    for rows, valid in with_nulls:
        validity[rows] = valid
    return validity


def _layout(arrow_type: pa.DataType) -> _Layout:
    if pa.types.is_decimal(arrow_type):
        width = arrow_type.bit_width
        return _Layout(np.int32) if width == 32 else _Layout(np.int64, words=width // 64)
    if pa.types.is_date64(arrow_type):
        return _Layout(np.int64, divide=86_400_000)
    if pa.types.is_date32(arrow_type):
        return _Layout(np.int32)
    if pa.types.is_time(arrow_type) or (pa.types.is_timestamp(arrow_type) and arrow_type.tz is not None):
        multiply, divide = MICROSECONDS_OF[arrow_type.unit]
        dtype = np.int32 if pa.types.is_time32(arrow_type) else np.int64
        return _Layout(dtype, multiply=multiply, divide=divide, is_exact=True)
    if pa.types.is_timestamp(arrow_type):
        return _Layout(np.int64)
    return _Layout(arrow_type.to_pandas_dtype())


def _blocks(chunk: pa.Array) -> Iterator[tuple[AnyArray, BoolArray | None, _Layout]]:
    """(stored items [k] or [k, words], validity [k] or None, what the items mean) of consecutive blocks."""
    layout = _layout(chunk.type)
    items = values_view(chunk, layout.dtype, layout.words)
    validity = validity_of(chunk)
    for start in range(0, len(chunk), _BLOCK):
        stop = start + _BLOCK
        yield items[start:stop], None if validity is None else validity[start:stop], layout


def _ends(chunks: Sequence[pa.Array]) -> list[pa.Array]:
    """Some rows by which to guess the bounds of all: where a column ascends, they lie at its ends."""
    some = [*chunks[:: max(1, len(chunks) // 8)], *chunks[-1:]]
    return [end for chunk in some for end in (chunk[:_GUESSED_BY], chunk[max(0, len(chunk) - _GUESSED_BY) :])]


def all_bounds(bounds: Iterable[Bounds | None]) -> Bounds | None:
    """What the values of all parts are between; parts without values have no bounds."""
    known = [each for each in bounds if each is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def _dtype_of(bounds: Bounds | None) -> np.dtype[np.signedinteger] | None:
    low, high = bounds or (0, 0)
    return narrowest(low, high) if _fit_64_bits(low, high) else None


def narrow(name: str, chunk: pa.Array, data_type: DataType, values: AnyArray | None) -> Bounds | None:
    """Bounds of a chunk's valid values; puts all into `values`, which holds those that its dtype does."""
    found: list[Bounds] = []
    first = 0
    for items, validity, layout in _blocks(chunk):
        valid = items if validity is None else items[validity]
        if len(valid):
            low, high = map(layout.convert, _block_bounds(valid))
            if layout.multiply > 1 and not _fit_64_bits(low, high):
                raise ExecutionError(f'column "{name}" holds a value that is out of range for {data_type}')
            if layout.is_exact and layout.divide > 1 and (valid % layout.divide).any():
                raise ExecutionError(
                    f'column "{name}" holds nanoseconds, which {data_type} does not have; round it to microseconds'
                    + (", or make it a timestamp without time zone" if data_type.is_timestamp else "")
                )
            found.append((low, high))
        if values is not None:
            np.copyto(values[first : first + len(items)], _storage(items, layout), casting="unsafe")
        first += len(items)
    return all_bounds(found)


def _storage(items: AnyArray, layout: _Layout) -> AnyArray:
    """Storage values of items that 64 bits hold; anything for others."""
    block = items if items.ndim == 1 else items[:, 0]
    if layout.multiply > 1:
        return block.astype(np.int64) * layout.multiply
    return block // layout.divide if layout.divide > 1 else block


def _block_bounds(items: AnyArray) -> Bounds:
    if items.ndim == 1:
        return int(items.min()), int(items.max())
    low, high = items[:, 0], items[:, 1]
    if not np.bitwise_or.reduce(high):  # no high word says anything
        least, most = int(low.min()), int(low.max())
        if least >= 0:
            return least, most
    if np.array_equal(low >> 63, high):  # the high word only repeats the sign
        return int(low.min()), int(low.max())
    unsigned = np.ascontiguousarray(low).view(np.uint64)
    smallest, largest = int(high.min()), int(high.max())
    return (
        (smallest << 64) + int(unsigned[high == smallest].min()),
        (largest << 64) + int(unsigned[high == largest].max()),
    )


def _wide_values(chunks: Sequence[pa.Array], num_rows: int) -> AnyArray:
    """int64 [n, 2], high word first, where Arrow has the low word first."""
    values = np.empty((num_rows, 2), np.int64)
    position = 0
    for items, _, _ in itertools.chain.from_iterable(map(_blocks, chunks)):
        part = values[position : position + len(items)]
        if items.ndim == 2:
            part[:, 0], part[:, 1] = items[:, 1], items[:, 0]
        elif items.dtype == np.uint64:
            part[:, 0], part[:, 1] = 0, items.view(np.int64)
        else:
            part[:, 0], part[:, 1] = items >> 63, items
        position += len(items)
    return values
