"""Read numbers, and digits that stand at the same places in all rows, eight bytes at a time and for all rows at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators.memory.arrays import converted, host_form
from tqp.operators.strings.words import leading_words, word_of
from tqp.operators.text.runs import look_up

_WORD = 8
_ZEROS = 0x3030303030303030
_SIXES = 0x0606060606060606
_HIGH_HALVES = -0x0F0F0F0F0F0F0F10
_HIGH = 0x70F0F0F0F0F0F0F0  # a digit that is no digit shows in its high half; the top bit is in the sign

#: A number of digits, text that stands between, or one of some words of the same few letters.
Item = int | str | tuple[str, ...]


def read_fields(strings: Strings, layout: Sequence[Item]) -> tuple[list[Any], Any]:
    """The numbers at the places of a layout such as `(4, "-", 2, "-", 2)`, and bool [n]: which rows begin like that.

    int64 [n] each, arrays on the CPU and tensors elsewhere; any number in rows of another form. Numbers have at most
    nine digits. The number of a word, whatever the case of its letters, is its place in the tuple.
    """
    width = width_of(layout)
    words = list(map(host_form, leading_words(strings, width)))
    fits = host_form(strings.lengths) >= width
    # What bytes are where all is as it should be, but for the digits' values; what is added to them; what must be zero
    # then; and the digits' values alone: letters would be carried into digits behind them.
    expected, added, wrong, kept = (bytearray(len(words) * _WORD) for _ in range(4))
    place = 0
    for item in layout:
        part = slice(place, place + _width(item))
        place = part.stop
        if isinstance(item, int):
            # A byte above nine has a high half, by itself or with six added.
            expected[part], added[part], wrong[part] = b"0" * item, b"\6" * item, b"\xf0" * item
            kept[part] = b"\x0f" * item
        elif isinstance(item, str):
            expected[part], wrong[part] = item.encode("ascii"), b"\xff" * len(item)
    values, digits = [], []
    for position, word in enumerate(words):
        part = slice(position * _WORD, (position + 1) * _WORD)
        value = word ^ word_of(expected[part])
        values.append(value)
        digits.append(value & word_of(kept[part]))
        fits = fits & (((value | (value + word_of(added[part]))) & word_of(wrong[part])) == 0)
    numbers = []
    pairs: dict[int, Any] = {}
    place = 0
    for item in layout:
        if isinstance(item, int):
            numbers.append(_number(digits, pairs, place, item))
        elif isinstance(item, tuple):
            number, is_word = _place_of_word(values, place, item)
            numbers.append(number)
            fits = fits & is_word
        place += _width(item)
    return numbers, fits


def width_of(layout: Sequence[Item]) -> int:
    """The bytes of a row in this form."""
    return sum(_width(item) for item in layout)


def _width(item: Item) -> int:
    return item if isinstance(item, int) else len(item if isinstance(item, str) else item[0])


def _place_of_word(values: list[Any], place: int, names: tuple[str, ...]) -> tuple[Any, Any]:
    """Which of the names stands there, and whether one does."""
    letters: Any = 0
    for position in range(place, place + len(names[0])):
        word, byte = divmod(position, _WORD)
        letters = (letters << 8) | ((values[word] >> (8 * byte)) & 0xFF | 0x20)
    number, found = letters * 0, letters < 0
    for index, name in enumerate(names):
        is_name = letters == int.from_bytes(name.lower().encode("ascii"), "big")
        number = number + index * is_name
        found = found | is_name
    return number, found


def _number(words: list[Any], pairs: dict[int, Any], place: int, width: int) -> Any:
    """The digits from a place on as a number. `pairs` keeps what each two bytes of a word are as a number, at the first."""
    word, byte = divmod(place, _WORD)
    if width in (2, 4) and byte + width <= _WORD:
        if word not in pairs:
            pairs[word] = words[word] * 10 + (words[word] >> 8)
        value = pairs[word] >> (8 * byte) if byte else pairs[word]
        return value & 0xFF if width == 2 else (value & 0xFF) * 100 + ((value >> 16) & 0xFF)
    number: Any = 0
    for position in range(place, place + width):
        word, byte = divmod(position, _WORD)
        number = number * 10 + ((words[word] >> (8 * byte)) & 15)
    return number


_LONGEST_INTEGER = 19
#: By the number of bytes of a word: ten to so many digits, and as many ones.
_POWERS = np.array([10**count for count in range(_WORD + 1)], np.int64)
_MASKS = np.array([*((1 << (8 * count)) - 1 for count in range(_WORD)), -1], np.int64)


def read_integers(strings: Strings) -> tuple[Tensor, Tensor]:
    """Integers of up to 19 digits, with a sign or none: int64 [n], and bool [n]: which rows are such and fit 64 bits."""
    if strings.num_rows == 0:
        return torch.zeros_like(strings.starts), torch.zeros_like(strings.starts, dtype=torch.bool)
    first = leading_words(strings, 1)[0]
    is_negative = first == ord("-")
    signs = (is_negative | (first == ord("+"))).to(torch.int32)
    starts, lengths = strings.starts, strings.lengths
    if bool(signs.any()):
        starts, lengths = starts + signs, lengths - signs
    longest = min(max(int(lengths.max()), 1), _LONGEST_INTEGER)
    words = map(host_form, leading_words(Strings(starts, lengths, strings.data), longest))
    counts = host_form(lengths)
    fits = (counts > 0) & (counts <= _LONGEST_INTEGER)
    number: Any = 0
    for position, word in enumerate(words):
        here = counts - position * _WORD
        part, is_number = digits_of_word(word, here)
        fits = fits & is_number
        number = part if position == 0 else number * look_up(_POWERS, here) + part
    fits = fits & (number >= 0)  # what has 19 digits and wrapped round is negative
    values, sound = torch.as_tensor(number), torch.as_tensor(fits)
    if bool(is_negative.any()):
        values = torch.where(is_negative, -values, values)
    return values, sound


def digits_of_word(word: Any, counts: Any) -> tuple[Any, Any]:
    """The number that the first `counts` bytes of a word are, up to eight, 0 for none, and whether they are digits."""
    value = _shifted(word ^ _ZEROS, counts)
    return _eight_digits(value), ((value | (value + _SIXES)) & _HIGH_HALVES) == 0


def _shifted(word: Any, counts: Any) -> Any:
    """A word of up to eight digits' values with these at its end, and zeros before them."""
    shifts = converted((_WORD - counts.clip(0, _WORD)) * 8, torch.int64)
    half = shifts >> 1  # by 64 a word cannot be shifted at once
    return (word << half) << (shifts - half)


