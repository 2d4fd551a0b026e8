"""Where each of many distinct keys stands: a hash table that is filled once, for all keys together, and only read then.

A key's row number stands in the slot that its hash names in the first level, or, where another key's does, in the next
level, which is as large as the keys left over need. A probe row reads a slot and a key: 8 ns on the CPU where both come from
the last cache. A bit of the slot tells whether a key had to move on, so that most rows whose key there is none end there.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.operators.groups.hash_groups import MULTIPLIERS, high_bits
from tqp.operators.numbers import elementwise
from tqp.operators.rows.selection import row_indices, take

#: Slots of a level, in bits, at least; a larger one has two to four times as many as keys.
_MIN_BITS = 10
#: So few keys that are left over are sorted: the few rows that get there need no level of their own.
_FEW_KEYS = 64


class KeyPlaces:
    """Finds keys among distinct ones, see `place_keys`."""

    __slots__ = ("_keys", "_left_keys", "_left_rows", "_levels")

    def __init__(self, keys: Tensor, levels: list[Tensor], left_keys: Tensor, left_rows: Tensor) -> None:
        self._keys = keys
        # of each slot the row of its key, times two, plus one if keys moved on from there; without a key any row
        self._levels = levels
        self._left_keys, self._left_rows = left_keys, left_rows  # ascending keys that found no slot

    def find(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """(numbers, found) of int64 keys [n]: int32 or int64 [n], the row where the key stands, and bool [n], whether it does.

        Where it does not the number is any row.
        """
        numbers = torch.zeros_like(keys, dtype=torch.int32)
        found = torch.zeros_like(keys, dtype=torch.bool)
        rows: Tensor | None = None  # that have not found their key; None: all
        for number, level in enumerate(self._levels):
            entries = take(level, _slots(keys, level.shape[0].bit_length() - 1, number))
            candidates = entries >> 1
            same = elementwise.equal(take(self._keys, candidates), keys)
            numbers, found = _enter(numbers, rows, candidates), _enter(found, rows, same)
            others = row_indices(elementwise.greater((entries & 1).to(torch.bool), same))
            rows, keys = others if rows is None else take(rows, others), take(keys, others)
            if not others.shape[0]:
                return numbers, found
        if self._left_keys.shape[0]:
            places = torch.searchsorted(self._left_keys, keys).clamp_(max=self._left_keys.shape[0] - 1)
            numbers = _enter(numbers, rows, take(self._left_rows, places))
            found = _enter(found, rows, elementwise.equal(take(self._left_keys, places), keys))
        return numbers, found


def place_keys(keys: Tensor, rows: Tensor | None = None) -> KeyPlaces | None:
    """A table of int64 keys [n], or of those in some `rows` only (integers [m]); None if two of them are equal.

    Keeps the keys, which must not change.
    """
    waiting = keys if rows is None else take(keys, rows)
    dtype = torch.int32 if keys.shape[0] < 2**30 else torch.int64
    left = torch.arange(keys.shape[0], dtype=dtype, device=keys.device) if rows is None else rows.to(dtype)
    levels: list[Tensor] = []
    # In a slot without a key the first row's number may stand: that key is not looked up there, as it has a slot, or moved on.
    empty = int(left[0]) * 2 if left.shape[0] else 0
    while waiting.shape[0] > (_FEW_KEYS if levels else 0) and len(levels) < len(MULTIPLIERS):
        bits = max(_MIN_BITS, (2 * waiting.shape[0]).bit_length())
        slots = _slots(waiting, bits, len(levels))
        level = torch.full((1 << bits,), empty, dtype=dtype, device=keys.device)
        entries = left << 1
        level.scatter_(0, slots, entries)  # one of several for one slot stays
        others = row_indices(elementwise.not_equal(take(level, slots), entries))
        slots, waiting, left = take(slots, others), take(waiting, others), take(left, others)
        stayed = take(level, slots)
        if bool(elementwise.equal(take(keys, stayed >> 1), waiting).any()):
            return None
        level.scatter_(0, slots, stayed | 1)
        levels.append(level)
    waiting, order = torch.sort(waiting)
    if bool(elementwise.equal(waiting[1:], waiting[:-1]).any()):
        return None
    return KeyPlaces(keys, levels, waiting, take(left, order))


def _slots(keys: Tensor, bits: int, level: int) -> Tensor:
    return high_bits(keys, bits, MULTIPLIERS[level])


def _enter(target: Tensor, rows: Tensor | None, values: Tensor) -> Tensor:
    """The target with values in the given rows (int64), or in all."""
    return values if rows is None else target.scatter_(0, rows, values)
