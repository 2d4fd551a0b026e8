"""Lists whose elements are combined in turn: each with what those before it have come to."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.data.nested import Lists, Vector, cut_vector, take_vector
from tqp.operators.nested.layout import concatenate_vectors
from tqp.operators.rows.keys import narrow, sort_codes

#: What the elements so far have come to, the next one, its place in the list from 1, and the rows: what they come to with it.
Step = Callable[[Vector, Vector, int, Tensor], Vector]


def reduce_lists(lists: Lists, kept: Tensor | None, initial: Vector, from_first: bool, step: Step) -> Vector:
    """What the elements of each list come to, from `initial` on; of a list that is not `kept`, anything.

    `from_first`: that is the first element, and a list without any is an error.
    Each step is one of all lists that have an element at a place, so there are as many as the longest list has elements. The longest
    lists come first, so that those which go on are the first ones at every step.
    """
    lengths = lists.lengths if kept is None else lists.lengths * kept
    if from_first and bool((lengths == 0 if kept is None else (lengths == 0) & kept).any()):
        raise ExecutionError("a list without elements cannot be reduced; give an initial value")
    num_rows, longest = lengths.shape[0], int(lengths.max()) if lengths.shape[0] else 0
    _, rows = sort_codes(narrow(longest - lengths, longest + 1))
    starts, reduced = torch.index_select(lists.starts, 0, rows), take_vector(initial, rows)
    longer = (num_rows - torch.bincount(lengths, minlength=longest + 1).cumsum(0)).tolist()
    ended, left = [], num_rows
    for place in range(int(from_first), longest + 1):
        going_on = longer[place]  # lists that have an element at the place, counted from 0
        if going_on < left:
            ended.append(cut_vector(reduced, going_on, left))
            reduced, left = cut_vector(reduced, 0, going_on), going_on
        if left:
            element = take_vector(lists.elements, starts[:left] + place)
            reduced = step(reduced, element, place + 1, rows[:left])
    whole = concatenate_vectors([reduced, *reversed(ended)])
    numbers = torch.arange(num_rows, device=rows.device)
    return take_vector(whole, torch.empty_like(rows).scatter_(0, rows, numbers))
