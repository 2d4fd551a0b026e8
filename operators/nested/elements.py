"""The elements of lists as rows of their own, and lists and structs of what was computed of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import pyarrow as pa
import torch
from torch import Tensor

from tqp.data.nested import Lists, Structs, Values, Vector, count_of, flattened, take_vector
from tqp.data.repeats import numbers_of
from tqp.operators.groups.aggregates import count_by_group, least_by_group
from tqp.operators.nested.layout import every_row, take_where
from tqp.operators.rows.batches import common_rows
from tqp.operators.rows.keys import is_ascending, sort_bounded
from tqp.operators.rows.selection import row_indices
from tqp.operators.strings.layout import pieces_from_arrow

#: Values, and which of them are there; None: all.
Pair = tuple[Values, Tensor | None]


def flatten_lists(lists: Lists, kept: Tensor | None) -> tuple[Values, Tensor | None, Tensor, int]:
    """The elements of the lists that are kept (bool [n]; None: all), their validity, how many each list has, and all of them."""
    elements, lengths = flattened(lists, kept)
    return elements.values, elements.validity, lengths, count_of(elements.values)


def aligned(*pairs: Pair) -> list[Lists]:
    """Lists of equal number: one row is repeated as the rows of the others ask for, if they have any. One that is NULL is empty."""
    num_rows = common_rows(count_of(values) for values, _ in pairs)
    found = []
    for values, validity in pairs:
        lists = every_row(values, num_rows)
        assert isinstance(lists, Lists)
        found.append(lists if validity is None else lists._replace(lengths=lists.lengths * validity))
    return found


def list_rows(lengths: Tensor) -> Tensor:
    """int64: for each element of lists of such lengths, the number of its list."""
    return numbers_of(lengths)


def places_in_lists(lengths: Tensor) -> Tensor:
    """int64: for each element of lists of such lengths, its place in the list, counted from 1."""
    rows = list_rows(lengths)
    before = lengths.cumsum(0) - lengths
    return torch.arange(1, rows.shape[0] + 1, device=lengths.device) - torch.index_select(before, 0, rows)


def lists_of(lengths: Tensor, values: Values, validity: Tensor | None) -> Lists:
    """Lists of such lengths, of values that stand one list after the other."""
    return Lists(lengths.cumsum(0) - lengths, lengths, Vector(values, validity))


def lists_of_runs(values: Values, validity: Tensor | None, begins: Tensor, ends: Tensor) -> Lists:
    """Lists of the values `begins` to `ends` (exclusive, int64 [n]), which may overlap."""
    return Lists(begins, ends - begins, Vector(values, validity))


def lists_from_arrow(parts: pa.ListArray, device: torch.device) -> Lists:
    """Texts that Arrow cut apart as lists of their pieces."""
    offsets, pieces = pieces_from_arrow(parts, device)
    return Lists(offsets[:-1], offsets[1:] - offsets[:-1], Vector(pieces, None))


def structs_of(*fields: Pair) -> Structs:
    """Structs of the fields, in their order."""
    return Structs(tuple(Vector(*field) for field in fields))


def filtered_lists(lengths: Tensor, values: Values, validity: Tensor | None, mask: Tensor) -> Lists:
    """As `lists_of`, of the elements that the mask (bool, one for each) keeps."""
    kept = row_indices(mask)
    return lists_of(element_counts(lengths, kept), *take_vector(Vector(values, validity), kept))


def element_counts(lengths: Tensor, kept: Tensor) -> Tensor:
    """How many of the elements of each list are among those kept (int64, places among all elements)."""
    return count_by_group(lists_of_places(lengths, kept), lengths.shape[0])


def lists_of_places(lengths: Tensor, places: Tensor) -> Tensor:
    """int64: the list of each of the places among all elements, which ascend."""
    ends = lengths.cumsum(0)
    if places.shape[0] * _FEW < ends.shape[0]:
        return torch.searchsorted(ends, places, right=True)
    return torch.index_select(list_rows(lengths), 0, places)


#: One place for so many lists is looked for among the ends of these.
_FEW = 16


def any_element(lengths: Tensor, mask: Tensor) -> Tensor:
    """bool: is the mask true for an element of the list?"""
    found = torch.zeros(lengths.shape[0], dtype=torch.bool, device=lengths.device)
    return found.index_fill_(0, lists_of_places(lengths, row_indices(mask)), True)


def first_place(lengths: Tensor, mask: Tensor) -> Tensor:
    """int64: the place, from 1, of the first element of the list for which the mask is true; 0 where there is none."""
    hits = row_indices(mask)
    rows = lists_of_places(lengths, hits)
    before = torch.index_select(lengths.cumsum(0) - lengths, 0, rows)
    return least_by_group(hits + 1 - before, rows, lengths.shape[0]).clamp_(min=0)


def unnested_rows(lists: Sequence[tuple[Lists, Tensor | None]], keeps_rows: bool) -> tuple[Tensor, Tensor]:
    """For each element of the longest list of each row, the row and the place, from 0; of a row without any once if it is kept."""
    lengths = _longest(lists)
    if keeps_rows:
        lengths = lengths.clamp(min=1)
    return list_rows(lengths), places_in_lists(lengths) - 1


def _longest(lists: Sequence[tuple[Lists, Tensor | None]]) -> Tensor:
    counted = [each.lengths if validity is None else each.lengths * validity for each, validity in lists]
    return functools.reduce(torch.maximum, counted)


def elements_at(
    lists: Lists, validity: Tensor | None, rows: Tensor, places: Tensor
) -> tuple[Values, Tensor | None]:
    """The elements of the lists of rows at places from 0, and their validity; NULL outside of a list."""
    lengths = lists.lengths if validity is None else lists.lengths * validity
    starts = torch.index_select(lists.starts, 0, rows)
    inside = (places >= 0) & (places < torch.index_select(lengths, 0, rows))
    return take_where(lists.elements, starts + places, inside)


def is_in_a_list(lists: Sequence[tuple[Lists, Tensor | None]], rows: Tensor, places: Tensor) -> Tensor:
    """bool: is there a list of the row that has an element at the place?"""
    return places < torch.index_select(_longest(lists), 0, rows)


def lists_of_groups(
    values: Values, validity: Tensor | None, ids: Tensor, count: int, counted: Tensor | None
) -> Lists:
    """For each group, of which `ids` [n] are the numbers, a list of its values as they come, of the rows that count."""
    rows = None if counted is None or bool(counted.all()) else row_indices(counted)
    if rows is not None:
        ids = torch.index_select(ids, 0, rows)
    ids = ids.to(torch.int64)
    lengths = count_by_group(ids, count)
    if not is_ascending(ids):
        _, order = sort_bounded(ids, count)
        rows = order if rows is None else torch.index_select(rows, 0, order)
    vector = Vector(values, validity)
    return lists_of(lengths, *(vector if rows is None else take_vector(vector, rows)))
