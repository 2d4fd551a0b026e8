"""A bit for each byte of a buffer, in words of 64 of them: what is asked of all bytes takes an operation for 64.

The lowest bit of a word is its first byte, so that a shift to the left leads to later bytes. The last word has a bit behind the
end of the buffer at least. Arrays, or tensors: both have the operators that are used here, but for shifts without a sign.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn.functional import pad

from tqp.operators.memory.arrays import as_tensor, in_form_of, running_sums
from tqp.operators.rows.selection import row_indices, take, true_positions

_WORD = 64
#: Bytes of which truth values are made at a time on the CPU, so that they stay in a cache near the processor.
_CACHED_BYTES = 1 << 18
#: So many words are looked at one by one for the next bit, before the next ones of all words are found.
_NEAR_WORDS = 3
_LOW_FIVES, _LOW_THREES, _LOW_FS, _ONES = (
    int.from_bytes(bytes([byte]) * 8, "little") for byte in (0x55, 0x33, 0x0F, 0x01)
)


def bits_where(data: Any, *conditions: Callable[[Any], Any]) -> list[Any]:
    """Of each condition, the bits of the bytes (uint8 [n]) for which it is true: int64 [n // 64 + 1]."""
    if not isinstance(data, np.ndarray):
        return [packed(condition(data)) for condition in conditions]
    found = [np.zeros((data.shape[0] >> 6) + 1, np.int64) for _ in conditions]
    for low in range(0, data.shape[0], _CACHED_BYTES):
        some = data[low : low + _CACHED_BYTES]
        for words, condition in zip(found, conditions, strict=True):
            eights = np.packbits(condition(some), bitorder="little")
            words.view(np.uint8)[low >> 3 : (low >> 3) + eights.shape[0]] = eights
    return found


def bits_of(data: Any, byte: int) -> Any:
    """The bits of a byte."""
    return bits_where(data, is_byte(byte))[0]


def is_byte(byte: int) -> Callable[[Any], Any]:
    """The condition that a byte is this one."""
    return lambda data: data == byte


def bits_at(places: Any, size: int) -> Any:
    """The bits of these places, int64 [m], all different, of a buffer of so many bytes."""
    at = as_tensor(places)
    words = torch.zeros((size >> 6) + 1, dtype=torch.int64, device=at.device)
    return in_form_of(places, words.index_add_(0, at >> 6, 1 << (at & 63)))


def packed(flags: Any) -> Any:
    """The bits of truth values [n], as of `bits_where`."""
    size = flags.shape[0]
    if isinstance(flags, np.ndarray):
        words = np.zeros((size >> 6) + 1, np.int64)
        words.view(np.uint8)[: (size + 7) >> 3] = np.packbits(flags, bitorder="little")
        return words
    filled = pad(flags.to(torch.int64), (0, _WORD - size % _WORD)).view(-1, _WORD)
    return (filled << torch.arange(_WORD, device=flags.device)).sum(1)


def later(words: Any) -> Any:
    """The bit behind each one."""
    result = words << 1
    result[1:] |= words[:-1] < 0
    return result


def earlier(words: Any, distance: int) -> Any:
    """The bits that lie so far before each one."""
    whole, part = divmod(distance, _WORD)
    result = library_of(words).zeros_like(words)
    left = max(words.shape[0] - whole, 0)
    result[:left] = words[whole:]
    if part:
        behind = result[1:] << (_WORD - part)
        result = (result >> part) & ((1 << (_WORD - part)) - 1)
        result[:-1] |= behind
    return result


def odd(words: Any) -> Any:
    """Where the number of bits up to and with each place is odd."""
    shifted = words << 1
    result = words ^ shifted
    for shift in (2, 4, 8, 16, 32):
        shifted = _shifted(result, shift, shifted)
        result ^= shifted
    ends = result < 0
    before = sums(ends, "uint8")[:-1] & 1
    result[1:] ^= -(before.astype(np.int64) if isinstance(before, np.ndarray) else before.to(torch.int64))
    return result


def _shifted(words: Any, distance: int, out: Any) -> Any:
    if isinstance(words, np.ndarray):
        return np.left_shift(words, distance, out=out)
    return torch.bitwise_left_shift(words, distance, out=out)


def first_outside(starts: Any, inside: Any) -> Any:
    """The first place at or behind each start that is not inside. No two starts may lead to one place.

    A sum of two numbers of all bits: a start that is added to a run of bits is carried behind its end.
    """
    total = inside + starts
    if isinstance(total, np.ndarray):
        carries = total.view(np.uint64) < inside.view(np.uint64)
    else:
        carries = ((inside & starts) | ((inside | starts) & ~total)) < 0
    full = total == -1
    if bool((full[1:] & carries[:-1]).any()):  # a word of ones hands on what it gets
        others = places_of(total) * ~full
        carries = take(carries, in_form_of(others, torch.cummax(as_tensor(others), 0).values))
    total[1:] += carries[:-1]
    total &= ~inside
    return total


def count(words: Any) -> int:
    """How many bits there are."""
    return int(_counts(words).sum())


def _counts(words: Any) -> Any:
    """Of each word."""
    if isinstance(words, np.ndarray):
        return np.bitwise_count(words.view(np.uint64))
    pairs = words - ((words >> 1) & _LOW_FIVES)
    fours = (pairs & _LOW_THREES) + ((pairs >> 2) & _LOW_THREES)
    return ((((fours + (fours >> 4)) & _LOW_FS) * _ONES) >> 56) & 0x7F


def places_in(words: Any) -> Any:
    """The places of the bits, ascending: int64."""
    if not isinstance(words, np.ndarray):
        flags = (words.unsqueeze(1) >> torch.arange(_WORD, device=words.device)) & 1
        return torch.nonzero(flags.view(-1)).squeeze(1)
    eights = words.view(np.uint8)
    filled = true_positions(eights != 0)
    some = eights.take(filled)
    lower = some - 1
    filled <<= 3
    if not (some & lower).any():
        filled += np.bitwise_count(lower)
        return filled
    within = np.unpackbits(some, bitorder="little").view(np.bool_).nonzero()[0]
    places = filled.take(within >> 3)
    places += within & 7
    return places


def has_bit(words: Any, places: Any) -> Any:
    """bool: whether there is a bit at each of the places."""
    return ((take(words, places >> 6) >> (places & 63)) & 1) != 0


def next_place(words: Any, places: Any, all_places: Any = None) -> Any:
    """int64: the first bit at or behind each of the ascending places; behind the end of the buffer where there is none.

    `all_places`: those of all bits, if they are known.
    """
    if all_places is None and count(words) == places.shape[0]:  # often one for each
        all_places = places_in(words)
    is_for_each = all_places is not None and all_places.shape == places.shape
    if is_for_each and bool((all_places >= places).all() & (all_places[:-1] < places[1:]).all()):
        return all_places
    at = places >> 6
    found = take(words, at) & (-1 << (places & 63))
    empty, last = row_indices(found == 0), words.shape[0] - 1
    for step in range(_NEAR_WORDS + 1):
        if not empty.shape[0]:
            break
        own = take(at, empty) + 1
        if step == _NEAR_WORDS:
            own = take(_filled_words(words), own.clip(None, last + 1))
        at[empty] = own
        own = take(words, own.clip(None, last))
        found[empty] = own
        empty = take(empty, row_indices(own == 0))
    at <<= 6
    at += _counts((found & -found) - 1)
    return at


def previous_place(words: Any, places: Any) -> Any:
    """int64: the last bit before each of the places; there is one."""
    return take(places_in(words), Ranks(words).at(places) - 1)


def _filled_words(words: Any) -> Any:
    """int64 [w + 1]: the first word from each on that has a bit, w where there is none."""
    size = words.shape[0]
    own = as_tensor(library_of(words).where(words != 0, places_of(words), size))
    following = torch.cummin(own.flip(0), 0).values.flip(0)
    return in_form_of(words, pad(following, (0, 1), value=size))


class Ranks:
    """How many bits there are before a place."""

    def __init__(self, words: Any) -> None:
        self._words = words
        counts = _counts(words)
        self._before = sums(counts, "int64") - counts

    def at(self, places: Any) -> Any:
        """int64: before each of the places."""
        words = places >> 6
        inside = take(self._words, words) & ~(-1 << (places & 63))
        return take(self._before, words) + _counts(inside)


# ---- arrays and tensors ----------------------------------------------------------------------------------------------


def library_of(values: Any) -> Any:
    """Whose functions take the values; those called here have the same names and arguments in both."""
    return np if isinstance(values, np.ndarray) else torch


def sums(values: Any, dtype: str) -> Any:
    """The running sums, in a dtype that may wrap."""
    if isinstance(values, np.ndarray):
        return running_sums(values.view(np.uint8) if values.dtype == bool else values, np.dtype(dtype))
    return torch.cumsum(values, 0, dtype=getattr(torch, dtype))


def places_of(values: Any) -> Any:
    """0, 1, 2 and so on: int64, one for each value."""
    size = values.shape[0]
    return np.arange(size) if isinstance(values, np.ndarray) else torch.arange(size, device=values.device)
