"""Bytes and numbers as digits: hex, bin and base64, and to any base."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.errors import ExecutionError
from tqp.core.process.memory_budget import reserve
from tqp.data.repeats import numbers_of
from tqp.data.strings import Strings
from tqp.data.unsigned_words import words_of
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.numbers import wide
from tqp.operators.numbers.wide import raise_where
from tqp.operators.strings.layout import compact, total_length

_INT32_MAX = 2**31 - 1
_DIGITS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_HEX = _DIGITS[:16]
_HIGHEST_BASE, _MOST_DIGITS = len(_DIGITS), 64
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="


@lru_cache
def _characters(text: bytes, device: torch.device) -> Tensor:
    """uint8: the bytes of a text."""
    return torch.frombuffer(bytearray(text), dtype=torch.uint8).to(device)


def digits_of_bytes(strings: Strings, bits: int) -> Strings:
    """Each byte as digits of so many bits (1 or 4), the first digit being the highest."""
    per_byte = 8 // bits
    _check_length(strings, per_byte)
    reserve(9 * per_byte * total_length(strings))
    written = compact(strings)
    shifts = torch.arange(8 - bits, -1, -bits, device=written.data.device)
    digits = (written.data.to(torch.int64).unsqueeze(1) >> shifts) & ((1 << bits) - 1)
    data = torch.index_select(_characters(_HEX, digits.device), 0, digits.reshape(-1))
    return Strings(written.starts * per_byte, written.lengths * per_byte, data)


def digits_of_integers(values: Tensor, bits: int, is_wide: bool) -> Strings:
    """Integers [n] or [n, 2] in two's complement, as digits of so many bits (1 or 4), without zeros before.

    `is_wide`: negative numbers have 128 bits, not 64.
    """
    if values.dim() == 0:  # a constant
        values = values.reshape(1)
    if wide.is_wide(values) or is_wide:
        words = wide.widen(values)
    else:
        words = values.unsqueeze(1).to(torch.int64)
    shifts = torch.arange(64 - bits, -1, -bits, device=words.device)
    digits = ((words.unsqueeze(2) >> shifts) & ((1 << bits) - 1)).flatten(1)
    width = digits.shape[1]
    zeros_before = (
        ((digits != 0).cumsum(1) == 0).sum(1).clamp(max=width - 1)
    )  # the last digit is always shown
    data = torch.index_select(_characters(_HEX, digits.device), 0, digits.reshape(-1))
    starts = torch.arange(words.shape[0], device=words.device) * width + zeros_before
    return Strings(starts, (width - zeros_before).to(torch.int32), data)


def base64(strings: Strings) -> Strings:
    """Each three bytes as four characters; `=` for what is missing at the end of a row."""
    _check_length(strings, 2)
    lengths = strings.lengths.to(torch.int64)
    sizes = torch.div(lengths + 2, 3, rounding_mode="floor") * 4
    starts, total = sizes.cumsum(0) - sizes, int(sizes.sum())
    reserve(8 * 8 * total)
    rows = numbers_of(sizes, total)
    place = torch.arange(total, device=sizes.device) - torch.index_select(starts, 0, rows)
    first, within = torch.div(place, 4, rounding_mode="floor") * 3, place % 4
    source, length = torch.index_select(strings.starts, 0, rows), torch.index_select(lengths, 0, rows)
    word = torch.zeros_like(place)
    for offset in range(3):
        at = first + offset
        is_there = at < length
        byte = torch.index_select(strings.data, 0, (source + at) * is_there) if strings.data.shape[0] else at
        word = (word << 8) | byte.to(torch.int64) * is_there
    code = (word >> (18 - 6 * within)) & 63
    code = torch.where(first + within <= length, code, 64)
    data = torch.index_select(_characters(_BASE64, code.device), 0, code)
    return Strings(starts, sizes.to(torch.int32), data)


def to_base(
    numbers: Tensor, base: Tensor, fewest: Tensor | None = None, *, validity: Tensor | None = None
) -> Strings:
    """Integers [n] as digits to a base from 2 to 36, zeros before them where there are fewer than `fewest`, up to 64.

    Raises ExecutionError for another base or number of digits, and for negative numbers.
    """
    fewest = torch.ones_like(base) if fewest is None else fewest
    given = [each.to(torch.int64).reshape(-1) for each in (numbers, base, fewest)]
    numbers, base, fewest = torch.broadcast_tensors(*given)  # type: ignore[no-untyped-call]
    is_base = (base >= 2) & (base <= _HIGHEST_BASE)
    raise_where(numbers < 0, "to_base(): the number must not be negative", validity)
    raise_where(~is_base, f"to_base(): the base must be from 2 to {_HIGHEST_BASE}", validity)
    raise_where(
        (fewest < 0) | (fewest > _MOST_DIGITS),
        f"to_base(): the number of digits must be from 0 to {_MOST_DIGITS}",
        validity,
    )
    rest, base = numbers.clamp(min=0), torch.where(is_base, base, 2)
    places = _places(rest, base, fewest)
    reserve(places * numbers.shape[0])
    digits = torch.zeros((places, numbers.shape[0]), dtype=torch.uint8, device=numbers.device)
    width = fewest.clamp(1, _MOST_DIGITS)
    only = int(base[0]) if given[1].shape[0] == 1 and numbers.shape[0] else None
    characters = _characters(_DIGITS, digits.device)
    for place in range(places):
        quotient = torch.div(rest, base if only is None else only, rounding_mode="floor")
        digits[places - 1 - place] = characters[rest - quotient * (base if only is None else only)]
        width = torch.where(rest > 0, width.clamp(min=place + 1), width)
        rest = quotient
    ends = torch.arange(1, numbers.shape[0] + 1, device=numbers.device) * places
    return Strings(ends - width, width.to(torch.int32), digits.t().contiguous().view(-1))


def _places(numbers: Tensor, base: Tensor, fewest: Tensor) -> int:
    """How many digits the longest of them has."""
    if numbers.shape[0] == 0:
        return 1
    largest, least_base = int(numbers.max()), int(base.min())
    places = 1
    while least_base**places <= largest:
        places += 1
    return max(places, min(int(fewest.max()), _MOST_DIGITS))


def _check_length(strings: Strings, factor: int) -> None:
    if strings.num_rows and int(strings.lengths.max()) * factor > _INT32_MAX:
        raise ExecutionError("the digits of a string are longer than 2 GiB, the limit of one string")


def _digits(bits: int) -> Overload:
    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
        (source,) = argument_types
        if source.kind is TypeKind.UHUGEINT:
            return Kernel(lambda values: digits_of_integers(words_of(values), bits, True), accepts_wide=True)
        if source.is_integer:
            is_wide = source.kind is TypeKind.HUGEINT
            return Kernel(lambda values: digits_of_integers(values, bits, is_wide), accepts_wide=True)
        return Kernel(lambda strings: digits_of_bytes(strings, bits))

    return resolve


DIGIT_KERNELS: dict[str, Overload] = {
    "hex": _digits(4),
    "bin": _digits(1),
    "base64": lambda *_: Kernel(base64),
    "to_base": lambda *_: Kernel(to_base, checks=True),
    "encode": lambda *_: Kernel(lambda strings: strings),
}
