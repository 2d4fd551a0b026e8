"""Sums of floats over frames as sums of integers, which are exact: where running sums are subtracted, nothing of other frames stays."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from tqp.operators.memory.allocation import Map, empty, one_by_one
from tqp.operators.numbers.elementwise import equal, not_equal
from tqp.operators.numbers.logic import all_true, any_true
from tqp.operators.windows.frames import Range, blocks_of_rows, by_blocks, longest
from tqp.operators.windows.reductions import differences

_SUM_BITS = 62
#: Powers of two by which values are multiplied: none that makes them so small that they lose bits, or infinite.
_SHIFTS = range(900)


def sum_exactly(values: Tensor, ranges: Sequence[Range], share: Map = one_by_one) -> Tensor | None:
    """Sums of float64 [n] of each frame; None where two integers of 64 bits hold not all bits of each value, or not those of sums."""
    if not values.shape[0]:
        return None
    greatest = max(abs(float(extreme)) for extreme in torch.aminmax(values))
    bits = _SUM_BITS - sum(longest([part]) for part in ranges).bit_length()
    shift = bits - math.frexp(greatest)[1] if math.isfinite(greatest) else -1
    if shift not in _SHIFTS:
        return None
    upper, lower = (empty((values.shape[0] + 1,), torch.int64, values.device) for _ in range(2))
    upper[0] = lower[0] = 0

    def split(rows: slice) -> tuple[bool, bool]:
        """Writes both integers of some values: is the second one of any value not 0, and are these all bits?"""
        scaled = values[rows] * 2.0**shift
        whole = torch.trunc(scaled)
        rest = scaled.sub_(whole).mul_(2.0**bits)
        upper[1:][rows], lower[1:][rows] = whole, rest
        return any_true(not_equal(rest, 0.0)), all_true(equal(rest, torch.trunc(rest)))

    first, *others = blocks_of_rows(values)
    found = [split(first)]
    if found[0][1]:
        found += share(split, others)
    if not all(are_all for _, are_all in found):
        return None
    parts = [(upper, 2.0**-shift)]
    if any(has_rest for has_rest, _ in found):
        parts.append((lower, 2.0 ** -(shift + bits)))
    share(lambda part: part[0].cumsum_(0), parts)

    def sums(ranges: Sequence[Range], _: slice) -> tuple[Tensor]:
        found = [differences(running, ranges).to(torch.float64).mul_(unit) for running, unit in parts]
        return (found[0] if len(found) == 1 else found[0].add_(found[1]),)

    return by_blocks(sums, ranges, share)[0]
