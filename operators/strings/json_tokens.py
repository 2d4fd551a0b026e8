"""JSON documents cut into tokens, all of them at once: brackets, commas, colons, texts, and other values (scalars).

No byte waits for the one before it: quotes are told from what they enclose by running sums. This is the structural index of
simdjson (Langdale and Lemire, VLDB Journal 28, 2019) and Mison (Li et al., PVLDB 10(10), 2017), on arrays and tensors.

Scalars are read by an automaton, eight bytes of all of them at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from tqp.data.strings import Strings
from tqp.operators.memory.arrays import Array, as_tensor, in_form_of, running_sums
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.strings import layout
from tqp.operators.strings.words import WORD, word_of, words

QUOTE, BACKSLASH, COMMA, COLON, SPACE = b'"\\,: '
ARRAY, ARRAY_END, OBJECT, OBJECT_END = b"[]{}"
#: The kind of a scalar.
SCALAR = 1
#: The bit by which brackets differ from braces.
_SMALL = ARRAY ^ OBJECT
_LINE_SPACE, _ESCAPED = b"\t\n\r", b'"\\/bfnrt'
#: White space behind a value that is skipped byte by byte; places of other bytes are searched for the end of values with more.
_FEW_SPACES = 8
#: Bytes of documents of which truth values are made at a time on the CPU: with fewer, threads meet at the interpreter lock too often.
_CACHED_BYTES = 1 << 20
#: Longer scalars are left to others.
_LONGEST = 64


class Tokens(NamedTuple):
    """The tokens of n documents that lie one behind the other. Arrays, or tensors."""

    data: Any  # uint8: the bytes of the documents
    starts: Any  # int64 [t + 1], places in the bytes, the last one their end
    kinds: Any  # uint8 [t]: their first bytes, SCALAR of scalars
    first: Any  # int64 [n]: the first token of each document
    counts: Any  # int64 [n]: how many tokens it has
    escapes: Any  # int64: where backslashes stand
    is_rare: Any  # bool [n]: whether there are control characters in texts, escapes by number, or any in keys


def tokens_of(data: Any, begins: Any, ends: Any) -> Tokens | Any:
    """The tokens of documents that are not empty.

    Or bool [n], which of them have a quote without its counterpart, if any have: it would be taken for that of others.
    """
    quotes = data == QUOTE
    is_escape = data == BACKSLASH
    escapes = row_indices(is_escape) if bool(is_escape.any()) else row_indices(is_escape[:0])
    escaped = _escaped(escapes, data)
    if escapes.shape[0]:
        own = take(begins, _document_of(begins, escaped)) < escaped
        escaped = take(escaped, row_indices(own))
        quotes[escaped] = False
    odd, begin_tokens = _structure(data, quotes)
    is_broken = (take(odd, ends - 1) != take(odd, begins)) != take(quotes, begins)
    if bool(is_broken.any()):
        return is_broken
    begin_tokens[begins] = take(data, begins) > SPACE
    starts = row_indices(begin_tokens)
    first = library_of(starts).searchsorted(starts[:-1], begins)
    kinds = take(data, starts[:-1])
    is_scalar = ~(_are_named(kinds) | (kinds == QUOTE))
    kinds *= ~is_scalar
    kinds |= is_scalar
    ends_of_documents = with_last(first[1:], kinds.shape[0])
    is_rare = _are_rare(data, begins, odd, starts, kinds, escapes, escaped)
    return Tokens(data, starts, kinds, first, ends_of_documents - first, escapes, is_rare)


def _structure(data: Any, quotes: Any) -> tuple[Any, Any]:
    """bool [n], bool [n + 1]: whether there is an odd number of quotes up to each byte, from an opening one on up to the closing
    one; and whether a token begins with each, as if there were one document; true of the last one.
    """
    if isinstance(data, np.ndarray):
        return _structure_by_bits(data, quotes)
    odd = (torch.cumsum(quotes, 0, dtype=torch.uint8) & 1).view(torch.bool)
    scalars = (data > SPACE) & ~(odd | quotes)
    named = scalars & _are_named(data)
    scalars &= ~named
    goes_on = torch.zeros_like(scalars)
    goes_on[1:] = scalars[:-1]
    return odd, with_last((quotes & odd) | named | (scalars & ~goes_on), True)


def _structure_by_bits(data: Array, quotes: Array) -> tuple[Array, Array]:
    """As `_structure`: each byte becomes a bit, so that 64 of them are looked at at once."""
    size = data.shape[0]
    quoted, filled, named = (np.zeros((size >> 6) + 1, np.uint64) for _ in range(3))
    for low in range(0, size, _CACHED_BYTES):
        some = data[low : low + _CACHED_BYTES]
        for bits, of_bytes in (
            (quoted, quotes[low : low + _CACHED_BYTES]),
            (filled, some > SPACE),
            (named, _are_named(some)),
        ):
            packed = np.packbits(of_bytes, bitorder="little")
            bits.view(np.uint8)[low >> 3 : (low >> 3) + packed.shape[0]] = packed
    odd = quoted.copy()
    for shift in (1, 2, 4, 8, 16, 32):
        odd ^= odd << shift
    odd[1:] ^= -np.bitwise_xor.accumulate(odd >> 63)[:-1]
    filled &= ~(odd | quoted)
    named &= filled
    scalars = filled ^ named
    goes_on = scalars << 1
    goes_on[1:] |= scalars[:-1] >> 63
    begins = (quoted & odd) | named | (scalars & ~goes_on)
    begins[-1] |= np.uint64(1 << (size & 63))
    return _bools(odd, size), _bools(begins, size + 1)


def _bools(bits: Array, count: int) -> Array:
    return np.unpackbits(bits.view(np.uint8), count=count, bitorder="little").view(np.bool_)


def _are_named(data: Any) -> Any:
    """bool: brackets, commas and colons."""
    folded = data | _SMALL
    result = folded == OBJECT
    result |= folded == OBJECT_END
    result |= data == COMMA
    result |= data == COLON
    return result


def _escaped(escapes: Any, data: Any) -> Any:
    """The places of bytes that are escaped, given those of backslashes: every other one of a run escapes the next byte."""
    if not escapes.shape[0]:
        return escapes
    is_first = library_of(escapes).ones_like(escapes, dtype=bool)
    is_first[1:] = escapes[1:] != escapes[:-1] + 1
    firsts = take(escapes, row_indices(is_first))
    within = escapes - take(firsts, sums(is_first, "int64") - 1)
    places = take(escapes, row_indices((within & 1) == 0)) + 1
    return take(places, row_indices(places < data.shape[0]))


def _are_rare(data: Any, begins: Any, odd: Any, starts: Any, kinds: Any, escapes: Any, escaped: Any) -> Any:
    """See `Tokens`. Control characters between tokens are rare, too, but those that end lines or are tabs."""
    is_rare = library_of(begins).zeros_like(begins, dtype=bool)
    if data.shape[0] and int(data.min()) < SPACE:
        control = row_indices(data < SPACE)
        odd_ones = take(odd, control) | ~_is_any(take(data, control), _LINE_SPACE)
        is_rare[_document_of(begins, take(control, row_indices(odd_ones)))] = True
    if escapes.shape[0] and starts.shape[0]:
        numbered = take(escaped, row_indices(~_is_any(take(data, escaped), _ESCAPED)))
        around = library_of(starts).searchsorted(starts, escapes, side="right") - 1
        behind = take(kinds, (around + 1).clip(0, kinds.shape[0] - 1))
        in_keys = take(escapes, row_indices(behind == COLON))
        is_rare[_document_of(begins, numbered)] = True
        is_rare[_document_of(begins, in_keys)] = True
    return is_rare


def _document_of(begins: Any, places: Any) -> Any:
    return library_of(begins).searchsorted(begins, places, side="right") - 1


# ---- values ----------------------------------------------------------------------------------------------------------


def ends_of(tokens: Tokens, places: Any) -> Any:
    """Where these tokens end, texts or scalars: before the white space before the next token. int64."""
    data = tokens.data
    ends = take(tokens.starts, places + 1)
    spaced = row_indices(take(data, ends - 1) <= SPACE)
    for _ in range(_FEW_SPACES):
        if not spaced.shape[0]:
            return ends
        ends[spaced] -= 1
        spaced = take(spaced, row_indices(take(data, take(ends, spaced) - 1) <= SPACE))
    filled = row_indices(data > SPACE)
    ends[spaced] = take(filled, library_of(filled).searchsorted(filled, take(ends, spaced)) - 1) + 1
    return ends


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


# ---- arrays and tensors ----------------------------------------------------------------------------------------------


def library_of(values: Any) -> Any:
    """Whose functions take the values; those called here have the same names and arguments in both."""
    return np if isinstance(values, np.ndarray) else torch


def sums(values: Any, dtype: str) -> Any:
    """The running sums, in a dtype that may wrap."""
    if isinstance(values, np.ndarray):
        return running_sums(values.view(np.uint8) if values.dtype == bool else values, np.dtype(dtype))
    return torch.cumsum(values, 0, dtype=getattr(torch, dtype))


def _is_any(values: Any, allowed: bytes) -> Any:
    """bool: the bytes that are one of the allowed ones."""
    result = values == allowed[0]
    for each in allowed[1:]:
        result |= values == each
    return result


def places_of(values: Any) -> Any:
    """0, 1, 2 and so on: int64, one for each value."""
    count = values.shape[0]
    return np.arange(count) if isinstance(values, np.ndarray) else torch.arange(count, device=values.device)


def with_last(values: Any, last: int) -> Any:
    """The values, and one more behind them."""
    return in_form_of(values, pad(as_tensor(values), (0, 1), value=last))
