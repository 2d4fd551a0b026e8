"""BIT: strings of the bytes '0' and '1', one for each bit, so that they compare, group and join as text does.

What text has is asked of the kernels of text; here is what bits have besides.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.data.strings import Strings
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.numbers.wide import raise_where
from tqp.operators.rows.batches import common_rows
from tqp.operators.rows.selection import row_indices
from tqp.operators.strings.build import join
from tqp.operators.strings.layout import broadcast, compact

ZERO = ord("0")
_BITS_OF_BYTE = 8


def zeros(lengths: Tensor) -> Strings:
    """So many bits 0 in each row, int32 or int64 [n], in one buffer that all share."""
    longest = int(lengths.max()) if lengths.shape[0] else 0
    data = torch.full((longest,), ZERO, dtype=torch.uint8, device=lengths.device)
    return Strings(torch.zeros_like(lengths, dtype=torch.int64), lengths.to(torch.int32), data)


def without_bits(strings: Strings, rows: Tensor) -> Strings:
    """The strings, empty where `rows` (bool [n]) says so."""
    return strings._replace(lengths=torch.where(rows, 0, strings.lengths))


def combined(
    name: str, combine: Callable[[Tensor, Tensor], Tensor]
) -> Callable[[Strings, Strings, Tensor | None], Strings]:
    """Bit by bit, of pairs of one length, by what `combine` makes of their bytes."""

    def function(left: Strings, right: Strings, validity: Tensor | None = None) -> Strings:
        num_rows = common_rows((left.num_rows, right.num_rows))
        left, right = broadcast(left, num_rows), broadcast(right, num_rows)
        differ = left.lengths != right.lengths
        raise_where(differ, f"Cannot {name} bit strings of different sizes", validity)
        left, right = compact(without_bits(left, differ)), compact(without_bits(right, differ))
        return Strings(left.starts, left.lengths, combine(left.data, right.data))

    return function


#: By the name of the aggregate. The bytes of 0 and 1 differ in the last bit alone.
COMBINATIONS = {
    "bit_and": combined("AND", torch.bitwise_and),
    "bit_or": combined("OR", torch.bitwise_or),
    "bit_xor": combined("XOR", lambda left, right: (left ^ right) | ZERO),
}


def _combination(name: str) -> Overload:
    def function(left: Strings, right: Strings, *, validity: Tensor | None = None) -> Strings:
        return COMBINATIONS[name](left, right, validity)

    return lambda argument_types, result_type: Kernel(function, checks=True)


def _complement(strings: Strings) -> Strings:
    strings = compact(strings)
    return strings._replace(data=strings.data ^ 1)


def _sort_key(strings: Strings) -> Strings:
    """Bytes that DuckDB sorts BITs by: 2 for each bit 0, and 3 for 1."""
    strings = compact(strings)
    return strings._replace(data=strings.data - (ZERO - 2))


def _shift_left(strings: Strings, shift: Tensor, *, validity: Tensor | None = None) -> Strings:
    """Raises ExecutionError for a negative number of places."""
    shift = _numbers(shift)
    raise_where(shift < 0, "Cannot left-shift by a negative number", validity)
    strings, moved = _moved(strings, shift)
    kept = strings._replace(starts=strings.starts + moved, lengths=strings.lengths - moved)
    return join([kept, zeros(moved)])


def _shift_right(strings: Strings, shift: Tensor) -> Strings:
    """By a negative number of places nothing is left, as in DuckDB."""
    shift = _numbers(shift)
    strings, moved = _moved(strings, torch.where(shift < 0, strings.lengths, shift))
    return join([zeros(moved), strings._replace(lengths=strings.lengths - moved)])


def _numbers(values: Tensor) -> Tensor:
    """int64 [n]"""
    return values.to(torch.int64).reshape(-1)


def _moved(strings: Strings, shift: Tensor) -> tuple[Strings, Tensor]:
    """As many strings as there are results, and how many bits each loses, int32."""
    moved = torch.minimum(shift.clamp(min=0), strings.lengths.to(torch.int64)).to(torch.int32)
    return broadcast(Strings(*strings), moved.shape[0]), moved


def octet_length(strings: Strings) -> Tensor:
    """How many bytes have room for the bits, int64 [n]."""
    return (strings.lengths.to(torch.int64) + _BITS_OF_BYTE - 1) // _BITS_OF_BYTE


def _count_ones(strings: Strings) -> Tensor:
    """int64 [n]"""
    strings = compact(strings)
    sums = torch.nn.functional.pad((strings.data & 1).cumsum(0, dtype=torch.int64), (1, 0))
    return sums[strings.starts + strings.lengths] - sums[strings.starts]


def _get_bit(strings: Strings, index: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """The bit at a place from 0, int64 [n]. Raises ExecutionError where there is none."""
    strings, index, has_bit = _places(strings, index, validity)
    if not strings.data.shape[0]:
        return torch.zeros_like(index)
    return (strings.data[(strings.starts + index) * has_bit] & 1).to(torch.int64)


def _set_bit(strings: Strings, index: Tensor, bit: Tensor, *, validity: Tensor | None = None) -> Strings:
    """Raises ExecutionError for another bit than 0 and 1, and where there is no such place."""
    bit = _numbers(bit)
    raise_where((bit != 0) & (bit != 1), "The new bit must be 1 or 0", validity)
    strings, index, has_bit = _places(strings, index, validity)
    num_rows = common_rows((strings.num_rows, bit.numel()))
    strings = compact(broadcast(strings, num_rows))
    data = strings.data.clone()
    rows = row_indices(has_bit.expand(num_rows))
    places = strings.starts[rows] + index.expand(num_rows)[rows]
    data[places] = (bit.expand(num_rows)[rows] & 1).to(torch.uint8) + ZERO
    return strings._replace(data=data)


def _places(strings: Strings, index: Tensor, validity: Tensor | None) -> tuple[Strings, Tensor, Tensor]:
    """As many strings as places, the places from 0, int64 [n], and which there are."""
    num_rows = common_rows((strings.num_rows, index.numel()))
    strings, index = broadcast(strings, num_rows), _numbers(index).expand(num_rows)
    has_bit = (index >= 0) & (index < strings.lengths)
    failed = row_indices(~has_bit if validity is None else ~has_bit & validity)
    if failed.shape[0]:
        row = int(failed[0])
        last = int(strings.lengths[row]) - 1
        raise ExecutionError(f"bit index {int(index[row])} out of valid range (0..{last})")
    return strings, index, has_bit


def padded(strings: Strings, length: Tensor, *, validity: Tensor | None = None) -> Strings:
    """With zeros before, as many bits as `length` says. Raises ExecutionError for fewer than there are."""
    length = _numbers(length)
    raise_where(length < 0, "The bitstring length cannot be negative", validity)
    missing = length - strings.lengths
    raise_where(missing < 0, "Length must be equal or larger than input string", validity)
    if validity is not None:
        missing = missing * validity
    return join([zeros(missing.clamp(min=0)), strings])


def _always(kernel: Kernel) -> Overload:
    return lambda argument_types, result_type: kernel


BIT_KERNELS: dict[str, Overload] = {
    "and_bits": _combination("bit_and"),
    "or_bits": _combination("bit_or"),
    "xor_bits": _combination("bit_xor"),
    "not_bits": _always(Kernel(_complement)),
    "shift_bits_left": _always(Kernel(_shift_left, checks=True)),
    "shift_bits_right": _always(Kernel(_shift_right)),
    "octets_of_bits": _always(Kernel(octet_length)),
    "count_bits": _always(Kernel(_count_ones)),
    "bitstring_byte_comparable": _always(Kernel(_sort_key)),
    "get_bit": _always(Kernel(_get_bit, checks=True)),
    "set_bit": _always(Kernel(_set_bit, checks=True)),
}
