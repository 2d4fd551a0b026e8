"""Functions of several lists: zipped, taken from by another, compared as sets, and how near they are as vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import torch
from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.core.errors import ExecutionError
from tqp.data.backend import is_host
from tqp.data.nested import Lists, Vector, count_of, flattened, take_vector
from tqp.operators.groups.aggregates import count_by_group, least_by_group
from tqp.operators.groups.group_ids import group_ids_of_columns
from tqp.operators.kernel import Kernel, NullRule, Overload
from tqp.operators.nested.elements import (
    Pair,
    aligned,
    element_counts,
    elements_at,
    list_rows,
    lists_of,
    places_in_lists,
    structs_of,
)
from tqp.operators.nested.functions import words_of
from tqp.operators.nested.layout import concatenate_vectors, every_row, every_row_of
from tqp.operators.nested.lists import in_element_form
from tqp.operators.numbers.casts import storage_dtype
from tqp.operators.numbers.logic import any_true, combine_validity
from tqp.operators.rows.batches import common_rows
from tqp.operators.rows.selection import row_indices


def list_zip(*pairs: Pair, truncates: bool) -> tuple[Lists, None]:
    """Lists of rows: the first elements of all lists, then the second ones, ...; NULL behind the end of one.

    With `truncates`, the last argument is a truth value: true where lists end with the shortest.
    """
    *given, last = pairs
    lists = aligned(*(given if truncates else pairs))
    lengths = [each.lengths for each in lists]
    wanted = reduce(torch.maximum, lengths)
    if truncates:
        stops, is_there = last
        assert isinstance(stops, Tensor)
        stops = stops if is_there is None else stops & is_there
        wanted = torch.where(stops, reduce(torch.minimum, lengths), wanted)
    return lists_of(wanted, structs_of(*(_with_lengths(each, wanted) for each in lists)), None), None


def _with_lengths(lists: Lists, lengths: Tensor) -> Pair:
    """So many elements of each list, one list after the other; NULL behind the end of one."""
    if is_host(lengths) and torch.equal(lists.lengths, lengths):
        return flattened(lists)[0]
    return elements_at(lists, None, list_rows(lengths), places_in_lists(lengths) - 1)


def list_select(lists: Lists, indices: Lists, validity: Tensor | None = None) -> Lists:
    """The elements at the indices, counted from 1; NULL where there is none. Raises ExecutionError for an index that is NULL."""
    own, index, lengths = _choices(lists, indices, validity)
    return _elements_at(own, lengths, index.to(torch.int64) - 1)


def list_where(lists: Lists, masks: Lists, validity: Tensor | None = None) -> Lists:
    """The elements where the mask is true; NULL for what it has behind the end of the list. Raises ExecutionError for NULL in it."""
    own, mask, lengths = _choices(lists, masks, validity)
    kept = row_indices(mask)
    places = torch.index_select(places_in_lists(lengths), 0, kept) - 1
    return _elements_at(own, element_counts(lengths, kept), places)


def _choices(lists: Lists, given: Lists, validity: Tensor | None) -> tuple[Lists, Tensor, Tensor]:
    """The lists, the elements of the list that chooses of each, one list after the other, and their counts by row."""
    own, chosen = aligned((lists, None), (given, validity))
    (elements, is_there), lengths = flattened(chosen)
    if is_there is not None and any_true(~is_there):
        raise ExecutionError("a list holds NULL where a number or a truth value is needed; filter it out")
    assert isinstance(elements, Tensor)
    return own, elements, lengths


def _elements_at(lists: Lists, lengths: Tensor, places: Tensor) -> Lists:
    """Lists of such lengths, of the elements at places from 0 that stand one list after the other."""
    return lists_of(lengths, *elements_at(lists, None, list_rows(lengths), places))


#: No list is made longer than this.
_MOST_ELEMENTS = 1 << 37


def list_resize(
    types: tuple[DataType, ...], lists: Pair, sizes: Pair, filling: Pair
) -> tuple[Lists, Tensor | None]:
    """The first elements of each list, as many as asked for; one that has fewer is filled up. A size that is NULL is 0."""
    values, validity = lists
    wanted, is_wanted = sizes
    assert isinstance(values, Lists) and isinstance(wanted, Tensor)
    wanted = wanted.reshape(-1) if is_wanted is None else wanted.reshape(-1) * is_wanted
    fill = Vector(in_element_form(filling[0], types[2]), filling[1])
    num_rows = common_rows((values.num_rows, wanted.shape[0], count_of(fill.values)))
    given = every_row(values, num_rows)
    assert isinstance(given, Lists)
    lengths = wanted.to(torch.int64).expand(num_rows)
    if validity is not None:
        lengths = lengths * validity
    if any_true(lengths > _MOST_ELEMENTS):
        raise ExecutionError(f"a list of more than {_MOST_ELEMENTS} elements; ask for fewer")
    rows, places = list_rows(lengths), places_in_lists(lengths) - 1
    own, starts = (torch.index_select(each, 0, rows) for each in (given.lengths, given.starts))
    beyond = count_of(given.elements.values)
    elements = concatenate_vectors([given.elements, every_row_of(fill, num_rows)])
    taken = take_vector(elements, torch.where(places < own, starts + places, beyond + rows))
    return lists_of(lengths, *taken), validity


def list_repeat(lists: Lists, times: Tensor) -> Lists:
    """The elements of each list so many times; none for less than one."""
    given = every_row(lists, common_rows((lists.num_rows, times.numel())))
    assert isinstance(given, Lists)
    lengths = given.lengths * times.reshape(-1).clamp(min=0).to(torch.int64)
    rows = list_rows(lengths)
    places = (places_in_lists(lengths) - 1) % torch.index_select(given.lengths, 0, rows).clamp(min=1)
    found = torch.index_select(given.starts, 0, rows) + places
    return lists_of(lengths, *take_vector(given.elements, found))


# ---- sets ----


class _Shared:
    """The distinct values of two lists of each row, none of them NULL, and where each stands first in either list.

    `rows`: the row of each value. `first`: by list, the place among all elements of it, -1 where it has no such value.
    """

    def __init__(self, lists: Lists, others: Lists, element: DataType) -> None:
        vectors, lengths = zip(*(flattened(each) for each in (lists, others)), strict=True)
        self.elements = vectors[0]
        rows = [list_rows(each) for each in lengths]
        both = concatenate_vectors(vectors)
        all_rows = torch.cat(rows)
        words = words_of(both.values, both.validity, element)
        device = all_rows.device
        places = torch.cat([torch.arange(each.shape[0], device=device) for each in rows])
        is_other = torch.arange(all_rows.shape[0], device=device) >= rows[0].shape[0]
        if both.validity is not None:
            kept = row_indices(both.validity)
            all_rows, places, is_other = (
                torch.index_select(each, 0, kept) for each in (all_rows, places, is_other)
            )
            words = [torch.index_select(each, 0, kept) for each in words]
        ids, first_rows, count = group_ids_of_columns([all_rows, *words])
        self.rows = torch.index_select(all_rows, 0, first_rows.to(torch.int64))
        self.first = []
        for is_side in (~is_other, is_other):
            hits = row_indices(is_side)
            of_side, its_ids = (torch.index_select(each, 0, hits) for each in (places, ids))
            self.first.append(least_by_group(of_side, its_ids, count))


def list_has(*pairs: Pair, element: DataType, has_all: bool) -> tuple[Tensor, Tensor | None]:
    """bool [n]: has the list a value of the other list, or with `has_all` all values?"""
    lists, others = aligned(*pairs)
    shared = _Shared(lists, others, element)
    in_list, in_other = (first >= 0 for first in shared.first)
    decisive = row_indices((~in_list if has_all else in_list) & in_other)
    found = torch.full_like(lists.lengths, has_all, dtype=torch.bool)
    found[torch.index_select(shared.rows, 0, decisive)] = not has_all
    validity = combine_validity(*(each for _, each in pairs))
    return found, None if validity is None else validity.expand(lists.num_rows)


def list_intersect(*pairs: Pair, element: DataType) -> tuple[Lists, Tensor | None]:
    """The different values that both lists have, in the order of the longer one, or of the second where they are equally long."""
    lists, others = aligned(*pairs)
    shared = _Shared(lists, others, element)
    kept = row_indices((shared.first[0] >= 0) & (shared.first[1] >= 0))
    rows, *first = (torch.index_select(each, 0, kept) for each in (shared.rows, *shared.first))
    is_longer = torch.index_select(lists.lengths > others.lengths, 0, rows)
    order = torch.where(is_longer, first[0], first[1]).argsort(stable=True)
    order = torch.index_select(order, 0, torch.index_select(rows, 0, order).argsort(stable=True))
    vector = take_vector(shared.elements, torch.index_select(first[0], 0, order))
    validity = pairs[0][1]
    return lists_of(count_by_group(rows, lists.num_rows), *vector), (
        None if validity is None else validity.expand(lists.num_rows)
    )


# ---- vectors ----


def _sums(values: Tensor, rows: Tensor, num_rows: int) -> Tensor:
    return torch.zeros(num_rows, dtype=torch.float64, device=values.device).index_add_(0, rows, values)


def _vectors(lists: Lists, others: Lists, validity: Tensor | None) -> list[tuple[Tensor, Tensor]]:
    """Of each side the elements, of which none may be NULL, and the lengths; 0 in rows that do not count."""
    sides = []
    for each in aligned((lists, validity), (others, validity)):
        (values, is_there), lengths = flattened(each)
        if is_there is not None and any_true(~is_there):
            raise ExecutionError("a list that is taken as a vector holds NULL; filter it out")
        assert isinstance(values, Tensor)
        sides.append((values, lengths))
    return sides


def _of_vectors(
    measure: Callable[[Tensor, Tensor, Tensor, int], Tensor], is_cosine: bool, result: torch.dtype
) -> Any:
    """A kernel of two lists of floats of equal lengths."""

    def compute(lists: Lists, others: Lists, validity: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        (left, lengths), (right, other_lengths) = _vectors(lists, others, validity)
        if any_true(lengths != other_lengths):
            raise ExecutionError("two lists that are taken as vectors have different lengths")
        found = measure(left.double(), right.double(), list_rows(lengths), lengths.shape[0]).to(result)
        return found, lengths > 0 if is_cosine else None

    return compute


def _inner_product(left: Tensor, right: Tensor, rows: Tensor, num_rows: int) -> Tensor:
    return _sums(left * right, rows, num_rows)


def _distance(left: Tensor, right: Tensor, rows: Tensor, num_rows: int) -> Tensor:
    return _sums((left - right) ** 2, rows, num_rows).sqrt()


def _cosine(left: Tensor, right: Tensor, rows: Tensor, num_rows: int) -> Tensor:
    product, *squares = (
        _sums(a * b, rows, num_rows) for a, b in ((left, right), (left, left), (right, right))
    )
    return (product / (squares[0] * squares[1]).sqrt()).clamp(-1.0, 1.0)


def cross_product(lists: Lists, others: Lists, validity: Tensor | None = None) -> Lists:
    """The cross products of lists of three floats, as such lists; empty in rows that do not count."""
    (left, lengths), (right, _) = _vectors(lists, others, validity)
    product = torch.linalg.cross(left.reshape(-1, 3), right.reshape(-1, 3))
    return lists_of(lengths, product.reshape(-1), None)


def _vector_kernel(
    measure: Callable[[Tensor, Tensor, Tensor, int], Tensor], is_cosine: bool = False
) -> Overload:
    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
        dtype = storage_dtype(result_type)
        return Kernel(_of_vectors(measure, is_cosine, dtype), checks=True, returns_validity=True)

    return resolve


def _of_elements(function: Callable[..., Any], **options: bool) -> Overload:
    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
        return Kernel(partial(function, element=argument_types[0].element, **options), NullRule.CUSTOM)

    return resolve


def _resolve_zip(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
    return Kernel(partial(list_zip, truncates=not argument_types[-1].has_elements), NullRule.CUSTOM)


SEVERAL_KERNELS: dict[str, Overload] = {
    "list_zip": _resolve_zip,
    "list_select": lambda types, result: Kernel(list_select, checks=True),
    "list_where": lambda types, result: Kernel(list_where, checks=True),
    "list_resize": lambda types, result: Kernel(
        partial(list_resize, types), NullRule.CUSTOM, accepts_wide=True
    ),
    "list_repeat": lambda types, result: Kernel(list_repeat),
    "list_has_any": _of_elements(list_has, has_all=False),
    "list_has_all": _of_elements(list_has, has_all=True),
    "list_intersect": _of_elements(list_intersect),
    "list_inner_product": _vector_kernel(_inner_product),
    "list_negative_inner_product": _vector_kernel(lambda *sides: -_inner_product(*sides)),
    "list_distance": _vector_kernel(_distance),
    "array_cross_product": lambda types, result: Kernel(cross_product, checks=True),
    "list_cosine_similarity": _vector_kernel(_cosine, is_cosine=True),
    "list_cosine_distance": _vector_kernel(lambda *sides: 1 - _cosine(*sides), is_cosine=True),
}
