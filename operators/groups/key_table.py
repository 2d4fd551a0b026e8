"""A hash table that numbers integer keys batch by batch: for groups that are few against the rows, whatever their keys.

A key's number lies in the place that its hash names in the table's first level, or, where another key came before, in a
smaller second level, and so on; the keys themselves lie in the order of their numbers. So what a row reads at random is
small: an int32 among the places, and a key. A batch of keys that are all known costs these two look-ups a row, 2 to 3 ns
on the CPU while both are in the second cache. A row whose key lies further down costs ten times as much: so there are
many times as many places as keys where the cache holds them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.operators.groups.hash_groups import MULTIPLIERS, high_bits
from tqp.operators.numbers import elementwise
from tqp.operators.rows.selection import row_indices, take

_LEVELS = 7
#: Bits of the number of keys that have room, at least.
_LEAST_KEY_BITS = 9
#: Bits of the number of places in the first level: that one core's caches hold; and as many more than it takes for twice as
#: many places as keys.
_CACHED_BITS, _MORE_BITS = 18, 4
#: As many rows as read each line of the table several times, so that it comes to the second cache once for all of them.
_ROWS_AT_ONCE = 262_144
#: As many rows at most go on together to the further levels: two workers that make many short calls wait for each other at
#: the interpreter lock.
_MOST_ROWS = 1_048_576
#: So many rows, and so many for each expected key, fill a new table: they bring most keys, and later rows find them. Four times
#: as many follow, and so on.
_FIRST_ROWS, _FIRST_ROWS_PER_KEY = 4096, 2


class KeyTable:
    """Numbers int64 keys from 0 on. On the CPU only, where one of several values scattered to one place stays."""

    __slots__ = ("_bits", "_key_bits", "_keys", "_next_rows", "_numbers", "count")

    def __init__(self, expected_keys: float) -> None:
        self._next_rows = max(_FIRST_ROWS, min(_ROWS_AT_ONCE, int(_FIRST_ROWS_PER_KEY * expected_keys)))
        self._set_bits(max(_LEAST_KEY_BITS, int(expected_keys).bit_length()))
        self.count = 0
        self._keys = torch.empty(self.capacity, dtype=torch.int64)
        # Key 0, the first to come, is in no place. A place without a key has 0, too: there key 0 is found, and others are not.
        self._numbers = self._empty_places()

    @property
    def capacity(self) -> int:
        """So many keys have room; a table that grows has more."""
        return 1 << self._key_bits

    def keys(self) -> Tensor:
        """int64 [count]: the keys by their number. A view."""
        return self._keys[: self.count]

    def numbers(self, keys: Tensor) -> Tensor:
        """int64 [n]: the numbers of int64 keys [n]. New keys get the next ones, in any order."""
        numbers = torch.empty(keys.shape[0], dtype=torch.int64)
        if not self.count and keys.shape[0]:
            self._keys[0], self.count = keys[0], 1
        start = 0
        while start < keys.shape[0]:
            part = slice(start, start + self._next_rows)
            while not self._number(keys[part], numbers[part]):
                self._grow()
            start, self._next_rows = part.stop, min(4 * self._next_rows, _MOST_ROWS)
        return numbers

    def _number(self, keys: Tensor, numbers: Tensor) -> bool:
        """Sets the numbers of some rows' keys; False if there is no room for some. Some of the new keys are there also then."""
        rows = self._look_up(keys, numbers)  # that have not found their key
        keys, found = take(keys, rows), take(numbers, rows)
        for level in range(_LEVELS):
            if level:
                rows, keys, found = self._look_further(level, rows, keys, numbers)
            if not rows.shape[0]:
                return True
            free = row_indices(elementwise.equal(found, 0))
            if free.shape[0]:
                if not self._enter(take(keys, free), level):
                    return False
                rows, keys, _ = self._look_further(level, rows, keys, numbers)
        return not rows.shape[0]

    def _look_up(self, keys: Tensor, numbers: Tensor) -> Tensor:
        """Sets the numbers that the first level has in the keys' places, and answers the rows that are of other keys."""
        others = []
        for start in range(0, keys.shape[0], _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            found = take(self._numbers, self._places(keys[part], 0))
            others.append(row_indices(elementwise.not_equal(take(self._keys, found), keys[part])).add_(start))
            numbers[part].copy_(found)
        return others[0] if len(others) == 1 else torch.cat(others)

    def _look_further(
        self, level: int, rows: Tensor, keys: Tensor, numbers: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `_look_up`, in a level, for some rows and their keys: (rows, keys, numbers in their places) of other keys."""
        found = take(self._numbers, self._places(keys, level))
        numbers.scatter_(0, rows, found.to(torch.int64))
        others = row_indices(elementwise.not_equal(take(self._keys, found), keys))
        return take(rows, others), take(keys, others), take(found, others)

    def _enter(self, keys: Tensor, level: int) -> bool:
        """Numbers one key for each of their places, of which none has one; False if there is no room: the table has to grow."""
        places = self._places(keys, level)
        rows = torch.arange(self.count, self.count + keys.shape[0], dtype=torch.int32)
        self._numbers.scatter_(0, places, rows)
        entered = row_indices(elementwise.equal(take(self._numbers, places), rows))
        end = self.count + entered.shape[0]
        if end > self.capacity:
            return False
        self._keys[self.count : end] = take(keys, entered)
        self._numbers.scatter_(0, take(places, entered), rows[: entered.shape[0]])
        self.count = end
        return True

    def _grow(self) -> None:
        """Twice as many places, or as many times more as it takes for all keys."""
        keys, placed = self.keys(), False
        while not placed:
            self._set_bits(self._key_bits + 1)
            self._numbers = self._empty_places()
            placed = self._place(keys)
        self._keys = torch.empty(self.capacity, dtype=torch.int64)
        self._keys[: self.count] = keys

    def _place(self, keys: Tensor) -> bool:
        """Fills an empty table with the numbers of all keys; False if some find no place."""
        numbers = torch.arange(1, self.count, dtype=torch.int32)
        keys = keys[1:]
        for level in range(_LEVELS):
            places = self._places(keys, level)
            self._numbers.scatter_(0, places, numbers)
            others = row_indices(elementwise.not_equal(take(self._numbers, places), numbers))
            numbers, keys = take(numbers, others), take(keys, others)
        return not keys.shape[0]

    def _set_bits(self, key_bits: int) -> None:
        """Room for 2^key_bits keys, and at least twice as many places in the first level."""
        self._key_bits, least = key_bits, key_bits + 1
        self._bits = max(least, min(least + _MORE_BITS, _CACHED_BITS))

    def _empty_places(self) -> Tensor:
        bits = self._bits
        return torch.zeros((2 << bits) - (2 << (bits - _LEVELS)), dtype=torch.int32)

    def _places(self, keys: Tensor, level: int) -> Tensor:
        """int64 [n]: the place of each key in a level. Each level has half as many as the one before."""
        bits = self._bits
        places = high_bits(keys, bits - level, MULTIPLIERS[level % len(MULTIPLIERS)])
        return places.add_((2 << bits) - (2 << (bits - level))) if level else places
