"""Scalars of JSON documents: numbers, true, false and null, read by an automaton, eight bytes of all of them at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators.memory.arrays import as_tensor, in_form_of
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.strings import layout
from tqp.operators.strings.bit_words import (
    bits_at,
    bits_of,
    bits_where,
    count,
    earlier,
    first_outside,
    later,
    library_of,
    next_place,
    places_in,
    places_of,
)
from tqp.operators.strings.words import WORD, leading, word_of, words

#: Longer scalars are left to others.
_LONGEST = 64


def malformed(data: Any, digits: Any, minus: Any, zeros: Any, scalars: Any, begins: Any, last: Any) -> Any:
    """The last bytes of those that are none, as `begins` are the first ones of all scalars, and `last` the last ones. Bits."""
    others = last & ~earlier(_behind_numbers(data, digits, minus, zeros, begins, scalars & ~begins), 1)
    if bool((others != 0).any()):
        words = places_in(begins & ~(digits | minus))
        last_of_words = next_place(others, words)
        found = take(last_of_words, row_indices(_are_words(data, words, last_of_words)))
        if found.shape[0] == count(others):
            return others & 0
        others = others & ~bits_at(found, data.shape[0])
    return others


def _are_words(data: Any, first: Any, last: Any) -> Any:
    """bool: whether the bytes from each first to each last one are true, false or null."""
    starts = as_tensor(first)
    begin = in_form_of(
        first, leading(Strings(starts, torch.full_like(starts, 4, dtype=torch.int32), as_tensor(data)), 4)
    )
    true, null, false = (word_of(text, 4) for text in (b"true", b"null", b"fals"))
    are_words = ((begin == true) | (begin == null)) & (last == first + 3)
    return are_words | ((begin == false) & (last == first + 4) & (take(data, last) == ord("e")))


def _behind_numbers(data: Any, digits: Any, minus: Any, zeros: Any, begins: Any, goes_on: Any) -> Any:
    """Bits: the bytes behind what are numbers so far."""
    more = digits & goes_on
    integers = (begins & digits) | (later(begins & minus) & more)
    zeros = integers & zeros
    behind = later(zeros) | first_outside(later(integers & ~zeros), more)
    others = behind & goes_on
    if bool((others != 0).any()):
        fractions = later(others & bits_of(data, ord("."))) & more
        behind_fractions = first_outside(later(fractions), more)
        behind |= behind_fractions
        others = (others & ~earlier(fractions, 1)) | (behind_fractions & goes_on)
    if bool((others != 0).any()):
        exponents = later(others & bits_where(data, lambda some: some | 0x20 == ord("e"))[0])
        exponents |= later(exponents & goes_on & (minus | bits_of(data, ord("+"))))
        behind |= first_outside(later(exponents & more), more)
    return behind


def scalar_states(data: Any, starts: Any, lengths: Any) -> Any:
    """uint8: what each scalar is, a number of `STATES`."""
    strings = Strings(as_tensor(starts), as_tensor(lengths).to(torch.int32), as_tensor(data))
    word = in_form_of(starts, words(strings, 0))
    uint8 = library_of(word).uint8
    states = _are_integers(word, lengths).view(uint8) * _NUMBERS["1"]
    for text in ("0", *_WORDS):
        states |= (word == word_of(text.encode())).view(uint8) * _NUMBERS[text]
    rows = row_indices(states == 0)
    states[rows] = _by_steps(strings, rows, take(word, rows))
    return states


def _are_integers(word: Any, lengths: Any) -> Any:
    """bool: whether there are at most eight bytes, digits all of them, and the first one is not 0."""
    digits = word ^ _ZEROS
    others = (((digits & ~_HIGH_BITS) + _ABOVE_NINE) | digits) & _HIGH_BITS
    behind = in_form_of(word, _HIGH_BEHIND.to(as_tensor(word).device))
    return (others == take(behind, lengths.clip(0, WORD + 1))) & ((digits & 0xFF) != 0)


def _by_steps(strings: Strings, rows: Any, word: Any) -> Any:
    """uint8: the states of these scalars, whose first words are given, by an automaton."""
    sizes = take(in_form_of(rows, strings.lengths), rows)
    table = in_form_of(rows, _TABLE.to(strings.starts.device))
    result = states = library_of(rows).zeros_like(rows)
    left, longest = places_of(rows), int(sizes.max()) if rows.shape[0] else 0
    for offset in range(0, min(longest, _LONGEST), WORD):
        if offset:
            left = row_indices(sizes > offset)
            states, some = take(result, left), as_tensor(take(rows, left))
            word = in_form_of(rows, words(layout.take(strings, some), offset))
        for place in range(min(longest - offset, WORD)):
            states = take(table, states | ((word >> (8 * place)) & 0xFF))
        result[left] = states
    result[row_indices(sizes > _LONGEST)] = 0
    return in_form_of(rows, (as_tensor(result) >> 8).to(torch.uint8))


#: Words of eight equal bytes.
_ZEROS, _HIGH_BITS, _ABOVE_NINE = (word_of(byte * WORD) for byte in (b"0", b"\x80", b"\x76"))
#: Entry k has the high bits of a word's bytes from the k-th one on; the last one is that of no word.
_HIGH_BEHIND = torch.tensor([*(word_of(bytes(k) + b"\x80" * (WORD - k)) for k in range(WORD + 1)), 1])

_DIGITS, _FROM_ONE = b"0123456789", b"123456789"
#: What follows what in scalars. States are called after a shortest text that leads to them.
_FOLLOWING: dict[str, dict[bytes, str]] = {
    "": {b"-": "-", b"0": "0", _FROM_ONE: "1"},
    "-": {b"0": "-0", _FROM_ONE: "-1"},
    "0": {b".": "0.", b"eE": "1e"},
    "-0": {b".": "0.", b"eE": "1e"},
    "1": {_DIGITS: "1", b".": "1.", b"eE": "1e"},
    "-1": {_DIGITS: "-1", b".": "1.", b"eE": "1e"},
    "0.": {b"0": "0.0", _FROM_ONE: "1.1"},
    "0.0": {_DIGITS: "0.00", b"eE": "1e"},
    "0.00": {_DIGITS: "0.00", b"eE": "1e"},
    "1.": {_DIGITS: "1.1"},
    "1.1": {b"0": "1.10", _FROM_ONE: "1.11", b"eE": "1e"},
    "1.10": {b"0": "1.10", _FROM_ONE: "1.11", b"eE": "1e"},
    "1.11": {b"0": "1.10", _FROM_ONE: "1.11", b"eE": "1e"},
    "1e": {_DIGITS: "1e1", b"+-": "1e+"},
    "1e+": {_DIGITS: "1e1"},
    "1e1": {_DIGITS: "1e1"},
}
_WORDS = ("true", "false", "null")
for _word in _WORDS:
    for _end in range(len(_word)):
        _FOLLOWING.setdefault(_word[:_end], {})[_word[_end].encode()] = _word[: _end + 1]
#: The states by number; of the last one nothing comes.
STATES = ("", *sorted({state for steps in _FOLLOWING.values() for state in steps.values()}), "none")
_NUMBERS = {state: number for number, state in enumerate(STATES)}
#: The states of integers, and of fractions without an exponent.
INTEGERS, FRACTIONS = ("0", "1", "-0", "-1"), ("0.0", "0.00", "1.1", "1.10", "1.11")
WELL_FORMED = (*INTEGERS, *FRACTIONS, "1e1", "true", "false", "null")


def _transitions() -> Tensor:
    """The next state, 256-fold, at 256 times a state plus a byte; a NUL, which stands for the end, leaves it."""
    table = torch.full((len(STATES), 256), len(STATES) - 1)
    for state, steps in _FOLLOWING.items():
        for symbols, then in steps.items():
            table[_NUMBERS[state], list(symbols)] = _NUMBERS[then]
    table[:, 0] = torch.arange(len(STATES))
    return (table << 8).view(-1)


_TABLE = _transitions()


def by_state(values: dict[str, int]) -> Tensor:
    """uint8 [STATES]: the value of each state, 0 of those that are not named."""
    return torch.tensor([values.get(state, 0) for state in STATES], dtype=torch.uint8)


def of_states(states: Any, values: Tensor) -> Any:
    """What `by_state` says of each of these states."""
    if isinstance(states, np.ndarray):
        return values.numpy().take(states)
    return values.to(states.device)[states.to(torch.int64)]
