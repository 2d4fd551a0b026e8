"""Group ids by hashing, and rows by partition of their hash. The groups: a table of row numbers that all rows enter at once, and those that meet another key move on.

For keys too sparse for a table over their range. On the CPU some 5 to 10 ns a row while table and keys fit the cache,
against 16 to 100 for a sort.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.operators import elementwise
from tqp.operators.rows import row_indices, take

#: Odd numbers around 2^64 divided by the golden ratio and by pi: products with them spread the bits of a key upwards.
_SLOT_MULTIPLIER = -0x61C8864680B583EB
_PARTITION_MULTIPLIER = 0x517CC1B727220A95


def partition_rows(keys: Tensor, bits: int, dense: bool = False) -> tuple[Tensor, list[int]]:
    """Distributes integers [n] over 2^bits partitions, 0 < bits < 8, equal ones to the same.

    By their hash, or where they lie `dense`, from 0 on, by their low bits. Returns the rows, int64 [n], partition by
    partition and ascending within one, and where each partition ends.
    """
    numbers = keys & ((1 << bits) - 1) if dense else _high_bits(keys, bits, _PARTITION_MULTIPLIER)
    partitions = numbers.to(torch.int8)
    order = torch.sort(partitions, stable=True)[1]
    return order, torch.bincount(partitions, minlength=1 << bits).cumsum(0).tolist()


def _high_bits(keys: Tensor, bits: int, multiplier: int) -> Tensor:
    """int64 [n] in [0, 2^bits), 0 < bits < 64: the high bits of a hash of integers [n]."""
    spread = elementwise.multiply(keys.to(torch.int64), multiplier)
    return (spread >> (64 - bits)).bitwise_and_((1 << bits) - 1)


def group_by_hash(keys: Tensor) -> tuple[Tensor, Tensor, int]:
    """Groups integers [n] of any range: (group_ids int64 [n], first row of each group int64 [g], g), in no particular order.

    On the CPU only, where of several values scattered to one place the last stays.
    """
    num_rows = keys.shape[0]
    if num_rows == 0:
        return torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), 0
    bits = max(4, (3 * num_rows - 1).bit_length())
    slots = _high_bits(keys, bits, _SLOT_MULTIPLIER)
    table = torch.full((1 << bits,), -1, dtype=torch.int32 if num_rows < 2**31 else torch.int64)
    # from the last row to the first, so that the first row of each key stays
    rows = torch.arange(num_rows - 1, -1, -1, dtype=table.dtype)
    table.scatter_(0, slots.flip(0), rows)
    found = take(keys, take(table, slots))
    waiting = row_indices(elementwise.not_equal(found, keys)).flip(0)
    step = 0
    while waiting.shape[0]:
        # all rows of one key go the same way: one slot on, then two, then three, and stay where it is free
        step += 1
        at = (take(slots, waiting) + step).bitwise_and_((1 << bits) - 1)
        slots.scatter_(0, waiting, at)
        free = row_indices(elementwise.less(take(table, at), 0))
        table.scatter_(0, take(at, free), take(waiting, free).to(table.dtype))
        found = take(keys, take(table, at))
        waiting = take(waiting, row_indices(elementwise.not_equal(found, take(keys, waiting))))
    occupied = row_indices(elementwise.greater_equal(table, 0))
    first_rows = take(table, occupied).to(torch.int64)
    count = occupied.shape[0]
    table.scatter_(0, occupied, torch.arange(count, dtype=table.dtype))
    return take(table, slots).to(torch.int64), first_rows, count
