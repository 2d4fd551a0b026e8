"""Maps, which are lists of entries: structs of a key and a value. No key of a map is NULL or stands in it twice."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.core.errors import ExecutionError
from tqp.data.nested import Lists, Structs, Values, Vector, flattened, take_vector
from tqp.data.strings import Strings
from tqp.operators.groups.aggregates import count_by_group, first_by_group, last_by_group
from tqp.operators.groups.frequencies import Frequencies
from tqp.operators.groups.group_ids import group_ids_of_columns
from tqp.operators.kernel import Kernel, NullRule, Overload
from tqp.operators.nested.elements import Pair, aligned, any_element, element_counts, list_rows, lists_of
from tqp.operators.nested.functions import list_concat, words_of
from tqp.operators.numbers import wide
from tqp.operators.numbers.logic import any_true, combine_validity
from tqp.operators.sorting.sort import SortColumn, sort_columns, sort_rows

_NULL_KEY = "a key of a map is NULL; filter such keys out"
_REPEATED_KEY = "a key stands twice in a map; the keys of a map are distinct"


def map_part(maps: Lists, *, place: int) -> Lists:
    """The keys (0) or the values (1) of each map; nothing is moved."""
    assert isinstance(maps.elements.values, Structs)
    return maps._replace(elements=maps.elements.values.fields[place])


def _entries(maps: Lists) -> Lists:
    """The entries of each map, which it is stored as."""
    return maps


def map_of_lists(keys: Lists, values: Lists, validity: Tensor | None = None, *, key_type: DataType) -> Lists:
    """Maps of the keys and the values that stand in the same places of two lists. `validity`: bool [n], the rows that count.

    Raises ExecutionError for lists of different lengths, and for keys that are NULL or stand twice.
    """
    parts, lengths = zip(*map(flattened, aligned((keys, validity), (values, validity))), strict=True)
    if any_true(lengths[0] != lengths[1]):
        raise ExecutionError("the keys and the values of a map are lists of different lengths")
    return checked_maps(lists_of(lengths[0], Structs(parts), None), key_type=key_type)


def checked_maps(maps: Lists, validity: Tensor | None = None, *, key_type: DataType) -> Lists:
    """The maps themselves. Raises ExecutionError where an entry of a row that counts has no key, or one that stands twice."""
    null, repeated = _faults(maps, validity, key_type)
    if any_true(null):
        raise ExecutionError(_NULL_KEY)
    if any_true(repeated):
        raise ExecutionError(_REPEATED_KEY)
    return maps


def have_distinct_keys(maps: Lists, validity: Tensor | None, key_type: DataType) -> Tensor:
    """bool [n]: no key of the map is NULL or stands twice."""
    null, repeated = _faults(maps, validity, key_type)
    return ~(null | repeated)


def _faults(maps: Lists, validity: Tensor | None, key_type: DataType) -> tuple[Tensor, Tensor]:
    """bool [n] each: has the map a key that is NULL, and one that stands twice?"""
    entries, lengths = flattened(maps, validity)
    assert isinstance(entries.values, Structs)
    keys = entries.values.fields[0]
    rows, is_there = list_rows(lengths), combine_validity(keys.validity, entries.validity)
    if is_there is None:
        null = torch.zeros_like(lengths, dtype=torch.bool)
    else:
        null = any_element(lengths, ~is_there)
    first, _ = _first_and_last(rows, Vector(keys.values, is_there), key_type)
    return null, (element_counts(lengths, first) < lengths) & ~null


def _first_and_last(rows: Tensor, keys: Vector, key_type: DataType) -> tuple[Tensor, Tensor]:
    """Of each key of each map, int64: the first and the last of its places among all keys, ordered by the first."""
    words = words_of(keys.values, keys.validity, key_type)
    ids, _, num_groups = group_ids_of_columns([rows, *words])
    first, last = (function(ids, num_groups) for function in (first_by_group, last_by_group))
    order = first.argsort()
    return first[order], last[order]


def map_concat(*pairs: Pair, key_type: DataType) -> tuple[Lists, Tensor | None]:
    """The entries of all maps of a row; of a key that stands in several, the last value, in the place of the first.

    NULL where all maps are.
    """
    joined, _ = list_concat(*pairs)
    entries, lengths = flattened(joined)
    assert isinstance(entries.values, Structs)
    keys, values = entries.values.fields
    first, last = _first_and_last(list_rows(lengths), keys, key_type)
    chosen = Structs((take_vector(keys, first), take_vector(values, last)))
    kept = element_counts(lengths, first)
    present = [is_there for _, is_there in pairs if is_there is not None]
    validity = None
    if len(present) == len(pairs):
        validity = functools.reduce(torch.logical_or, present).expand(joined.num_rows)
    return lists_of(kept, chosen, None), validity


def histograms(found: Frequencies, keys: Vector, compared: Values, num_groups: int) -> Lists:
    """For each group, a map of its distinct values, in their order, to how often it has each.

    `keys`: the values of all rows, `compared`: what compares as these do.
    """
    chosen = take_vector(keys, found.first_rows)
    in_order = take_vector(Vector(compared, None), found.first_rows).values
    assert isinstance(in_order, Tensor | Strings)
    order = sort_rows([SortColumn(found.groups), *sort_columns(in_order, None, False, False)])
    counts = wide.from_narrow(
        torch.index_select(found.counts, 0, order)
    )  # as UBIGINT inside of nested values
    entries = Structs((take_vector(chosen, order), Vector(counts, None)))
    return lists_of(count_by_group(found.groups, num_groups), entries, None)


def _with_key_type(function: Callable[..., Any], **options: Any) -> Overload:
    """A kernel that makes maps, and needs the type of their keys."""

    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
        return Kernel(partial(function, key_type=result_type.element.children[0]), **options)

    return resolve


MAP_KERNELS: dict[str, Overload] = {
    "map": _with_key_type(map_of_lists, checks=True),
    "map_from_entries": _with_key_type(checked_maps, checks=True),
    "map_concat": _with_key_type(map_concat, nulls=NullRule.CUSTOM),
    "map_keys": lambda types, result: Kernel(partial(map_part, place=0)),
    "map_values": lambda types, result: Kernel(partial(map_part, place=1)),
    "map_entries": lambda types, result: Kernel(_entries),
}
