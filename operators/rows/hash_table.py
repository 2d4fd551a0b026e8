"""A hash table of integer keys: for hash joins, and for groups whose keys are too sparse for a table over their range.

The slot that a key's hash names holds the number of the key. Of several keys that meet in a slot one stays; the others go on to
the next level, which has a quarter as many slots. A bit of the slot says that some did: most keys that are not in the table are
known to be missing at their first slot. The keys themselves lie in the order of their numbers, so a look-up reads a slot and a
key at random: 4 ns on the CPU where both lie in the second cache.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.core.process.memory_budget import reserve
from tqp.data.backend import is_host
from tqp.operators.memory import allocation
from tqp.operators.numbers import elementwise
from tqp.operators.rows.keys import high_bits
from tqp.operators.rows.selection import row_indices, take

#: Odd numbers: products with them spread the bits of a key upwards. Levels take turns with them.
MULTIPLIERS = (-0x61C8864680B583EB, -0x2AF7A1D56C8D5C93, 0x4D2C6DFC5AC42AED, 0x2545F4914F6CDD1D)
#: Keys that find no slot in so many levels ask for a table with twice as many slots.
_LEVELS = 8
#: A key that is looked up: its slot, what stands there, the number and the key that it means, and the key that it has.
_BYTES_OF_A_LOOKUP = 5 * 8
#: Slots of a level, in bits, at least.
_LEAST_BITS = 10
#: There are at least twice as many slots in the first level as keys; and so many times more, in bits, while one core's caches
#: hold them: each key that has to go on costs ten times as much.
_CACHED_BITS, _MORE_BITS = 18, 4
#: As many, where each key is looked up only once: to clear more slots costs more than they save.
_BITS_USED_ONCE = 16
#: Keys that an empty table that grows has room for, in bits, at least.
_LEAST_KEY_BITS = 9
#: And at most: an estimate of a product of many relations may be any number.
_MOST_KEY_BITS = 24
#: As many rows as read each line of the table several times, so that it comes to the second cache once for all of them.
_ROWS_AT_ONCE = 262_144
#: So many rows, and so many for each expected key, fill an empty table: they bring most keys, and later rows find them. Four
#: times as many follow, and so on.
_FIRST_ROWS, _FIRST_ROWS_PER_KEY = 4096, 2


class HashTable:
    """Tells the numbers of int64 keys."""

    __slots__ = ("_bits", "_keys", "_levels", "_next_rows", "count")

    def __init__(self, keys: Tensor, num_keys: int, cached_bits: int = _CACHED_BITS) -> None:
        """An empty table with slots for so many keys. `keys`: by their number, or room for them."""
        self._keys, self._bits = keys, _slot_bits(num_keys, cached_bits)
        # Of each slot the number of its key, with the sign bit if keys moved on from there. 0 stands in slots without a key:
        # what is compared there is key 0, which has another slot.
        self._levels: list[Tensor] = []
        self.count = 0
        self._next_rows = max(_FIRST_ROWS, min(_ROWS_AT_ONCE, _FIRST_ROWS_PER_KEY * self.capacity))

    @property
    def capacity(self) -> int:
        """So many keys have room; a table that grows has more."""
        return self._keys.shape[0]

    def keys(self) -> Tensor:
        """int64 [count]: the inserted keys by their number. A view."""
        return self._keys[: self.count]

    def find(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """(numbers, found) of int64 keys [n]: int32 or int64 [n], and bool [n], whether the key is there; if not, any number."""
        reserve(_BYTES_OF_A_LOOKUP * keys.shape[0])
        numbers = torch.zeros_like(keys, dtype=torch.int32)
        found = torch.zeros_like(keys, dtype=torch.bool)
        rows: Tensor | None = None  # that have not found their key; None: all
        for level, slots in enumerate(self._levels):
            entries = take(slots, self._places(keys, level))
            candidates = _number(entries)
            same = elementwise.equal(take(self._keys, candidates), keys)
            numbers, found = _put(numbers, rows, candidates), _put(found, rows, same)
            others = row_indices(elementwise.greater(elementwise.less(entries, 0), same))
            if not others.shape[0]:
                break
            rows, keys = others if rows is None else take(rows, others), take(keys, others)
        return numbers, found

    def insert(self, keys: Tensor) -> Tensor:
        """int64 [n]: the numbers of int64 keys [n]. New keys get the next ones, in any order."""
        numbers = torch.empty_like(keys)
        start = 0
        while start < keys.shape[0]:
            part = slice(start, start + self._next_rows)
            numbers[part] = self._insert(keys[part])
            start, self._next_rows = part.stop, min(4 * self._next_rows, _ROWS_AT_ONCE)
        return numbers

    def _insert(self, keys: Tensor) -> Tensor:
        if not self._levels:
            return self._insert_new(keys)
        # most keys are in the first level
        numbers = _number(take(self._levels[0], self._places(keys, 0)))
        others = row_indices(elementwise.not_equal(take(self._keys, numbers), keys))
        if others.shape[0]:
            keys = take(keys, others)
            found_numbers, found = self.find(keys)
            numbers.scatter_(0, others, found_numbers)
            new = row_indices(~found)
            if new.shape[0]:
                numbers.scatter_(0, take(others, new), self._insert_new(take(keys, new)))
        return numbers

    def _insert_new(self, keys: Tensor) -> Tensor:
        if is_host(keys):
            ids, first_rows, _ = group_by_hash(keys)
            distinct = take(keys, first_rows)
        else:
            distinct, ids = torch.unique(keys, return_inverse=True)
        ids += self.count
        self._append(distinct)
        return ids.to(torch.int32)

    def _append(self, keys: Tensor) -> None:
        """Gives the next numbers to keys that are not there, no two of them equal."""
        first, self.count = self.count, self.count + keys.shape[0]
        if has_grown := self.count > self.capacity:
            room = self._keys.new_empty(1 << (self.count - 1).bit_length())
            room[:first] = self._keys[:first]
            self._keys, self._bits = room, _slot_bits(room.shape[0], _CACHED_BITS)
        self._keys[first : self.count] = keys
        if has_grown or self._enter(keys, self._numbers_from(first)) is None:
            self.fill(self.keys(), self._numbers_from(0))

    def _numbers_from(self, first: int) -> Tensor:
        """Entries for the slots of new keys. That of key 0 has the sign bit in any case, so that its slot does not look free."""
        numbers = torch.arange(first, self.count, dtype=torch.int32, device=self._keys.device)
        if not first:
            numbers[0] = torch.iinfo(torch.int32).min
        return numbers

    def fill(self, keys: Tensor, numbers: Tensor) -> Tensor:
        """As `_enter`, of all keys that the table is to hold, with as many slots as it takes."""
        self._levels = []
        while (known := self._enter(keys, numbers)) is None:
            self._bits, self._levels = self._bits + 1, []
        return known

    def _enter(self, keys: Tensor, numbers: Tensor) -> Tensor | None:
        """Enters keys [n] by their numbers [n], of equal ones the last. Returns the number entered for each key [n].

        None if some find no slot. On other devices than the CPU it may be any of equal keys.
        """
        known, rows = numbers, None
        for level in range(_LEVELS if keys.shape[0] else 0):
            places = self._places(keys, level)
            if level == len(self._levels):
                slots = allocation.zeros(1 << self._level_bits(level), numbers.dtype, keys.device)
                self._levels.append(slots.scatter_(0, places, numbers))
            else:
                slots = self._levels[level]
                free = row_indices(elementwise.equal(take(slots, places), 0))
                slots.scatter_(0, take(places, free), take(numbers, free))
            entered = take(slots, places)
            candidates = _number(entered)
            known = _put(known, rows, candidates)
            others = row_indices(elementwise.not_equal(take(self._keys, candidates), keys))
            if not others.shape[0]:
                return known
            slots.scatter_(0, take(places, others), take(entered, others) | torch.iinfo(entered.dtype).min)
            rows = others if rows is None else take(rows, others)
            keys, numbers = take(keys, others), take(numbers, others)
        return None if keys.shape[0] else known

    def _places(self, keys: Tensor, level: int) -> Tensor:
        return high_bits(keys, self._level_bits(level), MULTIPLIERS[level % len(MULTIPLIERS)])

    def _level_bits(self, level: int) -> int:
        return max(_LEAST_BITS, self._bits - 2 * level)


def empty_table(expected_keys: float, device: torch.device) -> HashTable:
    """A table that grows. `expected_keys`: an estimate, which may be infinite."""
    room = 1 << max(_LEAST_KEY_BITS, int(min(expected_keys, (1 << _MOST_KEY_BITS) - 1)).bit_length())
    return HashTable(torch.empty(room, dtype=torch.int64, device=device), room)


def table_of_rows(keys: Tensor, rows: Tensor | None = None) -> HashTable | None:
    """Finds the rows of int64 keys [n], or of those in some ascending `rows` only; None if two of them are equal.

    Keeps the keys, which must not change.
    """
    entered, numbers = keys, _row_numbers(keys.shape[0], keys.device)
    if rows is not None:
        entered, numbers = take(keys, rows), rows.to(numbers.dtype)
        if rows.shape[0] and int(rows[0]):  # key 0 must not be found in a slot without a key
            keys = keys.clone()
            keys[0] = entered[0]
    table = HashTable(keys, entered.shape[0])
    return table if torch.equal(table.fill(entered, numbers), numbers) else None


def is_last_equal(keys: Tensor) -> Tensor:
    """bool [n]: is the row the last one with its value, of integers [n]? On the CPU only."""
    rows = _row_numbers(keys.shape[0])
    return elementwise.equal(HashTable(keys, keys.shape[0], _BITS_USED_ONCE).fill(keys, rows), rows)


def group_by_hash(keys: Tensor) -> tuple[Tensor, Tensor, int]:
    """Groups integers [n]: (group ids int64 [n], first row of each group int64 [g], g), in row order. On the CPU only."""
    rows = _row_numbers(keys.shape[0])
    # of equal keys that are entered the last one stays
    first = HashTable(keys, keys.shape[0], _BITS_USED_ONCE).fill(keys.flip(0), rows.flip(0)).flip(0)
    first_rows = row_indices(elementwise.equal(first, rows))
    count = first_rows.shape[0]
    ids = torch.empty(keys.shape[0], dtype=torch.int64)  # read at first rows only
    ids.scatter_(0, first_rows, torch.arange(count))
    return take(ids, first), first_rows, count


def _slot_bits(num_keys: int, cached_bits: int) -> int:
    """Bits of the number of slots in the first level."""
    least = max(num_keys - 1, 0).bit_length() + 1
    return max(least, min(least + _MORE_BITS, cached_bits))


def _row_numbers(num_rows: int, device: torch.device | None = None) -> Tensor:
    return torch.arange(num_rows, dtype=torch.int32 if num_rows < 2**31 else torch.int64, device=device)


def _number(entries: Tensor) -> Tensor:
    return entries & torch.iinfo(entries.dtype).max


def _put(target: Tensor, rows: Tensor | None, values: Tensor) -> Tensor:
    """The target with values in the given rows (int64), or in all."""
    return values if rows is None else target.scatter_(0, rows, values)
