"""Arrays, which are lists of one fixed length; those of FLOAT are vectors, float32 [n, size]."""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.data.nested import Lists, Vector, take_slices
from tqp.operators.numbers.logic import any_true


def checked_arrays(lists: Lists, size: int, validity: Tensor | None = None) -> Lists:
    """The lists themselves. Raises ExecutionError where one of a row that counts has another length."""
    wrong = ~have_length(lists, size)
    if any_true(wrong if validity is None else wrong & validity):
        raise ExecutionError(
            f"a list or an array that is cast to an array of {size} elements has another length"
        )
    return lists


def have_length(lists: Lists, size: int) -> Tensor:
    """bool [n]: has the list so many elements?"""
    return lists.lengths == size


def lists_of_vectors(vectors: Tensor) -> Lists:
    """The rows of float32 [n, size] as lists."""
    count, size = vectors.shape
    starts = torch.arange(count, device=vectors.device) * size
    return Lists(starts, torch.full_like(starts, size), Vector(vectors.reshape(-1), None))


def vectors_of_lists(lists: Lists, size: int, validity: Tensor | None = None) -> Tensor:
    """float32 [n, size] of lists of that length; 0 in rows that do not count. Raises UnsupportedError for NULL in one that does."""
    counted = torch.ones_like(lists.lengths) if validity is None else validity.to(torch.int64)
    taken = take_slices(lists.elements, lists.starts, counted * size)
    if taken.validity is not None and any_true(~taken.validity):
        raise UnsupportedError("NULL in an array of FLOAT is not supported; cast to DOUBLE or filter it out")
    assert isinstance(taken.values, Tensor)
    found = torch.zeros(lists.num_rows, size, dtype=torch.float32, device=lists.starts.device)
    is_counted = counted > 0
    found[is_counted] = taken.values.reshape(-1, size)
    return found