def _eight_digits(word: Any) -> Any:
    """The number of eight digits' values, the first in the lowest byte."""
    pairs = (word * 10 + (word >> 8)) & 0x00FF00FF00FF00FF
    fours = (pairs * 100 + (pairs >> 16)) & 0x0000FFFF0000FFFF
    return (fours * 10_000 + (fours >> 32)) & 0xFFFFFFFF


def read_fraction(strings: Strings, offset: int) -> tuple[Any, Any]:
    """Digits behind a point at `offset`: as nanoseconds, and whether there are none, or up to eight to the row's end.

    int64 [n] and bool [n]; arrays on the CPU.
    """
    tail = Strings(strings.starts + offset, (strings.lengths - offset).clamp_(min=0), strings.data)
    count = host_form(tail.lengths)
    first, second = map(host_form, leading_words(tail, _WORD + 1))
    digits = ((first >> 8) & 0x00FFFFFFFFFFFFFF) | (second << 56)
    # Zero where the row has ended.
    present = byte_mask(count - 1)
    digits = digits ^ (present & _ZEROS)
    fits = (count == 0) | (((first & 0xFF) == ord(".")) & (count <= _WORD + 1))
    fits = fits & (((digits | (digits + (present & _SIXES))) & present & _HIGH) == 0) & (digits >= 0)
    return _eight_digits(digits) * 10, fits


def byte_mask(counts: Any) -> Any:
    """Words whose first `counts` bytes are ones."""
    return look_up(_MASKS, counts)
