"""Keys as integers: order-preserving codes, several columns packed into one code, hashes, partitions by
hash, and the sort of codes.

Every join, group-by and sort works on integer codes made here.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.memory.arrays import NUMPY_DTYPES, Array, as_array, as_tensor, converted, narrowest
from tqp.operators.numbers.elementwise import floor_divide, less_equal, multiply, subtract
from tqp.operators.numbers.logic import all_true

#: (minimum, span, nullable) of one key column: code = value - minimum (+ 1 if nullable, NULL being 0), 0 <= code < span.
Part = tuple[int, int, bool]

_INT32_MAX = 2**31 - 1
_INT64_LIMIT = 2**63
# torch sorts integers by radix from this many rows on, at a fifth of the cost a row of its comparison sort ...
_RADIX_SORT_ROWS = 32_768
# ... so that from about here it pays to pad.
_PADDED_SORT_ROWS = 10_000
#: Rows from which on their codes are sorted in words, where numpy is fast at these.
_SORTED_WORDS = 1024
#: Rows by which most columns that do not ascend are told.
_FIRST_ROWS = 1024
#: Of an int64 without its sign.
_WORD_BITS = 63
_ALL_BITS = (1 << 64) - 1
#: Odd, and not one of the multipliers of hash tables: the keys of a partition must not share the slots of a table.
_PARTITION_MULTIPLIER = 0x517CC1B727220A95


def ordered_bits(values: Tensor) -> Tensor:
    """float32 or float64 [n] -> int64 [n] that compares as SQL compares the floats: -0.0 = 0.0, NaN = NaN > infinity."""
    if is_host(values):
        return torch.from_numpy(_ordered_bits_of_array(values.numpy()))
    integer = torch.int32 if values.dtype is torch.float32 else torch.int64
    last_bit = 31 if integer is torch.int32 else 63
    bits = (values + 0.0).view(integer)  # -0.0 + 0.0 = 0.0
    # of negative floats the one with the larger magnitude is less
    bits = bits ^ ((bits >> last_bit) & torch.iinfo(integer).max)
    # NaN, whatever its bits, becomes the maximum: all ones, then the sign cleared
    is_nan = torch.isnan(values).to(integer)
    return (bits | -is_nan).bitwise_xor_(is_nan << last_bit).to(torch.int64)


def _ordered_bits_of_array(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """As `ordered_bits`, with a third of the memory that torch touches for it."""
    integer: Any = np.int32 if values.dtype == np.float32 else np.int64
    bits = (values + values.dtype.type(0)).view(integer)
    flipped = bits >> (31 if integer is np.int32 else 63)
    flipped &= np.iinfo(integer).max
    bits ^= flipped
    is_nan = np.isnan(values)
    if is_nan.any():
        bits[is_nan] = np.iinfo(integer).max
    found: npt.NDArray[np.int64] = bits.astype(np.int64, copy=False)
    return found


def from_ordered_bits(bits: Tensor, dtype: torch.dtype) -> Tensor:
    """The inverse of `ordered_bits` for dtype float32 or float64 (of zeros, 0.0; of NaNs, one NaN)."""
    integer = torch.int32 if dtype is torch.float32 else torch.int64
    bits = bits.to(integer)
    return (bits ^ ((bits >> (31 if integer is torch.int32 else 63)) & torch.iinfo(integer).max)).view(dtype)


def pack(columns: Sequence[tuple[Any, Any]], parts: Sequence[Part]) -> Any:
    """One code per row of several bounded integer columns: ((code0 * span1) + code1) * span2 + ...

    `columns`: (integer or bool values [n], validity or None), tensors or arrays. Rows where a column is NULL have code 0
    for it, whether its part is nullable or not. Returns int32 if the product of the spans fits, else int64; a single
    column that needs no change comes back as it is, int64 too.
    """
    size = parts[0][1] if len(parts) == 1 else math.prod(span for _, span, _ in parts)
    dtype = torch.int32 if size <= _INT32_MAX else torch.int64
    if len(parts) == 1 and parts[0][0] == 0 and not parts[0][2] and columns[0][1] is None:
        values = columns[0][0]
        return values if values.dtype.itemsize == 8 else converted(values, dtype)
    return _packed(columns, parts, dtype)


def pack_narrow(columns: Sequence[tuple[Any, Any]], parts: Sequence[Part]) -> Any:
    """As `pack`, in the narrowest dtype that also holds the number of codes: for arithmetic, not for index_select."""
    size = math.prod(span for _, span, _ in parts)
    return _packed(columns, parts, narrowest((0, size)) or torch.int64)


def _packed(columns: Sequence[tuple[Any, Any]], parts: Sequence[Part], dtype: torch.dtype) -> Any:
    values = columns[0][0]
    if isinstance(values, np.ndarray):
        return _packed_arrays(columns, parts, dtype)
    if is_host(values):
        return as_tensor(_packed_arrays(as_array(columns), parts, dtype))
    codes = _code(*columns[0], parts[0], dtype)
    for column, part in zip(columns[1:], parts[1:], strict=True):
        codes = (codes * part[1]).add_(_code(*column, part, dtype))
    return codes


def _code(values: Tensor, validity: Tensor | None, part: Part, dtype: torch.dtype) -> Tensor:
    codes = values.to(dtype)
    offset = _wrapped(int(part[2]) - part[0], dtype)
    codes = codes if offset == 0 else codes + offset
    return codes if validity is None else codes * validity


def _packed_arrays(
    columns: Sequence[tuple[Array, Array | None]], parts: Sequence[Part], dtype: torch.dtype
) -> Array:
    """Computed modulo two to the bits of `dtype`, which holds the codes: what columns are off by is added once, at the end.

    What is packed so far is as narrow as can be. Loops that read one width and write another are no slower than casts of
    their own, which would be calls of their own.
    """
    codes: Array | None = None
    offset = low = high = 0  # `low` to `high`: what is packed so far, without the offset
    ours = False  # may `codes` be written to?
    for (values, validity), (minimum, span, nullable) in zip(columns, parts, strict=True):
        shift = int(nullable) - minimum
        if validity is not None:
            values = (converted(values, dtype) + _wrapped(shift, dtype)) * validity
            minimum = shift = 0
        offset = offset * span + shift
        low, high = low * span + minimum, high * span + minimum + span - 1
        if codes is None:
            codes, ours = values, validity is not None
            continue
        width = narrowest((low, max(high, span))) or dtype
        narrow = NUMPY_DTYPES[width if width.itemsize < dtype.itemsize else dtype]
        codes = np.multiply(codes, span, dtype=narrow, out=codes if ours and codes.dtype == narrow else None)
        codes, ours = np.add(codes, values, dtype=narrow, out=codes), True
    assert codes is not None
    if (offset := _wrapped(offset, dtype)) == 0:
        return converted(codes, dtype)
    wide = NUMPY_DTYPES[dtype]
    return np.asarray(np.add(codes, offset, dtype=wide, out=codes if ours and codes.dtype == wide else None))


def _wrapped(number: int, dtype: torch.dtype) -> int:
    """The number modulo two to the bits of an integer dtype, as one that it holds."""
    half = 1 << (dtype.itemsize * 8 - 1)
    return (number + half) % (2 * half) - half


def unpack(codes: Any, parts: Sequence[Part]) -> list[tuple[Any, Any]]:
    """The columns (values int64 [n], validity or None) that `pack` made `codes` of; the minimum stands under NULL."""
    if isinstance(codes, Tensor) and is_host(codes):
        return [as_tensor(column) for column in unpack(codes.numpy(), parts)]
    codes = converted(codes, torch.int64)
    columns: list[tuple[Any, Any]] = []
    for minimum, span, nullable in reversed(parts):
        code = codes
        if len(columns) < len(parts) - 1:
            codes = floor_divide(code, span)
            code = code - codes * span
        validity = code > 0 if nullable else None
        if nullable:
            code = (code - 1).clip(min=0)
        columns.append((code + minimum if minimum else code, validity))
    return columns[::-1]


class Word(NamedTuple):
    """Integers [n] in [0, span), or of any value where the span is beyond 2^63."""

    codes: Tensor
    span: int


def pack_by_range(columns: Sequence[Tensor]) -> list[Word]:
    """Fewer and narrower integer columns that compare, row with row in lexicographic order, as the given ones do.

    `columns`: integers [n], at least one. Reads the extremes of each column (one synchronisation).
    """
    if columns[0].shape[0] == 0:
        return [Word(columns[0].to(torch.int8), 1)]
    pairs = [torch.stack(torch.aminmax(column)).to(torch.int64) for column in columns]
    extremes = torch.stack(pairs).tolist()
    words: list[Word] = []
    for column, (low, high) in zip(columns, extremes, strict=True):
        span = high - low + 1
        if span == 1:
            continue
        codes = column.to(torch.int64)
        codes = subtract(codes, low) if low and span <= _INT64_LIMIT else codes
        if words and words[-1].span * span <= _INT64_LIMIT:
            previous = words.pop()
            words.append(Word(multiply(previous.codes, span).add_(codes), previous.span * span))
        else:
            words.append(Word(codes, span))
    if not words:
        return [Word(torch.zeros(columns[0].shape, dtype=torch.int8, device=columns[0].device), 1)]
    return [Word(narrow(word.codes, word.span), word.span) for word in words]


def narrow(codes: Tensor, span: int) -> Tensor:
    """Integers [n] in [0, span) in the narrowest dtype: they sort faster."""
    dtype = narrowest((0, span - 1))
    return codes if dtype is None else codes.to(dtype)


def is_ascending(values: Tensor) -> bool:
    """Is each of the values [n] at least the one before it? A look at them costs a hundredth of sorting them."""
    if is_host(values) and values.shape[0] > 2 * _FIRST_ROWS and not is_ascending(values[:_FIRST_ROWS]):
        return False
    return all_true(less_equal(values[:-1], values[1:]))


def sort_codes(codes: Tensor) -> tuple[Tensor, Tensor]:
    """(sorted codes, order int64): a stable ascending sort of integers [n]. Narrow codes sort faster."""
    num_rows = codes.shape[0]
    room = bits_beside_rows(codes)
    if room:
        low, high = (int(extreme) for extreme in torch.aminmax(codes))
        return _sort_words(codes, low, (high - low).bit_length(), room)
    if is_host(codes) and _PADDED_SORT_ROWS <= num_rows < _RADIX_SORT_ROWS:
        padded = torch.full((_RADIX_SORT_ROWS,), torch.iinfo(codes.dtype).max, dtype=codes.dtype)
        padded[:num_rows] = codes  # being stable, the sort leaves the padding behind all rows
        ordered, order = torch.sort(padded, stable=True)
        return ordered[:num_rows], order[:num_rows]
    ordered, order = torch.sort(codes, stable=True)
    return ordered, order


def sort_bounded(codes: Tensor, span: int) -> tuple[Tensor, Tensor]:
    """(sorted codes, order int64): as `sort_codes`, of integers [n] in [0, span). The codes are narrow or int64."""
    room = bits_beside_rows(codes)
    width = (span - 1).bit_length()
    if not room or width > room:
        return sort_codes(narrow(codes, span))
    return _sort_words(codes, 0, width, room)


def bits_beside_rows(codes: Tensor) -> int:
    """How many bits of each code [n] have room in a word beside the number of its row; 0 where words sort no faster than codes."""
    num_rows = codes.shape[0]
    if num_rows < _SORTED_WORDS or not is_host(codes) or not numpy_sorts_words_faster():
        return 0
    return _WORD_BITS - (num_rows - 1).bit_length()


def _sort_words(codes: Tensor, low: int, width: int, room: int) -> tuple[Tensor, Tensor]:
    """Codes from `low` on, of `width` bits beyond it, of which the first `room` stand in words beside the rows: those of ties are sorted after.

    No order is moved along. Words of 32 bits sort in half of the time.
    """
    row_bits, shift = (codes.shape[0] - 1).bit_length(), max(0, width - room)
    dtype = np.dtype(np.uint32 if width + row_bits <= 32 else np.int64)
    words = codes.numpy().astype(dtype)
    if low:
        words -= dtype.type(low % 2**32) if dtype == np.uint32 else low  # what leaves the word wraps around
    if shift:
        words = (words.view(np.uint64) >> np.uint64(shift)).view(np.int64)
    words <<= row_bits
    words |= np.arange(codes.shape[0], dtype=dtype)
    words.sort()
    order = torch.from_numpy((words & ((1 << row_bits) - 1)).astype(np.int64, copy=False))
    words >>= row_bits
    if shift:
        ordered = torch.index_select(codes, 0, order)
        if not is_ascending(ordered):
            same = np.flatnonzero(words[1:] == words[:-1])
            tied = torch.from_numpy(np.union1d(same, same + 1))
            ordered[tied], within = torch.sort(ordered[tied], stable=True)
            order[tied] = order[tied[within]]
        return ordered, order
    ordered_words = words.astype(np.int64, copy=False)
    if low:
        ordered_words += low
    return torch.from_numpy(ordered_words).to(codes.dtype), order


@functools.cache
def numpy_sorts_words_faster() -> bool:
    """Does numpy sort words of 64 bits faster than torch sorts narrow codes with their order? Tried once a process, 2 ms.

    With vector instructions it takes 7 ns a row where torch takes 10 to 20; but some processors that have these are slow at
    them, and it takes 16 to 60 there, or without them.
    """
    words = np.random.default_rng(1).integers(0, 2**31, _RADIX_SORT_ROWS)
    codes = torch.from_numpy(words.astype(np.int32))
    return _seconds(lambda: np.sort(words)) < _seconds(lambda: torch.sort(codes, stable=True))


def _seconds(function: Callable[[], object]) -> float:
    """What the quickest of three calls takes."""
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def hash_combine(columns: Sequence[Tensor]) -> Tensor:
    """A 64-bit hash (int64 [n]) of the rows of integer columns, each [n] or [n, 2] (wide: both words count).

    Equal rows have equal hashes, also where a column is wide on one side only; a match of hashes must still be checked
    against the columns.
    """
    words = [column if column.dim() == 1 else _wide_word(column) for column in columns]
    state = mix(words[0].to(torch.int64))
    for word in words[1:]:
        state = mix(state + word)  # the state is mixed, so order and position of the words count
    return state


def _wide_word(values: Tensor) -> Tensor:
    """The low words, changed where the high words are more than their signs: a narrow number stays as it is."""
    high, low = values[:, 0], values[:, 1]
    return low + mix(high ^ (low >> 63))


def mix(values: Tensor) -> Tensor:
    """A bijection of int64 [n] that spreads every input bit over all output bits (two rounds of shift and multiply)."""
    # `>>` copies the sign bit, so it is cut off: else x and ~x would collide
    state = (values >> 32).bitwise_and_(0xFFFFFFFF).bitwise_xor_(values).mul_(-0x2AF7A1D56C8D5C93)
    state.bitwise_xor_((state >> 29).bitwise_and_(0x7FFFFFFFF)).mul_(0x4D2C6DFC5AC42AED)
    return state.bitwise_xor_((state >> 32).bitwise_and_(0xFFFFFFFF))


def high_bits(keys: Tensor, bits: int, multiplier: int) -> Tensor:
    """int64 [n] in [0, 2^bits), 0 < bits < 64: the high bits of integers [n] times an odd multiplier, which is a hash."""
    if not is_host(keys):
        return ((keys.to(torch.int64) * multiplier) >> (64 - bits)).bitwise_and_((1 << bits) - 1)
    spread = keys.to(torch.int64).numpy().view(np.uint64) * np.uint64(multiplier & _ALL_BITS)
    np.right_shift(spread, np.uint64(64 - bits), out=spread)
    return torch.from_numpy(spread.view(np.int64))


def partition_rows(keys: Tensor, bits: int, dense: bool = False) -> tuple[Tensor, list[int]]:
    """Distributes integers [n] over 2^bits partitions, 0 < bits < 8, equal ones to the same.

    By their hash, or where they lie `dense`, from 0 on, by their low bits. Returns the rows, int64 [n], partition by
    partition and ascending within one, and where each partition ends.
    """
    numbers = keys & ((1 << bits) - 1) if dense else high_bits(keys, bits, _PARTITION_MULTIPLIER)
    if is_host(keys):  # three quarters of torch's time
        array = numbers.numpy().astype(np.uint8)
        places = array.argsort(kind="stable")
        ends = array.searchsorted(np.arange(1 << bits, dtype=np.uint8), "right", sorter=places)
        return torch.from_numpy(places), ends.tolist()
    partitions = numbers.to(torch.int8)
    order = torch.sort(partitions, stable=True)[1]
    return order, torch.bincount(partitions, minlength=1 << bits).cumsum(0).tolist()
