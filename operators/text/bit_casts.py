"""BIT from and to text, bytes, numbers and truth values, whose bits DuckDB takes as they are stored there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.errors import ExecutionError
from tqp.core.text.bits import EMPTY_TEXT, invalid_character
from tqp.data.strings import Strings
from tqp.data.unsigned_words import turned, words_of
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.numbers import wide
from tqp.operators.rows.selection import row_indices
from tqp.operators.strings.bit_strings import ZERO, octet_length, padded, without_bits, zeros
from tqp.operators.strings.build import join
from tqp.operators.strings.digits import digits_of_bytes
from tqp.operators.strings.layout import compact, of_equal_lengths, take, to_list

#: Values, the rows that failed (int64 [m], ascending; None: none did), and why the first did.
Attempt = tuple[Any, Tensor | None, list[str]]

_WORD_BITS = 64
#: Types of one width, whatever they hold; a truth value is a byte.
_WIDTHS = {TypeKind.BOOLEAN: 8, TypeKind.FLOAT: 32, TypeKind.DOUBLE: 64, TypeKind.UHUGEINT: 128}


def _width(data_type: DataType) -> int | None:
    """How many bits a value has; None for types that are no bits."""
    if data_type.is_integer:
        low, high = data_type.bounds
        return high.bit_length() + (low < 0)
    return _WIDTHS.get(data_type.kind)


# ---- to BIT ----


def bit_writer(source: DataType) -> Callable[[Tensor], Strings] | None:
    """What writes values of a type as their bits; None where there is no such cast."""
    width = _width(source)
    if width is None:
        return None
    return lambda values: _digits(_words(values, source), width)


def _words(values: Tensor, source: DataType) -> Tensor:
    """Bits as int64 [n], or [n, 2] of 128."""
    if source.kind is TypeKind.UHUGEINT:
        return words_of(values)
    if source.is_float:
        values = values.view(torch.int32 if source.kind is TypeKind.FLOAT else torch.int64)
    if source.kind is TypeKind.HUGEINT:
        return wide.widen(values)
    return values[:, 1] if values.dim() == 2 else values.to(torch.int64).reshape(-1)


def _digits(words: Tensor, width: int) -> Strings:
    """The last bits of each row, the highest first."""
    shifts = torch.arange(min(width, _WORD_BITS) - 1, -1, -1, device=words.device)
    bits = ((words.unsqueeze(-1) >> shifts) & 1).to(torch.uint8).flatten(1)
    return of_equal_lengths(bits + ZERO)


def read_bits(strings: Strings, validity: Tensor | None) -> Attempt:
    """Texts of the digits 0 and 1; one of none is the bit 0, as in DuckDB."""
    bits, failed, reasons = _checked(strings, validity)
    is_empty = strings.lengths == 0 if validity is None else (strings.lengths == 0) & validity
    if bool(is_empty.any()):
        bits = join([zeros(is_empty.to(torch.int32)), bits])
    return bits, failed, reasons


def _checked(strings: Strings, validity: Tensor | None) -> Attempt:
    """The strings themselves, empty where a valid one has another character than 0 and 1."""
    strings = compact(strings)
    is_wrong = (strings.data | 1) != (ZERO | 1)
    if not bool(is_wrong.any()):
        return strings, None, []
    counts = torch.nn.functional.pad(is_wrong.cumsum(0), (1, 0))
    fails = counts[strings.starts + strings.lengths] > counts[strings.starts]
    rows = row_indices(fails if validity is None else fails & validity)
    checked = without_bits(strings, fails)
    if not rows.shape[0]:
        return checked, None, []
    (text,) = to_list(take(strings, rows[:1]))
    return checked, rows, [invalid_character(text.decode())]


def bits_of_bytes(strings: Strings, validity: Tensor | None) -> Attempt:
    """The bits of BLOBs, of which none is empty."""
    is_empty = strings.lengths == 0
    failed = row_indices(is_empty if validity is None else is_empty & validity)
    bits = digits_of_bytes(strings, 1)
    return (bits, failed, ["Cannot cast empty BLOB to BIT"]) if failed.shape[0] else (bits, None, [])


def _bitstring(strings: Strings, length: Tensor, *, validity: Tensor | None = None) -> Strings:
    """Text as bits, with zeros before. Raises ExecutionError for what is none, and for fewer bits than there are."""
    wide.raise_where(strings.lengths == 0, EMPTY_TEXT, validity)
    bits, failed, reasons = _checked(strings, validity)
    if failed is not None:
        raise ExecutionError(reasons[0])
    return padded(bits, length, validity=validity)


# ---- from BIT ----


def bytes_of_bits(strings: Strings) -> Strings:
    """As BLOBs: bytes, with zeros before the first bit."""
    sizes = octet_length(strings)
    bits = compact(join([zeros(sizes * 8 - strings.lengths), strings]))
    places = torch.arange(7, -1, -1, dtype=torch.uint8, device=bits.data.device)
    octets = ((bits.data.view(-1, 8) & 1) << places).sum(1, dtype=torch.uint8)
    return Strings(sizes.cumsum(0) - sizes, sizes.to(torch.int32), octets)


def bit_reader(target: DataType) -> Callable[[Strings, Tensor | None], Attempt] | None:
    """What reads the values that have these bits, with zeros before; None where there is no such cast."""
    width = _width(target)
    if width is None:
        return None
    message = f"Bitstring doesn't fit inside of {target}"

    def read(strings: Strings, validity: Tensor | None) -> Attempt:
        is_long = strings.lengths > width
        failed = row_indices(is_long if validity is None else is_long & validity)
        values = _value(without_bits(strings, is_long), target, width)
        return (values, failed, [message]) if failed.shape[0] else (values, None, [])

    return read


def _value(strings: Strings, target: DataType, width: int) -> Tensor:
    low = _word(strings, 0)
    match target.kind:
        case TypeKind.BOOLEAN:
            return low != 0
        case TypeKind.FLOAT:
            return _signed(low, width).to(torch.int32).view(torch.float32)
        case TypeKind.DOUBLE:
            return low.view(torch.float64)
        case TypeKind.UBIGINT:
            return wide.from_unsigned(low)
        case TypeKind.HUGEINT | TypeKind.UHUGEINT:
            words = torch.stack((_word(strings, _WORD_BITS), low), 1)
            return words if target.kind is TypeKind.HUGEINT else turned(words)
    return _signed(low, width) if target.bounds[0] < 0 else low


def _word(strings: Strings, skipped: int) -> Tensor:
    """int64 [n]: the bits, 64 at most, that end so many bits before the last one."""
    word = torch.zeros_like(strings.starts)
    longest = int(strings.lengths.max()) if strings.num_rows else 0
    last = strings.lengths.to(torch.int64) - 1 - skipped
    for place in range(min(longest - skipped, _WORD_BITS)):
        at = last - place
        has_bit = at >= 0
        bit = (strings.data[(strings.starts + at) * has_bit] & 1).to(torch.int64)
        word |= (bit * has_bit) << place
    return word


def _signed(words: Tensor, width: int) -> Tensor:
    """The first of so many bits as the sign."""
    unused = _WORD_BITS - width
    return (words << unused) >> unused


BIT_CAST_KERNELS: dict[str, Overload] = {
    "bitstring": lambda argument_types, result_type: Kernel(
        padded if argument_types[0].kind is TypeKind.BIT else _bitstring, checks=True
    ),
}
