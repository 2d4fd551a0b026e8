"""Reductions of the rows from the first one of a segment up to each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

States: TypeAlias = tuple[Tensor, ...]
#: combine(a, b, rows_of_a, rows_of_b): the states of rows and of others together. How many rows there are of each is a number, or
#: float64 [n], and 0 of a where nothing is known yet.
Combine: TypeAlias = Callable[[States, States, Tensor | int, Tensor | int], States]


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
