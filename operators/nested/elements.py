"""The elements of lists as rows of their own, and lists and structs of what was computed of them."""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.data.nested import Lists, Structs, Values, Vector, count_of, flattened

#: Values, and which of them are there; None: all.
Pair = tuple[Values, Tensor | None]


def flatten_lists(lists: Lists, kept: Tensor | None) -> tuple[Values, Tensor | None, Tensor]:
    """The elements of the lists that are kept (bool [n]; None: all), their validity, and how many each list has."""
    elements, lengths = flattened(lists, kept)
    return elements.values, elements.validity, lengths


def list_rows(lengths: Tensor) -> Tensor:
    """int64: for each element of lists of such lengths, the number of its list."""
    return torch.repeat_interleave(lengths)


def places_in_lists(lengths: Tensor) -> Tensor:
    """int64: for each element of lists of such lengths, its place in the list, counted from 1."""
    rows = list_rows(lengths)
    before = lengths.cumsum(0) - lengths
    return torch.arange(1, rows.shape[0] + 1, device=lengths.device) - torch.index_select(before, 0, rows)


def count_values(values: Values) -> int:
    """How many there are."""
    return count_of(values)


def lists_of(lengths: Tensor, values: Values, validity: Tensor | None) -> Lists:
    """Lists of such lengths, of values that stand one list after the other."""
    return Lists(lengths.cumsum(0) - lengths, lengths, Vector(values, validity))


def structs_of(*fields: Pair) -> Structs:
    """Structs of the fields, in their order."""
    return Structs(tuple(Vector(*field) for field in fields))
