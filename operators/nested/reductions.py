"""Lists whose elements are combined in turn: each with what those before it have come to."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.data.nested import Lists, Vector, take_vector
from tqp.operators.nested.elements import elements_at
from tqp.operators.nested.layout import concatenate_vectors
from tqp.operators.rows.selection import row_indices

#: What the elements so far have come to, the next one, its place in the list from 1, and the rows: what they come to with it.
Step = Callable[[Vector, Vector, int, Tensor], Vector]


def reduce_lists(lists: Lists, kept: Tensor | None, initial: Vector, from_first: bool, step: Step) -> Vector:
    """What the elements of each list come to, from `initial` on; of a list that is not `kept`, anything.

    `from_first`: that is the first element, and a list without any is an error.
    Each step is one of all lists that have an element at a place, so there are as many as the longest list has elements.
    """
    lengths = lists.lengths if kept is None else lists.lengths * kept
    rows = torch.arange(lengths.shape[0], device=lengths.device)
    if from_first and bool((lengths == 0 if kept is None else (lengths == 0) & kept).any()):
        raise ExecutionError("a list without elements cannot be reduced; give an initial value")
    place = int(from_first)
    reduced, ended = initial, []
    while True:
        goes_on = torch.index_select(lengths, 0, rows) > place
        left = row_indices(goes_on)
        if left.shape[0] < rows.shape[0] or not rows.shape[0]:
            done = row_indices(~goes_on)
            ended.append((torch.index_select(rows, 0, done), take_vector(reduced, done)))
            if not left.shape[0]:
                break
            rows, reduced = torch.index_select(rows, 0, left), take_vector(reduced, left)
        element = Vector(*elements_at(lists, None, rows, torch.full_like(rows, place)))
        reduced = step(reduced, element, place + 1, rows)
        place += 1
    order = torch.argsort(torch.cat([each for each, _ in ended]))
    return take_vector(concatenate_vectors([each for _, each in ended]), order)
