"""Functions of integers: bits, shifts, greatest common divisors and least common multiples."""

from __future__ import annotations

from collections.abc import Callable
from math import comb, factorial

import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.numbers import wide
from tqp.operators.numbers.wide_forms import narrow_if_possible


def _bits(data_type: DataType) -> int:
    """The width of an integer type, its sign included."""
    low, high = data_type.bounds
    return high.bit_length() + (low < 0)


_FACTORIALS = [factorial(number) for number in range(34)]  # those that fit 128 bits
_WORD = 1 << 64


def _factorial(numbers: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """The product of all integers up to each, int64 [n, 2]; raises ExecutionError for negative ones and beyond 128 bits."""
    wide.raise_where(numbers < 0, "factorial(): the number must not be negative", validity)
    highest = len(_FACTORIALS) - 1
    wide.raise_where(
        numbers > highest, f"factorial() of more than {highest} is out of the range of HUGEINT", validity
    )
    words = [divmod(each, _WORD) for each in _FACTORIALS]
    signed = [(high, low - _WORD * (low >= _WORD // 2)) for high, low in words]
    table = torch.tensor(signed, dtype=torch.int64, device=numbers.device)
    return torch.index_select(table, 0, numbers.to(torch.int64).clamp(0, highest).reshape(-1))


#: More ways than fit 128 bits are there to choose so many of twice as many.
_MOST_CHOSEN = 66


def _binomials(n: Tensor, k: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """How many sets of k there are of n things, int64 [m, 2], computed once for each pair; raises ExecutionError for negative ones
    and beyond 128 bits."""
    n, k = torch.broadcast_tensors(n.to(torch.int64).reshape(-1), k.to(torch.int64).reshape(-1))  # type: ignore[no-untyped-call]
    wide.raise_where((n < 0) | (k < 0), "binom(): the numbers must not be negative", validity)
    chosen = torch.minimum(k, n - k).clamp(-1, _MOST_CHOSEN)  # -1: k is more than n
    pairs, numbers = torch.unique(n * 128 + chosen + 1, return_inverse=True)
    values = [comb(pair >> 7, (pair & 127) - 1) if pair & 127 else 0 for pair in pairs.tolist()]
    is_large = torch.tensor([value >= 2**127 for value in values], device=n.device)
    message = "binom(): the number is out of the range of HUGEINT"
    wide.raise_where(torch.index_select(is_large, 0, numbers), message, validity)
    fitting = wide.from_ints([min(value, 2**127 - 1) for value in values], n.device)
    return torch.index_select(fitting, 0, numbers)


def _resolve_bitwise(function: Callable[[Tensor, Tensor], Tensor]) -> Overload:
    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
        if not all(data_type.is_integer for data_type in argument_types):
            return None

        def bitwise(a: Tensor, b: Tensor) -> Tensor:
            if wide.is_wide(a) or wide.is_wide(b):
                return narrow_if_possible(function(wide.widen(a), wide.widen(b)))
            return function(a.to(torch.int64), b.to(torch.int64))

        return Kernel(bitwise, accepts_wide=True)

    return resolve


def _resolve_not(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    (data_type,) = argument_types
    if not data_type.is_integer:
        return None
    low, high = data_type.bounds
    if data_type.kind is TypeKind.UBIGINT:
        # The complement of a value below 2**63 needs the unsigned half.
        return Kernel(
            lambda values: narrow_if_possible(wide.from_unsigned(~wide.widen(values)[:, 1])),
            accepts_wide=True,
        )
    if low == 0:
        return Kernel(lambda values: high - values.to(torch.int64))
    return Kernel(
        lambda values: ~values if wide.is_wide(values) else ~values.to(torch.int64), accepts_wide=True
    )


def _shift_counts(shift: Tensor) -> Tensor:
    """By how many bits to shift, int64 [n] or 0-d, of narrow or wide integers: what 64 bits do not hold is -1 or 128."""
    if not wide.is_wide(shift):
        return shift.to(torch.int64)
    return torch.where(wide.fits_narrow(shift), shift[:, 1], torch.where(shift[:, 0] < 0, -1, 128))


def shift_left_wide(values: Tensor, counts: Tensor) -> Tensor:
    """int64 [n, 2] by 0 to 127 bits; what leaves at the top is lost."""
    high, low = values[:, 0], values[:, 1]
    within = counts & 63
    carried = (low >> 1 >> (63 - within)) & ((1 << within) - 1)  # the upper bits of the low half
    moved, is_far = low << within, counts > 63
    shifted = (torch.where(is_far, moved, (high << within) | carried), torch.where(is_far, 0, moved))
    return torch.stack(shifted, 1)


def shift_right_wide(values: Tensor, counts: Tensor) -> Tensor:
    """int64 [n, 2] by 0 to 127 bits, the sign kept."""
    high, low = values[:, 0], values[:, 1]
    within = counts & 63
    rest = ((low >> 1) & (2**63 - 1)) >> within  # all but the last bit that stays, without a sign
    kept = (rest << 1) | ((low >> within) & 1)
    moved, is_far = high >> within, counts > 63
    shifted = (
        torch.where(is_far, high >> 63, moved),
        torch.where(is_far, moved, kept | (high << 1 << (63 - within))),
    )
    return torch.stack(shifted, 1)


def _resolve_shift_left(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    data_type = argument_types[0]
    if not data_type.is_integer:
        return None
    value_bits = _bits(data_type) - (data_type.bounds[0] < 0)
    message = f"Overflow in left shift of {data_type}; cast the operand to a wider type"

    def shift_left(values: Tensor, shift: Tensor, *, validity: Tensor | None = None) -> Tensor:
        is_negative = (values[:, 0] if wide.is_wide(values) else values) < 0
        wide.raise_where(is_negative, "Cannot left-shift a negative number", validity)
        shift = _shift_counts(shift)
        wide.raise_where(shift < 0, "Cannot left-shift by a negative number", validity)
        capped = shift.clamp(0, value_bits)
        if value_bits > 63:
            values = wide.widen(values)
            lost = shift_right_wide(values, value_bits - capped).ne(0).any(1)
            wide.raise_where(lost, message, validity)
            return narrow_if_possible(shift_left_wide(values, torch.where(lost, 0, capped)))
        values = values.to(torch.int64)
        lost = (values >> (value_bits - capped)) != 0
        wide.raise_where(lost, message, validity)
        # rows that do not count may be looked up all the same
        return torch.where(lost, 0, values << capped.clamp(max=62))

    return Kernel(shift_left, checks=True, accepts_wide=True)


def _resolve_shift_right(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    data_type = argument_types[0]
    if not data_type.is_integer:
        return None
    bits = _bits(data_type)

    def shift_right(values: Tensor, shift: Tensor) -> Tensor:
        shift = _shift_counts(shift)
        possible = (shift >= 0) & (shift < bits)  # any other shift gives 0, also of a negative value
        if wide.is_wide(values) or bits > 64:
            shifted = shift_right_wide(wide.widen(values), shift * possible)
            return narrow_if_possible(shifted * possible.reshape(-1, 1))
        values = values.to(torch.int64)
        return (values >> (shift * possible)) * possible

    return Kernel(shift_right, accepts_wide=True)


def _count_ones(words: Tensor) -> Tensor:
    """The ones in int64 [...], by adding up neighbouring fields of 1, 2 and 4 bits, and then all bytes at once."""
    pairs = words - ((words >> 1) & 0x5555555555555555)
    nibbles = (pairs & 0x3333333333333333) + ((pairs >> 2) & 0x3333333333333333)
    of_bytes = (nibbles + (nibbles >> 4)) & 0x0F0F0F0F0F0F0F0F
    return (of_bytes * 0x0101010101010101) >> 56


def _count_ones_of_wide(values: Tensor) -> Tensor:
    """Of HUGEINT, int64 [n]. All 128 leave TINYINT: they are -128, as in DuckDB."""
    return _count_ones(wide.widen(values)).sum(1).to(torch.int8).to(torch.int64)


def _resolve_bit_count(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    bits = _bits(argument_types[0])
    if bits > 64:
        return Kernel(_count_ones_of_wide, accepts_wide=True)
    ones = -1 if bits == 64 else (1 << bits) - 1  # a negative number has as many bits as its type
    return Kernel(lambda values: _count_ones(values.to(torch.int64) & ones))


def greatest_common_divisor(a: Tensor, b: Tensor) -> Tensor:
    """int64 [n, 2], never negative."""
    return wide.magnitude(wide.from_narrow(torch.gcd(a.to(torch.int64), b.to(torch.int64))))


def least_common_multiple(a: Tensor, b: Tensor) -> Tensor:
    """int64 [n, 2], never negative; 0 if an operand is."""
    a, b = a.to(torch.int64), b.to(torch.int64)
    divisor = torch.gcd(a, b).abs()  # -1 of -2**63 and 7, and to divide -2**63 by that would end the process
    divisor = divisor + (divisor == 0)
    return wide.magnitude(wide.multiply_narrow(torch.div(a, divisor, rounding_mode="trunc"), b))


def _resolve_gcd(name: str, function: Callable[[Tensor, Tensor], Tensor]) -> Overload:
    """Of integers of up to 64 bits; raises ExecutionError beyond them, but for HUGEINT."""

    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
        if not all(data_type.is_integer for data_type in argument_types):
            return None
        if result_type.kind is TypeKind.HUGEINT:
            return Kernel(lambda a, b: narrow_if_possible(function(a, b)))
        message = f"{name} value is out of range"

        def checked(a: Tensor, b: Tensor, *, validity: Tensor | None = None) -> Tensor:
            return wide.to_narrow(function(a, b), message, validity)

        return Kernel(checked, checks=True)

    return resolve


INTEGER_KERNELS: dict[str, Overload] = {
    "binom": lambda *_: Kernel(_binomials, checks=True),
    "factorial": lambda *_: Kernel(_factorial, checks=True),
    "bit_and": _resolve_bitwise(torch.bitwise_and),
    "bit_or": _resolve_bitwise(torch.bitwise_or),
    "bit_xor": _resolve_bitwise(torch.bitwise_xor),
    "bit_not": _resolve_not,
    "bit_count": _resolve_bit_count,
    "shift_left": _resolve_shift_left,
    "shift_right": _resolve_shift_right,
    "gcd": _resolve_gcd("gcd", greatest_common_divisor),
    "enum_code": lambda argument_types, result_type: Kernel(lambda positions: positions, any_width=True),
    "lcm": _resolve_gcd("lcm", least_common_multiple),
}
