"""A hash table that numbers integer keys batch by batch: for groups that are few against the rows, whatever their keys.

Keys live in slots: in the slot of the first level that their hash names, or, where another key came before, in a smaller
second level, and so on. A batch of keys that are all known costs one look-up a row in the first level, some 3 ns on the
CPU while the table fits the cache, and a few more for the tenth to third of the rows whose key lives further down.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.operators import allocation, elementwise
from tqp.operators.hash_groups import MULTIPLIERS, high_bits
from tqp.operators.rows import row_indices, take

_LEVELS = 7
_MIN_BITS = 10
_ROWS_AT_ONCE = 131_072
#: So many rows, and so many for each expected key, fill a new table.
_FIRST_ROWS, _FIRST_ROWS_PER_KEY = 4096, 4


class KeyTable:
    """Slots 0 to `size` - 1 for int64 keys. On the CPU only, where one of several values scattered to one place stays."""

    __slots__ = ("_bits", "_first_rows", "_keys", "size")

    def __init__(self, expected_keys: float) -> None:
        self._first_rows = max(_FIRST_ROWS, min(_ROWS_AT_ONCE, int(_FIRST_ROWS_PER_KEY * expected_keys)))
        self._bits = max(_MIN_BITS, int(2 * expected_keys).bit_length())
        self.size = (2 << self._bits) - (2 << (self._bits - _LEVELS))
        # A slot is free while its key is one whose hash is another slot: that needs no table of what is free.
        self._keys = allocation.zeros(self.size, torch.int64, torch.device("cpu"))
        self._keys.numpy()[self._starts()] = 1  # the hash of 0 is slot 0, of 1 another one

    def slots(self, keys: Tensor) -> Tensor | None:
        """int64 [n]: the slots of int64 keys [n], entering those that are new; None if there is no room for some.

        Some of the new keys are in the table also then.
        """
        # the first rows bring most keys, so that later ones find them
        first, self._first_rows = self._first_rows, _ROWS_AT_ONCE
        rest = torch.split(keys[first:], _ROWS_AT_ONCE) if first < keys.shape[0] else ()
        parts = [self._slots(part) for part in (keys[:first], *rest)]
        found = [part for part in parts if part is not None]
        return torch.cat(found) if len(found) == len(parts) else None

    def _slots(self, keys: Tensor) -> Tensor | None:
        slots, found = self._look_up(keys, 0)
        others = row_indices(elementwise.not_equal(found, keys))
        rows, waiting, at, found = others, take(keys, others), take(slots, others), take(found, others)
        for level in range(_LEVELS):
            if level:
                slots.scatter_(0, rows, at)
            start = self._start(level)
            free = row_indices(elementwise.equal(found, elementwise.equal(at, start).to(torch.int64)))
            if free.shape[0]:
                self._keys.scatter_(0, take(at, free), take(waiting, free))
                found = take(self._keys, at)
            others = row_indices(elementwise.not_equal(found, waiting))
            if not others.shape[0]:
                return slots
            rows, waiting = take(rows, others), take(waiting, others)
            if level + 1 < _LEVELS:
                at, found = self._look_up(waiting, level + 1)
        return None

    def keys(self) -> tuple[Tensor, Tensor]:
        """(keys, slots), int64 [m] each, of the keys in the table, ascending by key."""
        taken = elementwise.not_equal(self._keys, 0)
        starts = self._starts()
        taken.numpy()[starts] = self._keys.numpy()[starts] != 1
        slots = row_indices(taken)
        keys, order = torch.sort(take(self._keys, slots))
        return keys, take(slots, order)

    def _starts(self) -> list[int]:
        return [self._start(level) for level in range(_LEVELS)]

    def _start(self, level: int) -> int:
        """The first slot of a level: each has half as many as the one before."""
        return (2 << self._bits) - (2 << (self._bits - level))

    def _look_up(self, keys: Tensor, level: int) -> tuple[Tensor, Tensor]:
        """The slot of each key in a level, and the key that is there."""
        slots = high_bits(keys, self._bits - level, MULTIPLIERS[level % len(MULTIPLIERS)])
        if level:
            slots.add_(self._start(level))
        return slots, take(self._keys, slots)
