"""Group ids by hashing, and rows by partition of their hash. The groups: a table of row numbers that all rows enter at once, and those that meet another key move on.

For keys too sparse for a table over their range. On the CPU some 6 to 8 ns a row while table and keys fit the cache,
against 16 to 100 for a sort.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.numbers import elementwise
from tqp.operators.rows.selection import row_indices, take

#: Odd numbers: products with them spread the bits of a key upwards. One for each table that a key may move on to ...
MULTIPLIERS = (-0x61C8864680B583EB, -0x2AF7A1D56C8D5C93, 0x4D2C6DFC5AC42AED, 0x2545F4914F6CDD1D)
# ... and one for partitions.
_PARTITION_MULTIPLIER = 0x517CC1B727220A95
_ALL_BITS = (1 << 64) - 1
#: So few keys that met another one are sorted: a table of their own would be another dozen calls, and one more after it.
_FEW_KEYS = 1024


def partition_rows(keys: Tensor, bits: int, dense: bool = False) -> tuple[Tensor, list[int]]:
    """Distributes integers [n] over 2^bits partitions, 0 < bits < 8, equal ones to the same.

    By their hash, or where they lie `dense`, from 0 on, by their low bits. Returns the rows, int64 [n], partition by
    partition and ascending within one, and where each partition ends.
    """
    numbers = keys & ((1 << bits) - 1) if dense else high_bits(keys, bits, _PARTITION_MULTIPLIER)
    if is_host(keys):  # three quarters of torch's time
        array = numbers.numpy().astype(np.uint8)
        places = array.argsort(kind="stable")
        ends = array.searchsorted(np.arange(1 << bits, dtype=np.uint8), "right", sorter=places)
        return torch.from_numpy(places), ends.tolist()
    partitions = numbers.to(torch.int8)
    order = torch.sort(partitions, stable=True)[1]
    return order, torch.bincount(partitions, minlength=1 << bits).cumsum(0).tolist()


def high_bits(keys: Tensor, bits: int, multiplier: int) -> Tensor:
    """int64 [n] in [0, 2^bits), 0 < bits < 64: the high bits of a hash of integers [n]."""
    if not is_host(keys):
        return ((keys.to(torch.int64) * multiplier) >> (64 - bits)).bitwise_and_((1 << bits) - 1)
    spread = keys.to(torch.int64).numpy().view(np.uint64) * np.uint64(multiplier & _ALL_BITS)
    np.right_shift(spread, np.uint64(64 - bits), out=spread)
    return torch.from_numpy(spread.view(np.int64))


def group_by_hash(keys: Tensor) -> tuple[Tensor, Tensor, int]:
    """Groups integers [n] of any range: (group_ids int64 [n], first row of each group int64 [g], g), in row order.

    On the CPU only.
    """
    first = first_equal_rows(keys)
    first_rows = own_rows(first)
    count = first_rows.shape[0]
    numbers = torch.empty(keys.shape[0], dtype=torch.int64)  # read at first rows only
    numbers.scatter_(0, first_rows, torch.arange(count))
    return take(numbers, first), first_rows, count


def own_rows(first: Tensor) -> Tensor:
    """Ascending rows, int64 [g], that are the first with their key, of what `first_equal_rows` answers."""
    return row_indices(elementwise.equal(first, torch.arange(first.shape[0], dtype=first.dtype)))


def first_equal_rows(keys: Tensor) -> Tensor:
    """For each of the integers [n], the first row that has it: int32 [n], int64 from 2^31 rows on.

    On the CPU only, where of several values scattered to one place the last stays.
    """
    first, others = _enter(keys, 0)
    step, rows = 0, others
    while others.shape[0]:
        # keys that met another one in their slot go on to a table of their own: all rows of a key, or none
        step += 1
        found, others = _enter(take(keys, rows), step)
        first.scatter_(0, rows, take(rows, found).to(first.dtype))
        rows = take(rows, others)
    return first


def _enter(keys: Tensor, step: int) -> tuple[Tensor, Tensor]:
    """(first row with the key of each row, rows for which this says nothing: int64, ascending).

    Every row enters its number into the slot of its key, the first row last, and asks who is there in the end.
    """
    num_rows = keys.shape[0]
    if step and num_rows < _FEW_KEYS:
        _, places, numbers = np.unique(keys.numpy(), return_index=True, return_inverse=True)
        return torch.from_numpy(places[numbers]), torch.empty(0, dtype=torch.int64)
    slots = _slots(keys, step)
    first = _last_in_slots(slots, slots.flip(0), _row_numbers(num_rows).flip(0))
    return first, row_indices(elementwise.not_equal(take(keys, first), keys))


def last_of_each(keys: Tensor) -> Tensor:
    """bool [n]: is the row the last one with its value, of integers [n]? On the CPU only."""
    chosen = torch.empty(0, dtype=torch.bool)
    step, rows = 0, None
    while step == 0 or keys.shape[0]:
        if rows is not None and keys.shape[0] < _FEW_KEYS:
            places = keys.shape[0] - 1 - np.unique(keys.numpy()[::-1], return_index=True)[1]
            chosen.numpy()[rows.numpy()[places]] = True
            break
        numbers, slots = _row_numbers(keys.shape[0]), _slots(keys, step)
        last = _last_in_slots(slots, slots, numbers)
        is_last = elementwise.equal(last, numbers)
        chosen = is_last if rows is None else chosen.scatter_(0, rows, is_last)
        # the others have the key of their slot's last row, or go on to a table of their own: all rows of a key, or none
        others = row_indices(elementwise.not_equal(last, numbers))
        waiting = take(keys, others)
        left = row_indices(elementwise.not_equal(waiting, take(keys, take(last, others))))
        others = take(others, left)
        step, rows, keys = step + 1, others if rows is None else take(rows, others), take(waiting, left)
    return chosen


def _slots(keys: Tensor, step: int) -> Tensor:
    """int64 [n]: places of the keys in a table of twice to four times as many."""
    return high_bits(keys, max(4, (2 * keys.shape[0]).bit_length()), MULTIPLIERS[step % len(MULTIPLIERS)])


def _row_numbers(num_rows: int) -> Tensor:
    return torch.arange(num_rows, dtype=torch.int32 if num_rows < 2**31 else torch.int64)


def _last_in_slots(slots: Tensor, entered: Tensor, numbers: Tensor) -> Tensor:
    """What the table holds in each slot when the numbers have been entered, the last ones last.

    Slots that nobody entered are never read, so the table needs no clearing.
    """
    table = torch.empty(1 << max(4, (2 * slots.shape[0]).bit_length()), dtype=numbers.dtype)
    table.scatter_(0, entered, numbers)
    return take(table, slots)
