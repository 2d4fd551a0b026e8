"""ORDER BY: the rows in order, through order-preserving bits of the keys (the first k rows only: `top_rows`).

The first bits of the keys sort all rows; the rows that tie are sorted by the next bits, until none tie or no bits are
left. On processors where numpy sorts words by vector instructions, that is as many bits as have room in a word beside the
number of the row. Torch sorts integers by radix, one pass a byte, so that 32 bits cost half of what 64 do. Few rows are
sorted by all keys at once: there the number of calls is the cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tqp.core.process.memory_budget import reserve
from tqp.data.backend import is_host_device
from tqp.data.strings import Strings
from tqp.operators.numbers import elementwise
from tqp.operators.numbers.comparisons import interval_order
from tqp.operators.numbers.wide import order_keys
from tqp.operators.rows.keys import (
    bits_beside_rows,
    is_ascending,
    ordered_bits,
    pack_by_range,
    sort_bounded,
    sort_codes,
)
from tqp.operators.rows.runs import Runs
from tqp.operators.rows.selection import row_indices, take, take_optional
from tqp.operators.sorting.sort_bits import Bits, NumberBits, StringBits
from tqp.operators.strings.layout import take as take_strings
from tqp.operators.strings.words import WORD

#: Up to so many rows on the CPU, and bytes of their strings if all were as long as the longest, rows count as few.
_FEW_ROWS, _FEW_BYTES = 1024, 65_536
#: Of each row: a code and its place, unsorted and sorted.
_SORTED_BYTES = 4 * 8
#: Bits that the first sort looks at, and those it looks at where so few would leave many ties.
_FEW_BITS, _MANY_BITS = 32, 63
#: Bits of numbers for which another sort in words is worth its calls.
_FEWEST_BITS = 8
_SAMPLE_ROWS = 4096
#: Ties among the rows of a sample from which on the first sort looks at many bits.
_MANY_TIES = 4


class SortColumn(NamedTuple):
    """One ORDER BY key: bool, integers, or floats [n], or wide integers int64 [n, 2], or strings."""

    values: Tensor | Strings
    validity: Tensor | None = None
    descending: bool = False
    nulls_first: bool = False
    #: Of strings, how many bytes of each are known to tie.
    offset: int = 0

    @property
    def num_rows(self) -> int:
        return self.any_tensor.shape[0]

    @property
    def device(self) -> torch.device:
        return self.any_tensor.device

    @property
    def any_tensor(self) -> Tensor:
        """One of the rows' own."""
        return self.values.starts if isinstance(self.values, Strings) else self.values


def sort_columns(values: Any, *how: Any) -> list[SortColumn]:
    """One key as a column, of intervals [n, 3] as two that compare as these do; `how`: the other fields of a SortColumn."""
    if isinstance(values, Tensor) and values.dim() == 2 and values.shape[1] == 3:
        return [SortColumn(word, *how) for word in interval_order(values).unbind(1)]
    return [SortColumn(values, *how)]


def take_rows(column: SortColumn, rows: Tensor) -> SortColumn:
    """The given rows of a key."""
    values = column.values
    taken = take_strings(values, rows) if isinstance(values, Strings) else take(values, rows)
    return column._replace(values=taken, validity=take_optional(column.validity, rows))


def sort_rows(columns: Sequence[SortColumn]) -> Tensor:
    """Row indices (int64 [n]) in the order of the columns, first column first; ties keep their order."""
    num_rows = columns[0].num_rows
    if num_rows < 2:
        return torch.arange(num_rows, device=columns[0].device)
    if num_rows <= _FEW_ROWS and is_host_device(columns[0].device):
        keys = _few_keys(columns)
        if keys is not None:
            return torch.from_numpy(np.lexsort(keys[::-1]))
    reserve(_SORTED_BYTES * num_rows)
    ordered, order, left = _first_sort(_bits(columns), bits_beside_rows(columns[0].any_tensor))
    places: Tensor | None = None  # where in the order the rows of `ordered` stand; None for all of them
    while left:
        tied = _tied(ordered)
        if tied.shape[0] == 0:
            break
        places = tied if places is None else take(places, tied)
        rows, group = take(order, places), Runs(take(ordered, tied)).ids()
        group_width = int(group[-1]).bit_length()
        codes, width, left = _next_codes(left, rows, _room_after(group, group_width, left[0]))
        ordered, within = _sort((group << width).bitwise_or_(codes), group_width + width)
        order.index_copy_(0, places, take(rows, within))
    return order


def _room_after(group: Tensor, group_width: int, bits: Bits) -> int:
    """How many of the next bits of rows are sorted at once behind the numbers of their groups."""
    beside = bits_beside_rows(group) - group_width
    fewest = _FEW_BITS if isinstance(bits, StringBits) else _FEWEST_BITS
    return beside if beside >= fewest else _MANY_BITS - group_width


def leading_codes(columns: Sequence[SortColumn]) -> Tensor:
    """int64 [n] that ascend in the order of the columns; rows tie that differ in it only behind their first 63 bits."""
    return _next_codes(_bits(columns), None, _MANY_BITS)[0]


