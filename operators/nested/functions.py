"""Lists made of lists: sorted, without duplicates, joined, flattened; and lists of numbers and of pieces of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow.compute as pc
import torch
from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.core.process.memory_budget import reserve
from tqp.data.nested import Lists, Values, Vector, element_places, flattened, take_slices, take_vector
from tqp.data.repeats import repeated
from tqp.data.strings import Strings
from tqp.operators.groups import distinct_pairs
from tqp.operators.groups.runs import reduce_runs
from tqp.operators.kernel import Kernel, NullRule, Overload
from tqp.operators.nested.elements import (
    Pair,
    aligned,
    element_counts,
    list_rows,
    lists_from_arrow,
    lists_of,
    places_in_lists,
)
from tqp.operators.nested.layout import over_same_elements
from tqp.operators.nested.order_keys import order_key
from tqp.operators.numbers.comparisons import interval_order
from tqp.operators.numbers.wide import raise_where
from tqp.operators.rows.batches import common_rows
from tqp.operators.rows.keys import ordered_bits
from tqp.operators.rows.selection import row_indices
from tqp.operators.sorting.sort import SortColumn, sort_columns, sort_rows
from tqp.operators.string_keys import codes as string_codes
from tqp.operators.strings.characters import index_characters
from tqp.operators.strings.layout import is_contiguous, ordered, to_arrow
from tqp.operators.strings.search import number_before, occurrences


def list_sort(lists: Lists, *how: str, element: DataType, descending: bool) -> Lists:
    """The elements of each list in order: ASC or DESC, then NULLS FIRST or NULLS LAST, which is the default."""
    vector, lengths = flattened(lists)
    return lists_of(lengths, *take_vector(vector, _order(vector, lengths, how, element, descending)))


def list_grade_up(lists: Lists, *how: str, element: DataType) -> Lists:
    """The places, from 1, at which the elements of each list stand that `list_sort` puts first, second, ..."""
    vector, lengths = flattened(lists)
    order = _order(vector, lengths, how, element, descending=False)
    return lists_of(lengths, torch.index_select(places_in_lists(lengths), 0, order.to(torch.int64)), None)


def _order(
    vector: Vector, lengths: Tensor, how: Sequence[str], element: DataType, descending: bool
) -> Tensor:
    """The elements of all lists in the order of each list."""
    values, validity = vector
    words = [word.upper() for word in how]
    comparable: Any = order_key(values, element) if element.is_composed else values
    columns = sort_columns(comparable, validity, descending or "DESC" in words, "NULLS FIRST" in words)
    return sort_rows([SortColumn(list_rows(lengths)), *columns])


def words_of(values: Values, validity: Tensor | None, element: DataType) -> list[Tensor]:
    """Integers that are equal where the values are."""
    if element.is_composed:
        values = order_key(values, element)
    if isinstance(values, Strings):
        return [string_codes.group_codes(values, validity)]
    assert isinstance(values, Tensor)
    if values.is_floating_point():
        return [ordered_bits(values)]
    if values.dim() == 2 and values.shape[1] == 3:
        return [interval_order(values)]
    return [values.to(torch.int8) if values.dtype is torch.bool else values]


def _one_of_each(lists: Lists, element: DataType) -> tuple[Vector, Tensor, Tensor]:
    """All elements, the lengths of the lists, and which are the first of their value in a list; none that is NULL."""
    vector, lengths = flattened(lists)
    words = words_of(*vector, element)
    chosen = distinct_pairs.one_of_each(list_rows(lengths), words, vector.validity)
    return vector, lengths, row_indices(chosen)


def list_distinct(lists: Lists, *, element: DataType) -> Lists:
    """The different values of each list, without NULL."""
    vector, lengths, kept = _one_of_each(lists, element)
    return lists_of(element_counts(lengths, kept), *take_vector(vector, kept))


def list_unique(lists: Lists, *, element: DataType) -> Tensor:
    """int64 [n]: how many different values each list has, without NULL."""
    _, lengths, kept = _one_of_each(lists, element)
    return element_counts(lengths, kept)


def list_concat(*pairs: Pair) -> tuple[Lists, None]:
    """The elements of all lists of a row, one list after the other; one that is NULL has none."""
    parts = over_same_elements(aligned(*pairs))
    starts, lengths = (
        torch.stack([getattr(part, name) for part in parts], dim=1) for name in ("starts", "lengths")
    )
    slices = take_slices(parts[0].elements, starts.reshape(-1), lengths.reshape(-1))
    return lists_of(lengths.sum(1), *slices), None


def flatten(lists: Lists) -> Lists:
    """The elements of the lists of each list; one that is NULL has none."""
    (inner, validity), lengths = flattened(lists)
    assert isinstance(inner, Lists)
    elements, inner_lengths = flattened(inner, validity)
    totals = reduce_runs("sum", inner_lengths, None, lengths)
    return lists_of(totals, *elements)


#: Elements of a list of range() at most.
_LONGEST = 2.0**32


def integer_range(*ends: Tensor, includes_end: bool, validity: Tensor | None = None) -> Lists:
    """Lists of int64: from 0 or a start, by 1 or a step, to an end. Raises ExecutionError for a list of more than 2^32."""
    end, *_ = ends
    start, step = torch.zeros_like(end), torch.ones_like(end)
    if len(ends) > 1:
        start, end = ends[:2]
        step = ends[2] if len(ends) > 2 else step
    given = [each.reshape(-1).to(torch.int64) for each in (start, end, step)]
    num_rows = common_rows(each.shape[0] for each in given)
    start, end, step = (each.expand(num_rows) for each in given)
    moves = torch.where(step == 0, 1, step)
    span = torch.where(step > 0, end - start, start - end) + int(includes_end)
    lengths = torch.div(span + moves.abs() - 1, moves.abs(), rounding_mode="floor").clamp(min=0) * (step != 0)
    about = (end.to(torch.float64) - start.to(torch.float64)) / moves
    is_long = (step != 0) & (about > _LONGEST)
    raise_where(is_long, "a list cannot have more than 2^32 elements", validity)
    lengths = lengths * ~is_long if validity is None else lengths * (~is_long & validity)
    reserve(3 * 8 * int(lengths.sum()))
    rows, places = list_rows(lengths), places_in_lists(lengths) - 1
    values = torch.index_select(start, 0, rows) + places * torch.index_select(step, 0, rows)
    return lists_of(lengths, values, None)


def _characters(strings: Strings) -> Lists:
    """The characters of each text, and one empty piece of an empty one."""
    index = index_characters(strings)
    lengths = index.counts.clamp(min=1)
    place = places_in_lists(lengths) - 1
    index = index.of_rows(list_rows(lengths))
    begin, end = index.byte_offsets(place), index.byte_offsets(place + 1)
    pieces = Strings(index.strings.starts + begin, (end - begin).to(torch.int32), index.strings.data)
    return lists_of(lengths, pieces, None)


def string_split(strings: Strings, separator: str) -> Lists:
    """The pieces of each text between separators, its characters without one.

    No bytes are moved, but for a separator that may overlap itself.
    """
    if not separator:
        return _characters(strings)
    word = separator.encode()
    if any(word.startswith(word[size:]) for size in range(1, len(word))):
        return lists_from_arrow(pc.split_pattern(to_arrow(strings), separator), strings.starts.device)
    strings = ordered(strings)
    starts, stops = strings.starts, strings.starts + strings.lengths
    places = occurrences(strings, word)
    first = number_before(places, starts)
    if len(word) == 1 and is_contiguous(strings):
        count = torch.diff(first, append=torch.full_like(first[:1], places.shape[0]))
    else:
        count = (number_before(places, stops - len(word) + 1) - first).clamp(min=0)
        places = torch.index_select(
            places, 0, element_places(first, count, places.shape[0])
        )  # none between rows
    lengths = count + 1
    pieces = lengths.cumsum(0) - lengths
    behind = repeated(torch.arange(1, count.shape[0] + 1, device=starts.device), count)
    behind += torch.arange(places.shape[0], device=starts.device)
    begin = torch.empty(places.shape[0] + starts.shape[0], dtype=torch.int64, device=starts.device)
    begin.scatter_(0, pieces, starts).scatter_(0, behind, places + len(word))
    size = torch.diff(begin, append=begin[:1]).sub_(len(word)).to(torch.int32)
    pieces += count  # the last ones, which end with the text
    size.scatter_(0, pieces, (stops - torch.index_select(begin, 0, pieces)).to(torch.int32))
    return lists_of(lengths, Strings(begin, size, strings.data), None)


def _of_elements(function: Callable[..., Any], **options: bool) -> Overload:
    """A kernel that needs the type of the elements; texts behind the list are constants."""

    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
        constants = frozenset(range(1, len(argument_types)))
        return Kernel(
            partial(function, element=argument_types[0].element, **options),
            constant_arguments=constants,
        )

    return resolve


FUNCTION_KERNELS: dict[str, Overload] = {
    "list_sort": _of_elements(list_sort, descending=False),
    "list_reverse_sort": _of_elements(list_sort, descending=True),
    "list_grade_up": _of_elements(list_grade_up),
    "list_distinct": _of_elements(list_distinct),
    "list_unique": _of_elements(list_unique),
    "list_concat": lambda types, result: Kernel(list_concat, NullRule.CUSTOM),
    "flatten": lambda types, result: Kernel(flatten),
    "range": lambda types, result: Kernel(partial(integer_range, includes_end=False), checks=True),
    "generate_series": lambda types, result: Kernel(partial(integer_range, includes_end=True), checks=True),
    "string_split": lambda types, result: Kernel(string_split, constant_arguments=frozenset((1,))),
}
