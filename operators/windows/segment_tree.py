"""Reductions of ranges of rows, put together from those of runs of 1, 2, 4, ... rows: of any ranges, and up to each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from tqp.operators.memory.allocation import Map, one_by_one
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.windows.frames import Range, by_blocks

States: TypeAlias = tuple[Tensor, ...]
#: combine(a, b, rows_of_a, rows_of_b): the states of rows and of others together. How many rows there are of each is a number, or
#: float64 [n], and 0 of a where nothing is known yet.
Combine: TypeAlias = Callable[[States, States, Tensor | int, Tensor | int], States]


class SegmentTree:
    """States of all runs of 2^k rows that begin at a multiple of 2^k, for ranges of `longest` rows at most.

    The reduction is associative, and the order of rows does not matter.
    """

    def __init__(self, leaves: States, combine: Combine, longest: int) -> None:
        self._combine = combine
        self._levels = [leaves]
        for level in range(1, longest.bit_length()):
            pairs = leaves[0].shape[0] // 2 * 2
            left, right = (tuple(state[first:pairs:2] for state in leaves) for first in (0, 1))
            leaves = combine(left, right, 1 << level - 1, 1 << level - 1)
            self._levels.append(leaves)

    def fold(self, ranges: Sequence[Range], identity: Sequence[float], share: Map = one_by_one) -> States:
        """Of the rows of a few ranges together, each [q]; of none the identity."""
        return by_blocks(lambda block, _: self._fold(block, identity), ranges, share)

    def _fold(self, ranges: Sequence[Range], identity: Sequence[float]) -> States:
        num_ranges = ranges[0].begins.shape[0]
        found = tuple(
            leaf.new_full((num_ranges,), each) for leaf, each in zip(self._levels[0], identity, strict=True)
        )
        counts = torch.zeros(num_ranges, dtype=torch.float64, device=found[0].device)

        def merge(chosen: Tensor, nodes: Tensor, level: int) -> None:
            """Adds nodes of a level to what is found of the chosen ranges."""
            if not chosen.shape[0]:
                return
            of_nodes = tuple(take(state, nodes) for state in self._levels[level])
            before = take(counts, chosen)
            merged = self._combine(
                tuple(take(state, chosen) for state in found), of_nodes, before, 1 << level
            )
            for state, new in zip(found, merged, strict=True):
                state.index_copy_(0, chosen, new)
            counts.index_copy_(0, chosen, before + (1 << level))

        for begins, ends in ranges:
            for level in range(len(self._levels)):
                # nodes at the ends of a range that have no other half in it
                is_left = begins < ends
                chosen = row_indices(is_left & ((begins & 1) == 1))
                merge(chosen, take(begins, chosen), level)
                chosen = row_indices(is_left & ((ends & 1) == 1))
                merge(chosen, take(ends, chosen) - 1, level)
                begins, ends = (begins + 1) >> 1, ends >> 1
        return found


def running(leaves: States, combine: Combine, begins: Tensor) -> States:
    """The states of the rows from `begins` (int64 [n], the first row of the segment of each) up to each row, each [n].

    Rows are merged two by two, what is running of the pairs is found in the same way, and gives that of the rows between: no row is
    merged more than twice.
    """
    rows = torch.arange(begins.shape[0], device=begins.device)
    totals = (rows - begins + 1).to(torch.float64)
    return _running(leaves, torch.ones_like(totals), totals, rows == begins, combine)


def _running(states: States, counts: Tensor, totals: Tensor, starts: Tensor, combine: Combine) -> States:
    """As `running`, of states of several rows; if a segment starts in one, of the rows from there on. `totals`: of the counts."""
    num_states = counts.shape[0]
    if num_states < 2:
        return states

    def merged(a: States, b: States, rows_of_a: Tensor, rows_of_b: Tensor, starts_of_b: Tensor) -> States:
        both = combine(a, b, rows_of_a, rows_of_b)
        return tuple(torch.where(starts_of_b, own, new) for own, new in zip(b, both, strict=True))

    first, second = (slice(place, num_states // 2 * 2, 2) for place in (0, 1))
    pairs = merged(_cut(states, first), _cut(states, second), counts[first], counts[second], starts[second])
    of_pairs = torch.where(starts[second], counts[second], counts[first] + counts[second])
    pairs = _running(pairs, of_pairs, totals[second], starts[first] | starts[second], combine)
    before, between = slice((num_states - 1) // 2), slice(2, None, 2)
    others = merged(
        _cut(pairs, before), _cut(states, between), totals[second][before], counts[between], starts[between]
    )
    found = tuple(torch.empty_like(state) for state in states)
    for state, own, odd, even in zip(found, states, pairs, others, strict=True):
        state[:1], state[second], state[between] = own[:1], odd, even
    return found


def _cut(states: States, rows: slice) -> States:
    return tuple(state[rows] for state in states)