def _first_sort(bits: Sequence[Bits], room: int) -> tuple[Tensor, Tensor, Sequence[Bits]]:
    """The first bits of all rows, sorted, the rows in their order, and the bits that are left. `room`: beside rows, if any."""
    codes, width, left = _next_codes(bits, None, room or _FEW_BITS)
    if not room and left and codes.shape[0] > 8 * _SAMPLE_ROWS:
        sample = codes[:: codes.shape[0] // _SAMPLE_ROWS].sort().values
        if _tied(sample).shape[0] >= _MANY_TIES:
            codes, width, left = _next_codes(bits, None, _MANY_BITS)
    return *_sort(codes, width), left


def _next_codes(bits: Sequence[Bits], rows: Tensor | None, room: int) -> tuple[Tensor, int, Sequence[Bits]]:
    """The next bits of the rows (None: all) as one integer each, how many they are, and the bits after them."""
    chunk = bits[0].take(rows, room)
    assert chunk is not None, "room for the bits of a byte, or of a length, at least"
    codes, width, rest = chunk
    left = [*bits[1:]] if rest is None else [rest, *bits[1:]]
    while left and width < room:
        chunk = left[0].take(rows, room - width)
        if chunk is None:
            break
        codes = (codes << chunk.width).bitwise_or_(chunk.codes)
        width += chunk.width
        left[:1] = [] if chunk.rest is None else [chunk.rest]
    return codes, width, left


def _sort(codes: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """(sorted codes, order int64): a stable sort of integers in [0, 2^width)."""
    if is_ascending(codes):
        return codes, torch.arange(codes.shape[0], device=codes.device)
    if width <= bits_beside_rows(codes):
        return sort_bounded(codes, 1 << width)
    for dtype in (torch.int8, torch.int16, torch.int32):
        if width <= dtype.itemsize * 8:
            return sort_codes((codes - (1 << dtype.itemsize * 8 - 1)).to(dtype))
    return sort_codes(codes)


def _tied(ordered: Tensor) -> Tensor:
    """The places (int64, ascending) of the sorted values that have an equal neighbour."""
    same = elementwise.equal(ordered[1:], ordered[:-1])
    tied = torch.zeros(ordered.shape[0], dtype=torch.bool, device=ordered.device)
    tied[1:] = same
    tied[:-1] |= same
    return row_indices(tied)


def _bits(columns: Sequence[SortColumn]) -> list[Bits]:
    """Bits whose lexicographic ascending order is the order that the columns ask for."""
    found: list[Bits] = []
    numbers: list[Tensor] = []  # of columns one after the other, to be packed

    def pack_numbers() -> None:
        for codes, span in pack_by_range(numbers) if numbers else ():
            if span > 1 << 63:
                codes, span = codes ^ torch.iinfo(torch.int64).min, 1 << 64
            if span > 1 or not found:
                found.append(NumberBits(codes, (span - 1).bit_length()))
        numbers.clear()

    for column in columns:
        values, validity = column.values, column.validity
        if validity is not None:  # the flag in front places NULLs
            numbers.append((validity if column.nulls_first else validity.logical_not()).to(torch.int8))
        if isinstance(values, Strings):
            pack_numbers()
            if validity is not None:  # NULLs tie
                values = values._replace(lengths=values.lengths * validity)
            found.append(StringBits(values, column.descending, column.offset))
        else:
            numbers += _codes(values, validity, column.descending)
    pack_numbers()
    return found


def _codes(values: Tensor, validity: Tensor | None, descending: bool) -> list[Tensor]:
    """Integer columns whose lexicographic ascending order is that of the values, or the opposite; 0 under NULL."""
    if values.is_floating_point():
        codes = [ordered_bits(values)]
    elif values.dim() == 2:
        codes = list(order_keys(values))
    else:
        codes = [values.to(torch.int8) if values.dtype is torch.bool else values]
    if descending:
        codes = [~code for code in codes]  # reverses the order and, other than negation, cannot overflow
    return codes if validity is None else [code * validity for code in codes]


def _few_keys(columns: Sequence[SortColumn]) -> list[Any] | None:
    """Arrays [n] whose lexicographic ascending order, as numpy has it, is the order asked for; None if strings are long."""
    keys: list[Any] = []
    for values, validity, descending, nulls_first, offset in columns:
        if isinstance(values, Strings):
            found = _string_keys(values, offset)
            if found is None:
                return None
        elif values.is_floating_point():  # for numpy too NaN is the greatest and -0.0 = 0.0
            array = values.numpy()
            found = [~np.isnan(array), -array] if descending else [array]
        else:
            found = [code.numpy() for code in (order_keys(values) if values.dim() == 2 else (values,))]
        if descending and found[-1].dtype.kind != "f":
            found = [~key for key in found]
        if validity is not None:  # the flag in front places NULLs, which tie
            valid = validity.numpy()
            keys.append(valid if nulls_first else ~valid)
            found = [np.where(valid, key, key.dtype.type(0)) for key in found]
        keys += found
    return keys


def _string_keys(strings: Strings, offset: int) -> list[Any] | None:
    """The bytes of each row from `offset` on as big-endian words, zero past its end, and the lengths."""
    lengths = strings.lengths.numpy()
    num_words = -(-max(0, int(lengths.max()) - offset) // WORD)
    if lengths.shape[0] * num_words * WORD > _FEW_BYTES:
        return None
    if not num_words:
        return [lengths]
    places = np.arange(offset, offset + num_words * WORD)
    data = strings.data.numpy()
    text = data.take(strings.starts.numpy()[:, None] + places, mode="clip")
    text *= places < lengths[:, None]
    return [*text.view(">u8").astype(np.uint64).T, lengths]
