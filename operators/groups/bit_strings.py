"""Aggregates whose value is a BIT: bit_and, bit_or and bit_xor of BITs, and bitstring_agg of integers."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.core.process.memory_budget import reserve
from tqp.data.strings import Strings
from tqp.operators.groups.aggregates import count_by_group
from tqp.operators.numbers import wide
from tqp.operators.rows.keys import is_ascending, narrow, sort_codes
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.strings import layout
from tqp.operators.strings.bit_strings import COMBINATIONS, ZERO

#: DuckDB's limit.
_MOST_BITS = 1_000_000_000


class BitRange(NamedTuple):
    """The least and the greatest value that bitstring_agg has a bit for, as integers are stored, and how messages show them."""

    low: int
    high: int
    shown: tuple[str, str]


def combined_by_group(
    bits: Strings, group_ids: Tensor, num_groups: int, validity: Tensor | None, which: str
) -> Strings:
    """bit_and, bit_or or bit_xor (`which`) of the valid strings of each group: [num_groups], empty for an empty group.

    Neighbours within a group are combined, half of the rows at a time. Raises ExecutionError for strings of different lengths
    in one group.
    """
    if validity is not None:
        rows = row_indices(validity)
        bits, group_ids = layout.take(bits, rows), take(group_ids, rows)
    if not is_ascending(group_ids):
        order = sort_codes(narrow(group_ids, num_groups))[1]
        bits, group_ids = layout.take(bits, order), take(group_ids, order)
    ids, counts = group_ids.to(torch.int64), count_by_group(group_ids, num_groups)
    while num_groups and int(counts.max()) > 1:
        before = counts.cumsum(0) - counts
        places = torch.arange(ids.shape[0], device=ids.device) - take(before, ids)
        kept = row_indices(places % 2 == 0)
        has_next = take(places, kept) + 1 < take(counts, take(ids, kept))
        first = take(kept, row_indices(has_next))
        pairs = COMBINATIONS[which](layout.take(bits, first), layout.take(bits, first + 1), None)
        bits = layout.replace_rows(layout.take(bits, kept), row_indices(has_next), pairs)
        ids, counts = take(ids, kept), (counts + 1) // 2
    return layout.spread(bits, ids, num_groups)


def bits_of_integers(
    values: Tensor, group_ids: Tensor, num_groups: int, validity: Tensor | None, bounds: BitRange
) -> Strings:
    """bitstring_agg: a bit for each integer from `low` to `high`, 1 for those among the valid values [n] or [n, 2]: [num_groups].

    Raises ExecutionError for a value beyond these, and for too many bits, or none, unless there are no values.
    """
    if validity is not None:
        rows = row_indices(validity)
        values, group_ids = take(values, rows), take(group_ids, rows)
    if not values.shape[0]:
        empty = torch.zeros(num_groups, dtype=torch.int64, device=values.device)
        return Strings(empty, empty.to(torch.int32), empty.new_empty(0, dtype=torch.uint8))
    low, high, (shown_low, shown_high) = bounds
    if low > high:
        raise ExecutionError(
            f"Invalid explicit bitstring range: Minimum ({shown_low}) > maximum ({shown_high})"
        )
    if high - low >= _MOST_BITS:
        raise ExecutionError(
            f"The range between min and max value ({shown_low} <-> {shown_high}) is too large for bitstring aggregation"
        )
    words = wide.widen(values)
    outside = f"A value is outside of provided min and max range ({shown_low} <-> {shown_high})"
    wide.raise_where(wide.outside_bounds(words, low, high), outside)
    width = high - low + 1
    reserve(num_groups * width)
    bits = torch.full((num_groups, width), ZERO, dtype=torch.uint8, device=values.device)
    places = words[:, 1] - wide.from_ints([low], values.device)[:, 1]
    bits.view(-1)[group_ids.to(torch.int64) * width + places] = ZERO + 1
    return layout.of_equal_lengths(bits)
