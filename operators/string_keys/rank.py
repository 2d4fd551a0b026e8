"""Number strings in byte order, so that sorting and grouping them become work on integers."""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators.rows.selection import row_indices
from tqp.operators.strings.layout import take
from tqp.operators.strings.words import WORD, order_key, words


def rank(strings: Strings) -> Tensor:
    """Dense ranks in byte order, equal for equal strings: int64 [n], 0 for the least.

    Most significant word first: rows that tie are split by their next word until none can differ.
    """
    num_rows = strings.num_rows
    position = torch.zeros(num_rows, dtype=torch.int64, device=strings.starts.device)
    if num_rows == 0:
        return position
    rows: Tensor | None = None  # the rows still tied with another, None for all
    current = strings
    is_one_group = True
    offset = 0
    while current.num_rows:
        group = position if rows is None else torch.index_select(position, 0, rows)
        word = words(current, offset)
        offset += WORD
        if not torch.equal(word[:-1], word[1:]):
            group, tied = _split(group, order_key(word), is_one_group)
            is_one_group = False
            if rows is None:
                position = group
            else:
                position.index_copy_(0, rows, group)
        else:
            tied = torch.ones_like(word, dtype=torch.bool)
        unfinished = torch.zeros(num_rows, dtype=torch.bool, device=group.device)
        unfinished.index_fill_(0, torch.index_select(group, 0, row_indices(current.lengths > offset)), True)
        kept = row_indices(tied & torch.index_select(unfinished, 0, group))
        rows = kept if rows is None else torch.index_select(rows, 0, kept)
        current = take(current, kept)
    if _has_nul_ties(strings, position):
        position, _ = _split(position, strings.lengths.to(torch.int64))
    return _dense(position)


def _has_nul_ties(strings: Strings, position: Tensor) -> bool:
    """Whether rows at one position differ in length, which takes trailing NUL bytes."""
    length = torch.zeros_like(strings.lengths).index_copy_(0, position, strings.lengths)
    return not torch.equal(torch.index_select(length, 0, position), strings.lengths)


def _split(group: Tensor, key: Tensor, is_one_group: bool = False) -> tuple[Tensor, Tensor]:
    """Split groups by `key`. A group's number is the count of rows in lower groups.

    Returns the new group of each row, int64 [n], and whether another row shares it, bool [n].
    """
    sorted_key, order = key.sort(stable=True)
    if is_one_group:
        sorted_group = group
    else:
        sorted_group, by_group = torch.index_select(group, 0, order).sort(stable=True)
        order = torch.index_select(order, 0, by_group)
        sorted_key = torch.index_select(sorted_key, 0, by_group)
    here = torch.arange(group.shape[0], device=group.device)
    new_group = torch.ones_like(order, dtype=torch.bool)
    new_group[1:] = sorted_group[1:] != sorted_group[:-1]
    new_part = new_group.clone()
    new_part[1:] |= sorted_key[1:] != sorted_key[:-1]
    group_start = (here * new_group).cummax(0).values
    part_start = (here * new_part).cummax(0).values
    alone = new_part.clone()
    alone[:-1] &= new_part[1:]
    split = torch.empty_like(group).index_copy_(0, order, sorted_group + (part_start - group_start))
    return split, torch.empty_like(alone).index_copy_(0, order, ~alone)


def _dense(position: Tensor) -> Tensor:
    used = torch.zeros_like(position).index_fill_(0, position, 1)
    return torch.index_select(used.cumsum(0) - 1, 0, position)
